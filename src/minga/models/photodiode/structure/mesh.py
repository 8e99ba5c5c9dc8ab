"""Positions of the nodes of a device along one axis, and the spacings between them; lengths in cm.

Nodes carry the unknowns, contacts lie on the end nodes, and the volume of each node extends half-way to its neighbours
or to the end of the device. Spacings are stored in addition to the positions, because the difference of two positions
of 5 um resolves a spacing of 0.1 nm to 11 digits only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mesh", "graded", "placed", "snapped", "spaced", "split", "uniform"]

Floats = NDArray[np.float64]

_WHOLE: Final = 1 - 1e-9  # a fraction of a cell that differs from 1 by round-off only
_ROOM: Final = 1e-6  # of the length of the device


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Nodes along one axis.

    Attributes
    ----------
    nodes
        Ascending positions, f8 of shape (N,).
    lengths
        Distances between neighbouring nodes, f8 of shape (N - 1,).
    faces
        Ends of the cells that represent the nodes, f8 of shape (N + 1,): half-way between nodes, and at the ends of the
        device.
    radial
        True if positions are distances from the axis of a round device.
    """

    nodes: Floats
    lengths: Floats
    faces: Floats
    radial: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the device."""
        return float(self.faces[0]), float(self.faces[-1])

    @property
    def room(self) -> float:
        """Distance from an end of the device up to which a place counts as that end."""
        start, end = self.ends
        return _ROOM * (end - start)

    @property
    def volumes(self) -> Floats:
        """Extent of each node's cell, f8 of shape (N,)."""
        below, above = self.halves
        return below + above

    @property
    def halves(self) -> tuple[Floats, Floats]:
        """Parts of each cell below and above its node, f8 of shape (N,) each."""
        halves = 0.5 * self.lengths
        first, last = self.nodes[0] - self.faces[0], self.faces[-1] - self.nodes[-1]
        return np.concatenate(([first], halves)), np.concatenate((halves, [last]))

    @property
    def sections(self) -> Floats:
        """Cross section of each node's cell for what flows past along another axis: its extent, or that of a ring."""
        if not self.radial:
            return self.volumes
        squares = math.pi * np.square(self.faces)
        return squares[1:] - squares[:-1]

    @property
    def half_sections(self) -> tuple[Floats, Floats]:
        """Parts of each cross section below and above its node, f8 of shape (N,) each."""
        if not self.radial:
            return self.halves
        nodes, faces = np.square(self.nodes), np.square(self.faces)
        return math.pi * (nodes - faces[:-1]), math.pi * (faces[1:] - nodes)

    @property
    def openings(self) -> Floats:
        """Extent of each face for what flows through it, f8 of shape (N + 1,): 0 at the ends, 1 or a circle inside."""
        inside = 2.0 * math.pi * self.faces if self.radial else np.ones(self.faces.size)
        inside[[0, -1]] = 0.0
        return inside

    def shares(self, span: tuple[float, float]) -> Floats:
        """Return the fraction of each node's cell that lies between two positions, 0 to 1."""
        below, above = self.halves
        low, high = np.maximum(self.nodes - below, span[0]), np.minimum(self.nodes + above, span[1])
        part = (high - low).clip(0.0)
        shares = part * (high + low) * math.pi / self.sections if self.radial else part / self.volumes
        return snapped(shares)


def snapped(shares: Floats) -> Floats:
    """Return shares of cells, with those that differ from 0 or 1 by round-off only set to it."""
    return np.where(shares > _WHOLE, 1.0, np.where(shares < 1 - _WHOLE, 0.0, shares))


def _mesh(nodes: Floats, lengths: Floats, start: float, end: float) -> Mesh:
    middles = 0.5 * (nodes[:-1] + nodes[1:])
    return Mesh(nodes, lengths, np.concatenate(([start], middles, [end])))


def spaced(rows: Sequence[int], spacings: Sequence[float]) -> Mesh:
    """Return a mesh of rows of equal height in each layer, a node at the middle of each; end nodes are contacts."""
    heights = np.repeat(np.asarray(spacings, np.float64), rows)
    tops = np.concatenate(([0.0], np.cumsum(np.asarray(rows) * np.asarray(spacings, np.float64))))
    inside = [(np.arange(n) + 0.5) * h for n, h in zip(rows, spacings, strict=True)]
    nodes = np.concatenate([top + depth for top, depth in zip(tops, inside)])
    return _mesh(nodes, 0.5 * (heights[:-1] + heights[1:]), 0.0, float(tops[-1]))


def uniform(length: float, nodes: int) -> Mesh:
    """Return equally spaced nodes, the first at 0 and the last at `length`."""
    spacing = length / (nodes - 1)
    return _mesh(np.linspace(0.0, length, nodes), np.full(nodes - 1, spacing), 0.0, length)


def placed(positions: Sequence[float]) -> Mesh:
    """Return nodes at given ascending positions; the first and the last are the ends of the device."""
    nodes = np.asarray(positions, np.float64)
    return _mesh(nodes, np.diff(nodes), float(nodes[0]), float(nodes[-1]))


def split(mesh: Mesh, parts: NDArray[np.int64]) -> Mesh:
    """Return the mesh with each distance between neighbouring nodes divided into a number of equal parts."""
    lengths = np.repeat(mesh.lengths / parts, parts)
    steps = np.concatenate([np.arange(count) for count in parts.tolist()])
    nodes = np.append(np.repeat(mesh.nodes[:-1], parts) + steps * lengths, mesh.nodes[-1])
    return replace(_mesh(nodes, lengths, *mesh.ends), radial=mesh.radial)


def graded(
    ends: Sequence[float], first: float, growth: float, cap: float, between: Sequence[bool], fine: Sequence[bool]
) -> Mesh:
    """Return nodes that are dense at the boundaries of layers and sparser between them.

    Parameters
    ----------
    ends
        Ascending positions of the boundaries, including the ends of the device.
    first
        Spacing at a boundary.
    growth
        Ratio of neighbouring spacings away from a boundary.
    cap
        Largest spacing.
    between
        For each boundary, whether it lies half-way between two nodes, as is right for a change of material, or on a
        node. The first and the last boundary must lie on a node.
    fine
        For each boundary, whether spacings start from `first` there.

    Notes
    -----
    In a layer that is fine at one end only, spacings grow until the first node at or beyond the other end, and are then
    scaled to end there. In a layer that is fine at both ends, this applies to each half, and a node lies in the middle.
    """
    distances: list[Floats] = []
    for k, (low, high) in enumerate(pairwise(ends)):
        distances.append(_segment(high - low, first, growth, cap, (fine[k], fine[k + 1]), (between[k], between[k + 1])))
    lengths: list[float] = []
    nodes = [0.0 + ends[0]]
    for k, steps in enumerate(distances):
        if between[k]:  # the two half steps at this boundary form one spacing
            nodes.pop()
            lengths[-1] += steps[0]
            steps = steps[1:]
            nodes.append(ends[k] + distances[k][0])
        from_left = (ends[k] if not between[k] else ends[k] + distances[k][0]) + np.cumsum(steps)
        from_right = ends[k + 1] - np.concatenate((np.cumsum(steps[::-1])[::-1][1:], [0.0]))
        middle = 0.5 * (ends[k] + ends[k + 1])
        nodes.extend(np.where(from_left <= middle, from_left, from_right).tolist())
        lengths.extend(steps.tolist())
    return _mesh(np.array(nodes), np.array(lengths), ends[0], ends[-1])


def _segment(
    length: float, first: float, growth: float, cap: float, fine: tuple[bool, bool], halves: tuple[bool, bool]
) -> Floats:
    """Return the steps from one boundary to the next; a boundary between nodes starts with half a step."""
    if fine[0] and fine[1]:
        low = _growing(0.5 * length, first, growth, cap, half=halves[0])
        high = _growing(0.5 * length, first, growth, cap, half=halves[1])
        return np.concatenate((low, high[::-1]))
    if fine[0]:
        steps = _growing(length, first, growth, cap, half=halves[0])
        return np.concatenate((steps[:-1], [0.5 * steps[-1]])) * _fit(steps, length) if halves[1] else steps
    if fine[1]:
        return _segment(length, first, growth, cap, (True, False), (halves[1], halves[0]))[::-1]
    count = max(1, int(np.ceil(length / cap)))
    weights = np.ones(count + (halves[0] and halves[1]))
    weights[0] *= 0.5 if halves[0] else 1.0
    weights[-1] *= 0.5 if halves[1] else 1.0
    return weights * (length / float(weights.sum()))


def _fit(steps: Floats, length: float) -> float:
    """Return the factor by which steps must be scaled to reach `length` with the last one halved."""
    return length / float(steps[:-1].sum() + 0.5 * steps[-1])


def _growing(length: float, first: float, growth: float, cap: float, *, half: bool) -> Floats:
    """Return growing steps, scaled so that the first node at or beyond `length` lies there; keep a first half step."""
    kept = min(0.5 * first, 0.25 * length) if half else 0.0
    steps: list[float] = []
    reached, step = 0.0, first
    while reached < length - kept:
        steps.append(step)
        reached += step
        step = min(step * growth, cap)
    return np.array(([kept] if half else []) + [s * ((length - kept) / reached) for s in steps])
