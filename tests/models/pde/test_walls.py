"""Rates of change beside walls, periodic ends and poles: they have the order of those inside."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from thinned import thinned


def rates(equations: Any, grid: mg.Grid, initial: Any, **options: Any) -> dict[str, np.ndarray]:
    """The rates of change of the initial values."""
    model = mg.pde(equations, grid, initial=initial, integrator="euler", dt=1.0, **options)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        before = {name: np.asarray(engine.gather(model.field(name))) for name in model.output}
        engine.run(model.step)
        return {name: np.asarray(engine.gather(model.field(name))) - before[name] for name in model.output}


# Parameters that depend on the place ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("order", "spacing", "kind"),
    thinned(itertools.product([2, 4], ["even", "uneven"], ["text", "function", "array"]), (2, "even", "text")),
)
def test_parameters_go_on_beyond_walls(order: int, spacing: str, kind: str) -> None:
    """A linear coefficient and a linear solution: the flux through a wall has the coefficient of the wall."""
    widths = 0.1 if spacing == "even" else [np.linspace(0.05, 0.15, 10)]
    grid = mg.Grid((10,), spacing=widths)
    k = {"text": "1 + x", "function": lambda x: 1 + x, "array": 1 + grid.centres("x")}[kind]
    found = rates(
        {"u": "div(k*grad(u))", "v": "d_dx(k)"}, grid, {"u": "2*x"}, parameters={"k": k}, order=order,
        boundary={"u": mg.dirichlet(lambda x: 2 * x, order)},
    )  # fmt: skip
    np.testing.assert_allclose(found["u"], 2.0, rtol=1e-10)
    np.testing.assert_allclose(found["v"], 1.0, rtol=1e-10)


@pytest.mark.parametrize("k", thinned([[1, 100, 100], [100, 1, 1], [1, 1, 99], [0, 1, 2], [1, 50, 99]], [1, 50, 99]))
def test_a_jump_beside_a_wall_makes_no_coefficient_negative(k: list[float]) -> None:
    coefficients = np.array([*k, *k[::-1]], float)
    found = rates("div(k*grad(u))", mg.Grid((6,)), 0.0, parameters={"k": coefficients}, boundary=mg.dirichlet(1.0))["u"]
    assert (found[[0, -1]] >= 0).all()  # what flows in
    assert (found[[0, -1]] <= 4 * coefficients[0]).all()
    np.testing.assert_array_equal(found, found[::-1])


def test_parameters_on_axes_of_few_cells() -> None:
    grid = mg.Grid((1, 2))
    found = rates("d_dx(k) + d_dy(k)", grid, 0.0, parameters={"k": "x"})["u"]
    np.testing.assert_array_equal(found, 1.0)


def test_parameters_are_even_at_the_axis() -> None:
    grid = mg.Grid((10,), ("r",), spacing=0.1, geometry="polar")
    found = rates("d_dr(k)", grid, 0.0, parameters={"k": "r**2"})["u"]
    np.testing.assert_allclose(found[:-1], 2 * grid.centres("r")[:-1], rtol=1e-12)


# Periodic ends -------------------------------------------------------------------------------------------------------
def test_expressions_of_coordinates_are_periodic() -> None:
    """What leaves a cell through the end enters the one at the other end; functions with the period are smooth."""
    grid = mg.Grid((16,), spacing=1 / 16, periodic=True)
    found = rates(
        {"u": "div(where(x < 0.5, 1, 2)*grad(u))", "v": "advect(where(x < 0.5, 1, 2), v)", "w": "laplace(cos(2*pi*x))"},
        grid, {"u": "cos(2*pi*x) + x", "v": "1.5 + x"},
    )  # fmt: skip
    for name in "uv":
        assert abs(found[name].sum()) < 1e-12 * abs(found[name]).sum()
    exact = -2 * 16**2 * (1 - np.cos(2 * np.pi / 16)) * np.cos(2 * np.pi * grid.centres("x"))
    np.testing.assert_allclose(found["w"], exact, atol=1e-10)


# Angles --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", thinned(["neumann", "robin", "function"], "robin"))
def test_normal_derivatives_across_angles_are_by_length(kind: str) -> None:
    """u = r theta and r phi sin(theta), whose derivatives along unit vectors are 1 and u over the length of phi."""
    grid = mg.Grid((6, 7), ("r", "theta"), spacing=(0.1, 0.2), origin=(1.0, 0.5), geometry="spherical")
    high = {
        "neumann": mg.neumann(1.0), "robin": mg.robin(1.0, lambda theta, r: 1.0 + r * theta),
        "function": mg.robin(lambda r: 1 / r, lambda theta: 1.0 + theta),
    }[kind]  # fmt: skip
    found = rates("d2_dtheta2(u)", grid, "r*theta", boundary={"r": mg.neumann(0.0), "theta": (mg.neumann(-1.0), high)})[
        "u"
    ]
    np.testing.assert_allclose(found, 0.0, atol=1e-12)


@pytest.mark.slow
def test_normal_derivatives_across_phi() -> None:
    grid = mg.Grid((4, 4, 5), geometry="spherical", spacing=(0.1, 0.2, 0.3), origin=(1.0, 0.5, 0.0))
    wall = mg.neumann(lambda r, theta: 1 / mg.sin(theta))
    found = rates(
        "d2_dphi2(u)", grid, "r*phi", boundary={"phi": (mg.neumann(lambda r, theta: -1 / mg.sin(theta)), wall)}
    )["u"]
    np.testing.assert_allclose(found, 0.0, atol=1e-12)
