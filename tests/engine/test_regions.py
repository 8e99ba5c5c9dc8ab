"""Operations on chosen cells: every n-th, one colour, single points; the same on any layout."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.space.cuts import bisection

GRID = mg.Grid((23, 150), periodic=(True, False))
START = np.random.default_rng(5).random(GRID.shape)


@mg.kernel
def blend(u: object, new: object) -> None:
    new[0, 0] = 0.5 * u[0, 0] + 0.25 * (u[-1, 0] + u[1, 0]) + mg.cast(mg.index("x") + 2 * mg.index("y"), "f8")


@mg.kernel
def mean_of_neighbours(u: object) -> None:
    u[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def add(u: object, *, amount: float) -> None:
    u[0, 0] = u[0, 0] + amount


def field() -> mg.Field:
    return mg.Field("u", GRID, slots=2, boundary=mg.fixed(1.0))


def everywhere(u: mg.Field, program: mg.Program, times: int = 1, **options: int) -> np.ndarray:
    """Both slots after a run on one rank; the same on others, to the bit."""

    def run(comm: Comm) -> np.ndarray | None:
        layout = bisection(GRID.box, [1.0] * comm.size, granule=1)
        with mg.Engine(layout, grid=GRID, comm=comm, **options) as engine:
            engine.set(u.now, START)
            engine.set(u.next, START)
            engine.run(program, times)
            now, after = engine.gather(u.now), engine.gather(u.next)
            return None if now is None or after is None else np.stack([now, after])

    alone = mg.run_virtual(1, run)[0]
    assert alone is not None
    for ranks in (2, 5):
        assert np.array_equal(mg.run_virtual(ranks, run)[0], alone)
    return alone


def blended() -> np.ndarray:
    y, x = np.indices(GRID.shape)
    return 0.5 * START + 0.25 * (np.roll(START, 1, 0) + np.roll(START, -1, 0)) + (x + 2 * y)


@pytest.mark.parametrize(("box", "stride"), [(None, 2), (mg.Box((3, 5), (22, 149)), (4, 3)), (None, (1, 7))])
def test_every_nth_cell(box: mg.Box | None, stride: int | tuple[int, int]) -> None:
    u = field()
    program = mg.Program()
    program.apply(blend, u.now, u.next, region=mg.Region(box, stride=stride))
    expected = START.copy()
    inside = (box or GRID.box).slices((0, 0))
    n = (stride, stride) if isinstance(stride, int) else stride
    chosen = tuple(slice(s.start, s.stop, k) for s, k in zip(inside, n, strict=True))
    expected[chosen] = blended()[chosen]
    assert np.array_equal(everywhere(u, program)[1], expected)


@pytest.mark.parametrize("depth", [1, 3])
def test_points_between_steps_reach_the_halo(depth: int) -> None:
    u = field()
    points = [(0, 0), (22, 149), (11, 74), (11, 75), (0, 0)]
    program = mg.Program()
    program.apply(blend, u.now, u.next)
    program.apply(add, u.next, region=mg.Region(points=points), amount=3.0)
    program.rotate(u)
    state = START
    y, x = np.indices(GRID.shape)
    for _ in range(5):
        state = 0.5 * state + 0.25 * (np.roll(state, 1, 0) + np.roll(state, -1, 0)) + (x + 2 * y)
        for point in set(points):
            state[point] += 3.0
    assert np.array_equal(everywhere(u, program, 5, halo_depth=depth)[0], state)


def test_one_colour() -> None:
    grid = mg.Grid((24, 150))
    u = mg.Field("u", grid, boundary=mg.fixed(1.0))
    program = mg.Program()
    program.apply(mean_of_neighbours, u, region=mg.Region(mg.Box((2, 2), (20, 140)), colour=1))
    start = np.random.default_rng(5).random(grid.shape)
    padded = np.pad(start, 1, constant_values=1.0)
    mean = 0.25 * (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:])
    y, x = np.indices(grid.shape)
    chosen = ((y + x) % 2 == 1) & (y >= 2) & (y < 20) & (x >= 2) & (x < 140)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, start)
        engine.run(program)
        assert np.array_equal(engine.gather(u), np.where(chosen, mean, start))


def test_red_black_reduces_over_both_colours() -> None:
    @mg.kernel(order="red-black")
    def relax(u: object) -> object:
        new = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
        u[0, 0] = new
        return {"cells": mg.count(new == new), "largest": mg.max(mg.cast(mg.index("x"), "f8"))}

    grid = mg.Grid((10, 9))
    u = mg.Field("u", grid, boundary=mg.fixed(1.0))
    program = mg.Program()
    seen = program.apply(relax, u)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.run(program)
        assert engine.read(seen.cells) == 90
        assert engine.read(seen.largest) == 8.0


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (lambda: mg.Region(stride=0), "stride"),
        (lambda: mg.Region(colour=2), "colour"),
        (lambda: mg.Region(points=[]), "no points"),
        (lambda: mg.Region(stride=2, colour=1), "stride and colour"),
        (lambda: mg.Program().apply(add, field(), region=mg.Region(points=[(1, 2, 3)]), amount=1.0), r"\[3\] indices"),
        (lambda: mg.Program().apply(add, field(), region=mg.Region(points=[(99, 2)]), amount=1.0), "beyond"),
    ],
)
def test_what_is_no_region(region: object, message: str) -> None:
    with pytest.raises(mg.MingaError, match=message):
        region()  # type: ignore[operator]


@pytest.mark.parametrize("stride", [(2, 2), (3, 2)])
def test_cells_between_those_stored_may_be_read_in_place(stride: tuple[int, int]) -> None:
    grid = mg.Grid((24, 150), periodic=True)
    u = mg.Field("u", grid)
    program = mg.Program()
    program.apply(mean_of_neighbours, u, region=mg.Region(mg.Box((1, 1), grid.shape), stride=stride))
    start = np.random.default_rng(6).random(grid.shape)
    mean = 0.25 * (np.roll(start, 1, 0) + np.roll(start, -1, 0) + np.roll(start, 1, 1) + np.roll(start, -1, 1))
    expected = start.copy()
    expected[1 :: stride[0], 1 :: stride[1]] = mean[1 :: stride[0], 1 :: stride[1]]

    def run(comm: Comm) -> np.ndarray | None:
        layout = bisection(grid.box, [1.0] * comm.size, granule=1)
        with mg.Engine(layout, grid=grid, comm=comm) as engine:
            engine.set(u, start)
            engine.run(program)
            return engine.gather(u)

    for ranks in (1, 3):
        assert np.allclose(mg.run_virtual(ranks, run)[0], expected, rtol=1e-15)


def test_cells_that_are_stored_may_not_be_read_in_place() -> None:
    u = field()
    for stride in ((1, 2), (2, 1)):
        with pytest.raises(mg.ProgramError, match="depend on the order of cells"):
            mg.Program().apply(mean_of_neighbours, u, region=mg.Region(stride=stride))
