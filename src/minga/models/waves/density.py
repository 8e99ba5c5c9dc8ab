"""Variable density: the operator rho div(1 / rho grad p) by staggered differences, and its largest frequency.

A flux between two cells is the staggered difference of p there over the mean density of both, as through an interface
halfway between them; its divergence is the transposed difference. With the difference D, its transpose D', and B the
reciprocals of the mean densities,

    p_tt = - K D' B D p,    K = rho vp2

whose operator is similar to a symmetric matrix without negative eigenvalues: the energy of the waves is conserved. The
signs of the entries of D' B D alternate with their distance from the diagonal, so that the largest eigenvalue is that
of the matrix of absolute values. It is at most the largest sum of a row of the symmetric matrix sqrt(K) D' B D sqrt(K)
(S. Gershgorin, 1931), and equal to it in a uniform medium.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from minga.lang.cell import local
from minga.models.waves.domain import Domain
from minga.models.waves.medium import Floats, Sampler
from minga.models.waves.stencils import first_weights, halfway_weights, total
from minga.space.boundary import Condition, reflect, zero_gradient
from minga.space.box import Box

__all__ = ["Staggered", "density_walls", "image_of", "largest_sum", "reach_of"]

_WALLS: Final = {0: zero_gradient(), -1: reflect("cell"), 1: reflect("edge")}
"""Conditions of the density beyond an end by the mirror of the waves there (`Domain.mirrors`)."""


@dataclass(frozen=True, slots=True)
class Staggered:
    """Staggered differences along the axes of a grid, inside a kernel.

    Attributes
    ----------
    weights
        Weights of a first derivative halfway between cells for each axis, scaled by its spacing (see `of`).
    """

    weights: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, order: int, steps: Sequence[float]) -> Staggered:
        """Return differences of an order; `steps[axis]` scales derivatives along an axis: 1 / spacing, in some unit."""
        pairs = len(first_weights(order))  # raises for an invalid order
        return cls(tuple(tuple(float(w) * step for w in halfway_weights(pairs)) for step in steps))

    @property
    def reach(self) -> int:
        """Number of cells to either side that the operator reads."""
        return reach_of(2 * len(self.weights[0]))

    def operator(self, u: Any, rho: Any) -> Any:
        """Return div(1 / rho grad u), times the square of the unit of length; u is a field or a local."""
        return total(
            self.divergence(local(self.slope(u, axis) * self.light(rho, axis)), axis)
            for axis in range(len(self.weights) - 1, -1, -1)
        )

    def slope(self, u: Any, axis: int) -> Any:
        """Return the derivative along an axis between a cell and the next one."""
        return self._difference(u, axis, 1)

    def light(self, rho: Any, axis: int) -> Any:
        """Return the reciprocal of the mean density of a cell and the next one along an axis."""
        return 2.0 / (rho[self._at(axis, 0)] + rho[self._at(axis, 1)])

    def divergence(self, flux: Any, axis: int) -> Any:
        """Return the derivative at a cell of a local whose values lie between each cell and the next one."""
        return self._difference(flux, axis, 0)

    def _difference(self, u: Any, axis: int, first: int) -> Any:
        """Return the derivative below the value number `first` from this cell."""
        return total(
            w * (u[self._at(axis, first + k)] - u[self._at(axis, first - 1 - k)])
            for k, w in enumerate(self.weights[axis])
        )

    def _at(self, axis: int, cells: int) -> tuple[int, ...]:
        return tuple(cells if a == axis else 0 for a in range(len(self.weights)))


def density_walls(domain: Domain) -> Mapping[str | int, tuple[Condition, Condition]]:
    """Return the conditions of the density beyond the ends of all axes that are not periodic."""
    return {
        name: (_WALLS[low], _WALLS[high])
        for name, (low, high), periodic in zip(domain.axes, domain.mirrors, domain.periodic, strict=True)
        if not periodic
    }


def reach_of(order: int) -> int:
    """Return the number of cells to either side that the operator of an order reads."""
    return order - 1


def largest_sum(sampler: Sampler, domain: Domain, box: Box, order: int, *, scrambled: bool) -> float:
    """Return the largest sum of a row, an upper bound of omega^2, for the cells of a box.

    Parameters
    ----------
    sampler
        Values of the medium.
    domain
        Cells of the model.
    box
        Box of the model; at its ends the cells beyond are included, whose stencils reach into the model.
    order
        Order of the differences.
    scrambled
        Whether each velocity may occur everywhere, as in random layers: the bound is then omega^2 / vp2.
    """
    weights = [abs(float(w)) for w in halfway_weights(order // 2)]
    reach = len(weights)
    beyond = reach_of(order)
    ranges = [
        (lo - beyond * (2 if lo == 0 else 1), hi + beyond * (2 if hi == n else 1))
        for lo, hi, n in zip(box.lo, box.hi, domain.shape, strict=True)
    ]
    rho = image_of(sampler, domain, "rho", ranges)
    root = np.sqrt(rho) if scrambled else np.sqrt(rho) * image_of(sampler, domain, "vp", ranges)
    inner = (slice(beyond, -beyond),) * rho.ndim
    total: Any = 0.0
    for axis, h in enumerate(domain.spacing):
        along = tuple(slice(None) if a == axis else part for a, part in enumerate(inner))
        density, scale = (np.moveaxis(each[along], axis, 0) for each in (rho, root))
        light = 2.0 / (density[:-1] + density[1:])  # entry i lies above cell i, here and below
        flux = light[reach - 1 : 1 - reach] * _both_sides(weights, scale)
        total = total + np.moveaxis(_both_sides(weights, flux), 0, axis) / (h * h)
    return float((root[inner] * total).max())


def _both_sides(weights: Sequence[float], values: Floats) -> Floats:
    """Return the sum of values on both sides of the places between them, as far as these reach."""
    m = len(weights)
    count = len(values) - 2 * m + 1
    total = np.zeros((count, *values.shape[1:]))
    for k, weight in enumerate(weights):
        total = total + weight * (values[m + k : m + k + count] + values[m - 1 - k : m - 1 - k + count])
    return total


def image_of(sampler: Sampler, domain: Domain, name: str, ranges: Sequence[tuple[int, int]]) -> Floats:
    """Return an entry of the medium in ranges of cells, some of them beyond the ends of the model.

    Parameters
    ----------
    sampler
        Values of the medium.
    domain
        Cells of the model.
    name
        The entry.
    ranges
        First cell of the model and the one past the last, along each axis.
    """
    picks = [
        _places(np.arange(lo, hi), n, mirrors, periodic)
        for (lo, hi), n, mirrors, periodic in zip(
            ranges, domain.shape, domain.mirrors, domain.periodic, strict=True
        )
    ]  # fmt: skip
    lows = [int(p.min()) for p in picks]
    inside = Box(tuple(lows), tuple(int(p.max()) + 1 for p in picks))
    values = sampler.values(name, inside.shift(sampler.layers))
    return values[np.ix_(*(p - lo for p, lo in zip(picks, lows, strict=True)))]


def _places(index: Any, n: int, mirrors: tuple[int, int], periodic: bool) -> Any:
    """Return the cells of an axis whose values the given ones have, by the rules of `density_walls`."""
    if periodic:
        return index % n
    low, high = mirrors
    if low:
        index = np.where(index < 0, -index if low < 0 else -1 - index, index)
    if high:
        index = np.where(index >= n, 2 * (n - 1) - index if high < 0 else 2 * n - 1 - index, index)
    return np.clip(index, 0, n - 1)
