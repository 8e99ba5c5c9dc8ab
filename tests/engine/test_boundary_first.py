"""The boundary-first order: cells at borders between blocks before the others, so that messages travel meanwhile."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.infer import infer
from minga.engine.program import Program
from minga.engine.schedule import Begin, Loop, Stage
from minga.errors import KernelError
from minga.space.cuts import cartesian, slabs

from .running import on_layouts, random_array


@mg.kernel(order="boundary-first", across="block")
def relax(u, f):
    new = 0.1875 * (u[0, -1] + u[-1, 0] + u[1, 0] + u[0, 1] + f[0, 0])
    change = abs(new - u[0, 0])
    u[0, 0] = new
    return mg.max(change)


SHAPE = (13, 9)


def by_hand(u: np.ndarray, f: np.ndarray, boxes: list[mg.Box], times: int) -> np.ndarray:
    """Each block in its own order, with its neighbours' values of the sweep before."""
    for _ in range(times):
        old = np.pad(u, 1)
        for box in boxes:
            inside = [range(lo + (lo > 0), hi - (hi < n)) for lo, hi, n in zip(box.lo, box.hi, SHAPE, strict=True)]
            mine = old.copy()
            rows = itertools.product(range(box.lo[0], box.hi[0]), range(box.lo[1], box.hi[1]))
            low = [c for c in rows if c[0] not in inside[0] or c[1] not in inside[1]]
            # Borders across the first axis, low then high, then those across the second.
            low.sort(
                key=lambda c: 0 if c[0] < inside[0].start else 1 if c[0] >= inside[0].stop else 2 + (c[1] > box.lo[1])
            )
            for y, x in [*low, *itertools.product(*inside)]:
                around = mine[y + 1, x] + mine[y, x + 1] + mine[y + 2, x + 1] + mine[y + 1, x + 2]
                mine[y + 1, x + 1] = 0.1875 * (around + f[y, x])
            cut = tuple(slice(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))
            u = u.copy()
            u[cut] = mine[1:-1, 1:-1][cut]
    return u


def program_of(times: int) -> tuple[Program, mg.Field, mg.Field]:
    grid = mg.Grid(SHAPE)
    u, f = mg.Field("u", grid, boundary=mg.fixed(0.0)), mg.Field("f", grid)
    program = Program("relax")
    with program.repeat(times):
        program.apply(relax, u, f)
    return program, u, f


@pytest.mark.parametrize("overlap", [True, False])
def test_borders_are_done_first_whatever_overlaps(overlap: bool) -> None:
    program, u, f = program_of(3)
    start, force = random_array(u), random_array(f, 1)
    box = u.grid.box
    for layout in (slabs(box, 3, granule=1), slabs(box, 6, granule=1), cartesian(box, (2, 2), granule=1)):
        boxes = [mg.Box(tuple(map(int, a)), tuple(map(int, b))) for a, b in zip(layout.lo, layout.hi, strict=True)]
        left = on_layouts(layout, [(program, 1)], {u: start, f: force}, overlap=overlap)
        np.testing.assert_allclose(left.arrays[u][0], by_hand(start, force, boxes, 3), rtol=1e-14)


def test_messages_leave_before_the_inside_is_done() -> None:
    program, *_ = program_of(3)
    loop = next(item for item in infer(program.operations).items if isinstance(item, Loop))
    kinds = [item.part if isinstance(item, Stage) else type(item) for item in loop.rounds[0]]
    assert kinds.index("shell") < kinds.index(Begin) < kinds.index("interior")


def test_an_order_that_depends_on_the_layout_must_say_so() -> None:
    @mg.kernel(order="boundary-first")
    def exact(u):
        u[0, 0] = u[0, 1]

    @mg.kernel(order="boundary-first", across="block")
    def summed(u) -> Any:
        u[0, 0] = u[0, 1]
        return mg.sum(u[0, 0])

    u = mg.Field("u", mg.Grid(SHAPE), boundary=mg.fixed(0.0))
    with pytest.raises(KernelError, match="depends on how the grid is cut"):
        Program("p").apply(exact, u)
    with pytest.raises(KernelError, match="runs of cells"):
        Program("p").apply(summed, u)
