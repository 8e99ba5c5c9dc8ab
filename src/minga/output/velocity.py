"""Velocity of a run at the centres of cells; it has one field for each axis, on the faces across that axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource
from minga.output.variables import VELOCITY, Coordinate

__all__ = ["at_centres", "centred", "centres_of", "edges_of", "velocity_of"]

Floats = NDArray[np.float64]


def velocity_of(reader: FrameSource) -> tuple[str, ...]:
    """Return the names of the fields of a run's velocity, one for each axis; empty if it has none, or kept none."""
    names = tuple(str(reader.attrs.get(VELOCITY, "")).split())
    return names if names and set(names) <= set(reader.fields) else ()


def centres_of(reader: FrameSource, names: Sequence[str]) -> list[Coordinate]:
    """Return the cell centres along each axis of a velocity with several components.

    They are taken from the fields on faces of the other axes.
    """
    axes = [axis for name in names for axis in reader.coordinates(name)]
    found = {axis.name: axis for axis in axes if not axis.on_faces}
    return [found[axis.axis] for axis in reader.coordinates(names[0])]


def edges_of(reader: FrameSource, names: Sequence[str], axes: Sequence[Coordinate]) -> list[Floats]:
    """Return the edges of the cells with these centres, along each axis.

    They are the positions of a velocity component if it was kept on all of them.
    """
    edges = []
    for number, axis in enumerate(axes):
        kept = reader.coordinates(names[number])[number].values if names else ()
        edges.append(np.asarray(kept, np.float64) if len(kept) == len(axis.values) + 1 else axis.edges)
    return edges


def centred(values: Floats, axis: int, cells: int) -> Floats:
    """Average values on faces across an axis to the centres between; the last face of a periodic axis is its first."""
    low = np.take(values, range(cells), axis)
    high = np.take(values, [(i + 1) % values.shape[axis] for i in range(cells)], axis)
    return np.asarray(0.5 * (low + high))


def at_centres(reader: FrameSource, name: str, axis: int, centres: Floats, index: int = -1) -> Floats:
    """Return the velocity along an axis at the centres of cells, linear between the faces that were kept.

    If not all faces were kept, it is constant beyond the last one.
    """
    values, faces = reader.frame(name, index), reader.coordinates(name)[axis].values
    pairs = min(len(centres), len(faces) - 1)
    beside = 0.5 * (faces[:pairs] + faces[1 : pairs + 1])
    if np.all(np.abs(beside - centres[:pairs]) < 0.1 * np.diff(faces[: pairs + 1])):
        return centred(values, axis, len(centres))
    low = np.clip(np.searchsorted(faces, centres, side="right") - 1, 0, len(faces) - 2)
    share = np.clip((centres - faces[low]) / (faces[low + 1] - faces[low]), 0.0, 1.0)
    share = np.moveaxis(np.broadcast_to(share, (1,) * (values.ndim - 1) + share.shape), -1, axis)
    return np.asarray((1.0 - share) * np.take(values, low, axis) + share * np.take(values, low + 1, axis))
