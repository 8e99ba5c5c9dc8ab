"""What is sent: how many messages of how many bytes, counted by hand for common stencils and layouts."""

from __future__ import annotations

from typing import Any

import pytest

import minga as mg
from minga.engine.program import Program
from minga.space.cuts import blocks, cartesian, slabs

from .running import on_layouts, random_array


@mg.kernel
def star(u, new):
    new[0, 0] = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]


@mg.kernel
def box(u, new):
    new[0, 0] = sum(u[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1))


@mg.kernel
def upwind(u, new):
    new[0, 0] = u[-2, 0]


@mg.kernel
def both(u, v, a, b):
    a[0, 0] = u[-1, 0] + v[1, 0]
    b[0, 0] = u[0, 1] + v[0, -1]


def step(kernel: Any, *fields: mg.Field) -> Program:
    program = Program("step")
    program.apply(kernel, *fields, *(f.next for f in fields))
    program.rotate(*fields)
    return program


def sent(program: Program, initial: Any, layout: mg.Layout, **settings: Any) -> tuple[list[int], list[int]]:
    """Messages and bytes a step and rank: what ten more steps send."""
    counts = []
    for times in (10, 20):
        left = on_layouts(layout, [(program, times)], initial, **settings)
        counts.append((left.messages, left.bytes))
    (m1, b1), (m2, b2) = counts
    assert all((b - a) % 10 == 0 for a, b in zip(m1 + b1, m2 + b2, strict=True))
    return [(b - a) // 10 for a, b in zip(m1, m2, strict=True)], [(b - a) // 10 for a, b in zip(b1, b2, strict=True)]


GRID = mg.Grid((12, 9), periodic=True)
OPEN = mg.Grid((12, 9))


def field(grid: mg.Grid, dtype: str = "f8", name: str = "u", **options: Any) -> mg.Field:
    boundary = None if all(grid.periodic) else mg.fixed(0)
    return mg.Field(name, grid, dtype, slots=2, boundary=boundary, **options)


@pytest.mark.parametrize("overlap", [True, False])
def test_stars_send_no_corners(overlap: bool) -> None:
    """3 x 3 blocks of 4 x 3 cells: two rows of three and two columns of four."""
    layout = cartesian(GRID.box, (3, 3), granule=1)
    u = field(GRID)
    assert sent(step(star, u), {u: 1.0}, layout, overlap=overlap) == ([4] * 9, [8 * (3 + 3 + 4 + 4)] * 9)


def test_boxes_send_corners_to_diagonal_neighbours() -> None:
    layout = cartesian(GRID.box, (3, 3), granule=1)
    c = field(GRID, "u1")
    assert sent(step(box, c), {c: 1}, layout) == ([8] * 9, [3 + 3 + 4 + 4 + 4] * 9)


def test_open_ends_send_nothing() -> None:
    layout = cartesian(OPEN.box, (3, 3), granule=1)
    u = field(OPEN)
    messages, size = sent(step(star, u), {u: 1.0}, layout)
    assert messages == [2, 3, 2, 3, 4, 3, 2, 3, 2]
    assert size == [8 * n for n in (3 + 4, 3 + 4 + 4, 3 + 4, 3 + 3 + 4, 14, 3 + 3 + 4, 3 + 4, 3 + 4 + 4, 3 + 4)]


def test_two_by_two_on_a_torus_is_one_message_for_each_pair() -> None:
    """A neighbour on both sides gets both rows in one message; diagonal ranks get four corners in one."""
    layout = cartesian(GRID.box, (2, 2), granule=1)
    u, c = field(GRID), field(GRID, "u1")
    shapes = [layout.box(b).shape for b in range(4)]
    assert sent(step(star, u), {u: 1.0}, layout) == ([2] * 4, [16 * (h + w) for h, w in shapes])
    assert sent(step(box, c), {c: 1}, layout) == ([3] * 4, [2 * (h + w) + 4 for h, w in shapes])


def test_one_sided_stencils_send_one_way() -> None:
    layout = slabs(GRID.box, 3)
    u = field(GRID)
    assert sent(step(upwind, u), {u: 1.0}, layout) == ([1] * 3, [8 * 2 * 9] * 3)


def test_several_fields_share_a_message() -> None:
    layout = slabs(GRID.box, 3)
    u, v = field(GRID), field(GRID, "f4", "v")
    program = Program("step")
    program.apply(both, u, v, u.next, v.next)
    program.rotate(u, v)
    # u is read above only: 9 cells of 8 bytes go down; v below only: 9 of 4 bytes go up.
    assert sent(program, {u: 1.0, v: 1.0}, layout) == ([2] * 3, [9 * 8 + 9 * 4] * 3)


@pytest.mark.parametrize("depth", [2, 5])
def test_deep_halos_send_every_few_steps(depth: int) -> None:
    layout = slabs(GRID.box, 3)
    u = field(GRID)
    assert sent(step(star, u), {u: 1.0}, layout) == ([2] * 3, [2 * 9 * 8] * 3)
    counts = []
    for times in (10, 20):
        left = on_layouts(layout, [(step(star, u), times)], {u: random_array(u)}, halo_depth=depth)
        counts.append((left.messages[1], left.bytes[1], left.kernels[1]))
    assert counts[1][0] - counts[0][0] == 2 * 10 // depth
    # Rows are sent with their periodic images, since the halo's cells are computed from their neighbours.
    assert counts[1][1] - counts[0][1] == 2 * depth * (9 + 2 * depth) * 8 * 10 // depth


def test_blocks_of_one_rank_send_nothing_to_each_other() -> None:
    u = field(GRID)
    alone = blocks(GRID.box, 1, 6, granule=1)
    assert sent(step(box, u), {u: 1.0}, alone) == ([0], [0])
    two = blocks(GRID.box, 2, 4, granule=1)
    messages, _ = sent(step(box, u), {u: 1.0}, two)
    assert messages == [1, 1]


def test_nothing_is_sent_for_what_is_valid_already() -> None:
    """Two readers of one field, one exchange; a second run of the same Program sends none for what nobody changed."""
    grid = GRID
    u, a, b = field(grid), field(grid, name="a"), field(grid, name="b")
    program = Program("observe")
    program.apply(star, u, a)
    program.apply(star, u, b)
    layout = slabs(grid.box, 3)
    once = on_layouts(layout, [(program, 1)], {u: 1.0, a: 0.0, b: 0.0})
    twice = on_layouts(layout, [(program, 1), (program, 1), (program, 5)], {u: 1.0, a: 0.0, b: 0.0})
    assert once.messages == twice.messages == [2] * 3


def test_sweeps_send_each_unit_once() -> None:
    @mg.kernel(order={"y": +1})
    def down(u):
        u[0, 0] = 0.5 * u[-1, 0] + 1.0

    u = field(OPEN)
    program = Program("step")
    program.apply(down, u)
    messages, size = sent(program, {u: 1.0}, slabs(OPEN.box, 4))
    # Downwards only: the last rank sends nothing. Old values above are not sent again.
    assert messages == [1, 1, 1, 0]
    assert size == [9 * 8] * 3 + [0]


def test_moves_send_what_changes_hands() -> None:
    u, there = field(GRID), field(GRID.relabel("there"), name="there")
    program = Program("step")
    program.move(u, there)
    layouts = {GRID: slabs(GRID.box, 3), GRID.relabel("there"): mg.Layout.single(GRID.box, 3, 1)}
    left = on_layouts(layouts, [(program, 1)], {u: random_array(u), there: 0.0})
    assert left.messages == [1, 0, 1]
    assert left.bytes == [4 * 9 * 8, 0, 4 * 9 * 8]
    assert (left.arrays[there][0] == left.arrays[u][0]).all()
