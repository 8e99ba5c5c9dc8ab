"""Symbols of the differences: the k1 and k2 of the waves on a grid, with H1 -> -k1 and H2 -> -k2.

For a plane wave a first derivative is i d_a and a second derivative -s_a, with s_a >= d_a^2. For an axis n then

    k1 = n' B n,  B = d d' + diag(s_a - d_a^2)   ("fletcher"),      k1 = (n . d)^2   ("selfadjoint")

and k1 + k2 is the sum of s_a. The shortest wave on the grid, which alternates along all axes, has the largest sum, but
another wave may have a larger k2, across the axis, where waves are faster: with order 16 and epsilon 0.5 such a wave
determines the time step.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from minga.models.waves.medium import Floats
from minga.models.waves.stencils import first_weights, second_weights

__all__ = ["Corners", "corners"]

Corners = tuple[tuple[float, float], ...]
"""Pairs of k1 and k2."""

_WAVES: Final = 33
"""Number of wavenumbers sampled along each axis, from 0 to that of the shortest wave."""
_DIRECTIONS: Final = 33
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
    slopes: Floats = 2 * np.array(first_weights(order), np.float64) @ np.sin(turns)
    bends: Floats = -middle - 2 * np.array(sides) @ np.cos(turns)
    if vertical:
        z, y, x = (float(bends[-1]) / h**2 for h in spacing)
        return ((z, y + x),)
    d = _grid([slopes / h for h in spacing])
    s = _grid([bends / h**2 for h in spacing])
    total = s.sum(axis=1)
    if divergence:
        low, high = np.zeros(len(d)), np.square(d).sum(axis=1)
    else:
        b = d[:, :, None] * d[:, None, :]
        b[:, range(3), range(3)] = s
        each = np.linalg.eigvalsh(b)
        low, high = np.maximum(each[:, 0], 0.0), each[:, 2]
    along = np.concatenate([low, high])
    across = np.concatenate([total, total]) - along
    slack = np.full(len(along), _BETWEEN)
    slack[[len(low) - 1, -1]] = 1.0  # the shortest wave itself
    return _outermost(along * slack, across * slack)


def _grid(along: list[Floats]) -> Floats:
    """Return all combinations of values along three axes as (wave, axis), those of the largest values last."""
    return np.stack([part.ravel() for part in np.meshgrid(*along, indexing="ij")], axis=1)


def _outermost(along: Floats, across: Floats) -> Corners:
    """Return the outermost points in directions between the axes."""
    angles = np.linspace(0, np.pi / 2, _DIRECTIONS)
    found = {int(np.argmax(np.cos(a) * along + np.sin(a) * across)) for a in angles}
    unit = float((along + across).max())
    # Eigenvalues differ between libraries in further bits, and time steps must not.
    return tuple(sorted({(_rounded(along[k], unit), _rounded(across[k], unit)) for k in found}))


def _rounded(value: float, unit: float) -> float:
    return round(float(value) / unit, 12) * unit
