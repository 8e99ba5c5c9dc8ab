"""Rates of change beside walls, periodic ends and poles: they have the order of those inside."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.space.metric import measures
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


@pytest.mark.slow
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
@pytest.mark.slow
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


# Walls through which nothing flows -----------------------------------------------------------------------------------
DRIFTING = "div((x**3 - x)*u) + 0.15*laplace(u)"


def line(n: int = 20) -> mg.Grid:
    return mg.Grid((n,), ("x",), spacing=4 / n, origin=-2.0)


FLOWS = {
    "drift": (DRIFTING, line()),
    "weno5": ("-advect(x - x**3, u, scheme=weno5) + div((1 + x**2)*grad(u))/2", line()),
    "uneven": (
        "-3*advect(1 + x**2, u, scheme=up3) + div(u*grad(x**2 + u))", mg.Grid((9,), spacing=[np.linspace(0.1, 0.3, 9)]),
    ),
    "tensor": (
        "div((u*x + 2*d_dy(u), 3*d_dx(u) - u**2)) + laplace(u**2)", mg.Grid((7, 8), ("x", "y"), spacing=0.2),
    ),
    "ball": (
        "div((u, u*r)) + laplace(u)",
        mg.Grid((6, 8), ("r", "theta"), spacing=(0.2, np.pi / 8), geometry="spherical"),
    ),
    "ring": (
        "div(u*(z, r)) + laplace(u)", mg.Grid((6, 8), ("r", "z"), spacing=0.2, origin=1.0, geometry="cylindrical"),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(FLOWS, "drift", "ball"))
def test_nothing_flows_through_closed_walls(name: str) -> None:
    """The integral of the rates is 0 but for rounding, for any values."""
    equation, grid = FLOWS[name]
    found = rates(equation, grid, np.random.default_rng(3).uniform(0.5, 1.5, grid.shape), boundary=mg.no_flux())["u"]
    sizes = np.asarray(np.ones(()))
    for axis in range(grid.ndim):
        sizes = np.multiply.outer(sizes, measures(grid, axis))
    assert abs((found * sizes).sum()) < 1e-13 * abs(found * sizes).sum()


def test_one_end_of_an_axis_may_be_closed() -> None:
    """A constant flow: into the wall where it ends, and through the other end, where du/dn = 0."""
    found = rates("div((-2*u,))", line(), 1.0, boundary={"x": (mg.neumann(0.0), mg.no_flux())})["u"]
    np.testing.assert_allclose(found, [*np.zeros(19), 2 / 0.2], atol=1e-12)
    found = rates("div((-2*u,))", line(), 1.0, boundary={"x": (mg.no_flux(), mg.neumann(0.0))})["u"]
    np.testing.assert_allclose(found, [-2 / 0.2, *np.zeros(19)], atol=1e-12)


def test_a_function_has_closed_walls() -> None:
    def drifting(u: Any, x: Any) -> Any:
        return mg.div(((x**3 - x) * u[0],)) + 0.15 * mg.laplace(u)

    start = np.random.default_rng(4).random(20)
    found = [rates(each, line(), start, boundary=mg.no_flux())["u"] for each in (DRIFTING, drifting)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13)


def test_other_fields_in_an_equation_keep_their_walls() -> None:
    """The Laplacian of v is a source of u, with the condition of v, and a flux of w, which is 0 at the wall."""
    equations = {"u": "u*laplace(v)", "w": "-laplace(v)", "v": "laplace(v)"}
    walls = {"u": mg.no_flux(), "w": mg.no_flux(), "v": mg.dirichlet(1.0)}
    found = rates(equations, line(), {"u": 2.0, "v": "x**2"}, boundary=walls)
    np.testing.assert_allclose(found["u"], 2.0 * found["v"], rtol=1e-12)
    np.testing.assert_allclose(found["w"][1:-1], -found["v"][1:-1], rtol=1e-10)
    assert abs(found["v"].sum()) > 1.0
    assert abs(found["w"].sum()) < 1e-12


@pytest.mark.slow
def test_a_stationary_density_has_order_2() -> None:
    """Fokker and Planck's equation in a double well of finite width."""

    def error(n: int) -> float:
        grid = line(n)
        model = mg.pde(DRIFTING, grid, initial="exp(-x**2)", boundary=mg.no_flux(), integrator="tr-bdf2")
        history = mg.run(model, until=100.0, progress=False)
        x = grid.centres("x")
        exact = np.exp(-(x**4 / 4 - x**2 / 2) / 0.15)
        total = history.integral_u.values
        assert abs(total[-1] - total[0]) < 1e-10
        return float(abs(history.u.values[-1] - exact * total[0] / (exact.sum() * 4 / n)).max())

    assert np.log2(error(40) / error(80)) > 1.8


@pytest.mark.parametrize(
    ("equation", "says"),
    [
        ("d_dx((x**3 - x)*u) + laplace(u)", "d_dx of u is here no flux"), ("u*laplace(u)", "laplace of u"),
        ("laplace(u) - integral(laplace(u))", "laplace of u"),
        ("laplace(u - laplace(u))", "laplace of u"), ("laplace(u) - biharmonic(u)", "biharmonic of u"),
        ("laplace(u, order=4)", "a flux of order 4"), ("-advect(x, u, conservative=False)", "advect of u"),
        (lambda u: mg.biharmonic(u), "mg.biharmonic of a field with mg.no_flux"),
    ],
)  # fmt: skip
def test_what_closed_walls_do_not_close_is_refused(equation: Any, says: str) -> None:
    with pytest.raises(mg.MingaError, match=says):
        mg.pde(equation, line(), boundary=mg.no_flux(), integrator="bs3")


def test_fields_of_own_programs_have_no_closed_walls() -> None:
    with pytest.raises(mg.LayoutError, match="is a condition of equations"):
        mg.Field("u", line(), boundary=mg.no_flux())


@pytest.mark.parametrize(
    ("equation", "options", "term"),
    [
        (DRIFTING, {}, "div((x ** 3 - x) * u)"), ("-advect(1, u) + laplace(u)", {}, "advect(1, u)"),
        ("div(u*grad(k)) + laplace(u)", {"parameters": {"k": "x**2"}}, "div(u * grad(k))"),
        (DRIFTING, {"boundary": mg.neumann(0.0)}, ""), (DRIFTING, {"boundary": mg.no_flux()}, ""),
        ("div((1 + x**2)*grad(u)) + laplace(u**2) - u*d_dx(u)", {}, ""),
        ("D*laplace(u) + u", {"parameters": {"D": 2.0}}, ""),
    ],
)  # fmt: skip
def test_terms_that_carry_something_through_walls_are_named(equation: str, options: dict[str, Any], term: str) -> None:
    model = mg.pde(equation, line(), initial=1.0, integrator="bs3", **options)
    assert len(model.warnings) == bool(term)
    assert not term or model.warnings[0].startswith(
        f"{term} in the equation of u may carry something through the walls"
    )


def test_flow_along_walls_carries_nothing_through_them() -> None:
    grid = mg.Grid((6, 8), ("y", "x"), periodic=(False, True))
    assert mg.pde("-advect((0, 1 - y), u)", grid, initial=1.0, integrator="bs3").warnings == ()
    assert len(mg.pde("-advect((1, 1 - y), u)", grid, initial=1.0, integrator="bs3").warnings) == 1


def test_complex_fields_have_closed_walls() -> None:
    options: dict[str, Any] = {"dtype": "c16", "parameters": {"a": 0.5 + 1j}}
    equation = {"psi": "a*laplace(psi) + I*div(x*psi)"}
    start = {"psi": np.random.default_rng(5).random(20) + 1j}
    for part in rates(equation, line(), start, boundary=mg.no_flux(), **options).values():
        assert abs(part.sum()) < 1e-13 * abs(part).sum()
    with pytest.raises(mg.ProgramError, match="of one part of 'psi' alone"):
        rates(equation, line(), start, boundary={"psi_re": mg.no_flux()}, **options)
