"""Multigrid for the diffusive part of the Jacobian: few iterations whatever the step, and where it is not used."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.operations import Let, flat
from minga.solve.near_part import near_part
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


@pytest.mark.parametrize(
    ("equation", "boundary", "options"),
    thinned(
        [
            ("laplace(u) + u - u**3", None, {}),
            ("laplace(u) - u + sin(t)", {"y": mg.dirichlet(1.0), "x": (mg.robin(2.0, 1.0), mg.neumann(0.5))}, {}),
            VARIABLE,
            ("laplace(u) - u**3", {"y": mg.dirichlet(1.0), "x": mg.neumann(0.0)}, {"order": 4}),
        ],
        VARIABLE,
    ),
)
def test_iterations_do_not_grow_with_the_step(equation: str, boundary: object, options: dict) -> None:
    counts = [products(equation, ratio, boundary, **options)[0] for ratio in (1e3, 1e5)]
    assert max(counts) < 20


def test_where_derivatives_of_order_4_dominate() -> None:
    """The cell-wise preconditioner is used, and the steps are solved as well."""
    grid = mg.Grid((32,), ("x",), spacing=0.2, periodic=True)
    model = mg.pde(
        "-u - 2*laplace(u) - biharmonic(u) + 1", grid, initial={"u": "cos(2*pi*x/6.4)"}, integrator="tr-bdf2", dt=0.05
    )
    strong = next(op.register for op in flat(model.step.operations) if isinstance(op, Let) and "strong" in op.label)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), model.initial["u"])
        assert engine.run(model.step, 2).ok
        assert engine.read(strong) == 0


def test_grids_and_rates_without_such_a_part() -> None:
    def kept(grid: mg.Grid, function: object, **options: object) -> bool:
        return near_part(Rates(function), (mg.Field("u", grid, **options),), "near") is not None

    def diffusion(cells: list, constants: list, t: object) -> list:
        return [mg.laplace(cells[0])]

    def waves(cells: list, constants: list, t: object) -> list:
        return [cells[1][0], mg.laplace(cells[0])]

    assert kept(mg.Grid((8, 8)), diffusion)
    assert not kept(mg.Grid((8, 8), geometry="polar", origin=(1.0, 0.0)), diffusion)
    assert not kept(mg.Grid((8, 8), periodic=True), diffusion, boundary=mg.antiperiodic())
    assert not kept(mg.Grid((8, 8)), lambda cells, constants, t: [-cells[0][0, 0]])
    assert near_part(Rates(waves), (mg.Field("u", mg.Grid((8,))), mg.Field("v", mg.Grid((8,)))), "near") is None
    assert not kept(mg.Grid((8, 8)), lambda cells, constants, t: [mg.laplace(mg.local(cells[0][0, 0] ** 3))])


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
