"""Checks of the geometry of a cell: metals in contact, electrodes without solution between them, floating solids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID
from minga.space.grid import Grid

__all__ = ["check_apart", "check_attached", "check_joined"]

Cells = NDArray[np.bool_]
Kinds = NDArray[np.uint8]


def check_apart(kinds: Kinds, grid: Grid, key: str) -> None:
    """Reject electrodes that touch."""
    for place in _touching(kinds, grid):
        raise CaseError(
            f"the electrodes touch: cathode and anode are neighbours at {_said(place, grid)}",
            key=key,
            remedy="leave at least one cell of solution or glass between the two metals",
        )


def check_joined(kinds: Kinds, grid: Grid, key: str) -> None:
    """Reject cells in which no solution connects the electrodes, so that no current could pass."""
    fluid = kinds == FLUID
    if not fluid.any():
        raise CaseError("no cell is left for the solution", key=key, remedy="make the solids smaller")
    from_cathode = _spread(fluid, _beside(kinds, CATHODE, grid), grid.periodic)
    if not (from_cathode & _beside(kinds, ANODE, grid)).any():
        raise CaseError(
            "no solution leads from the cathode to the anode: solids keep them apart, and no current can pass",
            key=key,
            remedy="leave a path of at least one cell of solution between them, and beside each of them",
        )


def check_attached(kinds: Kinds | None, grid: Grid) -> None:
    """Reject solids that touch no wall, because the vector potential of the flow is not 0 on them."""
    if kinds is None:
        return
    solid = kinds != FLUID
    ends = np.zeros_like(solid)
    for axis, periodic in enumerate(grid.periodic):
        if not periodic:
            for end in (0, -1):
                ends[(slice(None),) * axis + (end,)] = True
    for place in np.argwhere(solid & ~_spread(solid, ends, grid.periodic))[:1]:
        raise CaseError(
            f"the solid at {_said(place, grid)} is attached to no wall, so the vector potential of the flow is unknown "
            "on it",
            key="electrodeposition.scheme",
            remedy='attach it to an electrode or a plate, or use scheme = "semi-implicit"',
        )


def _said(place: Sequence[int] | NDArray[np.int64], grid: Grid) -> str:
    return ", ".join(f"{axis} = {grid.centres(axis)[i]:g}" for axis, i in zip(grid.axes, place, strict=True))


def _beyond(kinds: Kinds, axis: int, periodic: bool) -> Kinds:
    """Return the kinds with one more plane at each end of an axis.

    The added planes are the electrodes at the ends of y; elsewhere they repeat the planes at the ends, those of the
    opposite end where the axis is periodic.
    """
    low, high = kinds.take([0], axis), kinds.take([-1], axis)
    if axis == 0:
        ends = np.full_like(low, CATHODE), np.full_like(low, ANODE)
    else:
        ends = (high, low) if periodic else (low, high)
    return np.concatenate([ends[0], kinds, ends[1]], axis=axis)


def _touching(kinds: Kinds, grid: Grid) -> Iterator[tuple[int, ...]]:
    """Find cells where one metal lies next to the other; the planes beyond the ends of y count as metals."""
    for axis, periodic in enumerate(grid.periodic):
        padded = np.moveaxis(_beyond(kinds, axis, periodic), axis, 0)
        one, other = padded[:-1], padded[1:]
        short = ((one == CATHODE) & (other == ANODE)) | ((one == ANODE) & (other == CATHODE))
        for found in np.argwhere(short)[:1]:
            rest = iter(found[1:].tolist())
            yield tuple(max(0, int(found[0]) - 1) if a == axis else next(rest) for a in range(kinds.ndim))


def _beside(kinds: Kinds, metal: int, grid: Grid) -> Cells:
    """Mark the cells next to a metal."""
    found = np.zeros(kinds.shape, bool)
    for axis, periodic in enumerate(grid.periodic):
        there = np.moveaxis(_beyond(kinds, axis, periodic) == metal, axis, 0)
        target = np.moveaxis(found, axis, 0)
        target |= there[:-2] | there[2:]
    return found


def _spread(inside: Cells, seeds: Cells, periodic: Sequence[bool]) -> Cells:
    """Mark the cells of `inside` that are connected to the seeds through faces of such cells."""
    reached = inside & seeds
    before = -1
    while (now := int(np.count_nonzero(reached))) != before:
        before = now
        for axis, joined in enumerate(periodic):
            reached = _along_runs(inside, reached, axis, joined)
    return reached


def _along_runs(inside: Cells, reached: Cells, axis: int, joined: bool) -> Cells:
    """Mark each run of cells along an axis that contains a reached cell; if `joined`, runs continue across the ends."""
    line, there = np.moveaxis(inside, axis, -1), np.moveaxis(reached, axis, -1)
    starts = line.copy()
    starts[..., 1:] &= ~line[..., :-1]
    runs = np.cumsum(starts).reshape(line.shape)
    hit = np.zeros(int(runs[(-1,) * runs.ndim]) + 1, bool)
    hit[runs[there]] = True
    if joined:
        around = line[..., 0] & line[..., -1]
        first, last = runs[..., 0][around], runs[..., -1][around]
        hit[first] |= hit[last]
        hit[last] |= hit[first]
    return np.moveaxis(hit[runs] & line, -1, axis)
