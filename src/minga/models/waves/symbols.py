"""Symbols of the differences: the k1 and k2 of the waves on a grid, with H1 -> -k1 and H2 -> -k2.

For a plane wave a first derivative is i d_a and a second derivative -s_a, with s_a >= d_a^2. For an axis n then

    k1 = n' B n,  B = d d' + diag(s_a - d_a^2)   ("fletcher"),      k1 = (n . d)^2   ("selfadjoint")

and k1 + k2 is the sum of s_a. The shortest wave on the grid, which alternates along all axes, has the largest sum, but
another wave may have a larger k2, across the axis, where waves are faster: with order 16 and epsilon 0.5 such a wave
determines the time step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from minga.compile import portable
from minga.models.waves.medium import Floats
from minga.models.waves.stencils import first_weights, second_weights

__all__ = ["Corners", "corners"]

Corners = tuple[tuple[float, float], ...]
"""Pairs of k1 and k2."""

_WAVES: Final = 33
"""Number of wavenumbers sampled along each axis, from 0 to that of the shortest wave."""
_DIRECTIONS: Final = 33
_SWEEPS: Final = 6
"""Sweeps of rotations, which converge quadratically."""
_BETWEEN: Final = 1.001
"""Margin for waves between the sampled ones."""


@lru_cache(maxsize=16)
def corners(order: int, spacing: tuple[float, ...], vertical: bool, divergence: bool) -> Corners:
    """Return the corners of a convex region that bounds all (k1, k2) from above, per square metre.

    Parameters
    ----------
    order
        Order of the differences.
    spacing
        Distances between cells, m.
    vertical
        Whether the axis is z everywhere; otherwise all its directions are considered.
    divergence
        Whether the form is "selfadjoint" with a tilted axis.
    """
    waves = np.linspace(0, np.pi, _WAVES)
    turns = np.arange(1, order // 2 + 1)[:, None] * waves
    middle, *sides = map(float, second_weights(order))
    slopes = 2 * _weighted(first_weights(order), portable.sin(turns))
    bends = -middle - 2 * _weighted(sides, portable.cos(turns))
    if vertical:
        z, *others = (float(bends[-1]) / (h * h) for h in spacing)
        return ((z, sum(others)),)
    d = _grid([slopes / h for h in spacing])
    s = _grid([bends / (h * h) for h in spacing])
    total = s.sum(axis=1)
    if divergence:
        low, high = np.zeros(len(d)), np.square(d).sum(axis=1)
    else:
        least, high = _eigenvalues(s.T.copy(), d.T)
        low = np.maximum(least, 0.0)
    along = np.concatenate([low, high])
    across = np.concatenate([total, total]) - along
    slack = np.full(len(along), _BETWEEN)
    slack[[len(low) - 1, -1]] = 1.0  # the shortest wave itself
    return _outermost(along * slack, across * slack)


def _weighted(weights: Sequence[float | Fraction], values: Floats) -> Floats:
    """Return the sum of values along the first axis with weights, one after the other."""
    total = np.zeros(values.shape[1])
    for weight, row in zip(weights, values, strict=True):
        total = total + float(weight) * row
    return total


def _eigenvalues(own: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest eigenvalue of symmetric matrices of two or three rows, by Jacobi's rotations.

    own     diagonals, (rows, matrices), which are overwritten
    slopes  factors of the entries beside the diagonals, (rows, matrices): entry i, j is slopes[i] * slopes[j]
    """
    if len(own) == 2:
        mean, root = (own[0] + own[1]) / 2, np.sqrt(np.square((own[0] - own[1]) / 2) + np.square(slopes[0] * slopes[1]))
        return mean - root, mean + root
    beside = [slopes[1] * slopes[2], slopes[0] * slopes[2], slopes[0] * slopes[1]]  # by the number of the third row
    for _ in range(_SWEEPS):
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            apart, both = own[j] - own[i], 2 * beside[k]
            root = np.sqrt(apart * apart + both * both)
            below = np.where(apart < 0, apart - root, apart + root)
            tangent = np.where(below != 0, both / np.where(below != 0, below, 1.0), 0.0)
            cosine = 1 / np.sqrt(1 + tangent * tangent)
            sine = tangent * cosine
            own[i], own[j] = own[i] - tangent * beside[k], own[j] + tangent * beside[k]
            beside[i], beside[j] = cosine * beside[i] + sine * beside[j], cosine * beside[j] - sine * beside[i]
            beside[k] = np.zeros_like(root)
    return own.min(axis=0), own.max(axis=0)


def _grid(along: list[Floats]) -> Floats:
    """Return all combinations of values along all axes as (wave, axis), those of the largest values last."""
    return np.stack([part.ravel() for part in np.meshgrid(*along, indexing="ij")], axis=1)


def _outermost(along: Floats, across: Floats) -> Corners:
    """Return the outermost points in directions between the axes."""
    angles = np.linspace(0, np.pi / 2, _DIRECTIONS)
    found = {int(np.argmax(portable.cos(a) * along + portable.sin(a) * across)) for a in angles}
    unit = float((along + across).max())
    return tuple(sorted({(_rounded(along[k], unit), _rounded(across[k], unit)) for k in found}))


def _rounded(value: float, unit: float) -> float:
    return round(float(value) / unit, 12) * unit
