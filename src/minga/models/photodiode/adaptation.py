"""Error of the current due to the mesh, estimated by the adjoint, and meshes adapted to it.

A solution is prolonged to the mesh in which every distance between nodes is halved. There the equations do not hold
exactly; with the adjoint on that mesh, the balances of its nodes yield the current that a solution on it would have,
node by node (R. Becker and R. Rannacher, Acta Numerica 10, 2001). Its difference to the current on the mesh is 3/4 of
the error if that falls with the square of the distances.

Where a boundary between layers lies between two nodes, their distance is divided by three, so that it still does. There
the error falls with the distance itself, as it does next to a contact whose barrier follows the field: the difference
is 2/3, or 1/2, of it. The smallest share that occurs in a device counts for the whole.

With two axes, the mesh is finer along one axis at a time, so that each distance between lines of nodes has a
contribution of its own, summed over the strip between them. Errors of both axes count as if they never cancelled. Next
to the edge of a contact, to a corner of a material and to an oblique edge, fields have no second derivative: there the
difference is half of the error.

The estimate is a linearisation, which is off where the error is large, and where contributions of both signs nearly
cancel. Before an adaptation ends, the equations are therefore solved on the finer mesh, too, and the difference that is
measured must agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.prolongation import prolonged
from minga.models.photodiode.solver.changes import Changes, Correction, Solution
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.barrier import barriers_of
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.mesh import Mesh, split
from minga.models.photodiode.structure.stack import Stack

__all__ = ["Adapted", "Estimate", "adapted", "estimate", "halved", "measured"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Meshes = tuple[Mesh, ...]

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
        For each axis, contribution of each distance between nodes to the error of each current, relative to it, f8 of
        shape (curves, N - 1).
    measured
        Relative error of each current according to the solution on the finer mesh, f8 of shape (curves,); empty if that
        is not known.
    """

    currents: tuple[float, ...]
    errors: tuple[Floats, ...]
    measured: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def relative(self) -> float:
        """Largest relative error of the currents, estimated and measured."""
        sums: Floats = np.sum([np.abs(own.sum(axis=1)) for own in self.errors], axis=0)
        known = sums[np.isfinite(sums)] if self.measured.size else sums
        return float(np.concatenate((known, np.abs(self.measured))).max())


@dataclass(frozen=True, slots=True, eq=False)
class Adapted:
    """Adapted meshes along each axis, the estimate of their error, and the number of solutions it took."""

    meshes: Meshes
    found: Estimate
    rounds: int


def estimate(meshes: Meshes, stack: Stack, problem: Problem) -> Estimate:
    """Return the estimated error of the currents at the last voltage of a device on meshes along its axes."""
    problem = _alone(problem, len(meshes))
    solved = Changes(device_from(stack, *meshes), problem).solution()
    factor = _factor(meshes, stack)
    errors = tuple(factor * _along(axis, meshes, stack, problem, solved) for axis in range(len(meshes)))
    return Estimate(tuple(one.current for one in solved), errors)


def halved(meshes: Meshes, stack: Stack) -> Meshes:
    """Return the meshes with all distances divided by two, or by three around a boundary, which stays half-way."""
    return tuple(
        split(mesh, _halving(mesh, cells)) for mesh, cells in zip(meshes, _crossed(meshes, stack), strict=True)
    )


def measured(found: Estimate, meshes: Meshes, stack: Stack, problem: Problem) -> Estimate:
    """Return an estimate together with the error measured by the currents on the mesh that is finer along all axes."""
    finer = halved(meshes, stack)
    currents = np.array(
        [one.current for one in Changes(device_from(stack, *finer), _alone(problem, len(meshes))).solution()]
    )
    return replace(found, measured=_factor(meshes, stack) * (currents / np.array(found.currents) - 1.0))


def adapted(meshes: Meshes, stack: Stack, problem: Problem, error: float, most: int) -> Adapted:
    """Return meshes of up to `most` nodes with a relative error of the currents up to `error`, if any.

    The error is both estimated and measured.
    """
    rounds = 0
    while True:
        found, rounds = estimate(meshes, stack, problem), rounds + 1
        finer = _refined(meshes, stack, found)
        last = not _size(meshes) < _size(finer) <= most
        if last or found.relative <= error:
            found, rounds = measured(found, meshes, stack, problem), rounds + 1
            if last or found.relative <= error:
                return Adapted(meshes, found, rounds)
        meshes = finer


def _size(meshes: Meshes) -> int:
    return math.prod(mesh.nodes.size for mesh in meshes)


def _alone(problem: Problem, axes: int) -> Problem:
    """Return the problem of the currents at the last voltage, solved by factors if no solver is asked for."""
    # As the adjoint is: multigrid pays off on several ranks, and each rank adapts the mesh by itself.
    linear = "sparse" if problem.linear == "auto" and axes > 1 else problem.linear
    return replace(
        problem, bias=problem.bias[-1:], gain=False, quasistatic_capacitance=False, mode="iv", repeats=1, linear=linear,
        frequencies=(), circuit=None, noise_method=None, current_parts=False,
    )  # fmt: skip


def _factor(meshes: Meshes, stack: Stack) -> float:
    """Return the largest error over the difference to the finer mesh."""
    islands = any(region.material is not None for region in stack.regions)
    if barriers_of(device_from(stack, *meshes)) or islands or any(_contact_edges(stack, meshes)):
        return _FOLLOWING
    return _CROSSED if any(cells.any() for cells in _crossed(meshes, stack)) else _RICHARDSON


def _contact_edges(stack: Stack, meshes: Meshes) -> Iterator[float]:
    """Yield the edges of contacts inside a device with two axes."""
    for mesh in meshes[1:]:
        low, high = mesh.ends
        for contact in stack.contacts:
            yield from (place for place in contact.y or () if low + mesh.room < place < high - mesh.room)


def _crossed(meshes: Meshes, stack: Stack) -> list[NDArray[np.bool_]]:
    """Return, for each axis, which distances have a boundary of layers or materials, or a contact's edge inside."""
    ends = list(accumulate(layer.thickness for layer in stack.layers))[:-1]
    places = [ends, list(_contact_edges(stack, meshes))][: len(meshes)]
    for region in stack.regions:
        for start, end in pairwise((*region.corners, region.corners[0])) if region.material is not None else ():
            for axis, own in enumerate(places):
                if start[axis] == end[axis]:
                    own.append(start[axis])
    return [_with_places(mesh, own) for mesh, own in zip(meshes, places, strict=True)]


def _with_places(mesh: Mesh, places: Sequence[float]) -> NDArray[np.bool_]:
    """Return which distances of a mesh have one of the places inside."""
    found = np.zeros(mesh.lengths.size, np.bool_)
    for place in places:
        cell = int(np.searchsorted(mesh.nodes, place)) - 1
        if 0 <= cell < found.size:
            room = _NEAR * mesh.lengths[cell]
            found[cell] |= mesh.nodes[cell] + room < place < mesh.nodes[cell + 1] - room
    return found


def _halving(mesh: Mesh, crossed: NDArray[np.bool_]) -> Numbers:
    """Return the number of parts of each distance of a mesh in the finer one."""
    return np.where(crossed, 3, np.full(mesh.lengths.size, 2))


def _along(axis: int, meshes: Meshes, stack: Stack, problem: Problem, solved: Sequence[Solution]) -> Floats:
    """Return the contributions of the distances along an axis to the difference to the mesh that is finer along it."""
    mesh = meshes[axis]
    parts = _halving(mesh, _crossed(meshes, stack)[axis])
    finer = split(mesh, parts)
    every = [finer if k == axis else own for k, own in enumerate(meshes)]
    device = device_from(stack, *every)
    guesses = [Solution(one.current, prolonged(one.state, parts, device, axis)) for one in solved]
    found = Changes(device, problem).corrections(guesses)
    of_planes = (_of_distances, _of_columns)[axis]
    return np.array(
        [
            _by_cells(*of_planes(one, guess.current, mesh, finer, parts), mesh, finer, parts) / guess.current
            for one, guess in zip(found, guesses, strict=True)
        ]
    )


def _of_distances(found: Correction, current: float, mesh: Mesh, finer: Mesh, parts: Numbers) -> tuple[Floats, Floats]:
    """Return contributions of the distances and of the nodes along x, on the finer mesh."""
    rows = found.weights.size
    planes = found.weights * (found.through.reshape(rows, -1).sum(axis=1) - current)
    return planes[1:-1], found.nodes.reshape(rows - 1, -1).sum(axis=1)


def _of_columns(found: Correction, current: float, mesh: Mesh, finer: Mesh, parts: Numbers) -> tuple[Floats, Floats]:
    """Return contributions of the distances and of the nodes along y, on the finer mesh."""
    through = (found.weights[:, None] * found.through).sum(axis=0)
    lost = np.sum(_lost(mesh, finer, parts), axis=0) / finer.sections
    old = _old(parts)
    # New columns carry what the old ones do not carry any more; in sum, the old ones carried the current.
    gained = through.copy()
    gained[old] *= -lost[old]
    rest = float(through[old].sum() - gained[old].sum()) - current
    return np.full(finer.lengths.size, rest / finer.lengths.size), gained + found.nodes.sum(axis=0)


def _old(parts: Numbers) -> Numbers:
    """Return the numbers of the old nodes on the finer mesh."""
    return np.concatenate(([0], np.cumsum(parts)))


def _lost(mesh: Mesh, finer: Mesh, parts: Numbers) -> tuple[Floats, Floats]:
    """Return what each old node loses below and above itself to the new ones; what they have, for the new nodes."""
    old = _old(parts)
    found = []
    for before, own in zip(mesh.half_sections, finer.half_sections):
        after = own.copy()
        after[old] = before - own[old]
        found.append(after)
    return found[0], found[1]


def _by_cells(distances: Floats, nodes: Floats, mesh: Mesh, finer: Mesh, parts: Numbers) -> Floats:
    """Return the contributions of the distances of a mesh from those of the distances and nodes of a finer one."""
    cells = np.repeat(np.arange(parts.size), parts)
    # What a node loses on either side to the new nodes there: their contributions cancel if they are taken together.
    below, above = _lost(mesh, finer, parts)
    low = below / (below + above)
    shares: Floats = distances + low[1:] * nodes[1:] + (1.0 - low[:-1]) * nodes[:-1]
    found: Floats = np.bincount(cells, shares, parts.size).astype(np.float64)
    return found


def _refined(meshes: Meshes, stack: Stack, found: Estimate) -> Meshes:
    """Return the meshes with the distances divided that contribute most to the error; all, if that is not known."""
    crossed = _crossed(meshes, stack)
    if not all(np.isfinite(own).all() for own in found.errors):
        return halved(meshes, stack)
    sizes = [_sizes(own, cells) for own, cells in zip(found.errors, crossed, strict=True)]
    total = np.sum([own.sum(axis=1) for own in sizes], axis=0)
    worst: Floats = np.concatenate([own / total[:, None] for own in sizes], axis=1).max(axis=0)
    # A distance along one axis is divided for all lines of nodes along it.
    count = _size(meshes)
    cost = np.concatenate([np.full(mesh.lengths.size, count // mesh.nodes.size) for mesh in meshes])
    order = np.argsort(-(worst / cost), kind="stable")
    kept = int(np.searchsorted(np.cumsum(worst[order]), _SHARE * float(worst.sum()))) + 1
    chosen = np.zeros(worst.size, np.bool_)
    chosen[order[:kept]] = True
    ends = np.cumsum([mesh.lengths.size for mesh in meshes])[:-1]
    return tuple(
        split(mesh, _parts(mesh, own, cells))
        for mesh, own, cells in zip(meshes, np.split(chosen, ends), crossed, strict=True)
    )


def _sizes(errors: Floats, crossed: NDArray[np.bool_]) -> Floats:
    """Return the sizes of contributions to the error of each curve, as means over neighbouring distances."""
    # Neighbours that contribute with opposite signs do not matter: charge that is only shifted a little, or what flows
    # through a distance with a boundary inside, which changes the balances at both of its ends.
    errors, count = errors.copy(), crossed.size
    for cell in np.flatnonzero(crossed):
        near = slice(max(cell - 1, 0), cell + 2)
        errors[:, near] = errors[:, near].mean(axis=1, keepdims=True)
    around = np.pad(errors, ((0, 0), (2, 2)))
    found: Floats = np.abs(sum(weight * around[:, k : k + count] for k, weight in enumerate(_WINDOW)))
    return found


def _parts(mesh: Mesh, chosen: NDArray[np.bool_], crossed: NDArray[np.bool_]) -> Numbers:
    """Return the number of parts of each distance, such that the chosen ones are divided and neighbours stay alike."""
    parts = np.where(chosen & (mesh.lengths > _SMALLEST), 2, np.ones(mesh.lengths.size, np.int64))
    while True:
        parts = np.where(crossed & (parts > 1), 3, parts)
        lengths = mesh.lengths / parts
        beside = np.minimum(np.append(lengths[1:], np.inf), np.insert(lengths[:-1], 0, np.inf))
        late = (parts == 1) & (lengths > _RATIO * beside)
        if not late.any():
            return parts
        parts[late] = 2
