"""Systems of two axes: rows as dense blocks, sparse factors and iterations, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.balances import Balances
from minga.solve.five_point import Direct, FivePoint
from minga.solve.iterative import Iterative
from minga.solve.row_blocks import planes
from minga.solve.sparse_factors import dissection, sparse
from minga.space.cuts import slabs

PATTERN = ((True, False), (True, True))
SHAPE = (7, 5)
SOLVERS = [planes, sparse]
Kind = Callable[..., Direct]


def system() -> dict[str, np.ndarray]:
    """Blocks (2, 2, *SHAPE) of lower and upper of each axis and of the diagonal, and a right side."""
    rng = np.random.default_rng(2)
    mask = np.array(PATTERN, float)[:, :, None, None]
    made = {name: rng.uniform(-1, 1, (2, 2, *SHAPE)) * mask for name in ("lower0", "lower1", "upper0", "upper1")}
    made["diagonal"] = rng.uniform(-1, 1, (2, 2, *SHAPE)) + 9.0 * np.eye(2)[:, :, None, None]
    made["b"] = rng.uniform(-1, 1, (2, *SHAPE))
    scale = 10.0 ** rng.integers(-12, 13, (2, *SHAPE))
    for name in made:
        made[name] = made[name] * (scale if name == "b" else scale[:, None])
    return made


def put(engine: mg.Engine, matrix: FivePoint, values: dict[str, np.ndarray]) -> None:
    for k, item in enumerate(matrix.diagonal):
        engine.set(item, values["diagonal"][k // 2, k % 2])
    for axis in range(2):
        for name, fields in (("lower", matrix.lower[axis]), ("upper", matrix.upper[axis])):
            for item, (i, j) in zip(fields, matrix.places, strict=True):
                engine.set(item, values[f"{name}{axis}"][i, j])


def solve(kind: Kind, values: dict[str, np.ndarray], ranks: int = 1) -> np.ndarray:
    grid = mg.Grid(SHAPE)
    solver = kind(grid, 2, PATTERN)
    matrix = solver.five_point
    b = [mg.Field(f"b{i}", grid) for i in range(2)]
    x = [mg.Field(f"x{i}", grid) for i in range(2)]
    program = mg.Program("solve")
    solver.setup(program)
    solver.solve(program, b, x)

    def work(comm: Comm) -> np.ndarray | None:
        with mg.Engine(slabs(grid.box, comm.size, 0, granule=1), grid=grid, comm=comm) as engine:
            put(engine, matrix, values)
            for item, value in zip(b, values["b"], strict=True):
                engine.set(item, value)
            engine.run(program)
            return np.array([engine.gather(item) for item in x])

    found = run_virtual(ranks, work)[0]
    assert found is not None
    return found


@pytest.mark.parametrize("kind", SOLVERS)
def test_it_solves(kind: Kind) -> None:
    values = system()
    np.testing.assert_allclose(solve(kind, values), dense(values), rtol=0, atol=1e-14)


def test_all_solvers_have_the_same_bits() -> None:
    """Those of the exact solution, rounded: LAPACK and SuperLU leave no other round-off than each other."""
    found, *others = (solve(kind, system()).tobytes() for kind in SOLVERS)
    assert all(other == found for other in others)


@pytest.mark.parametrize("kind", SOLVERS)
def test_the_same_bits_on_ranks(kind: Kind) -> None:
    assert solve(kind, system(), 3).tobytes() == solve(kind, system()).tobytes()


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("factor", [0.0, np.nan])
def test_what_has_no_solution_is_not_solved(kind: Kind, factor: float) -> None:
    values = {name: value * factor for name, value in system().items()}
    assert np.isnan(solve(kind, values)).all()


def currents(shape: tuple[int, int]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Two coupled unknowns that diffuse and drift, and the cells that are held: some of the first row."""
    rng = np.random.default_rng(5)
    made = {name: np.zeros((2, 2, *shape)) for name in ("lower0", "lower1", "upper0", "upper1")}
    made["diagonal"] = rng.uniform(0, 0.1, (2, 2, *shape))
    held = np.zeros(shape, np.uint8)
    held[0, : shape[1] // 2] = 1
    for i in range(2):
        for axis in range(2):
            inner = np.ones(shape)
            inner[(-1, slice(None)) if axis == 0 else (slice(None), -1)] = 0.0
            flow = 10.0 ** rng.uniform(-1, 1, shape) * inner
            drift = rng.uniform(-1, 1, shape)
            up, down = flow * np.exp(drift), flow * np.exp(-drift)
            made[f"upper{axis}"][i, i] = -down
            made[f"lower{axis}"][i, i] = -np.roll(up, 1, axis)
            made["diagonal"][i, i] += up + np.roll(down, 1, axis)
    made["lower0"][1, 0] = made["upper1"][1, 0] = 0.05
    made["b"] = rng.uniform(-1, 1, (2, *shape))
    for name, value in made.items():
        value[..., held > 0] = np.eye(2)[..., None] if name == "diagonal" else 0.0
    return made, held


def dense(values: dict[str, np.ndarray]) -> np.ndarray:
    """The solution by NumPy, (2, rows, columns)."""
    rows, cells = values["b"].shape[1:]
    matrix = np.zeros((2, rows, cells, 2, rows, cells))
    ways = {"lower0": (-1, 0), "upper0": (1, 0), "lower1": (0, -1), "upper1": (0, 1)}
    for row in range(rows):
        for cell in range(cells):
            matrix[:, row, cell, :, row, cell] = values["diagonal"][:, :, row, cell]
            for name, (down, across) in ways.items():
                there = (row + down, cell + across)
                if 0 <= there[0] < rows and 0 <= there[1] < cells:
                    matrix[:, row, cell, :, there[0], there[1]] = values[name][:, :, row, cell]
    size = 2 * rows * cells
    scale = 1.0 / np.abs(matrix).max(axis=(3, 4, 5))
    whole = (matrix * scale[..., None, None, None]).reshape(size, size)
    return np.linalg.solve(whole, (values["b"] * scale).reshape(size)).reshape(2, rows, cells)


def iterated(
    values: dict[str, np.ndarray], held: np.ndarray, ranks: int, **options: Any
) -> tuple[np.ndarray, int, int, int]:
    """The solution, how many iterations it took, and whether it was not found, or given up."""
    grid = mg.Grid(held.shape)
    mask = mg.Field("held", grid, "u1")
    solver = Iterative(grid, 2, PATTERN, mask, tolerance=1e-13, **options)
    x = [mg.Field(f"x{i}", grid, boundary=mg.fixed(0.0)) for i in range(2)]
    program = mg.Program("solve")
    solver.setup(program)
    found = solver.solve(program, x, x)

    def work(comm: Comm) -> tuple[np.ndarray, int, int, int] | None:
        layout = slabs(grid.box, comm.size, 0)
        with mg.Engine({grid: layout, **solver.multigrid.layouts(layout)}, comm=comm) as engine:
            engine.set(mask, held)
            put(engine, solver.five_point, values)
            for item, value in zip(x, values["b"], strict=True):
                engine.set(item, value)
            engine.run(program)
            count, unsolved = engine.read(found.iterations), engine.read(solver.unsolved)
            return np.array([engine.gather(item) for item in x]), count, unsolved, engine.read(solver.given_up)

    result = run_virtual(ranks, work)[0]
    assert result is not None
    return result


@pytest.mark.slow
def test_iterations_on_any_ranks() -> None:
    values, held = currents((10, 13))
    found, count, unsolved, given_up = iterated(values, held, 1)
    exact = dense(values)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11 * np.abs(exact).max())
    assert unsolved == given_up == 0
    assert count < 45
    assert not found[:, held > 0].any() or np.array_equal(found[:, held > 0], values["b"][:, held > 0])
    assert iterated(values, held, 2)[0].tobytes() == found.tobytes()


@pytest.mark.slow
def test_factors_solve_what_iterations_do_not() -> None:
    values, held = currents((10, 13))
    exact = dense(values)
    alone = iterated(values, held, 1, limit=1)
    assert alone[2:] == (1, 0)
    assert np.isnan(alone[0]).all()
    found, count, unsolved, given_up = iterated(values, held, 1, limit=1, factors=True)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11 * np.abs(exact).max())
    assert (count, unsolved, given_up) == (1, 1, 1)
    assert iterated(values, held, 2, limit=1, factors=True)[0].tobytes() == found.tobytes()


def test_dissection_takes_every_cell_once() -> None:
    for shape in ((1, 1), (1, 40), (23, 17), (5, 64)):
        order = dissection(*shape)
        assert sorted(order) == list(range(shape[0] * shape[1]))


@pytest.mark.parametrize("kind", SOLVERS)
def test_mistakes_are_named(kind: Kind) -> None:
    with pytest.raises(mg.ProgramError, match="a grid of 1 axes"):
        kind(mg.Grid((5,)), 2, PATTERN)


@pytest.mark.parametrize("shape", [(40,), (9, 7)])
def test_balances_are_never_negative(shape: tuple[int, ...]) -> None:
    """What flows spans 12 decades, little is lost, and one cell is fed; beside a dense matrix of the same."""
    rng = np.random.default_rng(3)
    grid = mg.Grid(shape)
    ways = ("up", "down")
    faces = {way: [mg.Field(f"{way} {axis}", grid, centre=axis) for axis in grid.axes] for way in ways}
    rest, b = mg.Field("rest", grid), mg.Field("b", grid, boundary=mg.fixed(0.0))
    balances = Balances(grid)
    program = mg.Program("balances")
    balances.solve(program, faces["up"], faces["down"], rest, b, b)
    numbers = np.arange(grid.size).reshape(shape)
    matrix = np.zeros((grid.size, grid.size))
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        lost, fed = 10.0 ** rng.uniform(-4, 0, shape), np.zeros(shape)
        fed.flat[grid.size // 2] = 1.0
        engine.set(rest, lost)
        engine.set(b, fed)
        matrix[numbers.ravel(), numbers.ravel()] = lost.ravel()
        for axis, length in enumerate(shape):
            size = tuple(n + (k == axis) for k, n in enumerate(shape))
            low, high = (np.take(numbers, range(k, length - 1 + k), axis).ravel() for k in (0, 1))
            inner = np.take(np.arange(np.prod(size)).reshape(size), range(1, length), axis).ravel()
            for way, (source, target) in {"up": (low, high), "down": (high, low)}.items():
                flow = np.zeros(size)
                flow.flat[inner] = 10.0 ** rng.uniform(-6, 6, inner.size)
                engine.set(faces[way][axis], flow)
                np.add.at(matrix, (source, source), flow.flat[inner])
                np.add.at(matrix, (target, source), -flow.flat[inner])
        engine.run(program)
        found = engine.gather(b)
    assert found is not None
    assert (found > 0.0).all()
    assert (lost * found).sum() == pytest.approx(1.0, rel=1e-6), "what comes in gets lost"
    np.testing.assert_allclose(found.ravel(), np.linalg.solve(matrix, fed.ravel()), rtol=1e-5)


def exactly(up: list[np.ndarray], down: list[np.ndarray], rest: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of balances, by elimination with fractions."""
    shape = b.shape
    number = {cell: n for n, cell in enumerate(np.ndindex(shape))}
    rows = [[Fraction(0)] * len(number) + [Fraction(float(b[cell]))] for cell in number]
    for cell, n in number.items():
        rows[n][n] += Fraction(float(rest[cell]))
        for axis in range(2):
            low = tuple(i - (a == axis) for a, i in enumerate(cell))
            if low in number:
                ahead, back = Fraction(float(up[axis][cell])), Fraction(float(down[axis][cell]))
                m = number[low]
                rows[m][m] += ahead
                rows[n][m] -= ahead
                rows[n][n] += back
                rows[m][n] -= back
    for k in range(len(rows)):
        for n in range(len(rows)):
            if n != k and rows[n][k]:
                factor = rows[n][k] / rows[k][k]
                rows[n] = [a - factor * c for a, c in zip(rows[n], rows[k], strict=True)]
    return np.array([float(rows[n][-1] / rows[n][n]) for n in range(len(rows))]).reshape(shape)


def test_a_region_that_loses_next_to_nothing_has_its_level() -> None:
    """Its level is what it gains over what it loses, 1e-12 of what flows to and fro between its cells."""
    rng = np.random.default_rng(5)
    shape = (4, 5)
    grid = mg.Grid(shape)
    settled = 2.0 ** rng.integers(-3, 4, shape)  # with these nothing flows
    flows = [[settled * rng.uniform(0.5, 2.0, shape) for _ in range(2)] for _ in range(2)]
    for axis, (up, down) in enumerate(flows):
        down[...] = up / settled * np.roll(settled, 1, axis)
        for values in (up, down):
            np.moveaxis(values, axis, 0)[0] = 0.0  # faces at the end
    rest, b = np.full(shape, 1e-12) * rng.uniform(0.5, 2.0, shape), np.zeros(shape)
    b[1, 2] = 3e-12
    balances = Balances(grid)
    ups, downs = ([mg.Field(f"{name} {a}", grid, centre=a) for a in grid.axes] for name in ("up", "down"))
    lost, right, found = mg.Field("lost", grid), mg.Field("right", grid), mg.Field("found", grid)
    program = mg.Program("balances")
    balances.solve(program, ups, downs, lost, right, found)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        for axis in range(2):
            for item, values in zip((ups[axis], downs[axis]), flows[axis], strict=True):
                engine.set(item, np.pad(values, [(0, int(a == axis)) for a in range(2)]))
        engine.set(lost, rest)
        engine.set(right, b)
        engine.run(program)
        solution = engine.gather(found)
    expected = exactly([way[0] for way in flows], [way[1] for way in flows], rest, b)
    np.testing.assert_allclose(solution, expected, rtol=1e-13)
