"""BiCGStab and line solves of drift and diffusion, against NumPy's direct solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.lang.cell import CellReader
from minga.solve.biconjugate import bicgstab, bicgstab_vectors
from minga.solve.lines import Lines
from minga.space.cuts import slabs
from minga.space.field import Slot
from minga.space.layout import Layout

GRID = mg.Grid((13, 70))
ZERO = mg.fixed(0.0)


@mg.kernel
def transport(
    c: CellReader, up_y: CellReader, down_y: CellReader, up_x: CellReader, down_x: CellReader, d: CellReader,
    result: CellReader,
) -> None:  # fmt: skip
    low_y = up_y[0, 0] * c[-1, 0] - down_y[0, 0] * c[0, 0]
    high_y = up_y[1, 0] * c[0, 0] - down_y[1, 0] * c[1, 0]
    low_x = up_x[0, 0] * c[0, -1] - down_x[0, 0] * c[0, 0]
    high_x = up_x[0, 1] * c[0, 0] - down_x[0, 1] * c[0, 1]
    result[0, 0] = d[0, 0] * c[0, 0] + (high_y - low_y) + (high_x - low_x)


@mg.kernel
def beside_rest(up: CellReader, down: CellReader, d: CellReader, rest: CellReader) -> None:
    rest[0, 0] = d[0, 0] + up[0, 1] + down[0, 0]


def fluxes(shape: tuple[int, int], drift: float) -> dict[str, np.ndarray]:
    """Random conductances, with a drift that prefers one way, and nothing through the ends."""
    rng = np.random.default_rng(2)
    found = {}
    for axis, name in enumerate("yx"):
        points = tuple(n + (a == axis) for a, n in enumerate(shape))
        for way, push in (("up", drift), ("down", 1.0 / drift)):
            values = push * rng.uniform(0.5, 2.0, points)
            np.moveaxis(values, axis, 0)[[0, -1]] = 0.0
            found[f"{way} {name}"] = values
    found["d"] = rng.uniform(0.01, 0.1, shape)
    return found


def matrix(given: dict[str, np.ndarray], axes: str = "yx") -> np.ndarray:
    shape = given["d"].shape
    number = np.arange(given["d"].size).reshape(shape)
    whole = np.diag(given["d"].ravel())
    for axis, name in enumerate("yx"):
        if name not in axes:
            continue
        inner = [np.moveaxis(given[f"{way} {name}"], axis, 0)[1:-1].ravel() for way in ("up", "down")]
        low, high = (np.moveaxis(number, axis, 0)[s].ravel() for s in (slice(None, -1), slice(1, None)))
        for (up, down), i, j in zip(zip(*inner, strict=True), low, high, strict=True):
            whole[i, i] += up
            whole[i, j] -= down
            whole[j, j] += down
            whole[j, i] -= up
    return whole


def declared() -> dict[str, mg.Field]:
    faces = {
        f"{way} {a}": mg.Field(f"{way} {a}", GRID, centre=a, boundary=ZERO) for a in "yx" for way in ("up", "down")
    }
    return {**faces, "d": mg.Field("d", GRID)}


def solve(given: dict[str, np.ndarray], b: np.ndarray, ranks: int = 1, lines: bool = False) -> tuple[str, int, bytes]:
    fields = declared()
    x, right_side, rest = mg.Field("x", GRID, boundary=ZERO), mg.Field("b", GRID), mg.Field("rest", GRID)
    solver = Lines(GRID, "y")

    def operator(program: mg.Program, source: Slot, target: Slot) -> None:
        program.apply(
            transport, source, fields["up y"], fields["down y"], fields["up x"], fields["down x"], fields["d"], target
        )

    def precondition(program: mg.Program, residual: Slot, correction: Slot) -> None:
        solver.solve(program, fields["up y"], residual, correction)

    program = mg.Program("solve")
    program.apply(beside_rest, fields["up x"], fields["down x"], fields["d"], rest)
    solver.setup(program, fields["up y"], fields["down y"], rest)
    found = bicgstab(
        program, operator, x, right_side, preconditioner=precondition if lines else None, tolerance=1e-11, limit=400,
        work=bicgstab_vectors(x),
    )  # fmt: skip

    def work(comm: Comm) -> tuple[str, int, bytes]:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            for name, item in fields.items():
                engine.set(item, given[name])
            engine.set(right_side, b)
            reason = engine.run(program).reason
            gathered = engine.gather(x)
            return reason, engine.read(found.iterations), b"" if gathered is None else gathered.tobytes()

    return run_virtual(ranks, work)[0]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [False, True])
def test_against_a_dense_solve(lines: bool) -> None:
    given, b = fluxes(GRID.shape, 3.0), np.random.default_rng(1).standard_normal(GRID.shape)
    reason, iterations, values = solve(given, b, lines=lines)
    exact = np.linalg.solve(matrix(given), b.ravel())
    assert reason == "converged"
    assert 1 < iterations < 200
    np.testing.assert_allclose(np.frombuffer(values), exact, rtol=0, atol=1e-8 * np.abs(exact).max())
    assert solve(given, b, ranks=3, lines=lines) == (reason, iterations, values)


@pytest.mark.slow
def test_lines_are_exact_where_nothing_goes_across() -> None:
    given, b = fluxes(GRID.shape, 20.0), np.random.default_rng(1).random(GRID.shape)
    given["up x"][...] = given["down x"][...] = 0.0
    reason, iterations, values = solve(given, b, lines=True)
    exact = np.linalg.solve(matrix(given), b.ravel())
    assert (reason, iterations) == ("converged", 1)
    np.testing.assert_allclose(np.frombuffer(values), exact, rtol=1e-10)


def on_three_cells(kernel: mg.Kernel, limit: int = 20) -> tuple[str, np.ndarray]:
    grid = mg.Grid((3,), periodic=True)
    x, b = mg.Field("x", grid), mg.Field("b", grid)

    def operator(program: mg.Program, source: Slot, target: Slot) -> None:
        program.apply(kernel, source, target)

    program = mg.Program("solve")
    bicgstab(program, operator, x, b, tolerance=1e-12, limit=limit)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(b, np.array([1.0, 0.0, 0.0]))
        return engine.run(program).reason, engine.gather(x)


def test_a_shadow_at_right_angles_starts_anew() -> None:
    """After one step the residual is orthogonal to its shadow; without a new start nothing would change any more."""

    @mg.kernel
    def with_the_one_below(c: CellReader, result: CellReader) -> None:
        result[0] = c[0] + c[-1]

    reason, found = on_three_cells(with_the_one_below)
    assert reason == "converged"
    np.testing.assert_allclose(found, [0.5, -0.5, 0.5], atol=1e-11)


def test_what_it_cannot_solve_ends_at_the_limit() -> None:
    @mg.kernel
    def skew(c: CellReader, result: CellReader) -> None:
        result[0] = c[1] - c[-1]

    reason, found = on_three_cells(skew)
    assert reason == "limit"
    assert np.isfinite(found).all()


@pytest.mark.slow
def test_failures_that_are_counted_do_not_end_the_run() -> None:
    given, fields = fluxes(GRID.shape, 1.0), declared()
    x, b, unsolved = mg.Field("x", GRID, boundary=ZERO), mg.Field("b", GRID), mg.Register("unsolved", "i8")

    def operator(program: mg.Program, source: Slot, target: Slot) -> None:
        program.apply(transport, source, *fields.values(), target)

    program = mg.Program("solve")
    bicgstab(program, operator, x, b, limit=3, unsolved=unsolved)
    with mg.Engine(Layout.single(GRID.box, 1), grid=GRID) as engine:
        for name, values in given.items():
            engine.set(fields[name], values)
        for number, wrong in enumerate((1.0, np.nan, np.inf), 1):
            engine.set(b, np.full(GRID.shape, wrong))
            assert engine.run(program).ok
            assert engine.read(unsolved) == number
            assert np.isfinite(engine.gather(x)).all()


@pytest.mark.slow
def test_nothing_to_solve() -> None:
    given = fluxes(GRID.shape, 1.0)
    assert solve(given, np.zeros(GRID.shape))[:2] == ("converged", 0)


@pytest.mark.parametrize("mistake", ["tolerance", "grid", "periodic"])
def test_mistakes_are_named(mistake: str) -> None:
    x, b = mg.Field("x", GRID, boundary=ZERO), mg.Field("b", GRID)

    def operator(program: mg.Program, source: Slot, target: Slot) -> None:
        raise AssertionError("it is not asked")

    record: dict[str, tuple[Callable[[], object], str]] = {
        "tolerance": (lambda: bicgstab(mg.Program(), operator, x, b, tolerance=2.0), "bicgstab: tolerance 2.0"),
        "grid": (lambda: bicgstab(mg.Program(), operator, x, mg.Field("b", mg.Grid((3, 3)))), "the unknown is"),
        "periodic": (lambda: Lines(mg.Grid((3, 3), periodic=True), "y"), "which is periodic"),
    }
    action, match = record[mistake]
    with pytest.raises(mg.ProgramError, match=match):
        action()
