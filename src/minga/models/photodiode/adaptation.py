"""Error of the current due to the mesh, estimated by the adjoint, and meshes adapted to it.

A solution is prolonged to the mesh in which every distance between nodes is halved. There the equations do not hold
exactly; with the adjoint on that mesh, the balances of its nodes yield the current that a solution on it would have,
node by node (R. Becker and R. Rannacher, Acta Numerica 10, 2001). Its difference to the current on the mesh is 3/4 of
the error if that falls with the square of the distances.

Where a boundary between layers lies between two nodes, their distance is divided by three, so that it still does. There
the error falls with the distance itself, as it does next to a contact whose barrier follows the field: the difference
is 2/3, or 1/2, of it. The smallest share that occurs in a device counts for the whole.

The estimate is a linearisation, which is off where the error is large, and where contributions of both signs nearly
cancel. Before an adaptation ends, the equations are therefore solved on the finer mesh, too, and the difference that is
measured must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.prolongation import prolonged
from minga.models.photodiode.solver.changes import Changes, Solution
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.barrier import barriers_of
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.mesh import Mesh, split

__all__ = ["Adapted", "Estimate", "adapted", "estimate", "measured"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_RICHARDSON: Final = 4.0 / 3.0
"""Error over the difference to the mesh of half the distances, where it is of second order."""
_CROSSED: Final = 3.0 / 2.0
"""Error over the difference to a third of the distance, where it is of first order."""
_FOLLOWING: Final = 2.0
"""Error over the difference to half of the distance, where it is of first order."""
_SHARE: Final = 0.7
"""Share of the sum of all contributions to the error whose distances are divided."""
_RATIO: Final = 3.0
"""Largest ratio of neighbouring distances after adaptation."""
_WINDOW: Final = (1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9)
"""Weights of neighbouring distances in the mean of their contributions."""
_SMALLEST: Final = 1e-8
"""Distance that is not divided any more, cm."""
_NEAR: Final = 1e-6
"""In distances: a boundary this close to a node lies on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Estimated error of the currents at the last voltage of a problem.

    Attributes
    ----------
    currents
        Current of each curve, A/cm2.
    errors
        Contribution of each distance between nodes to the error of each current, relative to it, f8 of shape (curves,
        N - 1).
    measured
        Relative error of each current according to the solution on the finer mesh, f8 of shape (curves,); empty if that
        is not known.
    """

    currents: tuple[float, ...]
    errors: Floats
    measured: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def relative(self) -> float:
        """Largest relative error of the currents, estimated and measured."""
        sums = np.abs(self.errors.sum(axis=1))
        known = sums[np.isfinite(sums)] if self.measured.size else sums
        return float(np.concatenate((known, np.abs(self.measured))).max())


@dataclass(frozen=True, slots=True, eq=False)
class Adapted:
    """An adapted mesh, the estimate of its error, and the number of solutions it took."""

    mesh: Mesh
    found: Estimate
    rounds: int


def estimate(mesh: Mesh, made: Callable[[Mesh], Device], problem: Problem) -> Estimate:
    """Return the estimated error of the currents at the last voltage, for a device with one axis."""
    device = made(mesh)
    parts = np.where(_crossed(mesh, device), 3, 2)
    problem = _alone(problem)
    solved = Changes(device, problem).solution()
    finer = made(split(mesh, parts))
    guesses = [Solution(one.current, prolonged(one.state, parts, finer)) for one in solved]
    corrections = Changes(finer, problem).corrections(guesses)
    errors = [_by_cells(one, *item, parts, mesh) for one, item in zip(solved, corrections, strict=True)]
    return Estimate(tuple(one.current for one in solved), _factor(mesh, device) * np.array(errors))


def measured(found: Estimate, mesh: Mesh, made: Callable[[Mesh], Device], problem: Problem) -> Estimate:
    """Return an estimate together with the error measured by the currents on the finer mesh."""
    device = made(mesh)
    finer = made(split(mesh, np.where(_crossed(mesh, device), 3, 2)))
    currents = np.array([one.current for one in Changes(finer, _alone(problem)).solution()])
    return replace(found, measured=_factor(mesh, device) * (currents / np.array(found.currents) - 1.0))


def adapted(mesh: Mesh, made: Callable[[Mesh], Device], problem: Problem, error: float, most: int) -> Adapted:
    """Return a mesh of up to `most` nodes with a relative error of the currents up to `error`, if any.

    The error is both estimated and measured.
    """
    rounds = 0
    while True:
        found, rounds = estimate(mesh, made, problem), rounds + 1
        finer = _refined(mesh, made(mesh), found)
        last = not mesh.nodes.size < finer.nodes.size <= most
        if last or found.relative <= error:
            found, rounds = measured(found, mesh, made, problem), rounds + 1
            if last or found.relative <= error:
                return Adapted(mesh, found, rounds)
        mesh = finer


def _alone(problem: Problem) -> Problem:
    """Return the problem of the currents at the last voltage."""
    return replace(problem, bias=problem.bias[-1:], gain=False, quasistatic_capacitance=False, mode="iv", repeats=1)


def _factor(mesh: Mesh, device: Device) -> float:
    """Return the largest error over the difference to the finer mesh."""
    if barriers_of(device):
        return _FOLLOWING
    return _CROSSED if _crossed(mesh, device).any() else _RICHARDSON


def _crossed(mesh: Mesh, device: Device) -> NDArray[np.bool_]:
    """Return which distances have a boundary between layers inside."""
    found = np.zeros(mesh.lengths.size, np.bool_)
    for layer in device.layers[1:]:
        cell = layer.first - 1
        found[cell] = mesh.nodes[layer.first] - layer.start > _NEAR * mesh.lengths[cell]
    return found


def _by_cells(solved: Solution, planes: Floats, nodes: Floats, parts: Numbers, mesh: Mesh) -> Floats:
    """Return the contributions of the distances of a mesh from those of the planes and nodes of a finer one."""
    cells = np.repeat(np.arange(parts.size), parts)
    # What a node loses on either side to the new nodes there: their contributions cancel if they are taken together.
    lost = (mesh.lengths / parts * (parts - 1))[cells]
    low = lost[:-1] / (lost[:-1] + lost[1:])
    below, above = np.append(low, 1.0), np.insert(1.0 - low, 0, 1.0)
    found = planes[1:-1] + below * nodes[1:] + above * nodes[:-1]
    return np.bincount(cells, found, parts.size) / solved.current


def _refined(mesh: Mesh, device: Device, found: Estimate) -> Mesh:
    """Return the mesh with the distances divided that contribute most to the error; all, if that is not known."""
    crossed = _crossed(mesh, device)
    if not np.isfinite(found.errors).all():
        return split(mesh, np.where(crossed, 3, 2))
    # Neighbours that contribute with opposite signs do not matter: charge that is only shifted a little, or what flows
    # through a distance with a boundary inside, which changes the balances at both of its ends.
    count = mesh.lengths.size
    errors = found.errors.copy()
    for cell in np.flatnonzero(crossed):
        near = slice(max(cell - 1, 0), cell + 2)
        errors[:, near] = errors[:, near].mean(axis=1, keepdims=True)
    around = np.pad(errors, ((0, 0), (2, 2)))
    sizes = np.abs(sum(weight * around[:, k : k + count] for k, weight in enumerate(_WINDOW)))
    worst: Floats = (sizes / sizes.sum(axis=1, keepdims=True)).max(axis=0)
    order = np.argsort(-worst, kind="stable")
    count = int(np.searchsorted(np.cumsum(worst[order]), _SHARE * float(worst.sum()))) + 1
    parts = np.ones(mesh.lengths.size, np.int64)
    parts[order[:count]] = 2
    parts[mesh.lengths <= _SMALLEST] = 1
    while True:
        parts = np.where(crossed & (parts > 1), 3, parts)
        lengths = mesh.lengths / parts
        beside = np.minimum(np.append(lengths[1:], np.inf), np.insert(lengths[:-1], 0, np.inf))
        late = (parts == 1) & (lengths > _RATIO * beside)
        if not late.any():
            return split(mesh, parts)
        parts[late] = 2
