"""Adjoints and tangents of kernels that store 0 for tiny numbers do the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from adjoint_problems import Problem
from minga.lang.expr import flushed


def _diffusion(flushes: bool) -> tuple[Problem, mg.Field]:
    @mg.kernel
    def diffuse(u: Any, new: Any) -> None:
        after = u[0] + 0.1 * (u[1] - 2.0 * u[0] + u[-1])
        new[0] = flushed(after) if flushes else after

    u = mg.Field("u", mg.Grid((19,)), slots=2, boundary=mg.neumann(0.0))
    step = mg.Program("diffusion")
    step.apply(diffuse, u, u.next)
    step.rotate(u)
    return Problem(step, [u], u), u


@pytest.mark.parametrize("power", [0, -961])
def test_gradients_are_those_without_flushing_or_zero(power: int) -> None:
    problem, u = _diffusion(True)
    plain, of = _diffusion(False)
    problem.weights = plain.weights = plain.weights * 2.0**power
    found, expected = problem.gradient([u])[u, 0], plain.gradient([of])[of, 0]
    assert np.abs(expected).min() > 0.0
    if power == 0:
        assert found.tobytes() == expected.tobytes()
    else:  # a step flushes what it gets, and adds to it
        assert np.count_nonzero(found) < found.size
        assert all(one == 0.0 or abs(one) >= 2.0**-960 for one in found)


@pytest.mark.parametrize("power", [0, -961])
def test_tangents_are_those_without_flushing_or_zero(power: int) -> None:
    problem, u = _diffusion(True)
    plain, of = _diffusion(False)
    problem.steps = plain.steps = 1
    direction = np.linspace(0.5, 3.0, 19) * 2.0**power
    expected = plain.tangent({(of, 0): direction})
    kept = np.abs(expected) >= 2.0**-960
    assert kept.all() if power == 0 else 0 < np.count_nonzero(kept) < 19
    assert problem.tangent({(u, 0): direction}).tobytes() == np.where(kept, expected, 0.0).tobytes()
