"""Automata of floats: Laplace's equation by relaxation against the exact discrete solution, Gray-Scott's sums.

On (N + 1)² nodes with zero on three sides and sin(pi i / N) on the fourth the discrete equation is solved by
sin(pi i / N) sinh(alpha j) / sinh(alpha N) with cosh(alpha) = 2 - cos(pi / N).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.load import python_case
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.lang.expr import Node
from minga.lang.rule_context import RuleContext
from model_runs import run_model

from .watching import watch


@mg.rule(dtype="f8", neighbourhood=mg.von_neumann(1))
def relax(cell: Node, near: RuleContext) -> Node:
    return 0.25 * near.sum()


def shipped_laplace(n: int) -> Model:
    """The example `laplace` on the (n - 1)² nodes between the walls."""
    return python_case(examples()["laplace"]).model(GridSettings(shape=(n - 1, n - 1)), {})


def solution(n: int) -> np.ndarray:
    nodes = np.arange(n + 1)
    alpha = math.acosh(2 - math.cos(math.pi / n))
    return np.outer(np.sinh(alpha * nodes) / math.sinh(alpha * n), np.sin(math.pi * nodes / n))


def test_the_exact_discrete_solution() -> None:
    exact = solution(64)
    assert exact[32, 32] == pytest.approx(0.19932604163761847, rel=1e-13)
    assert exact[32, 32] == pytest.approx(math.sinh(math.pi / 2) / math.sinh(math.pi), abs=6e-5)
    mean = 0.25 * (exact[:-2, 1:-1] + exact[2:, 1:-1] + exact[1:-1, :-2] + exact[1:-1, 2:])
    assert np.abs(mean - exact[1:-1, 1:-1]).max() <= 2.3e-16


def test_jacobi_from_zero() -> None:
    exact = solution(64)[1:-1, 1:-1]
    known = {1: 0.90613999, 10: 0.75495809, 100: 0.46598301, 1000: 0.09803447}
    for steps, error in known.items():
        u = run_model(shipped_laplace(64), steps).fields["u"]
        assert np.abs(u - exact).max() == pytest.approx(error, abs=5e-9)
    assert u[31, 31] == pytest.approx(0.1044335012367408, rel=1e-13)


def test_jacobi_reaches_a_millionth_at_the_known_step() -> None:
    exact = solution(64)[1:-1, 1:-1]
    errors = [np.abs(run_model(shipped_laplace(64), steps).fields["u"] - exact).max() for steps in (10_512, 10_513)]
    assert errors[1] < 1e-6 <= errors[0]


@pytest.mark.parametrize(("n", "factor"), [(32, 0.995184727), (64, 0.998795456), (128, 0.999698819)])
def test_a_mode_decays_by_its_factor(n: int, factor: float) -> None:
    """sin sin between walls at zero is multiplied by cos(pi / n) a step, exactly but for rounding."""
    assert math.cos(math.pi / n) == pytest.approx(factor, abs=5e-10)
    wave = np.sin(math.pi * np.arange(1, n) / n)
    mode = np.outer(wave, wave)
    # Walls lie on nodes: cells beyond the edge are fixed at 0.
    model = mg.automaton(relax, mode.shape, init=mode, boundary="fixed")
    left = run_model(model, 200).cell
    assert np.allclose(left, math.cos(math.pi / n) ** 200 * mode, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n", [8, 12, 16])
def test_one_hot_side_warms_the_centre_to_a_quarter(n: int) -> None:
    """By symmetry: four such problems, each with another hot side, add up to a plate that is hot all over."""
    model = mg.automaton(relax, (n - 1, n - 1), init={"fill": 0.0}, boundary=[["fixed", ["fixed", 1.0]], "fixed"])
    warm = run_model(model, 40 * n * n).cell
    assert warm[n // 2 - 1, n // 2 - 1] == pytest.approx(0.25, abs=1e-14)


def test_gray_scott_sums() -> None:
    """64 x 64 cells, Euler steps of 1; Du = 0.16, Dv = 0.08, F = 0.035, k = 0.065, a square of 8 x 8 to start with."""
    rules = examples()["gray-scott"].parent / "rules"
    model = mg.automaton(
        f"{rules / 'gray_scott.py'}:gray_scott",
        (64, 64),
        init=f"{rules / 'gray_scott.py'}:square",
        parameters={"Du": 0.16, "Dv": 0.08, "feed": 0.035, "kill": 0.065},
    )
    known = {1: (4063.12, 16.4), 10: (4055.094670618, 19.771846245), 100: (4017.191710345, 27.084669065)}
    for seen, (u, v) in zip(watch(model, known).values(), known.values(), strict=True):
        assert seen["u_sum"] == pytest.approx(u, rel=1e-9)
        assert seen["v_sum"] == pytest.approx(v, rel=1e-9)
