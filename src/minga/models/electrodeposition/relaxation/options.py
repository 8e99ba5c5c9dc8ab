"""Options of the relaxation, and the problems that it supports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minga.errors import CaseError
from minga.models.electrodeposition.problem import Problem

__all__ = ["RelaxationOptions", "check_supported"]

Order = Literal["lexicographic", "boundary-first", "red-black"]


@dataclass(frozen=True, slots=True)
class RelaxationOptions:
    """Options of the relaxation.

    Attributes
    ----------
    order
        Order of the points in a sweep. "red-black" gives the same bits on all layouts. "lexicographic" and
        "boundary-first" sweep each block with its neighbours' values of the previous sweep, so their results depend on
        the layout, within the tolerance.
    across
        "exact" for "lexicographic" sweeps in which blocks wait for one another, with the same bits as in one process.
    criterion
        Quantity that is compared with `tolerance`: the largest scaled "residual", or the largest "update" of a sweep,
        which can be small long before the solution is reached. The paper prints no test; the latter gives counts like
        its own.
    tolerance
        Tolerance of the scaled criterion.
    limit
        Largest number of sweeps in a time step.
    newton
        Newton steps for the potential at a point.
    wall
        Weight of the new vorticity at walls relative to the old one.
    """

    order: Order = "red-black"
    across: Literal["exact", "block"] = "block"
    criterion: Literal["residual", "update"] = "residual"
    tolerance: float = 1e-6
    limit: int = 100_000
    newton: int = 1
    wall: float = 0.6

    @property
    def between_blocks(self) -> Literal["exact", "block"]:
        """Value of `across` for kernels: only lexicographic sweeps can wait for other blocks."""
        return self.across if self.order == "lexicographic" else "block"


def check_supported(problem: Problem, settings: RelaxationOptions) -> None:
    """Raise CaseError for problems and orders that the scheme does not support."""
    if problem.protocol:
        raise _not_here("a program of currents and voltages", "give voltage")
    if problem.voltage is None:
        raise _not_here("a given current", "give voltage")
    if problem.growth is not None:
        raise _not_here("a growing deposit", "leave growth out")
    if settings.across == "exact" and settings.order == "boundary-first":
        raise CaseError(
            "boundary-first sweeps depend on how the grid is cut",
            key="electrodeposition.relaxation.order",
            remedy='use order = "red-black" for the same bits on all layouts',
        )


def _not_here(what: str, remedy: str) -> CaseError:
    return CaseError(
        f"relaxation does not solve cells with {what}",
        key="electrodeposition.scheme",
        remedy=f'{remedy}, or write scheme = "semi-implicit"',
    )
