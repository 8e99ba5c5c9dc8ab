"""Conjugate gradients against NumPy's direct solution."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.solve.krylov import conjugate_gradients, workspace
from minga.solve.laplacian import Laplacian, as_walls
from minga.space.layout import Layout
from thinned import thinned

from .problems import dense_laplacian, noise, solve, volumes

GRIDS = [
    (mg.Grid((13,), spacing=0.3), "dirichlet"),
    (mg.Grid((6, 7)), "dirichlet"),
    (mg.Grid((6, 7), spacing=(0.5, 2.0)), {"x": "neumann"}),
    (mg.Grid((5, 6), periodic=(True, False)), {"x": ("dirichlet", "neumann")}),
    (mg.Grid((3, 4, 5), spacing=[[1.0, 2.0, 0.5], 1.0, [0.1, 0.2, 0.4, 0.8, 1.6]]), "dirichlet"),
]


WAYS = [(False, 0.0), (True, 0.75)]
"""Whether there is a preconditioner, and the shift."""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("grid", "walls", "preconditioned", "shift"),
    thinned(
        [(*problem, *way) for problem in GRIDS for way in WAYS],
        *((*problem, *WAYS[(number + 1) % 2]) for number, problem in enumerate(GRIDS)),
    ),
    ids=str,
)
def test_against_a_dense_solve(grid: mg.Grid, walls: object, shift: float, preconditioned: bool) -> None:
    b = noise(grid)
    found = solve(
        grid, b, walls=walls, shift=shift, preconditioned=preconditioned, tolerance=1e-13, limit=3 * grid.size
    )
    matrix = dense_laplacian(grid, as_walls(walls, grid), shift)
    np.testing.assert_array_equal(matrix != 0, matrix.T != 0)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-14)
    exact = np.linalg.solve(matrix, b.ravel()).reshape(grid.shape)
    assert found.reason == "converged"
    np.testing.assert_allclose(found.x, exact, rtol=0, atol=1e-11 * np.abs(exact).max())


def test_a_singular_problem_is_solved_up_to_a_constant() -> None:
    grid = mg.Grid((9, 8), periodic=(False, True))
    b = noise(grid)
    found = solve(grid, b, walls="neumann", tolerance=1e-12)
    matrix = dense_laplacian(grid, as_walls("neumann", grid))
    assert found.reason == "converged"
    np.testing.assert_allclose(matrix @ found.x.ravel(), b.ravel(), rtol=0, atol=1e-10)


def test_walls_of_given_values() -> None:
    """A straight line between two walls is exact; nothing on the right side but the walls."""
    grid = mg.Grid((5, 12), spacing=(1.0, 0.25))
    operator = Laplacian(grid, {"y": "neumann"})
    x = mg.Field("x", grid, boundary={"y": mg.fixed(0.0), "x": (mg.fixed(1.0), mg.fixed(4.0))})
    b = mg.Field("b", grid)
    program = mg.Program("solve")
    solution = conjugate_gradients(program, operator, x, b, tolerance=1e-13, limit=100)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        operator.load(engine)
        assert engine.run(program).reason == "converged"
        exact = np.broadcast_to(1.0 + 3.0 * grid.centres("x") / 3.0, grid.shape)
        np.testing.assert_allclose(engine.gather(x), exact, rtol=0, atol=1e-11)
        assert 0 < engine.read(solution.iterations) <= 12
        # What is solved already needs no more iterations, relative to |b| if there is one.
        assert engine.run(program).ok


def test_right_side_and_residual_on_stretched_cells() -> None:
    grid = mg.Grid((4, 5), spacing=[[1.0, 0.5, 0.25, 2.0], 0.5])
    operator = Laplacian(grid, shift=0.5)
    f, u = mg.Field("f", grid), mg.Field("u", grid, boundary=mg.fixed(0.0))
    b, r = mg.Field("b", grid), mg.Field("r", grid)
    program = mg.Program("residual")
    operator.right_side(program, f, b)
    operator.residual(program, u, b, r)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        operator.load(engine)
        engine.set(f, noise(grid, 2))
        engine.set(u, noise(grid, 3))
        engine.run(program)
        np.testing.assert_allclose(engine.gather(b), volumes(grid) * noise(grid, 2), rtol=1e-15)
        matrix = dense_laplacian(grid, as_walls("dirichlet", grid), 0.5)
        exact = volumes(grid) * noise(grid, 2) - (matrix @ noise(grid, 3).ravel()).reshape(grid.shape)
        np.testing.assert_allclose(engine.gather(r), exact, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_the_second_order_of_the_scheme() -> None:
    errors = []
    for n in (8, 16, 32):
        grid = mg.Grid((n, n), spacing=1.0 / n)
        y, x = np.meshgrid(grid.centres(0), grid.centres(1), indexing="ij")
        exact = np.sin(np.pi * y) * np.sin(2 * np.pi * x)
        found = solve(grid, volumes(grid) * 5 * np.pi**2 * exact, tolerance=1e-11)
        errors.append(np.abs(found.x - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 2.0) < 0.1).all(), (errors, orders)


def test_the_limit_is_a_reason_and_nothing_is_done_for_a_right_side_of_zero() -> None:
    grid = mg.Grid((16, 16))
    few = solve(grid, noise(grid), preconditioned=False, limit=5)
    assert (few.reason, few.iterations) == ("limit", 5)
    assert few.relative > 1e-8
    x, b = mg.Field("x", grid, boundary=mg.fixed(0.0)), mg.Field("b", grid)
    operator = Laplacian(grid)
    program = mg.Program("solve")
    solution = conjugate_gradients(program, operator, x, b)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        operator.load(engine)
        assert engine.run(program).reason == "converged"
        assert engine.read(solution.iterations) == 0


@pytest.mark.parametrize(("wrong", "expected"), [(1.0, "few"), (np.nan, "lost"), (1e200, "lost")])
def test_failures_that_are_counted_do_not_end_the_run(wrong: float, expected: str) -> None:
    """At the limit x is what was reached; where nothing is a number any more, 0; the run goes on."""
    grid = mg.Grid((16, 16))
    x, b = mg.Field("x", grid, boundary=mg.fixed(0.0)), mg.Field("b", grid)
    operator, unsolved, after = Laplacian(grid), mg.Register("unsolved", "i8"), mg.Register("after")
    program = mg.Program("solve")
    solution = conjugate_gradients(program, operator, x, b, limit=5, unsolved=unsolved)
    program.let(after, after + 1.0)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        operator.load(engine)
        engine.set(b, noise(grid) * wrong)
        for number in (1, 2):
            assert engine.run(program).ok
            assert (engine.read(unsolved), engine.read(after)) == (number, number)
            assert engine.read(solution.iterations) == (5 * (expected == "few"))
            assert np.isfinite(engine.gather(x)).all()
        assert bool(np.abs(engine.gather(x)).max() > 0) == (expected == "few")
    with pytest.raises(mg.ProgramError, match="'u' is f8"):
        conjugate_gradients(mg.Program("p"), operator, x, b, unsolved=mg.Register("u"))


def test_an_operator_of_ones_own() -> None:
    """Any recorded operation will do; one that returns no product gets it computed."""

    @mg.kernel
    def scaled(u, result):  # type: ignore[no-untyped-def]
        result[0] = (mg.cast(mg.index(0), "f8") + 1.0) * u[0]

    grid = mg.Grid((6,))
    x, b = mg.Field("x", grid), mg.Field("b", grid)
    program = mg.Program("solve")
    conjugate_gradients(program, lambda p, u, result: p.apply(scaled, u, result), x, b, tolerance=1e-12, limit=10)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(b, np.ones(6))
        assert engine.run(program).reason == "converged"
        np.testing.assert_allclose(engine.gather(x), 1.0 / np.arange(1, 7), rtol=1e-11)


def test_mistakes_are_named() -> None:
    grid = mg.Grid((4, 4))
    x, b = mg.Field("x", grid), mg.Field("b", mg.Grid((4, 5)))
    with pytest.raises(mg.ProgramError, match="one grid"):
        conjugate_gradients(mg.Program("p"), Laplacian(grid), x, b)
    with pytest.raises(mg.ProgramError, match="'c' is f4"):
        conjugate_gradients(mg.Program("p"), Laplacian(grid), x, mg.Field("c", grid, "f4"))
    with pytest.raises(mg.ProgramError, match="tolerance 2"):
        conjugate_gradients(mg.Program("p"), Laplacian(grid), x, mg.Field("d", grid), tolerance=2.0)
    with pytest.raises(mg.LayoutError, match=r"(?s)'dirichlt' is no kind of wall.*'dirichlet'"):
        Laplacian(grid, "dirichlt")
    with pytest.raises(mg.LayoutError, match="the shift of a Laplacian is -1"):
        Laplacian(grid, shift=-1.0)


def test_solves_that_share_vectors_and_take_their_tolerance_from_a_register() -> None:
    """Also of a slot of a field of which another one is kept."""
    grid = mg.Grid((6, 7))
    operator = Laplacian(grid)
    x = mg.Field("x", grid, slots=2, boundary=mg.fixed(0.0))
    b = mg.Field("b", grid)
    tolerance = mg.Register("tolerance")
    shared = workspace(x, preconditioned=False)
    program = mg.Program("solve")
    program.let(tolerance, 1e-3)
    rough = conjugate_gradients(program, operator, x, b, tolerance=tolerance, work=shared, name="rough")
    program.let(tolerance, 1e-13)
    fine = conjugate_gradients(program, operator, x.next, b, tolerance=tolerance, work=shared, name="fine")
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        operator.load(engine)
        engine.set(b, noise(grid))
        assert engine.run(program).reason == "converged"
        assert 0 < engine.read(rough.iterations) < engine.read(fine.iterations)
        exact = np.linalg.solve(dense_laplacian(grid, as_walls("dirichlet", grid), 0.0), noise(grid).ravel())
        near, exactly = (np.abs(engine.gather(slot).ravel() - exact).max() for slot in (x, x.next))
        assert exactly < 1e-11 * np.abs(exact).max() < near
