"""Ordered kernels: across blocks they have the bits of one process, or say why they cannot."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine import sweep
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.space.cuts import blocks, cartesian, slabs
from thinned import thinned

from .eager import fixed_number, reflect_edge
from .running import check, on_layouts, random_array, some_layouts


def value(u: Any, f: Any, h: float) -> Any:
    """A weighted mean of a cell and its neighbours, for kernels and for NumPy alike."""
    return (u[0, -1] + u[-1, 0] + u[1, 0] + u[0, 1] + f[0, 0]) * h


@mg.kernel(order="lexicographic")
def lexicographic(u, f):
    u[0, 0] = value(u, f, 0.1875)


@mg.kernel(order="red-black")
def checkered(u, f):
    u[0, 0] = value(u, f, 0.1875)


@mg.kernel(order={"y": +1})
def downwards(u, f):
    u[0, 0] = 0.5 * u[-1, 0] + 0.25 * u[1, 0] + f[0, 0]


@mg.kernel(order={"x": -1})
def leftwards(u, f):
    u[0, 0] = 0.5 * u[0, 1] + 0.25 * u[0, -1] + f[0, 0]
    return {"sum": mg.sum(u[0, 0]), "max": mg.max(u[0, 0])}


@mg.kernel(order={"y": +1, "x": -1})
def diagonal(u, f):
    u[0, 0] = 0.25 * u[-1, 0] + 0.25 * u[0, 1] + f[0, 0]


@mg.kernel(order={"y": +1})
def aslant(u, f):
    u[0, 0] = 0.25 * u[-1, -1] + 0.25 * u[-1, 1] + f[0, 0]


@mg.kernel(order={"y": +1}, across="block")
def by_block(u, f):
    u[0, 0] = 0.5 * u[-1, 0] + 0.25 * u[1, 0] + f[0, 0]


def by_hand(u: np.ndarray, f: np.ndarray, cells: Any) -> np.ndarray:
    """Cell after cell, with zeros around."""
    padded = np.pad(u, 1)
    for y, x in cells:
        around = {(a, b): padded[y + 1 + a, x + 1 + b] for a, b in itertools.product((-1, 0, 1), repeat=2)}
        padded[y + 1, x + 1] = value(around, {(0, 0): f[y, x]}, 0.1875)
    return padded[1:-1, 1:-1]


def fields(grid: mg.Grid, boundary: Any = None) -> tuple[mg.Field, mg.Field]:
    return mg.Field("u", grid, boundary=boundary or mg.fixed(0.0)), mg.Field("f", grid)


def one(kernel: Any, *operands: Any) -> Program:
    program = Program(kernel.name)
    program.apply(kernel, *operands)
    return program


SHAPE = (9, 14)


@pytest.mark.parametrize("kernel", [lexicographic, checkered])
def test_against_loops(kernel: Any) -> None:
    grid = mg.Grid(SHAPE)
    u, f = fields(grid)
    start, force = random_array(u), random_array(f, 1)
    cells = list(itertools.product(range(SHAPE[0]), range(SHAPE[1])))
    if kernel is checkered:
        cells.sort(key=lambda c: sum(c) % 2)
    expected = by_hand(by_hand(start, force, cells), force, cells)
    for layout in (slabs(grid.box, 4, granule=1), slabs(grid.box, 3, 1, granule=1)):
        left = on_layouts(layout, [(one(kernel, u, f), 2)], {u: start, f: force})
        np.testing.assert_array_equal(left.arrays[u][0], expected)


@pytest.mark.few(2)
@pytest.mark.parametrize("kernel", [lexicographic, checkered, downwards, diagonal])
@pytest.mark.parametrize("overlap", thinned([True, False], True))
def test_every_layout(kernel: Any, overlap: bool) -> None:
    grid, wall = mg.Grid(SHAPE), fixed_number(0.5)
    u, f = fields(grid, wall.condition)
    layouts = [*some_layouts(grid), cartesian(grid.box, (3, 2), granule=1), slabs(grid.box, 7, granule=1)]
    check([(one(kernel, u, f), 2)], {u: random_array(u), f: random_array(f, 1)}, layouts, [wall], overlap=overlap)


@pytest.mark.few(2)
@pytest.mark.parametrize("kernel", [downwards, leftwards, diagonal, lexicographic])
def test_periodic_axes_keep_old_values_behind_the_front(kernel: Any) -> None:
    grid = mg.Grid((8, 6), periodic=True)
    u, f = mg.Field("u", grid), mg.Field("f", grid)
    layouts = [slabs(grid.box, n, 0, granule=1) for n in (1, 2, 5)]
    check([(one(kernel, u, f), 2)], {u: random_array(u), f: random_array(f, 1)}, layouts)


def test_pipelines_of_many_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are cut into units so that the next rank can start early; the bits, also of sums, stay."""
    monkeypatch.setattr(sweep, "UNIT_CELLS", 16)
    grid, wall = mg.Grid((6, 200)), reflect_edge()
    u, f = fields(grid, wall.condition)
    program = Program("step")
    program.apply(downwards, u, f)
    sums = program.apply(leftwards, u, f)
    layouts = [slabs(grid.box, 3), slabs(grid.box, 3, 1), blocks(grid.box, 2, 2)]
    registers = [sums.sum, sums.max]
    for threads in (1, 2):
        initial = {u: random_array(u), f: random_array(f, 1)}
        check([(program, 2)], initial, layouts, [wall], registers, threads=threads)


@pytest.mark.slow
def test_three_dimensions() -> None:
    @mg.kernel(order="lexicographic")
    def relax(u, f):
        around = u[-1, 0, 0] + u[0, -1, 0] + u[0, 0, -1] + u[1, 0, 0] + u[0, 1, 0] + u[0, 0, 1]
        u[0, 0, 0] = 0.125 * (around + f[0, 0, 0])

    @mg.kernel(order={"z": -1})
    def upwards(u, f):
        u[0, 0, 0] = 0.5 * u[1, 0, 0] + f[0, 0, 0]

    grid, wall = mg.Grid((5, 6, 7)), fixed_number(0.25)
    u, f = fields(grid, wall.condition)
    program = Program("step")
    program.apply(relax, u, f)
    program.apply(upwards, u, f)
    layouts = [*some_layouts(grid), cartesian(grid.box, (2, 2, 2), granule=1)]
    check([(program, 2)], {u: random_array(u), f: random_array(f, 1)}, layouts, [wall])


def test_a_tridiagonal_solve_along_each_axis() -> None:
    """Elimination and back-substitution are two sweeps."""

    @mg.kernel(order={0: +1})
    def eliminate(c, d):
        w = 1.0 / (4.0 - c[-1, 0])
        c[0, 0] = w
        d[0, 0] = (d[0, 0] + d[-1, 0]) * w

    @mg.kernel(order={0: -1})
    def substitute(c, d):
        d[0, 0] = d[0, 0] + c[0, 0] * d[1, 0]

    grid = mg.Grid((11, 8))
    wall = fixed_number(0.0)
    c, d = (mg.Field(name, grid, boundary=wall.condition) for name in "cd")
    program = Program("solve")
    program.apply(eliminate, c, d)
    program.apply(substitute, c, d)
    right = random_array(d)
    left = check([(program, 1)], {c: 0.0, d: right}, some_layouts(grid), [wall])
    matrix = 4 * np.eye(11) - np.eye(11, k=1) - np.eye(11, k=-1)
    np.testing.assert_allclose(left.arrays[d][0], np.linalg.solve(matrix, right), rtol=1e-13)


def test_what_blocks_would_do_in_turns_is_refused() -> None:
    grid = mg.Grid(SHAPE)
    u, f = fields(grid)
    program = one(aslant, u, f)
    crossed = cartesian(grid.box, (2, 2), granule=1)
    with pytest.raises(ProgramError, match="wait for each other row by row") as error:
        on_layouts(crossed, [(program, 1)], {u: 0.0, f: 0.0})
    assert "slabs" in str(error.value)
    wall = fixed_number(0.0)
    u, f = fields(grid, wall.condition)
    layouts = [slabs(grid.box, 4, granule=1)]
    check([(one(aslant, u, f), 2)], {u: random_array(u), f: random_array(f, 1)}, layouts, [wall])


def test_across_block_uses_old_halos() -> None:
    """By definition the result depends on the layout: each block is swept by itself."""
    grid = mg.Grid((8, 3))
    u, f = fields(grid)
    start, force = random_array(u), random_array(f, 1)
    left = on_layouts(slabs(grid.box, 2, granule=1), [(one(by_block, u, f), 1)], {u: start, f: force})
    padded = np.pad(start, 1)
    expected = start.copy()
    for first in (0, 4):
        before = padded[first]  # row first - 1 of the old values
        for y in range(first, first + 4):
            below = padded[y + 2]
            expected[y] = 0.5 * before[1:-1] + 0.25 * below[1:-1] + force[y]
            before = np.pad(expected[y], 1)
    np.testing.assert_array_equal(left.arrays[u][0], expected)


def test_red_black_needs_even_periods() -> None:
    odd = mg.Grid((4, 5), periodic=True)
    with pytest.raises(ProgramError, match="red-black on periodic axis 'x' of 5 cells"):
        one(checkered, mg.Field("u", odd), mg.Field("f", odd))
    shifted = mg.Grid((4, 6), periodic=True, shift={"y": {"x": 1}})
    with pytest.raises(ProgramError, match="shifted by an odd number"):
        one(checkered, mg.Field("u", shifted), mg.Field("f", shifted))


@pytest.mark.parametrize("shift", thinned([0, 2], 2))
def test_red_black_on_a_torus(shift: int) -> None:
    grid = mg.Grid((6, 8), periodic=True, shift={"y": {"x": shift}})
    u, f = mg.Field("u", grid), mg.Field("f", grid)
    for depth in (1, 3):
        initial = {u: random_array(u), f: random_array(f, 1)}
        check([(one(checkered, u, f), 3)], initial, some_layouts(grid), halo_depth=depth)
