"""Variable density: the operator rho div(1 / rho grad p) by staggered differences, and its largest frequency.

A flux between two cells is the staggered difference of p there over the mean density of both, as through an interface
halfway between them; its divergence is the transposed difference. With the difference D, its transpose D', and B the
reciprocals of the mean densities,

    p_tt = - K D' B D p,    K = rho vp2

whose operator is similar to a symmetric matrix without negative eigenvalues: the energy of the waves is conserved. The
signs of the entries of D' B D alternate with their distance from the diagonal, so that the largest eigenvalue is that
of the matrix of absolute values. It is at most the largest sum of a row (S. Gershgorin, 1931), and equal to it where
the density is uniform.
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

__all__ = ["Staggered", "density_walls", "row_sums"]

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
        return 2 * len(self.weights[0]) - 1

    def operator(self, u: Any, rho: Any) -> Any:
        """Return div(1 / rho grad u), times the square of the unit of length; u is a field or a local."""
        axes = range(len(self.weights) - 1, -1, -1)
        return total(self._difference(local(self._flux(u, rho, axis)), axis, 0) for axis in axes)

    def _flux(self, u: Any, rho: Any, axis: int) -> Any:
        """Return the flux between a cell and the next one along an axis."""
        means = rho[self._at(axis, 0)] + rho[self._at(axis, 1)]
        return self._difference(u, axis, 1) * (2.0 / means)

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


def row_sums(sampler: Sampler, domain: Domain, box: Box, order: int) -> tuple[Floats, Floats]:
    """Return the sums of the absolute entries of rho D' B D in the rows of cells, and the cells' velocities.

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

    Returns
    -------
    tuple of ndarray
        Sums in 1 / m2, and P velocities, f8 of the shape of the box with the cells beyond.
    """
    weights = [abs(float(w)) for w in halfway_weights(order // 2)]
    reach = len(weights)
    beyond = [(reach if lo == 0 else 0, reach if hi == n else 0)
              for lo, hi, n in zip(box.lo, box.hi, domain.shape, strict=True)]  # fmt: skip
    rows = [(lo - a, hi + b) for (a, b), lo, hi in zip(beyond, box.lo, box.hi, strict=True)]
    here = _image(sampler, domain, "rho", rows)
    sums = np.zeros_like(here)
    for axis, h in enumerate(domain.spacing):
        wide = [(lo - reach, hi + reach) if a == axis else (lo, hi) for a, (lo, hi) in enumerate(rows)]
        rho = np.moveaxis(_image(sampler, domain, "rho", wide), axis, 0)
        light = 2.0 / (rho[:-1] + rho[1:])  # light[i] lies above cell i of `wide`
        cells = rows[axis][1] - rows[axis][0]
        own = np.zeros((cells, *rho.shape[1:]))
        for k, weight in enumerate(weights):
            above, below = reach + k, reach - 1 - k
            own = own + weight * (light[above : above + cells] + light[below : below + cells])
        sums = sums + np.moveaxis(own, 0, axis) * (2.0 * sum(weights) / (h * h))
    return here * sums, _image(sampler, domain, "vp", rows)


def _image(sampler: Sampler, domain: Domain, name: str, ranges: Sequence[tuple[int, int]]) -> Floats:
    """Return an entry of the medium in ranges of cells, some of them beyond the ends of the model."""
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
