"""Prolongation of a solution to a mesh in which distances between nodes are divided: currents stay as they are.

The potential is linear between two nodes. The quasi-Fermi potentials are those with which a carrier's flux of
Scharfetter and Gummel is the same through all parts of a distance, so that the fluxes of the solution are kept.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.solver.coefficient_values import on_edges
from minga.models.photodiode.structure.device import Device

__all__ = ["prolonged"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_FAR: Final = 300.0
"""Largest difference of potentials whose exponential is taken, kT/q."""
_EMPTY: Final = 1e-300
"""Stands for the mean of nothing."""


def prolonged(state: tuple[Floats, ...], parts: Numbers, finer: Device, axis: int = 0) -> tuple[Floats, ...]:
    """Return the unknowns on a mesh in which each old distance along an axis has the given number of parts."""
    old = np.concatenate(([0], np.cumsum(parts)))
    potential, electron, hole = (np.moveaxis(item, axis, 0) for item in state)
    new = _linear(potential, parts)
    found = [new]
    for level, theta, mobility, sign in (
        (electron, finer.theta_n, finer.mobility_n, 1.0),
        (hole, finer.theta_p, finer.mobility_p, -1.0),
    ):
        height = sign * (new + np.moveaxis(theta, axis, 0))
        mobile = on_edges(np.moveaxis(mobility, axis, 0), 0)[1:-1]
        found.append(_levels(level, sign, _resistances(height, mobile, finer.lengths[axis][1:-1], old), parts, old))
    return tuple(np.ascontiguousarray(np.moveaxis(item, 0, axis)) for item in found)


def _linear(values: Floats, parts: Numbers) -> Floats:
    """Return values at all nodes, linear between the old ones."""
    shares = np.concatenate([np.arange(count) / count for count in parts.tolist()])
    shares = shares.reshape(-1, *[1] * (values.ndim - 1))
    low, change = (np.repeat(item, parts, axis=0) for item in (values[:-1], np.diff(values, axis=0)))
    return np.concatenate((low + change * shares, values[-1:]))


def _resistances(height: Floats, mobility: Floats, lengths: Floats, old: Numbers) -> Floats:
    """Return the difference of exp(level) per flux through each edge, relative within each old distance."""
    reference = np.repeat(height[old[:-1]], np.diff(old), axis=0)
    low, drift = (np.clip(item, -_FAR, _FAR) for item in (height[:-1] - reference, np.diff(height, axis=0)))
    safe = np.where(drift == 0.0, 1.0, drift)
    mean = np.where(drift == 0.0, 1.0, -portable.expm1(-safe) / safe)
    found: Floats = lengths.reshape(-1, *[1] * (height.ndim - 1)) / mobility * portable.exp(-low) * mean
    return found


def _levels(level: Floats, sign: float, resistances: Floats, parts: Numbers, old: Numbers) -> Floats:
    """Return the quasi-Fermi potential at all nodes; `sign` is +1 for electrons and -1 for holes."""
    found = np.empty((old[-1] + 1, *level.shape[1:]))
    found[old] = level
    change = np.clip(-sign * np.diff(level, axis=0), -_FAR, _FAR)
    inside = np.arange(int(parts.max())) < parts[:, None]
    own = np.zeros((*inside.shape, *level.shape[1:]))
    own[inside] = resistances
    own /= own.sum(axis=1, keepdims=True)
    for k in range(1, int(parts.max())):
        cells = np.flatnonzero(parts > k)
        mean = _mean(own[cells, :k].sum(axis=1), own[cells, k:].sum(axis=1), change[cells])
        found[old[cells] + k] = level[cells] - sign * mean
    return found


def _mean(share: Floats, rest: Floats, change: Floats) -> Floats:
    """Return ln(rest + share exp(change)), share + rest being 1; neither of them is known from the other."""
    small = np.abs(change) <= 1.0
    near = portable.log1p(share * portable.expm1(np.where(small, change, 0.0)))
    far = portable.log(np.maximum(rest + share * portable.exp(change), _EMPTY))
    found: Floats = np.where(small, near, far)
    return found
