"""The Jacobian of rates: products against differences and matrices, walls, locals, and systems with it."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.models.pde.system import System
from minga.solve.jacobian import Jacobian, differences, krylov_vectors
from minga.solve.rates import Rates
from minga.space.cuts import slabs

GRID = mg.Grid((7, 9), spacing=(0.3, 0.2))
RNG = np.random.default_rng(4)


def rates_of(equations: object, grid: mg.Grid, names: tuple[str, ...], order: int = 2) -> Rates:
    system = System.of(equations, grid, {}, None, order, 0)
    assert system.names == names
    return Rates(system.rates)


def compared(
    equations: dict[str, str], grid: mg.Grid, boundary: object = None, time: float = 0.7, order: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """The product of the Jacobian with a vector, and the central difference of the rates in its direction."""
    names = tuple(equations)
    fields = tuple(mg.Field(name, grid, boundary=boundary) for name in names)
    rates = rates_of(equations, grid, names, order)
    vector, product = differences(fields, "v"), differences(fields, "jv")
    program, plain = mg.Program("product"), mg.Program("rates")
    at = tuple(item.now for item in fields)
    Jacobian(rates, at).product(program, tuple(v.now for v in vector), tuple(p.now for p in product))

    def compute(state: list, out: list) -> None:
        for item, value in zip(out, rates.function(state, [], mg.TIME), strict=True):
            item[(0,) * grid.ndim] = value

    plain.apply(mg.Kernel(compute), fields, product)
    states = [1.0 + 0.3 * RNG.standard_normal(grid.shape) for _ in names]
    changes = [RNG.standard_normal(grid.shape) for _ in names]
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:

        def result(shift: float, which: mg.Program) -> np.ndarray:
            engine.write(mg.TIME, time)
            for item, state, change in zip(fields, states, changes, strict=True):
                engine.set(item, state + shift * change)
            engine.run(which)
            return np.array([engine.gather(item) for item in product])

        for item, change in zip(vector, changes, strict=True):
            engine.set(item, change)
        found = result(0.0, program)
        step = 1e-4  # the rates are polynomials of degree 3, of which this difference with extrapolation is exact
        first = (result(step, plain) - result(-step, plain)) / (2 * step)
        second = (result(2 * step, plain) - result(-2 * step, plain)) / (4 * step)
    return found, (4 * first - second) / 3


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "boundary",
    [
        None,
        {"y": mg.dirichlet(lambda y, x, t: mg.sin(t) * x), "x": (mg.neumann(2.0), mg.robin(1.5, 3.0))},
        {"y": mg.fixed(1.0), "x": mg.robin(lambda y, x: 1.0 + y, 1.0)},
        {"y": mg.reflect(), "x": mg.dirichlet(np.linspace(0.0, 1.0, 7))},
    ],
)
def test_product_is_the_derivative_in_a_direction(boundary: object) -> None:
    grid = mg.Grid((7, 9), spacing=(0.3, 0.2), periodic=boundary is None)
    equations = {"u": "laplace(u**3 - u*v - laplace(u)) + sin(t)*d_dx(v)", "v": "u*laplace(v) - u**2*v + x*v"}
    found, expected = compared(equations, grid, boundary)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.slow
def test_conditions_of_high_order() -> None:
    grid = mg.Grid((12,), ("x",), spacing=0.1)
    found, expected = compared({"u": "u*laplace(u)"}, grid, mg.dirichlet(2.0, order=4), order=4)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_antiperiodic_axes() -> None:
    grid = mg.Grid((12,), ("x",), spacing=0.1, periodic=True)
    found, expected = compared({"u": "laplace(u**3 + laplace(u))"}, grid, mg.antiperiodic())
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_conditions_and_types_that_are_refused() -> None:
    wall = mg.custom(lambda edge: edge[0] * edge[0])
    with pytest.raises(mg.LayoutError, match=r"'u': the condition custom.* at the low end of axis 'y' cannot be"):
        differences((mg.Field("u", GRID, boundary={"y": wall}),), "v")
    with pytest.raises(mg.ProgramError, match="'u' is f4"):
        differences((mg.Field("u", GRID, "f4"),), "v")


def matrix(rates: Rates, fields: tuple[mg.Field, ...], grid: mg.Grid, states: list[np.ndarray]) -> np.ndarray:
    """The Jacobian's matrix by its products with unit vectors."""
    vector, product = differences(fields, "v"), differences(fields, "jv")
    program = mg.Program("product")
    Jacobian(rates, tuple(f.now for f in fields)).product(
        program, tuple(v.now for v in vector), tuple(p.now for p in product)
    )
    columns = []
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        for item, state in zip(fields, states, strict=True):
            engine.set(item, state)
        for column in np.eye(len(fields) * grid.size):
            for item, part in zip(vector, np.split(column, len(fields)), strict=True):
                engine.set(item, part.reshape(grid.shape))
            engine.run(program)
            columns.append(np.concatenate([engine.gather(item).ravel() for item in product]))
    return np.array(columns).T


@pytest.mark.slow
def test_systems_are_solved_on_any_number_of_ranks() -> None:
    grid = mg.Grid((4, 17), spacing=0.5)
    equations = {"u": "laplace(u) - u*v + d_dx(v)", "v": "0.1*laplace(v) + u**2 - v"}
    states = [1.0 + 0.1 * RNG.standard_normal(grid.shape) for _ in equations]
    right = [RNG.standard_normal(grid.shape) for _ in equations]

    def fields() -> tuple[mg.Field, ...]:
        return tuple(mg.Field(name, grid, boundary=mg.dirichlet(1.0)) for name in equations)

    def run(comm: mg.SerialComm) -> tuple[np.ndarray | None, int]:
        unknowns = fields()
        x, b = differences(unknowns, "x"), differences(unknowns, "b")
        program = mg.Program("solve")
        found = Jacobian(rates_of(equations, grid, ("u", "v")), tuple(u.now for u in unknowns)).solve(
            program, 2.0, tuple(f.now for f in x), tuple(f.now for f in b), krylov_vectors(unknowns), tolerance=1e-11
        )
        with mg.Engine(slabs(grid.box, comm.size), grid=grid, comm=comm) as engine:
            for item, value in zip((*unknowns, *b), (*states, *right), strict=True):
                engine.set(item, value)
            assert engine.run(program).ok
            values = [engine.gather(item) for item in x]
            return None if comm.rank else np.array(values), int(engine.read(found.iterations))

    (alone, rounds), *_ = mg.run_virtual(1, run)
    for count in (2, 3):
        assert np.array_equal(alone, mg.run_virtual(count, run)[0][0])
    unknowns = fields()
    whole = np.eye(2 * grid.size) - 2.0 * matrix(rates_of(equations, grid, ("u", "v")), unknowns, grid, states)
    exact = np.linalg.solve(whole, np.concatenate([r.ravel() for r in right]))
    assert np.allclose(alone.ravel(), exact, rtol=1e-8, atol=1e-9)
    assert 5 < rounds < 60
