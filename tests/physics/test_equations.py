"""Equations as users write them, beside exact solutions and published numbers: orders and values for the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg

from .evidence import Evidence

pytestmark = pytest.mark.slow  # tests/models/pde and tests/solve have quick ones

ORDERS, VALUES = "equation orders", "equation values"
Array = NDArray[np.float64]


def last(model: mg.Model, until: float, name: str = "u") -> Array:
    """The values at the end."""
    return np.asarray(mg.run(model, until=until, every=until, progress=False)[name].values[-1])


def order_of(error: Callable[[int], float], n: int, factor: int = 2) -> float:
    return float(np.log(error(n) / error(factor * n)) / np.log(factor))


# Operators -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_laplacian_on_a_periodic_box(order: int, evidence: Evidence) -> None:
    """Diffusion of one mode: the error of its rate is that of the operator."""

    def error(n: int) -> float:
        grid = mg.Grid((n,), spacing=2 * np.pi / n, periodic=True)
        model = mg.pde(
            f"laplace(u, order={order})", grid, initial={"u": lambda x: np.cos(2 * x)}, integrator="rk4", dt=2e-4
        )
        exact = np.exp(-4 * 0.02) * np.cos(2 * grid.positions(0))
        return float(abs(last(model, 0.02) - exact).max())

    evidence.between(ORDERS, f"laplace, order {order}, periodic", order_of(error, 24), order - 0.25, order + 0.25)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("kind", ["uniform", "stretched"])
@pytest.mark.parametrize("wall", ["dirichlet", "neumann", "robin"])
def test_walls(wall: str, kind: str, order: int, evidence: Evidence) -> None:
    """u = exp(-t) cos(x + 0.3) between walls that change with time."""

    def error(n: int) -> float:
        faces = np.linspace(0, 1, n + 1)
        if kind == "stretched":
            faces = (np.tanh(1.2 * (2 * faces - 1)) / np.tanh(1.2) + 1) / 2
        grid = mg.Grid((n,), spacing=[np.diff(faces)])

        def value(x: Any, t: Any) -> Any:
            return mg.exp(-t) * mg.cos(x + 0.3)

        def slope(x: Any, t: Any) -> Any:
            return -mg.exp(-t) * mg.sin(x + 0.3)

        conditions = {
            "dirichlet": (mg.dirichlet(value, order), mg.dirichlet(value, order)),
            "neumann": (mg.neumann(lambda x, t: -slope(x, t), order), mg.neumann(slope, order)),
            "robin": (
                mg.robin(1.0, lambda x, t: value(x, t) - slope(x, t), order),
                mg.robin(1.0, lambda x, t: value(x, t) + slope(x, t), order),
            ),
        }
        dt = 0.05 * float(np.diff(faces).min()) ** 2
        model = mg.pde(
            f"laplace(u, order={order})", grid, initial={"u": lambda x: np.cos(x + 0.3)},
            boundary={"x": conditions[wall]}, integrator="rk4", dt=dt,
        )  # fmt: skip
        exact = np.exp(-0.1) * np.cos(grid.positions(0) + 0.3)
        return float(abs(last(model, 0.1) - exact).max())

    found = order_of(error, 16)
    evidence.between(
        ORDERS, f"heat between walls, {wall} of order {order}, {kind} grid", found, order - 0.35, order + 1
    )


def test_a_coefficient_that_varies(evidence: Evidence) -> None:
    """Steady flux through k = 1 + x: u = log(1 + x) / log 2."""

    def error(n: int) -> float:
        grid = mg.Grid((n,), spacing=1 / n)
        model = mg.pde(
            "div((1 + x)*grad(u))", grid, initial={"u": lambda x: np.log1p(x) / np.log(2)},
            boundary={"x": (mg.dirichlet(0.0), mg.dirichlet(1.0))}, integrator="tr-bdf2", dt=0.05,
        )  # fmt: skip
        return float(abs(last(model, 2.0) - np.log1p(grid.positions(0)) / np.log(2)).max())

    evidence.between(ORDERS, "div(k*grad(u)), k = 1 + x, between values", order_of(error, 20), 1.8, 2.2)


@pytest.mark.parametrize(("geometry", "rate"), [("polar", 1), ("spherical", 2)])
def test_radial_diffusion(geometry: str, rate: int, evidence: Evidence) -> None:
    """The slowest mode of a disc and of a ball whose surface is held at zero."""
    from scipy.special import j0, jn_zeros

    root = float(jn_zeros(0, 1)[0]) if geometry == "polar" else np.pi

    def mode(r: Array) -> Array:
        return np.asarray(j0(root * r) if geometry == "polar" else np.sinc(r))

    def error(n: int) -> float:
        grid = mg.Grid((n,), geometry=geometry, spacing=1 / n)
        model = mg.pde(
            "laplace(u)", grid, initial={"u": mode}, boundary={"r": (mg.neumann(0.0), mg.dirichlet(0.0))},
            integrator="rk4", dt=0.1 / n**2,
        )  # fmt: skip
        return float(abs(last(model, 0.1) - np.exp(-(root**2) * 0.1) * mode(grid.positions(0))).max())

    evidence.between(ORDERS, f"laplace, {geometry}, with the centre", order_of(error, 16), 1.8, 2.3)


def test_a_field_across_the_centre_of_a_ball(evidence: Evidence) -> None:
    """The slowest mode of a ball that changes its sign across the centre: what radial modes do not see."""
    from scipy.optimize import brentq

    def bessel(z: Array | float) -> Array:
        return np.asarray(np.sin(z) / np.square(z) - np.cos(z) / z)

    root = float(brentq(bessel, 4.0, 5.0))

    def error(n: int) -> float:
        grid = mg.Grid((n, 2 * n), ("r", "theta"), geometry="spherical", spacing=(1 / n, np.pi / 2 / n))
        mode = np.outer(bessel(root * grid.positions(0)), np.cos(grid.positions(1)))
        model = mg.pde(
            "laplace(u)", grid, initial={"u": mode},
            boundary={"r": (mg.neumann(0.0), mg.dirichlet(0.0)), "theta": mg.neumann(0.0)}, integrator="tr-bdf2",
            tolerance=1e-6,
        )  # fmt: skip
        return float(abs(last(model, 0.05) - np.exp(-(root**2) * 0.05) * mode).max())

    evidence.between(ORDERS, "laplace, spherical, across the centre", order_of(error, 8), 1.8, 2.3)


# Integrators ---------------------------------------------------------------------------------------------------------
METHODS = {
    "euler": 1, "heun": 2, "ssprk3": 3, "rk4": 4, "imex-euler": 1, "cnab2": 2, "sbdf2": 2, "ars222": 2, "ars443": 3,
    "bdf2": 2, "tr-bdf2": 2, "etdrk4": 4,
}  # fmt: skip


@pytest.mark.parametrize(("method", "order"), METHODS.items())
def test_integrators(method: str, order: int, evidence: Evidence) -> None:
    """Burgers' equation with a mild viscosity, against the same with steps a sixteenth as long."""
    space: dict[str, Any] = {"space": "spectral"} if method == "etdrk4" else {}
    grid = mg.Grid((64,), spacing=2 * np.pi / 64, periodic=True)

    def end(steps: int) -> Array:
        model = mg.pde(
            "-u*d_dx(u) + 0.1*laplace(u)", grid, initial={"u": lambda x: np.sin(x)}, integrator=method, dt=0.5 / steps,
            **space,
        )  # fmt: skip
        return last(model, 0.5)

    exact = end(1280)
    found = order_of(lambda steps: float(abs(end(steps) - exact).max()), 80 if order < 4 else 40)
    evidence.between(ORDERS, f"in time, {method}", found, order - 0.2, order + 0.45)


# Values --------------------------------------------------------------------------------------------------------------
def test_heat_between_two_kinds_of_walls(evidence: Evidence) -> None:
    """The series of the problem, taken at positions that are centres of cells."""
    n = 250
    grid = mg.Grid((n + 1,), spacing=1 / (n + 1))
    robin = {"x": (mg.robin(1.0, 0.0), mg.robin(1.0, 0.0))}
    model = mg.pde("laplace(u)", grid, initial=1.0, boundary=robin, integrator="tr-bdf2", dt=1e-4)
    evidence.relative(
        VALUES, "heat, robin at both ends: u(0.5) at t = 0.1", last(model, 0.1)[n // 2], 0.9010502700882, 1e-5
    )
    mixed = {"x": (mg.dirichlet(0.0), mg.neumann(1.0))}
    model = mg.pde("laplace(u)", grid, initial=0.0, boundary=mixed, integrator="tr-bdf2", dt=1e-4)
    evidence.relative(
        VALUES, "heat, value and flux: u(0.5) at t = 0.1", last(model, 0.1)[n // 2], 0.0591257582410, 2e-4
    )


def test_burgers(evidence: Evidence) -> None:
    grid = mg.Grid((128,), spacing=2 * np.pi / 128, periodic=True, origin=-np.pi / 128)
    model = mg.pde(
        "-u*d_dx(u) + 0.1*laplace(u)", grid, initial={"u": lambda x: np.sin(x)}, space="spectral", integrator="etdrk4",
        dt=0.005,
    )  # fmt: skip
    values = last(model, 1.0)
    modes = np.fft.rfft(values) / len(values)
    for place, expected in ((1.0, 0.4743508049208), (2.0, 0.8470179122856), (3.0, 0.3849203290838)):
        waves = np.exp(1j * np.arange(len(modes)) * (place - grid.positions(0)[0]))
        weights = np.full(len(modes), 2.0)
        weights[0] = weights[-1] = 1.0
        found = float((weights * (modes * waves).real).sum())
        evidence.relative(VALUES, f"Burgers, nu = 0.1 (Cole and Hopf): u({place:g}) at t = 1", found, expected, 1e-9)


def test_allen_cahn(evidence: Evidence) -> None:
    grid = mg.Grid((256,), spacing=2 * np.pi / 256, periodic=True, origin=-np.pi / 256)
    model = mg.pde(
        "0.01*laplace(u) + u - u**3", grid, initial={"u": lambda x: 0.5 * np.cos(x) + 0.2 * np.cos(2 * x)},
        space="spectral", integrator="rk4", dt=0.005,
    )  # fmt: skip
    values = last(model, 1.0)
    evidence.relative(VALUES, "Allen and Cahn: u(0) at t = 1", values[0], 0.931923974286, 1e-9)
    evidence.relative(VALUES, "Allen and Cahn: u(pi) at t = 1", values[128], -0.653703489233, 1e-9)


def test_brusselator(evidence: Evidence) -> None:
    grid = mg.Grid((64,), spacing=2 * np.pi / 64, periodic=True, origin=-np.pi / 64)
    model = mg.pde(
        {"u": "laplace(u) + 1 - 4*u + u**2*v", "v": "0.1*laplace(v) + 3*u - u**2*v"}, grid,
        initial={"u": lambda x: 1 + 0.5 * np.cos(x), "v": lambda x: 3 + 0.5 * np.sin(x)}, space="spectral",
        integrator="rk4", dt=5e-4,
    )  # fmt: skip
    history = mg.run(model, until=10.0, every=1.0, progress=False)
    for step, u, v in ((1, 1.450327471923, 1.904673041396), (10, 0.427631069504, 2.947645910113)):
        evidence.relative(VALUES, f"Brusselator: u(0) at t = {step}", history.u.values[step][0], u, 1e-8)
        evidence.relative(VALUES, f"Brusselator: v(0) at t = {step}", history.v.values[step][0], v, 1e-8)


def test_kuramoto_sivashinsky(evidence: Evidence) -> None:
    n = 768
    grid = mg.Grid((n,), spacing=32 * np.pi / n, periodic=True, origin=-16 * np.pi / n)
    model = mg.pde(
        "-d_dx(u**2)/2 - laplace(u) - laplace(laplace(u))", grid,
        initial={"u": lambda x: np.cos(x / 16) * (1 + np.sin(x / 16))}, space="spectral", integrator="etdrk4", dt=0.005,
    )  # fmt: skip
    values = last(model, 10.0)
    for place, expected in ((0, 0.58796787338), (n // 8, 1.12485812448), (5 * n // 16, -1.41603541342)):
        what = f"Kuramoto and Sivashinsky: u({place / n:g} L) at t = 10"
        evidence.relative(VALUES, what, values[place], expected, 1e-7)


def test_gray_scott(evidence: Evidence) -> None:
    u, v = np.ones((64, 64)), np.zeros((64, 64))
    u[24:40, 24:40], v[24:40, 24:40] = 0.5, 0.25
    v[24, 30] += 0.01
    model = mg.pde(
        {"u": "0.16*laplace(u) - u*v**2 + 0.035*(1 - u)", "v": "0.08*laplace(v) + u*v**2 - 0.1*v"},
        mg.Grid((64, 64), periodic=True), initial={"u": u, "v": v}, integrator="euler", dt=1.0,
    )  # fmt: skip
    history = mg.run(model, 5000, every=1000, progress=False)
    evidence.relative(
        VALUES, "Gray and Scott: mean u after 1000 steps", history.u.values[1].mean(), 0.944360922378, 1e-10
    )
    evidence.relative(
        VALUES, "Gray and Scott: v[20, 24] after 1000 steps", history.v.values[1][20, 24], 0.291095874834, 1e-8
    )
    evidence.relative(
        VALUES, "Gray and Scott: mean u after 5000 steps", history.u.values[5].mean(), 0.752994723565, 1e-6
    )


def test_schroedinger(evidence: Evidence) -> None:
    """A packet of width 1 that moves: the largest errors of second-order differences, as another program has them."""
    for n, expected in ((100, 7.98e-2), (200, 2.01e-2)):
        h = 40 / n
        grid = mg.Grid((n,), spacing=h, periodic=True, origin=-20 - h / 2)

        def exact(x: Array, t: float) -> Array:
            width = 1 + 1j * t
            return np.asarray(np.pi**-0.25 / np.sqrt(width) * np.exp(-((x - t) ** 2) / (2 * width) + 1j * (x - t / 2)))

        model = mg.pde(
            {"psi": "I*laplace(psi)/2"}, grid, initial={"psi": lambda x: exact(x, 0.0)}, dtype="c16", integrator="rk4",
            dt=h**2 / 2,
        )  # fmt: skip
        values = last(model, 2.0, "psi_re") + 1j * last(model, 2.0, "psi_im")
        error = float(abs(values - exact(grid.positions(0), 2.0)).max())
        evidence.relative(VALUES, f"Schroedinger, {n} cells: largest error at t = 2", error, expected, 0.01)


def test_korteweg_de_vries(evidence: Evidence) -> None:
    for order, n, expected in ((2, 160, 2.39e-3), (2, 320, 6.02e-4), (4, 160, 3.86e-5), (4, 320, 2.65e-6)):
        h = 40 / n
        grid = mg.Grid((n,), spacing=h, periodic=True, origin=-20 - h / 2)

        def exact(x: Array, t: float) -> Array:
            return np.asarray(0.5 / np.cosh((x - t) / 2) ** 2)

        model = mg.pde(
            f"-3*d_dx(u**2, order={order}) - d3_dx3(u, order={order})", grid, initial={"u": lambda x: exact(x, 0.0)},
            integrator="rk4", dt=0.2 * h**3,
        )  # fmt: skip
        error = float(abs(last(model, 5.0) - exact(grid.positions(0), 5.0)).max())
        what = f"Korteweg and de Vries, order {order}, {n} cells: largest error at t = 5"
        evidence.relative(VALUES, what, error, expected, 0.02)


def test_fisher_and_kolmogorov(evidence: Evidence) -> None:
    """The exact wave at x = 10, t = 5."""
    n = 4000
    grid = mg.Grid((n,), spacing=0.02, origin=-30.01)
    speed = 5 / np.sqrt(6)
    model = mg.pde(
        "laplace(u) + u*(1 - u)", grid, initial={"u": lambda x: (1 + np.exp(x / np.sqrt(6))) ** -2},
        boundary={"x": (mg.dirichlet(1.0), mg.neumann(0.0))}, integrator="tr-bdf2", dt=0.01,
    )  # fmt: skip
    values = last(model, 5.0)
    at = round((10.0 - grid.positions(0)[0]) / 0.02)
    assert grid.positions(0)[at] == pytest.approx(10.0)
    assert (1 + np.exp((10 - 5 * speed) / np.sqrt(6))) ** -2 == pytest.approx(0.2714759290602)
    evidence.relative(VALUES, "Fisher and Kolmogorov: u(10) at t = 5", values[at], 0.2714759290602, 2e-5)
