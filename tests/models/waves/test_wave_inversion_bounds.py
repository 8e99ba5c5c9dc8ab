"""Cells at active bounds, and masks between 0 and 1, in both methods of inversion."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from minga.engine.comm import SerialComm
from minga.models.waves import Shot, shot_traces
from minga.models.waves.gauss_newton import gauss_newton
from minga.models.waves.inversion import Inversion
from minga.models.waves.inversion_search import Search, _Lbfgs
from wave_inverse import START, X, Z, inversion, shots, waves_of

MASK = 0.5 + 0.5 * np.sin(0.7 * Z + 0.9 * X) ** 2 * (Z > 2)


@functools.cache
def two_bodies() -> tuple[Shot, ...]:
    """Shots over a fast body and a slow one, which is outside the bounds."""
    fast, slow = (np.exp(-((Z - 8) ** 2 + (X - column) ** 2) / 8) for column in (11, 4))
    true = {"vp": START + 80 * fast - 80 * slow}
    return tuple(Shot(s.sources, s.receivers, shot_traces(waves_of(true, s), s, 80)) for s in shots())


def search_of(given: Inversion) -> Search:
    return Search(given, {"vp": START}, 1, None, None, SerialComm())


@pytest.mark.slow
def test_gauss_newton_does_not_stall_at_bounds() -> None:
    """It did after one iteration, at 0.90 of the first misfit; L-BFGS reaches 0.68 after 6."""
    given = inversion(shots=two_bodies(), bounds={"vp": (START, START + 100)}, method="gauss-newton", inner=6)
    found = given.run({"vp": START}, 3)
    assert found.iteration == 3
    assert found.misfits[3] < 0.68 * found.misfits[0]
    values = found.values["vp"]
    assert (values >= START).all()
    assert (values <= START + 100).all()
    assert (values == START).any()
    assert (values != START).any()


def test_cells_that_cannot_leave_their_bounds_end_gauss_newton() -> None:
    given = inversion(method="gauss-newton", inner=1)
    _, slopes = given.gradient({"vp": START})
    fixed = inversion(
        method="gauss-newton", inner=1,
        bounds={"vp": (np.where(slopes["vp"] > 0, START, 0.0), np.where(slopes["vp"] > 0, 9999.0, START))},
    )  # fmt: skip
    assert gauss_newton(search_of(fixed)) == "the gradient is 0"


def test_the_gradient_of_scaled_variables_is_that_of_their_misfit() -> None:
    """Central differences along a random direction, with a mask between 0 and 1 and cells that are fixed."""
    mask = np.where(X < 3, 0.0, MASK)
    run = _Lbfgs(search_of(inversion(mask=mask)))
    direction = np.random.default_rng(3).standard_normal(START.size)
    _, slopes = run.evaluated(np.zeros(START.size))
    step = 1e-6
    ahead, behind = (run.evaluated(sign * step * direction)[0] for sign in (1, -1))
    assert (ahead - behind) / (2 * step) == pytest.approx(float(slopes @ direction), rel=1e-5)
    assert not slopes.reshape(START.shape)[:, :3].any()


@pytest.mark.parametrize("options", [{}, {"method": "gauss-newton", "inner": 1}])
def test_the_first_change_is_along_the_gradient_times_the_square_of_the_mask(options: dict[str, Any]) -> None:
    given = inversion(mask=MASK, **options)
    _, slopes = given.gradient({"vp": START})
    change = given.run({"vp": START}, 1).values["vp"] - START
    expected = -slopes["vp"] * MASK * MASK
    cosine = float((change * expected).sum() / (np.linalg.norm(change) * np.linalg.norm(expected)))
    assert cosine == pytest.approx(1.0, abs=1e-9)
