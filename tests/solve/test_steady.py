"""Steady states: against exact solutions and SciPy, on ranks, and where there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import root

import minga as mg


@pytest.mark.slow
def test_bratu_problem() -> None:
    """u'' + exp(u) = 0 between walls of 0, whose lower solution is known: of order 2 in the width of the cells."""
    theta = 1.5171645990507543  # theta = sqrt(2) cosh(theta / 4)
    errors = []
    for n in (32, 64):
        grid = mg.Grid((n,), ("x",), spacing=1 / n)
        state = mg.solve.steady(mg.pde("laplace(u) + exp(u)", grid, boundary=mg.dirichlet(0.0)))
        x = (np.arange(n) + 0.5) / n
        exact = -2 * np.log(np.cosh((x - 0.5) * theta / 2) / math.cosh(theta / 4))
        errors.append(np.abs(state.u.values - exact).max())
        assert state.u.dims == ("x",)
        assert state.attrs["residual"][0] == pytest.approx(1.0)
        assert state.attrs["residual"][-1] <= 1e-8
        assert len(state.attrs["residual"]) == state.attrs["iterations"] + 1 < 15
    assert errors[1] < 5e-5
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.slow
def test_coupled_fields_with_walls_in_two_dimensions() -> None:
    """Against SciPy's solution of the same equations."""
    ny, nx = 5, 7
    h = 0.2
    grid = mg.Grid((ny, nx), spacing=h)
    walls = {"u": {"y": mg.dirichlet(1.0), "x": (mg.robin(2.0, 1.0), mg.neumann(-0.5))}}
    model = mg.pde(
        {"u": "laplace(u) - u*v + x", "v": "0.5*laplace(v) + u**2 - v*exp(v/4)"}, grid, boundary=walls,
        initial={"u": 1.0, "v": 1.0},
    )  # fmt: skip
    state = mg.solve.steady(model, tolerance=1e-10)
    assert state.attrs["command"].startswith("mg.solve.steady(model, tolerance=1e-10)")
    x = (np.arange(nx) + 0.5) * h

    def laplace(wide: np.ndarray) -> np.ndarray:
        inner = wide[1:-1, 1:-1]
        return (wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4 * inner) / h**2

    def rates(y: np.ndarray) -> np.ndarray:
        u, v = y.reshape(2, ny, nx)
        wide, other = np.zeros((ny + 2, nx + 2)), np.pad(v, 1, mode="edge")
        wide[1:-1, 1:-1] = u
        wide[0, 1:-1], wide[-1, 1:-1] = 2 - u[0], 2 - u[-1]
        wide[1:-1, 0] = ((2 - 2 * h) * u[:, 0] + 2 * h) / (2 + 2 * h)
        wide[1:-1, -1] = u[:, -1] - 0.5 * h
        return np.concatenate(
            [(laplace(wide) - u * v + x).ravel(), (0.5 * laplace(other) + u**2 - v * np.exp(v / 4)).ravel()]
        )

    exact = root(rates, np.ones(2 * ny * nx), tol=1e-13).x.reshape(2, ny, nx)
    assert np.abs(state.u.values - exact[0]).max() < 1e-9
    assert np.abs(state.v.values - exact[1]).max() < 1e-9


@pytest.mark.slow
def test_roll_of_the_swift_hohenberg_equation() -> None:
    """Its amplitude and energy at eps = 0.1; the translation of the roll makes the Jacobian singular."""
    n = 32
    h = 2 * math.pi / n
    grid = mg.Grid((n,), ("x",), spacing=h, origin=-h / 2, periodic=True)
    model = mg.pde("0.1*u - u**3 - (u + 2*laplace(u) + biharmonic(u))", grid, initial={"u": "0.2*cos(x)"}, order=8)
    u = mg.solve.steady(model, tolerance=1e-10).u.values
    k = np.fft.rfftfreq(n, 1 / n)
    shifted = np.fft.irfft((1 - k**2) ** 2 * np.fft.rfft(u), n)
    assert 2 * np.mean(u * np.cos(np.arange(n) * h)) == pytest.approx(0.365243301465, abs=2e-8)
    assert h * np.sum((u * shifted - 0.1 * u**2) / 2 + u**4 / 4) == pytest.approx(-0.010475608772, abs=2e-8)


@pytest.mark.slow  # those of implicit steps have the same solver
@pytest.mark.parametrize("count", [2, 3])
def test_same_bits_on_ranks(count: int) -> None:
    grid = mg.Grid((6, 24), spacing=0.1)

    def find(comm: mg.SerialComm) -> tuple[str, np.ndarray | None]:
        model = mg.pde("laplace(u) + exp(-u) - u**2", grid, boundary={"x": mg.dirichlet(0.5)})
        state = mg.solve.steady(model, comm=comm)
        return state.attrs["digest"], state.u.values if comm.rank == 0 else None

    digest, alone = mg.run_virtual(1, find)[0]
    other, values = mg.run_virtual(count, find)[0]
    assert other == digest
    assert np.array_equal(alone, values)


def test_time_is_held() -> None:
    grid = mg.Grid((16,), ("x",), spacing=1 / 16)
    walls = {"x": (mg.dirichlet(lambda x, t: t), mg.dirichlet(0.0))}
    state = mg.solve.steady(mg.pde("laplace(u)", grid, boundary=walls), time=2.0)
    assert np.allclose(state.u, 2.0 * (1.0 - state.x), atol=1e-7)


@pytest.mark.slow
def test_what_is_found_depends_on_the_beginning() -> None:
    """A small step follows the evolution away from an unstable state."""
    grid = mg.Grid((8,), periodic=True)
    for start, end in ((0.01, 1.0), (-0.01, -1.0)):
        assert np.allclose(mg.solve.steady(mg.pde("u - u**3", grid, initial={"u": start})).u, end)


@pytest.mark.slow
def test_where_nothing_is_found() -> None:
    grid = mg.Grid((16,), ("x",), spacing=1 / 16)
    model = mg.pde("laplace(u) + 10*exp(u)", grid, boundary=mg.dirichlet(0.0))  # steady up to 3.51
    with pytest.raises(mg.RunError, match=r"no steady state of model 'pde' was found: after \d+ iterations") as caught:
        mg.solve.steady(model, limit=40)
    assert caught.value.remedy is not None
    assert "begin nearer to a steady state" in caught.value.remedy
    with pytest.raises(mg.ProgramError, match="has noise"):
        mg.solve.steady(mg.pde("-u", grid, noise=1.0, dt=0.1))
    with pytest.raises(mg.ProgramError, match="tolerance=0"):
        mg.solve.steady(model, tolerance=0)
    with pytest.raises(mg.ProgramError, match="dt=-1"):
        mg.solve.steady(model, dt=-1.0)
    u = mg.Field("u", grid)
    with pytest.raises(mg.ProgramError, match="does not say what its rates of change are"):
        mg.solve.steady(mg.Model("other", grid, (u,), mg.Program()))
