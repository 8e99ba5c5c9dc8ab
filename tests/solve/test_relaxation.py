"""Relaxation against exact discrete solutions and convergence factors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import run_virtual
from minga.solve import relaxation
from minga.space.cuts import best_cartesian, slabs
from minga.space.layout import Layout
from thinned import thinned

N = 64
ORDERS = ("jacobi", "red_black", "lexicographic")


def plate(n: int) -> tuple[mg.Grid, mg.Field, np.ndarray]:
    """(n - 1)^2 nodes between three walls at 0 and one at sin(pi i / n); its exact discrete solution."""
    grid = mg.Grid((n - 1, n - 1))
    i = np.arange(1, n)
    hot = np.sin(np.pi * i / n)
    u = mg.Field("u", grid, slots=2, boundary={"y": (mg.fixed(0.0), mg.fixed(hot)), "x": mg.fixed(0.0)})
    alpha = np.arccosh(2 - np.cos(np.pi / n))
    return grid, u, hot[None, :] * (np.sinh(alpha * i) / np.sinh(alpha * n))[:, None]


def test_jacobi_passes_known_values() -> None:
    grid, u, exact = plate(N)
    program = mg.Program("step")
    relaxation.jacobi(program, u)
    errors = {1: 0.90613999, 10: 0.75495809, 100: 0.46598301, 1000: 0.09803447}
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        done = 0
        for steps, error in errors.items():
            engine.run(program, steps - done)
            done = steps
            found = engine.gather(u)
            assert found is not None
            assert np.abs(found - exact).max() == pytest.approx(error, abs=5e-9)
        assert found[N // 2 - 1, N // 2 - 1] == pytest.approx(0.1044335012367408, abs=1e-15)


def test_jacobi_reaches_a_millionth_at_the_known_step() -> None:
    grid, u, exact = plate(N)
    program = mg.Program("step")
    relaxation.jacobi(program, u)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.run(program, 10512)
        before = np.abs(engine.gather(u) - exact).max()
        engine.run(program)
        after = np.abs(engine.gather(u) - exact).max()
    assert after < 1e-6 <= before


@pytest.mark.parametrize("order", ORDERS)
def test_all_orders_end_at_the_exact_discrete_solution(order: str) -> None:
    grid, u, exact = plate(16)
    program = mg.Program("solve")
    change = mg.Register("change", initial=1.0)
    with program.repeat(until=change < 1e-15, limit=4000):
        getattr(relaxation, order)(program, u, into=change)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        assert engine.run(program).reason == "converged"
        assert np.abs(engine.gather(u) - exact).max() < 1e-13


@pytest.mark.parametrize(("order", "power"), [("jacobi", 1), ("red_black", 2), ("lexicographic", 2)])
def test_convergence_factors(order: str, power: int) -> None:
    n = 32
    grid = mg.Grid((n - 1, n - 1))
    wave = np.sin(np.pi * np.arange(1, n) / n)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))
    program = mg.Program("step")
    change = getattr(relaxation, order)(program, u)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, np.multiply.outer(wave, wave))
        engine.run(program, 200)
        first = engine.read(change)
        engine.run(program, 10)
        factor = (engine.read(change) / first) ** 0.1
    assert factor == pytest.approx(np.cos(np.pi / n) ** power, rel=1e-6)


def test_over_relaxation_at_the_best_weight_is_an_order_of_magnitude_faster() -> None:
    grid, u, exact = plate(32)
    weight = relaxation.best_weight(grid)
    assert weight == pytest.approx(2 / (1 + np.sin(np.pi / 32)), rel=1e-14)
    program = mg.Program("step")
    relaxation.red_black(program, u, weight=weight)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.run(program, 200)  # Gauss-Seidel leaves 0.99037 ** 200, about a seventh
        assert np.abs(engine.gather(u) - exact).max() < 1e-12


@pytest.mark.few(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("weight", [1.0, 0.8])
def test_a_source_and_unequal_spacings(order: str, weight: float) -> None:
    """A quadratic is exact for second differences: Laplace(x^2 + 3 y^2) = 8."""
    grid = mg.Grid((7, 9), spacing=(0.25, 0.5))
    y, x = 0.25 * np.arange(-1, 8)[:, None], 0.5 * np.arange(-1, 10)[None, :]
    exact = x**2 + 3 * y**2
    u = mg.Field(
        "u",
        grid,
        slots=2,
        boundary={
            "y": (mg.fixed(exact[0, 1:-1]), mg.fixed(exact[-1, 1:-1])),
            "x": (mg.fixed(exact[1:-1, 0]), mg.fixed(exact[1:-1, -1])),
        },
    )
    f = mg.Field("f", grid)
    program = mg.Program("step")
    getattr(relaxation, order)(program, u, f, weight=weight)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(f, 8.0)
        engine.run(program, 1500)
        assert np.abs(engine.gather(u) - exact[1:-1, 1:-1]).max() < 1e-12


@pytest.mark.parametrize(
    ("order", "ranks", "cut"),
    thinned(
        [(order, *way) for order in ORDERS for way in ((2, slabs), (3, slabs), (4, best_cartesian))],
        *((order, 3, slabs) for order in ORDERS), ("jacobi", 4, best_cartesian),
    ),
)  # fmt: skip
def test_the_same_bits_on_all_layouts(order: str, ranks: int, cut: Callable[..., Layout]) -> None:
    grid, u, _ = plate(24)
    program = mg.Program("step")
    getattr(relaxation, order)(program, u)

    def work(comm: mg.SerialComm) -> np.ndarray | None:
        with mg.Engine(cut(grid.box, comm.size, granule=1), grid=grid, comm=comm) as engine:
            engine.run(program, 7)
            return engine.gather(u)

    assert run_virtual(ranks, work)[0].tobytes() == run_virtual(1, work)[0].tobytes()


def test_mistakes_are_named() -> None:
    program = mg.Program("step")
    one_slot = mg.Field("u", mg.Grid((4, 4)), boundary=mg.fixed(0.0))
    with pytest.raises(mg.ProgramError, match="'u' has one slot"):
        relaxation.jacobi(program, one_slot)
    stretched = mg.Field("v", mg.Grid((4, 3), spacing=[1.0, [1.0, 2.0, 3.0]]), boundary=mg.fixed(0.0))
    with pytest.raises(mg.ProgramError, match="'x', whose cells have different widths"):
        relaxation.red_black(program, stretched)
    whole = mg.Field("w", mg.Grid((4, 4)), "i4", boundary=mg.fixed(0))
    with pytest.raises(mg.ProgramError, match="'w' of dtype i4"):
        relaxation.lexicographic(program, whole)
