"""Multigrid for the diffusive part of the Jacobian: few iterations whatever the step, and where it is not used."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.operations import Let, flat
from minga.solve.krylov import clear
from minga.solve.near_part import NearPart, near_part
from minga.solve.rates import Rates
from thinned import thinned

EXPLICIT = 1 / 64**2 / 4
"""The longest explicit step of du/dt = laplace(u) on the grid below."""


VARIABLE = ("div((0.1 + x*u**2)*grad(u)) - d_dx(u)", {"y": mg.dirichlet(1.0), "x": mg.neumann(0.0)}, {})
"""An equation whose coefficients follow the state, and its walls."""


def products(equations: object, ratio: float, boundary: object = None, **options: object) -> tuple[float, np.ndarray]:
    """Krylov iterations of a step, and the state after three, whose length is a multiple of an explicit one."""
    grid = mg.Grid((64, 64), spacing=1 / 64, periodic=boundary is None)
    model = mg.pde(
        equations, grid, initial={"u": "1 + 0.1*cos(2*pi*x)*sin(4*pi*y)"}, boundary=boundary, integrator="bdf2",
        dt=ratio * EXPLICIT, **options,
    )  # fmt: skip
    count = next(
        op.register
        for op in flat(model.step.operations)
        if isinstance(op, Let) and op.register.name == "step.newton products"
    )
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        assert engine.run(model.step, 3).ok
        values = engine.gather(model.field("u"))
        assert values is not None
        return float(engine.read(count)) / 3, values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equation", "boundary", "options"),
    thinned(
        [
            ("laplace(u) + u - u**3", None, {}),
            ("laplace(u) - u + sin(t)", {"y": mg.dirichlet(1.0), "x": (mg.robin(2.0, 1.0), mg.neumann(0.5))}, {}),
            ("div((0.1 + exp(-u**2)/(1 + x*u**2))*grad(u))", {"y": mg.dirichlet(1.0), "x": mg.neumann(0.0)}, {}),
            VARIABLE,
            ("laplace(u) - u**3", {"y": mg.dirichlet(1.0), "x": mg.neumann(0.0)}, {"order": 4}),
        ],
        VARIABLE,
    ),
)
def test_iterations_do_not_grow_with_the_step(equation: str, boundary: object, options: dict) -> None:
    counts = [products(equation, ratio, boundary, **options)[0] for ratio in (1e3, 1e5)]
    assert max(counts) < 20


HELD = ("-biharmonic(u)", (32, 40), mg.dirichlet(0.0))
"""An equation, the cells of its grid, and its walls."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equation", "shape", "boundary"),
    thinned(
        [
            ("-biharmonic(u)", (64, 64), None),
            HELD,
            ("-biharmonic(u, order=4) + 0.1*laplace(u) - u**3", (48, 32), mg.neumann(0.0, order=2)),
            ("-biharmonic(u)", (128,), None),
        ],
        HELD,
    ),
)
def test_fourth_derivatives_take_two_cycles(equation: str, shape: tuple[int, ...], boundary: object) -> None:
    """Steps of 1e3 and 1e5 times the explicit limit take a few iterations, not hundreds."""
    for dt in (1e3 / 32, 1e5 / 32):
        grid = mg.Grid(shape, periodic=boundary is None)
        model = mg.pde(equation, grid, initial={"u": "random()"}, boundary=boundary, integrator="bdf2", dt=dt)
        registers = {op.register.name: op.register for op in flat(model.step.operations) if isinstance(op, Let)}
        (strong,) = (register for name, register in registers.items() if name.endswith(".strong"))
        with mg.Engine(model.layouts("slabs", 1)) as engine:
            engine.set(model.field("u"), model.initial["u"])
            assert engine.run(model.step, 3).ok
            assert engine.read(strong) == 2
            assert engine.read(registers["step.newton products"]) / 3 < 60


@pytest.mark.slow
@pytest.mark.parametrize(("equation", "expected"), [("-2*laplace(u) - biharmonic(u)", 2), ("-biharmonic(u)/100", 0)])
def test_where_fourth_derivatives_dominate(equation: str, expected: int) -> None:
    """They have to be larger than second derivatives and than 1; the steps are solved in any case."""
    grid = mg.Grid((32,), ("x",), spacing=0.2, periodic=True)
    model = mg.pde(
        f"-u + 1 + {equation}", grid, initial={"u": "cos(2*pi*x/6.4)"}, integrator="tr-bdf2", dt=0.05
    )  # fmt: skip
    strong = next(op.register for op in flat(model.step.operations) if isinstance(op, Let) and "strong" in op.label)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), model.initial["u"])
        assert engine.run(model.step, 2).ok
        assert engine.read(strong) == expected


@pytest.mark.slow
def test_fourth_derivatives_have_the_same_bits_on_ranks() -> None:
    def run(comm: mg.SerialComm) -> np.ndarray | None:
        model = mg.pde(
            "-biharmonic(u) - u**3", mg.Grid((12, 33)), initial={"u": "cos(x) + sin(y)"}, integrator="tr-bdf2", dt=50.0,
            boundary={"x": mg.dirichlet(lambda y, x, t: mg.sin(t) + y)},
        )  # fmt: skip
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            engine.set(model.field("u"), model.initial["u"])
            assert engine.run(model.step, 1).ok
            return engine.gather(model.field("u"))

    alone = mg.run_virtual(1, run)[0]
    assert alone is not None
    for ranks in (2, 3):
        assert np.array_equal(alone, mg.run_virtual(ranks, run)[0])


@pytest.mark.slow
def test_a_solve_that_fails_with_multigrid_is_repeated_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def useless(part: NearPart, program: mg.Program, source: tuple, target: tuple) -> None:
        for item in target:
            program.apply(clear, item)

    grid = mg.Grid((32,), ("x",), spacing=1 / 32)

    def end() -> np.ndarray:
        model = mg.pde("laplace(u) - u**3", grid, initial={"u": "cos(pi*x)"}, integrator="tr-bdf2", dt=0.1)
        with mg.Engine(model.layouts("slabs", 1)) as engine:
            engine.set(model.field("u"), model.initial["u"])
            assert engine.run(model.step, 2).ok
            values = engine.gather(model.field("u"))
            assert values is not None
            return values

    good = end()
    monkeypatch.setattr(NearPart, "__call__", useless)
    assert np.allclose(end(), good, atol=1e-9)


def test_grids_and_rates_without_such_a_part() -> None:
    def kept(grid: mg.Grid, function: object, **options: object) -> bool:
        return near_part(Rates(function), (mg.Field("u", grid, **options),), "near") is not None

    def diffusion(cells: list, constants: list, t: object) -> list:
        return [mg.laplace(cells[0])]

    def waves(cells: list, constants: list, t: object) -> list:
        return [cells[1][0], mg.laplace(cells[0])]

    assert kept(mg.Grid((8, 8)), diffusion)
    assert not kept(mg.Grid((8, 8), spacing=(1.0, 0.5), geometry="polar", origin=(1.0, 0.0)), diffusion)
    assert not kept(mg.Grid((8, 8), periodic=True), diffusion, boundary=mg.antiperiodic())
    assert not kept(mg.Grid((8, 8)), lambda cells, constants, t: [-cells[0][0, 0]])
    assert near_part(Rates(waves), (mg.Field("u", mg.Grid((8,))), mg.Field("v", mg.Grid((8,)))), "near") is None
    assert kept(mg.Grid((8, 8), periodic=True), lambda cells, constants, t: [mg.laplace(mg.local(cells[0][0, 0] ** 3))])


@pytest.mark.slow
def test_same_bits_on_ranks() -> None:
    """Of coupled fields; `test_steady.py` has one of a single field, with the same multigrid."""
    grid = mg.Grid((20, 33), spacing=1 / 32)

    def run(comm: mg.SerialComm) -> np.ndarray | None:
        model = mg.pde(
            {"u": "laplace(u) - u*v", "v": "0.3*laplace(v) + u - v"}, grid, initial={"u": "sin(3*x)", "v": "cos(2*y)"},
            boundary={"u": {"x": mg.dirichlet(lambda y, x, t: mg.sin(t) + y)}}, integrator="bdf2", dt=0.1,
        )  # fmt: skip
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            for name, value in model.initial.items():
                engine.set(model.field(name), value)
            assert engine.run(model.step, 3).ok
            return engine.gather(model.field("u"))

    alone = mg.run_virtual(1, run)[0]
    for count in (2, 3):
        assert np.array_equal(alone, mg.run_virtual(count, run)[0])
