"""What touches what in a cell: metals that must not, solution that has to join them, solid parts that hang free."""

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
    """Refuse electrodes that touch."""
    for place in _touching(kinds, grid):
        raise CaseError(
            f"the electrodes touch: cathode and anode are neighbours at {_said(place, grid)}",
            key=key,
            remedy="leave at least one cell of solution or glass between the two metals",
        )


def check_joined(kinds: Kinds, grid: Grid, key: str) -> None:
    """Refuse cells in which no solution leads from one electrode to the other: no current could pass."""
    fluid = kinds == FLUID
    if not fluid.any():
        raise CaseError("no cell is left for the solution", key=key, remedy="make the solid parts smaller")
    from_cathode = _spread(fluid, _beside(kinds, CATHODE, grid), grid.periodic)
    if not (from_cathode & _beside(kinds, ANODE, grid)).any():
        raise CaseError(
            "no solution leads from the cathode to the anode: solid parts keep them apart, and no current can pass",
            key=key,
            remedy="leave a way of at least one cell of solution between them, and beside each of them",
        )


def check_attached(kinds: Kinds | None, grid: Grid) -> None:
    """Refuse solid parts that hang in the solution: a vector potential of the flow is not 0 on them."""
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
            f"a solid part at {_said(place, grid)} is attached to no wall, where the vector potential of the flow is "
            "unknown",
            key="electrodeposition.scheme",
            remedy='let it touch an electrode or a plate, or take scheme = "semi-implicit"',
        )


def _said(place: Sequence[int] | NDArray[np.int64], grid: Grid) -> str:
    return ", ".join(f"{axis} = {grid.centres(axis)[i]:g}" for axis, i in zip(grid.axes, place, strict=True))


def _beyond(kinds: Kinds, axis: int, periodic: bool) -> Kinds:
    """Kinds with a plane more at both ends of an axis: the electrodes' planes at those of y, else the last of glass."""
    low, high = kinds.take([0], axis), kinds.take([-1], axis)
    if axis == 0:
        ends = np.full_like(low, CATHODE), np.full_like(low, ANODE)
    else:
        ends = (high, low) if periodic else (low, high)
    return np.concatenate([ends[0], kinds, ends[1]], axis=axis)


def _touching(kinds: Kinds, grid: Grid) -> Iterator[tuple[int, ...]]:
    """Cells where one metal has the other one beside it; the planes beyond the ends of y are metals too."""
    for axis, periodic in enumerate(grid.periodic):
        padded = np.moveaxis(_beyond(kinds, axis, periodic), axis, 0)
        one, other = padded[:-1], padded[1:]
        short = ((one == CATHODE) & (other == ANODE)) | ((one == ANODE) & (other == CATHODE))
        for found in np.argwhere(short)[:1]:
            rest = iter(found[1:].tolist())
            yield tuple(max(0, int(found[0]) - 1) if a == axis else next(rest) for a in range(kinds.ndim))


def _beside(kinds: Kinds, metal: int, grid: Grid) -> Cells:
    """Cells that have a metal beside them."""
    found = np.zeros(kinds.shape, bool)
    for axis, periodic in enumerate(grid.periodic):
        there = np.moveaxis(_beyond(kinds, axis, periodic) == metal, axis, 0)
        target = np.moveaxis(found, axis, 0)
        target |= there[:-2] | there[2:]
    return found


def _spread(inside: Cells, seeds: Cells, periodic: Sequence[bool]) -> Cells:
    """The cells of `inside` that are joined to seeds through it, by faces."""
    reached = inside & seeds
    before = -1
    while (now := int(np.count_nonzero(reached))) != before:
        before = now
        for axis, joined in enumerate(periodic):
            reached = _along_runs(inside, reached, axis, joined)
    return reached


def _along_runs(inside: Cells, reached: Cells, axis: int, joined: bool) -> Cells:
    """All of every run of cells along an axis of which one is reached; `joined`: runs go on around the ends."""
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
