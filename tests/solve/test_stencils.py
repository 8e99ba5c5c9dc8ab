"""ETDRK4 for differences: stencils with constant coefficients are exact, the rest has order 4, and the same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from thinned import thinned

GRID = mg.Grid((12, 16), spacing=(0.5, 0.4), periodic=True)
Equations = str | dict[str, str]


def ended(model: mg.Model, steps: int, comm: Any = None) -> np.ndarray | None:
    """The output fields after some steps."""
    comm = comm or mg.SerialComm()
    with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
        for slot, value in model.start_values():
            engine.set(slot, value)
        assert engine.run(model.step, steps).ok
        found = [engine.gather(model.field(name)) for name in model.output]
    return None if found[0] is None else np.array(found)


def matrix(*shifts: tuple[tuple[int, int], float]) -> np.ndarray:
    """The matrix of a stencil on the grid."""
    unit = np.eye(GRID.size).reshape(-1, *GRID.shape)
    rows = sum(c * np.roll(unit, (dy, dx), (1, 2)) for (dy, dx), c in shifts)
    return np.asarray(rows).reshape(GRID.size, GRID.size)


@pytest.mark.slow
def test_linear_terms_are_exact() -> None:
    """One step of 3 time units, 100 times an explicit one, against the exponential of the matrix."""
    w, x = 1 / 0.4**2, 0.3 / 0.8
    stencil = matrix(
        ((0, 0), -2 * (w + 4.0) - 0.1), ((1, 0), 4.0), ((-1, 0), 4.0), ((0, 1), w + x), ((0, -1), w - x)
    )  # fmt: skip
    values, vectors = np.linalg.eig(stencil)
    start = np.random.default_rng(1).normal(size=GRID.shape)
    exact = (vectors @ (np.exp(3.0 * values) * np.linalg.solve(vectors, start.ravel()))).real.reshape(GRID.shape)
    model = mg.pde(
        "laplace(u) + a*d_dx(u) - 0.1*u", GRID, initial=start, parameters={"a": 0.3}, integrator="etdrk4", dt=3.0
    )
    found = ended(model, 1)
    assert found is not None
    assert np.abs(found[0] - exact).max() < 1e-12


CHEMICALS = {"u": "laplace(u) + 1 - 4*u + v*u**2", "v": "D*laplace(v) + 3*u - v*u**2 + 0.3*d_dx(v) + 0.1*sin(t)"}
SPIRALS = {"psi": "psi + (1 + 0.5*I)*laplace(psi) - (1 - 0.9*I)*abs(psi)**2*psi"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equations", "options"),
    thinned(
        [
            (CHEMICALS, {"initial": {"u": "1 + 0.2*cos(pi*x/3.2)", "v": 3.0}, "parameters": {"D": 0.1}}),
            (SPIRALS, {"initial": {"psi": "0.3*cos(pi*x/3.2)*cos(pi*y/3) + 0.2*I"}, "dtype": "c16"}),
            ("(1 + 0.5*cos(pi*y/3))*laplace(u) + 2*(cos(pi*x/3.2) - 1)*u - u**3", {"initial": "cos(pi*x/3.2)"}),
            ("laplace(u**3 - u - 0.2*laplace(u))", {"initial": "0.5*cos(pi*x/3.2)"}),
            ("laplace(u) + 2*u*(1 - mean(u))", {"initial": "1.2 + cos(pi*x/3.2)"}),
        ],
        ("laplace(u) + 2*u*(1 - mean(u))", {"initial": "1.2 + cos(pi*x/3.2)"}),
    ),
)
def test_order(equations: Equations, options: dict[str, Any]) -> None:
    ends = [ended(mg.pde(equations, GRID, integrator="etdrk4", dt=0.4 / n, **options), n) for n in (20, 40, 80)]
    reference = ended(mg.pde(equations, GRID, integrator="rk4", dt=0.4 / 1600, **options), 1600)
    errors = [np.abs(end - reference).max() for end in ends]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.5)


@pytest.mark.slow
def test_a_parameter_that_changes_has_new_eigenvalues() -> None:
    rate = mg.Register("rate", initial=1.0)
    model = mg.pde(
        "rate*laplace(u)", GRID, initial="cos(pi*x/3.2)", parameters={"rate": rate}, integrator="etdrk4", dt=1.0
    )
    slowest = (2 - 2 * math.cos(math.pi * 0.4 / 3.2)) / 0.4**2
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for slot, value in model.start_values():
            engine.set(slot, value)
        start = np.abs(engine.gather(model.field("u"))).max()
        for value in (1.0, 1.0, 0.25):
            engine.write(rate, value)
            engine.run(model.step)
        assert np.abs(engine.gather(model.field("u"))).max() == pytest.approx(
            start * math.exp(-2.25 * slowest), rel=1e-12
        )


@pytest.mark.slow
def test_same_bits_on_ranks() -> None:
    def run(comm: Any) -> np.ndarray | None:
        model = mg.pde(
            CHEMICALS,
            GRID,
            initial={"u": "1 + 0.2*cos(x)", "v": 3.0},
            parameters={"D": 0.1},
            integrator="etdrk4",
            dt=0.1,
        )
        return ended(model, 2, comm)

    alone = mg.run_virtual(1, run)[0]
    assert alone is not None
    assert all(np.array_equal(alone, mg.run_virtual(ranks, run)[0]) for ranks in (2, 3))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "grid", "options", "said", "remedy"),
    [
        ("laplace(u)", mg.Grid((8, 8)), {}, "need a periodic Cartesian box", "ars443"),
        ("laplace(u)", mg.Grid((8,), spacing=[np.arange(1.0, 9.0)], periodic=True), {}, "cells of one width", "ars443"),
        ("laplace(u)", GRID, {"dtype": "f4"}, "modes of Field('u', f4", "declare fields as f8"),
        ("u*laplace(u) - u", GRID, {}, "no term of the rates is linear", "rk4"),
        ("cos(x)*laplace(u)", GRID, {}, "no term of the rates is linear", "rk4"),
        ("laplace(u)", GRID, {"noise": 1.0}, "takes no noise", "euler-maruyama"),
    ],
)
def test_what_has_no_such_modes(text: str, grid: mg.Grid, options: dict[str, Any], said: str, remedy: str) -> None:
    with pytest.raises(mg.ProgramError) as caught:
        mg.pde(text, grid, integrator="etdrk4", dt=0.1, **options)
    assert said in caught.value.message
    assert remedy in str(caught.value.remedy)
