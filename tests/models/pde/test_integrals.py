"""Integrals and means in equations: exact solutions, conservation, mistakes, and the same bits on all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.pde import EquationError
from model_runs import assert_same, run_model

run: Any = mg.run


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "dp5"])
def test_an_integral_is_that_of_each_stage(integrator: str) -> None:
    """du/dt = -u integral(u) of a uniform field on [0, 1] is 1 / (1 + t)."""
    grid = mg.Grid((10,), ("x",), spacing=0.1)
    model = mg.pde("-integral(u)*u", grid, initial={"u": 1.0}, integrator=integrator, dt=0.01, tolerance=1e-9)
    assert np.allclose(run(model, until=1.0).u.values[-1], 0.5, rtol=0, atol=2e-9)


@pytest.mark.slow
def test_a_mean_conserves() -> None:
    """Mass-conserving Allen-Cahn on stretched cells, two equations with the same mean."""
    edges = np.linspace(0.0, 4.0, 13) ** 1.2
    grid = mg.Grid((12,), ("x",), spacing=(np.diff(edges),), periodic=False)
    model = mg.pde(
        {"u": "laplace(u) + u - u**3 - mean(u - u**3)", "w": "mean(u - u**3) + mean(x)"}, grid,
        initial={"u": "cos(x)"}, boundary=mg.neumann(0.0), integrator="euler", dt=0.002,
    )  # fmt: skip
    history = run(model, 50)
    u, widths = history.u.values, grid.widths("x")
    middle = (widths * grid.centres("x")).sum() / widths.sum()
    mean = (widths * (u[0] - u[0] ** 3)).sum() / widths.sum()
    one = run(model, 1).w.values[-1]
    np.testing.assert_allclose(one, 0.002 * (mean + middle), rtol=1e-13)
    assert history.attrs["integral_u"] == pytest.approx((widths * u[0]).sum(), abs=2e-3)
    assert np.ptp(u[-1]) < np.ptp(u[0])


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("grid", "volume", "unit"),
    [
        (mg.Grid((8,), spacing=0.25, units="m", geometry="polar"), 4 * np.pi, "m2"),
        (mg.Grid((4, 4), spacing=(0.5, np.pi / 2), units=("m", "1"), geometry="polar"), 4 * np.pi, "m2"),
        (mg.Grid((5, 4), ("z", "r"), spacing=0.5, units="m", geometry="cylindrical"), 10 * np.pi, "m3"),
        (mg.Grid((8,), spacing=0.25, units="m", geometry="spherical"), 32 / 3 * np.pi, "m3"),
        (mg.Grid((4, 4), spacing=(0.5, np.pi / 4), units=("m", "1"), geometry="spherical"), 32 / 3 * np.pi, "m3"),
    ],
)
def test_integrals_in_curved_coordinates(grid: mg.Grid, volume: float, unit: str) -> None:
    """Angles that the grid lacks count as a whole; the mean of the squared distance over a ball or a cylinder."""
    model = mg.pde(
        {"u": "integral(1)", "w": "mean(r**2)"}, grid, initial={"u": 1.0}, integrator="euler", dt=1.0
    )  # fmt: skip
    history = run(model, 1)
    np.testing.assert_allclose(history.u.values[-1], 1 + volume, rtol=1e-13)
    np.testing.assert_allclose(history.attrs["integral_u"], (1 + volume) * volume, rtol=1e-13)
    assert model.units["integral_u"][0] == unit
    mean = 2.0 if grid.geometry != "spherical" else 12 / 5
    assert history.w.values[-1].flat[0] == pytest.approx(mean, rel=0.05)


def test_stable_steps_know_them() -> None:
    model = mg.pde("laplace(u) - mean(u)", mg.Grid((16, 16), spacing=0.5, periodic=True), integrator="euler")
    assert dict(model.notes)["stable step"] == "0.0625 at the start"


@pytest.mark.slow
def test_complex_values_have_real_integrals() -> None:
    """A Schroedinger equation with a nonlocal potential keeps the norm."""
    grid = mg.Grid((32,), ("x",), spacing=0.25, periodic=True)
    model = mg.pde(
        {"psi": "I*laplace(psi)/2 - I*integral(abs(psi)**2)*psi"}, grid, dtype="c16",
        initial={"psi": "exp(-(x - 4)**2)"}, dt=0.01,
    )  # fmt: skip
    history = run(model, 50)
    assert history.norm_psi.values[-1] == pytest.approx(history.norm_psi.values[0], rel=1e-6)


@pytest.mark.slow
def test_same_bits_on_three_ranks() -> None:
    grid = mg.Grid((12, 10), periodic=True)
    model = mg.pde(
        "laplace(u) - integral(gradient_squared(u))*u + mean(u*x)", grid, initial={"u": "random()"}, noise="mean(u)",
        dt=0.01, seed=3,
    )  # fmt: skip
    assert_same(run_model(model, 10), run_model(model, 10, ranks=3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("integral(mean(u))", "an integral within an integral"),
        ("mean(u, u)", "mean takes 1 argument"),
        ("mean(grad(u))", "this is a vector"),
        ("integral", "integral is a function"),
        ("mean(q)", "unknown name 'q'"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(EquationError, match=message):
        mg.pde(text, mg.Grid((8, 8)), dt=0.1)


def test_they_are_refused_where_they_have_no_meaning() -> None:
    with pytest.raises(EquationError, match="means over the grid can appear in equations only"):
        mg.pde("0", mg.Grid((8, 8)), initial={"u": "mean(x)"}, dt=0.1)
    with pytest.raises(mg.ProgramError, match="integrals with spectral derivatives"):
        mg.pde("mean(u)", mg.Grid((8, 8), periodic=True), space="spectral", dt=0.1)
