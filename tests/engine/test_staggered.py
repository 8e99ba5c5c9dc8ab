"""Fields on faces, on parts of the grid, and on some of its axes; grids that nothing divides."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.space.cuts import blocks, slabs
from thinned import thinned

from .eager import fixed_number, odd_about, reflect_edge, zero_gradient
from .running import check, on_layouts, random_array, some_layouts


@mg.kernel
def gradient_y(p, v):
    v[0, 0] = p[0, 0] - p[-1, 0]


@mg.kernel
def gradient_x(p, u):
    u[0, 0] = p[0, 0] - p[0, -1]


@mg.kernel
def divergence(u, v, p):
    before = p[0, 0]
    p[0, 0] = before - 0.125 * ((u[0, 1] - u[0, 0]) + (v[1, 0] - v[0, 0]))
    return mg.max(abs(before))


@mg.kernel
def viscous(u, new):
    new[0, 0] = 0.5 * u[0, 0] + 0.125 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def vorticity(u, v, w):
    w[0, 0] = (v[0, 0] - v[0, -1]) - (u[0, 0] - u[-1, 0])


@mg.kernel
def stretched(p, u):
    """Faces that read cells aside of the last column, where there are only ghost cells."""
    u[0, 0] = p[1, 0] + 0.5 * p[-1, 0] - p[1, -1] + 0.25 * p[-2, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("periodic", "depth"),
    thinned(
        itertools.product(itertools.product([False, True], repeat=2), [1, 3]),
        *[((False, False), 1), ((False, True), 3)],
    ),
)
def test_a_staggered_flow(periodic: tuple[bool, bool], depth: int) -> None:
    grid = mg.Grid((7, 5), periodic=periodic)
    walls = {"p": zero_gradient(), "u": fixed_number(0.25), "v": odd_about(0.0)}
    p, u, v = (
        mg.Field(name, grid, centre=centre, slots=2, boundary=None if all(periodic) else walls[name].condition)
        for name, centre in (("p", ""), ("u", "x"), ("v", "y"))
    )
    w = mg.Field("w", grid, centre=["y", "x"])
    program = Program("step")
    program.apply(gradient_x, p, u)
    program.apply(gradient_y, p, v)
    program.apply(viscous, u, u.next)
    program.apply(viscous, v, v.next)
    program.rotate(u, v)
    residual = program.apply(divergence, u, v, p)
    program.apply(vorticity, u, v, w)
    initial = {f: random_array(f) for f in (p, u, v, w)}
    for overlap in (True, False):
        check(
            [(program, 3)], initial, some_layouts(grid), walls.values(), [residual], halo_depth=depth, overlap=overlap
        )


@pytest.mark.parametrize("wall", [reflect_edge, zero_gradient])
def test_faces_that_read_beside_the_last_cells(wall: Any) -> None:
    grid, one = mg.Grid((6, 5)), wall()
    p, u = mg.Field("p", grid, boundary=one.condition), mg.Field("u", grid, centre="x")
    program = Program("step")
    program.apply(stretched, p, u)
    check([(program, 1)], {p: random_array(p), u: 0.0}, some_layouts(grid), [one])


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [(1, 1), *(pytest.param(s, marks=pytest.mark.slow) for s in [(3, 11), (1, 7), (2, 2)])]
)
def test_tiny_tori(shape: tuple[int, int]) -> None:
    """Halos wider than the domain hold several periodic images."""

    @mg.kernel
    def far(u, new):
        new[0, 0] = u[-3, 0] + 0.5 * u[2, 1] - u[0, -2]

    for shift, depth in ((0, 1), (1, 3)):
        grid = mg.Grid(shape, periodic=True, shift={"y": {"x": shift}})
        u = mg.Field("u", grid, slots=2)
        q = mg.Field("q", grid, centre="x", slots=2)
        program = Program("step")
        program.apply(far, u, u.next)
        program.apply(far, q, q.next)
        program.rotate(u, q)
        initial = {u: random_array(u), q: random_array(q)}
        check([(program, 4)], initial, some_layouts(grid), halo_depth=depth)


FIXED = fixed_number(0.5)


@mg.kernel
def spread(u, plate, new):
    new[0, 0] = 0.5 * plate[0, 0] + 0.25 * plate[-1, 1] + 0.125 * u[1, 0]


@mg.kernel
def feed(u, plate):
    u[0, 0] = u[0, 0] + 0.5 * plate[0, 0] + 0.25 * plate[0, 1]


@pytest.mark.few(2)
@pytest.mark.parametrize("on", [mg.Box((2, 1), (5, 4)), mg.Box((0, 0), (1, 8)), mg.Box((6, 7), (7, 8))])
@pytest.mark.parametrize("wall", thinned([FIXED, zero_gradient(), reflect_edge()], FIXED))
def test_fields_on_a_part_of_the_grid(on: mg.Box, wall: Any) -> None:
    """Blocks that own nothing of the part read its ghost cells too."""
    grid, edge = mg.Grid((7, 8)), fixed_number(1)
    u = mg.Field("u", grid, boundary=edge.condition)
    plate = mg.Field("plate", grid, slots=2, on=on, boundary=wall.condition)
    program = Program("step")
    program.apply(spread, u, plate, plate.next)
    program.rotate(plate)
    grown = on.grow((1, 1), (1, 1)) & grid.box
    program.apply(feed, u, plate, region=mg.Box(on.lo, grown.hi))
    initial = {u: random_array(u), plate: random_array(plate)}
    check([(program, 3)], initial, some_layouts(grid), [wall, edge])


@mg.kernel
def damp(u, rows, columns, new):
    new[0, 0] = u[0, 0] * rows[0] + columns[-2] * u[-1, 0] + columns[1] * rows[3]


@mg.kernel
def smooth(a, b):
    b[0] = 0.5 * a[0] + 0.25 * (a[-2] + a[1])
    return mg.max(a[0])


@mg.kernel
def numbered(a, b):
    b[0] = a[0] + mg.cast(mg.index(0), "f8") + 0.5 * mg.coordinate(0) + mg.random()


@pytest.mark.slow
@pytest.mark.parametrize("periodic", [(False, True), pytest.param((True, False), marks=pytest.mark.slow)])
def test_fields_on_some_axes(periodic: tuple[bool, bool]) -> None:
    grid = mg.Grid((5, 18), periodic=periodic)
    edge = fixed_number(0.5)
    u = mg.Field("u", grid, slots=2, boundary=edge.condition)
    rows, columns = mg.Field("rows", grid, axes="y", slots=2), mg.Field("columns", grid, axes="x", slots=2)
    program = Program("step")
    program.apply(damp, u, rows, columns, u.next)
    program.rotate(u)
    program.apply(smooth, rows, rows.next)
    most = program.apply(smooth, columns, columns.next)
    program.rotate(rows, columns)
    program.apply(numbered, columns, columns.next)
    program.rotate(columns)
    program.let(mg.STEP, mg.STEP + 1)
    initial = {u: random_array(u), rows: random_array(rows), columns: random_array(columns)}
    for depth in (1, 3):
        check([(program, 4)], initial, some_layouts(grid), [edge], [most], halo_depth=depth)


def test_a_plane_in_three_dimensions() -> None:
    @mg.kernel
    def shine(u, ground, new):
        new[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.25 * ground[0, 1] + 0.125 * ground[-1, 0]

    @mg.kernel
    def erode(ground, new):
        new[0, 0] = 0.5 * ground[0, 0] + 0.25 * (ground[0, -1] + ground[1, 1])

    grid = mg.Grid((4, 5, 6), periodic=(False, False, True))
    u, ground = mg.Field("u", grid, slots=2), mg.Field("ground", grid, axes=["y", "x"], slots=2)
    program = Program("step")
    program.apply(shine, u, ground, u.next)
    program.apply(erode, ground, ground.next)
    program.rotate(u, ground)
    check([(program, 3)], {u: random_array(u), ground: random_array(ground)}, some_layouts(grid))


def test_calls_and_views_may_change_fields_on_some_axes() -> None:
    grid = mg.Grid((5, 6), periodic=(True, False))
    rows, new = mg.Field("rows", grid, axes="y"), mg.Field("new", grid, axes="y")

    def double(engine: Any) -> None:
        for _, view in engine.blocks(rows):
            view[...] *= 2.0

    program = Program("step")
    program.call(double, writes=[rows])
    program.refresh(rows)
    program.apply(smooth, rows, new)
    check([(program, 2)], {rows: random_array(rows), new: 0.0}, some_layouts(grid))
    with mg.Engine({grid: mg.Layout.single(grid.box, 1)}) as engine:
        for _, view in engine.blocks(rows, write=True):
            view[...] = 1.0
        quiet = Program("quiet")
        quiet.apply(smooth, rows, new)
        engine.run(quiet)
        np.testing.assert_array_equal(engine.gather(new), np.ones(5))


def test_conditions_of_fields_on_some_axes_are_refused() -> None:
    with pytest.raises(LayoutError, match="lacks axes of its grid and has boundary="):
        mg.Field("rows", mg.Grid((5, 6)), axes="y", boundary=mg.fixed(0.0))


def test_a_field_on_some_axes_is_read_near_its_ends_only() -> None:
    @mg.kernel
    def too_far(u, rows, new):
        new[0, 0] = u[0, 0] * rows[17]

    grid = mg.Grid((40, 4))
    with pytest.raises(ProgramError, match="'rows', which lacks axes of its grid, is read 17 points away"):
        Program("step").apply(too_far, mg.Field("u", grid), mg.Field("rows", grid, axes="y"), mg.Field("new", grid))


def test_coordinates_in_locals_reach_as_far_as_they_are_read() -> None:
    @mg.kernel
    def shifted(u, new):
        x = mg.local(mg.coordinate(0) * u[0, 0])
        new[0, 0] = x[20, 0]

    grid = mg.Grid((30, 2), spacing=0.5)
    u, new = mg.Field("u", grid, boundary=mg.fixed(2.0)), mg.Field("new", grid)
    program = Program("step")
    program.apply(shifted, u, new)
    left = on_layouts(slabs(grid.box, 2, granule=1), [(program, 1)], {u: 2.0, new: 0.0})
    np.testing.assert_array_equal(left.arrays[new][0][:, 0], 2 * (0.25 + 0.5 * (np.arange(30) + 20)))


def test_stores_of_different_points_are_refused() -> None:
    @mg.kernel
    def both(p, u):
        p[0, 0] = 1.0
        u[0, 0] = 1.0

    grid = mg.Grid((4, 4))
    with pytest.raises(ProgramError, match="stores fields with different points"):
        Program("step").apply(both, mg.Field("p", grid), mg.Field("u", grid, centre="x"))


@pytest.mark.slow
def test_operations_on_faces_and_cells_are_not_split_together() -> None:
    """The pointwise user of a staggered field must see its last face, wherever shells are cut."""

    @mg.kernel
    def set_faces(p, u):
        u[0, 0] = 2.0 * p[0, -1]

    @mg.kernel
    def use_faces(u, q):
        q[0, 0] = u[0, 0] + 1.0

    grid = mg.Grid((6, 7), periodic=(True, False))
    edge = fixed_number(0.5)
    p, q = (mg.Field(name, grid, boundary=edge.condition) for name in "pq")
    u = mg.Field("u", grid, centre="x", boundary=edge.condition)
    program = Program("step")
    program.apply(set_faces, p, u)
    program.apply(use_faces, u, q)
    program.apply(viscous, q, p)
    program.apply(stretched_faces, u, p)
    initial = {f: random_array(f) for f in (p, q, u)}
    check([(program, 3)], initial, [*some_layouts(grid), blocks(grid.box, 5, 2, granule=1)], [edge])


@mg.kernel
def stretched_faces(u, p):
    p[0, 0] = p[0, 0] * 0.5 + 0.25 * (u[1, 0] - u[0, 1] + u[-1, 1])
