"""What lies beyond the ends of the domain: every condition, in any number of layers, at corners, on any layout."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.command import Category
from minga.engine.program import Program
from minga.errors import LayoutError, MingaError, ProgramError
from thinned import thinned

from .eager import (
    Wall,
    beside,
    by_index,
    fixed_array,
    fixed_function,
    fixed_number,
    fixed_register,
    odd_about,
    reflect_cell,
    reflect_edge,
    zero_gradient,
)
from .running import check, on_layouts, random_array, some_layouts

ALONE = mg.Layout.single


@mg.kernel
def sum_around(u, new):
    cells = itertools.product((-2, -1, 0, 1, 2), repeat=len(u.axes))
    total = 0.0
    for number, offsets in enumerate(cells):
        total = total + u[offsets] * (0.5 + number)
    new[(0,) * len(u.axes)] = total


@mg.kernel
def cross(u, new):
    total = 0.0
    for axis in range(len(u.axes)):
        for step in (-2, -1, 1, 2):
            total = total + u[tuple(step if a == axis else 0 for a in range(len(u.axes)))] * (axis + 0.25 * step)
    new[(0,) * len(u.axes)] = total


def padded(u: np.ndarray, condition: Any, **how: Any) -> np.ndarray:
    """A field's values with two ghost layers all around, read one offset at a time."""
    grid = mg.Grid(u.shape, **how)
    source, target = mg.Field("u", grid, boundary=condition), mg.Field("copy", grid)
    result = np.zeros([n + 4 for n in u.shape])
    with mg.Engine({grid: ALONE(grid.box, 1)}) as engine:
        engine.set(source, u)
        for offsets in itertools.product((-2, 0, 2), repeat=u.ndim):
            program = Program(f"read {offsets}")
            program.apply(reader(offsets), source, target)
            engine.run(program)
            found = engine.gather(target)
            assert found is not None
            result[tuple(slice(2 + o, 2 + o + n) for o, n in zip(offsets, u.shape, strict=True))] = found
    return result


def reader(offsets: tuple[int, ...]) -> Any:
    @mg.kernel
    def shifted(a, b):
        b[(0,) * len(a.axes)] = a[offsets]

    return shifted


U = np.arange(20.0).reshape(4, 5) ** 1.5


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("condition", "mode", "options"),
    [
        (mg.fixed(7.5), "constant", {"constant_values": 7.5}),
        (mg.reflect("edge"), "symmetric", {}),
        (mg.reflect("cell"), "reflect", {}),
        (mg.zero_gradient(), "edge", {}),
    ],
)
def test_conditions_are_those_of_numpy_pad(condition: Any, mode: Any, options: Mapping[str, Any]) -> None:
    np.testing.assert_array_equal(padded(U, condition), np.pad(U, 2, mode=mode, **options))


def test_periodic_is_wrap() -> None:
    np.testing.assert_array_equal(padded(U, None, periodic=True), np.pad(U, 2, mode="wrap"))


def test_each_side_has_its_own_condition_and_later_axes_decide_corners() -> None:
    found = padded(U, {"y": (mg.fixed(1.0), mg.fixed(2.0)), "x": (mg.fixed(3.0), mg.zero_gradient())})
    assert (found[:2, 2:-2] == 1).all()
    assert (found[-2:, 2:-2] == 2).all()
    assert (found[:, :2] == 3).all()
    np.testing.assert_array_equal(found[:, -2:], np.repeat(found[:, -3:-2], 2, axis=1))


def test_one_axis_periodic_the_other_not() -> None:
    found = padded(U, mg.fixed(9.0), periodic=(False, True))
    expected = np.pad(np.pad(U, ((0, 0), (2, 2)), mode="wrap"), ((2, 2), (0, 0)), constant_values=9.0)
    np.testing.assert_array_equal(found, expected)


def test_a_shifted_torus_by_hand() -> None:
    """Cell (y + N, x) is cell (y, x + shift)."""
    found = padded(U, None, periodic=True, shift={"y": {"x": 2}})
    for y, x in itertools.product(range(-2, 6), range(-2, 7)):
        assert found[y + 2, x + 2] == U[y % 4, (x + 2 * (y // 4)) % 5], (y, x)


def test_functions_know_coordinates_and_arrays_the_face() -> None:
    face = np.arange(5.0)
    low = mg.fixed(lambda y, x: 100 * y + x)
    found = padded(U, {"y": (low, mg.fixed(face)), "x": mg.zero_gradient()}, spacing=0.5)
    y, x = np.array([-0.75, -0.25]), 0.25 + 0.5 * np.arange(5)
    np.testing.assert_array_equal(found[:2, 2:-2], 100 * y[:, None] + x)
    np.testing.assert_array_equal(found[-2:, 2:-2], np.stack([face, face]))


def all_walls(grid: mg.Grid, other: mg.Field, register: mg.Register) -> dict[str, Wall]:
    face = tuple(grid.shape[a] for a in range(1, grid.ndim))
    return {
        "number": fixed_number(0.5),
        "register": fixed_register(register),
        "function": fixed_function(grid.ndim),
        "array": fixed_array(np.random.default_rng(1).random(face)),
        "edge": reflect_edge(),
        "cell": reflect_cell(),
        "gradient": zero_gradient(),
        "odd": odd_about(0.25),
        "beside": beside(other),
        "index": by_index(grid.ndim - 1),
    }


NAMES = ["number", "register", "function", "array", "edge", "cell", "gradient", "odd", "beside", "index"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "periodic"),
    thinned(
        [(name, False) for name in NAMES] + [(name, True) for name in ("function", "array", "beside", "index")],
        *[("function", True), ("beside", False), ("cell", False), ("register", False)],
    ),
)
def test_every_condition_on_every_layout(name: str, periodic: bool) -> None:
    grid = mg.Grid((6, 5), periodic=(False, periodic), spacing=0.25)
    register = mg.Register("edge value", initial=0.75)
    other = mg.Field("other", grid)
    wall, rest = all_walls(grid, other, register)[name], zero_gradient()
    boundary = {0: (wall.condition, wall.condition)}
    if not periodic:
        boundary[1] = (rest.condition, rest.condition)
    u = mg.Field("u", grid, slots=2, boundary=boundary)
    program = Program("step")
    for kernel in (cross, sum_around):
        program.apply(kernel, u, u.next)
        program.rotate(u)
    program.let(register, register * 0.5)
    program.apply(scale, u, other, c=0.0625)
    initial = {u: random_array(u), other: random_array(other, 2)}
    layouts = some_layouts(grid)
    for some, depth, overlap in ((layouts[:4], 1, True), (layouts[4:], 3, False)):
        found = check([(program, 2)], initial, some, [wall, rest], [register], halo_depth=depth, overlap=overlap)
    assert np.isfinite(found.arrays[u]).all()


@mg.kernel
def scale(u, new, *, c):
    new[0, 0] = u[0, 0] * c


@pytest.mark.slow
def test_deep_halos_do_not_ask_boundaries_to_look_deeper() -> None:
    """Five steps on three cells: mirrors look two cells inside, however often steps are computed twice."""
    grid, walls = mg.Grid((3, 2)), [reflect_edge(), fixed_number(0.5)]
    u = mg.Field("u", grid, slots=2, boundary={0: (walls[0].condition,) * 2, 1: (walls[1].condition,) * 2})
    program = Program("step")
    program.apply(cross, u, u.next)
    program.rotate(u)
    initial = {u: random_array(u) * 0.01}
    for depth in (2, 4, 5):
        check([(program, 7)], initial, some_layouts(grid), walls, halo_depth=depth)


def test_a_register_that_changes_changes_the_ghost_cells() -> None:
    """Also where the field itself did not change since they were filled."""
    grid, register = mg.Grid((4, 4)), mg.Register("wall", initial=1.0)
    wall = fixed_register(register)
    u = mg.Field("u", grid, boundary=wall.condition)
    a, b, c = (mg.Field(name, grid, boundary=wall.condition) for name in "abc")
    program = Program("step")
    program.apply(cross, u, a)
    program.let(register, register + 1)
    program.apply(cross, u, b)
    with program.repeat(2):
        program.apply(cross, u, c)
        program.let(register, register * 2)
    with program.when(register > 3):
        program.let(register, 0.125)
    program.apply(cross, u, a)
    fields = {f: random_array(f) for f in (u, a, b, c)}
    check([(program, 2)], fields, some_layouts(grid)[:3], [wall], [register])


@pytest.mark.slow
def test_a_neighbour_field_that_changes_changes_the_ghost_cells() -> None:
    grid, one = mg.Grid((4, 5)), fixed_number(1)
    other = mg.Field("other", grid, slots=2, boundary=one.condition)
    wall = beside(other)
    u = mg.Field("u", grid, boundary=wall.condition)
    a, b = mg.Field("a", grid), mg.Field("b", grid)
    program = Program("step")
    program.apply(sum_around, u, a)
    program.apply(scale, u, other.next, c=0.5)
    program.rotate(other)
    program.apply(sum_around, u, b)
    with program.repeat(2):
        program.apply(cross, u, a)
        program.apply(scale, b, other, c=0.125)
    fields = {f: random_array(f) for f in (u, other, a, b)}
    check([(program, 2)], fields, some_layouts(grid), [wall, one])


def test_a_condition_may_look_all_the_way_through_but_not_further() -> None:
    grid = mg.Grid((2,))
    u, new = mg.Field("u", grid, boundary=mg.reflect("cell")), mg.Field("new", grid)
    program = Program("step")
    program.apply(cross, u, new)
    with pytest.raises(LayoutError, match="reads 3 cells inside, but there are only 2"):
        on_layouts(ALONE(grid.box, 1), [(program, 1)], {u: 1.0, new: 0.0})


def test_a_face_array_of_the_wrong_shape() -> None:
    grid = mg.Grid((3, 4))
    u, new = mg.Field("u", grid, boundary=mg.fixed(np.zeros(5))), mg.Field("new", grid)
    program = Program("step")
    program.apply(cross, u, new)
    with pytest.raises(LayoutError, match="boundary array of 'u'") as error:
        on_layouts(ALONE(grid.box, 1), [(program, 1)], {u: 1.0, new: 0.0})
    assert "(4,)" in str(error.value)


def test_reading_beyond_an_end_without_a_condition_is_refused() -> None:
    grid = mg.Grid((3, 4), periodic=(False, True))
    program = Program("step")
    with pytest.raises(ProgramError, match="beyond the low end of axis 'y'"):
        program.apply(cross, mg.Field("u", grid), mg.Field("new", grid))
    program.apply(scale, mg.Field("u", grid), mg.Field("new", grid), c=1.0)


def test_conditions_of_periodic_axes_are_refused() -> None:
    grid = mg.Grid((3, 4), periodic=(False, True))
    with pytest.raises(LayoutError, match="'x' is periodic"):
        mg.Field("u", grid, boundary={"x": mg.fixed(0)})
    with pytest.raises(MingaError, match="no axis 'z'"):
        mg.Field("u", grid, boundary={"z": mg.fixed(0)})
    with pytest.raises(LayoutError, match="not a condition"):
        mg.Field("u", grid, boundary=0.0)  # type: ignore[arg-type]


def test_another_field_beside_an_edge_must_have_the_same_points() -> None:
    grid = mg.Grid((4, 4))
    faces = mg.Field("faces", grid, centre="x")
    u = mg.Field("u", grid, boundary=beside(faces).condition)
    program = Program("step")
    program.apply(cross, u, mg.Field("new", grid))
    with pytest.raises(MingaError, match="'faces'"):
        on_layouts(ALONE(grid.box, 1), [(program, 1)], {u: 1.0})


def boundary_commands(condition: Any, runs: int) -> int:
    """Return the number of commands that filled ghost cells of a field with two levels."""
    grid = mg.Grid((9, 10))
    u = mg.Field("u", grid, slots=2, boundary=condition)
    program = Program("step")
    program.apply(sum_around, u, u.next)
    program.rotate(u)
    with mg.Engine(ALONE(grid.box, 1, 0), grid=grid) as engine:
        for _ in range(runs):
            engine.run(program, times=3)
        return int(engine.booked[1, Category.BOUNDARY])


@pytest.mark.slow
def test_layers_that_read_nothing_are_filled_at_once() -> None:
    """Layers that mirror cells are filled one by one; constants once for each end and level, however often one runs."""
    assert boundary_commands(mg.reflect(), 1) == 3 * 8
    assert boundary_commands(mg.reflect(), 2) == 6 * 8
    assert boundary_commands(mg.fixed(2.0), 1) == boundary_commands(mg.fixed(2.0), 3) == 2 * 4


@mg.kernel
def double(coarse, fine):  # type: ignore[no-untyped-def]
    for dy in (0, 1):
        for dx in (0, 1):
            fine.strided(2)[dy, dx] = coarse[0, 0]


@mg.kernel
def far_around(u, new):  # type: ignore[no-untyped-def]
    new[0, 0] = u[-3, 0] + u[3, 0] - u[0, -3] - u[0, 3]


def test_constant_ghost_cells_survive_wider_halos_other_layouts_and_stores_past_the_end() -> None:
    """A Program that spoils ghost cells, a wider halo and a relayout in between leave the same values as no event."""
    grid, half = mg.Grid((7, 9)), mg.Grid((4, 5))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(2.0))
    coarse = mg.Field("coarse", half)
    steps, spoil, wide = Program("step"), Program("spoil"), Program("wide")
    steps.apply(sum_around, u, u.next)
    steps.rotate(u)
    spoil.apply(double, coarse, u.next)
    wide.apply(far_around, u, u.next)
    wide.rotate(u)

    def result(disturbed: bool) -> np.ndarray:
        layouts = {grid: mg.Layout.single(grid.box, 1), half: mg.Layout.single(half.box, 1)}
        with mg.Engine(layouts) as engine:
            engine.set(u, np.random.default_rng(3).random(grid.shape))
            engine.set(coarse, 7.0)
            engine.run(steps, times=2)
            if disturbed:
                engine.run(spoil)
                engine.relayout({grid: mg.Layout.single(grid.box, 1)})
            engine.run(steps)
            engine.run(wide, times=2)
            if disturbed:
                engine.run(spoil)
            engine.run(steps, times=2)
            return np.array(engine.gather(u))

    assert (result(True) == result(False)).all()
