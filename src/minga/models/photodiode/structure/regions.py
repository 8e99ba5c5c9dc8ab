"""Regions of devices with two axes: the nodes inside, and the share in the volume of each node; lengths in cm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.mesh import Mesh, snapped

__all__ = ["Polygon", "Region", "nodes_inside"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Pair = tuple[float, float]

_THIN: Final = 1e-12  # of the area of the device
_ROOT_PI: Final = math.sqrt(math.pi)
_ROOM: Final = 1e-6  # in spacings: a node this close to an edge lies on it


@dataclass(frozen=True, slots=True)
class Region:
    """Rectangular region of other doping in a device with two axes; x and y are ranges in cm.

    Parameters
    ----------
    name
        The name.
    x, y
        Ends along each axis, cm.
    doping
        Donors minus acceptors, 1/cm3.
    straggle
        Standard deviations along x and y, cm, of the Gaussian by which edges inside the device are smoothed: the share
        of the doping at a distance d outside an edge is erfc(d/(sqrt(2) straggle))/2. 0: sharp edges.
    material
        Semiconductor of the nodes in the region; None: that of the layers.
    """

    name: str
    x: Pair
    y: Pair
    doping: float
    straggle: Pair = (0.0, 0.0)
    material: Material | None = None

    @property
    def corners(self) -> tuple[Pair, ...]:
        """The corners, in order around the region."""
        (left, right), (low, high) = self.x, self.y
        return (left, low), (right, low), (right, high), (left, high)

    def inside(self, mesh: Mesh, across: Mesh) -> Floats:
        """Return the share of the region in the volume of each node.

        Parameters
        ----------
        mesh, across
            Meshes along x and y.

        Returns
        -------
        numpy.ndarray
            Shares, 0 to 1, f8 of the grid's shape.
        """
        return np.outer(_along(mesh, self.x, self.straggle[0]), _along(across, self.y, self.straggle[1]))


@dataclass(frozen=True, slots=True)
class Polygon:
    """Region of other doping with straight edges, in a round device turned about its axis.

    Parameters
    ----------
    name
        The name.
    corners
        Pairs of x and y in cm, in order around the region, in either direction; the last is joined to the first.
    doping
        Donors minus acceptors, 1/cm3.
    material
        Semiconductor of the nodes in the region; None: that of the layers.
    """

    name: str
    corners: tuple[Pair, ...]
    doping: float
    material: Material | None = None

    @property
    def x(self) -> Pair:
        """Smallest and largest x of the corners."""
        return min(x for x, _ in self.corners), max(x for x, _ in self.corners)

    @property
    def y(self) -> Pair:
        """Smallest and largest y of the corners."""
        return min(y for _, y in self.corners), max(y for _, y in self.corners)

    def inside(self, mesh: Mesh, across: Mesh) -> Floats:
        """Return the share of the region in the volume of each node, exactly.

        Parameters
        ----------
        mesh, across
            Meshes along x and y.

        Returns
        -------
        numpy.ndarray
            Shares, 0 to 1, f8 of the grid's shape.

        Raises
        ------
        CaseError
            If the edges cross, enclose nothing, or leave the device.
        """
        self._check(mesh, across)
        if len(self.corners) == 4 and all((a[0] == b[0]) != (a[1] == b[1]) for a, b in _edges(self.corners)):
            return Region(self.name, self.x, self.y, self.doping).inside(mesh, across)
        # The volume below each edge, counted positive for one direction along x and negative for the other.
        below = np.zeros((mesh.nodes.size, across.nodes.size))
        for start, end in _edges(self.corners):
            below += _below(start, end, mesh, across)
        return snapped(np.abs(below) / np.outer(mesh.volumes, across.sections))

    def _check(self, mesh: Mesh, across: Mesh) -> None:
        for axis, side, places in zip("xy", (mesh, across), zip(*self.corners)):
            start, end = side.ends
            for k, place in enumerate(places):
                if not start - side.room <= place <= end + side.room:
                    raise self._wrong(
                        f"corner {k + 1} is at {axis} = {1e4 * place:g} um, outside the device, from {1e4 * start:g} "
                        f"to {1e4 * end:g} um",
                        "move it to the edge of the device",
                    )
        crossing = _crossing(np.array(self.corners))
        if crossing is not None:
            first, second = crossing
            raise self._wrong(
                f"the edge after corner {first + 1} crosses the edge after corner {second + 1}",
                "list the corners in order around the region, or make several regions",
            )
        if not abs(_area(self.corners)) > _THIN * float(mesh.faces[-1] * across.faces[-1]):
            raise self._wrong("its corners enclose nothing", "give three or more corners that are not on one line")

    def _wrong(self, text: str, remedy: str) -> CaseError:
        return CaseError(f"region {self.name!r}: {text}", key="photodiode.regions", remedy=remedy)


def nodes_inside(region: Region | Polygon, mesh: Mesh, across: Mesh) -> Bools:
    """Return which nodes lie in a region, bool of the grid's shape.

    A node on an edge belongs to what follows along x and y, as a node on a boundary between two layers belongs to the
    one that begins there; at the ends of the device it belongs to what is before.
    """
    x, y = _beside(mesh), _beside(across)
    found = np.zeros((x.size, y.size), np.bool_)
    for (first, low), (last, high) in map(sorted, _edges(region.corners)):
        passed = np.flatnonzero((first <= x) & (x < last))
        share = (x[passed] - first) / (last - first) if passed.size else x[passed]
        found[passed] ^= (low + (high - low) * share)[:, None] <= y
    return found


def _beside(mesh: Mesh) -> Floats:
    """Return places next to the nodes along an axis, in what follows, and for the last one in what is before."""
    room = _ROOM * float(mesh.lengths.min())
    found: Floats = mesh.nodes + room
    found[-1] = mesh.nodes[-1] - room
    return found


def _edges(corners: Sequence[Pair]) -> Iterator[tuple[Pair, Pair]]:
    """Return the edges between corners, each from one end to the other."""
    return pairwise((*corners, corners[0]))


def _along(mesh: Mesh, span: Pair, straggle: float) -> Floats:
    """Return the share of an interval in each node's cell."""
    if straggle == 0.0:
        return mesh.shares(span)
    start, end = mesh.ends
    # What continues beyond the end of the device has no edge there.
    low = np.ones(mesh.nodes.size) if span[0] <= start + mesh.room else _mean_erf(mesh, span[0], straggle)
    high = -np.ones(mesh.nodes.size) if span[1] >= end - mesh.room else _mean_erf(mesh, span[1], straggle)
    return snapped(0.5 * (low - high))


def _mean_erf(mesh: Mesh, place: float, straggle: float) -> Floats:
    """Return the mean over each node's cell of erf((s - place)/(sqrt(2) straggle)); in a ring, over its area."""
    scale = math.sqrt(2.0) * straggle
    t = (mesh.faces - place) / scale
    value, tail = portable.erf(t), portable.exp(-t * t) / _ROOT_PI
    passed = scale * (t * value + tail)
    if mesh.radial:
        moments = scale * scale * ((0.5 * t * t - 0.25) * value + 0.5 * t * tail)
        passed = 2.0 * math.pi * (place * passed + moments)
    found: Floats = (passed[1:] - passed[:-1]) / mesh.sections
    return found


def _below(start: Pair, end: Pair, mesh: Mesh, across: Mesh) -> Floats:
    """Return the volume of each cell between its low face along y and an edge; negative for an edge towards low x."""
    (first, low), (last, high) = sorted((start, end))
    if first == last:
        return np.zeros((mesh.nodes.size, across.nodes.size))
    x = mesh.faces.clip(first, last)
    y = low + (high - low) * ((x - first) / (last - first))
    width = (x[1:] - x[:-1])[:, None]
    ends = np.sort(np.stack((y[:-1], y[1:])), axis=0)
    near, far = ends[0][:, None], ends[1][:, None]
    bottom, top = across.faces[:-1], across.faces[1:]
    slope = np.where(far > near, far - near, 1.0)
    entering, leaving = (
        np.where(far > near, (face - near) / slope, near < face).clip(0.0, 1.0) for face in (bottom, top)
    )
    between = (leaving - entering) * _filled(near.clip(bottom, top), far.clip(bottom, top), bottom, across.radial)
    found: Floats = width * (between + (1.0 - leaving) * _filled(top, top, bottom, across.radial))
    return found if start < end else -found


def _filled(near: Floats, far: Floats, bottom: Floats, radial: bool) -> Floats:
    """Return the mean cross section from `bottom` to a height that rises evenly from `near` to `far`."""
    if not radial:
        return 0.5 * (near + far) - bottom
    found: Floats = math.pi * ((near * near + near * far + far * far) / 3.0 - bottom * bottom)
    return found


def _area(corners: tuple[Pair, ...]) -> float:
    """Return the area within corners, with the sign of their direction."""
    return 0.5 * math.fsum(a[0] * b[1] - b[0] * a[1] for a, b in _edges(corners))


def _crossing(corners: Floats) -> tuple[int, int] | None:
    """Return two edges that cross, by the numbers of their first corners; None if there are none."""
    ends = np.roll(corners, -1, axis=0)
    for k in range(len(corners) - 2):
        a, b, rest = corners[k], ends[k], slice(k + 2, None)
        c, d = corners[rest], ends[rest]
        apart = _side(a, b, c) * _side(a, b, d) < 0
        crossed = np.flatnonzero(apart & (_side(c, d, a) * _side(c, d, b) < 0))
        if crossed.size:
            return k, k + 2 + int(crossed[0])
    return None


def _side(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the sign of the side of the line from a to b on which c lies."""
    found: Floats = np.sign(
        (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
    )
    return found
