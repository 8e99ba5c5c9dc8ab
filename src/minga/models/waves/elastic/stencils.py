"""Orders of the staggered differences, and the images of waves beyond the ends of the grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from minga.errors import CaseError
from minga.models.waves.stencils import halfway_weights

__all__ = ["ORDERS", "Image", "even", "extrapolated", "nothing", "odd", "staggered_weights"]

ORDERS: Final = (2, 4, 8, 12)

Image = Callable[[int], Mapping[int, int]]
"""Ghost cell number k of an end (1 is nearest) by the cells from that end (0 is nearest): their numbers and factors."""


def staggered_weights(order: int) -> tuple[Fraction, ...]:
    """Return the weights c of a first derivative halfway between cells of unit spacing.

    The derivative is the sum of c[k - 1] * (u[k] - u[1 - k]) over k = 1 .. order / 2.
    """
    if not isinstance(order, int) or order not in ORDERS:
        raise CaseError(
            f"there are no staggered differences of order {order!r}",
            key="elastic.order",
            remedy=f"choose one of {', '.join(map(str, ORDERS))}",
        )
    return halfway_weights(order // 2)


def nothing(_: int) -> Mapping[int, int]:
    """Return no cells: waves are 0 beyond the end."""
    return {}


def even(ghost: int) -> Mapping[int, int]:
    """Return the mirror image about the edge of the outermost cell."""
    return {ghost - 1: 1}


def odd(shift: int) -> Image:
    """Return the odd mirror image about cell 0 (`shift` 0), its edge (1), or the cell beyond it, which is 0 (2)."""
    return lambda ghost: {ghost - shift: -1} if ghost >= shift else {}


def extrapolated(first: int) -> Image:
    """Return the parabola through the three cells from `first` on; cells before it count as ghost cells, too."""

    def image(ghost: int) -> Mapping[int, int]:
        k = ghost + first
        return {first: (k + 1) * (k + 2) // 2, first + 1: -k * (k + 2), first + 2: k * (k + 1) // 2}

    return image
