"""The phase field of electrodeposition, against its sharp interface: a flat front, waves on it, and conservation."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples

Array = np.ndarray[Any, Any]

CASE = tomllib.loads(examples()["phase-field"].read_text())["pde"]
ETA = CASE["parameters"]["eta"]
FORTH, BACK = math.exp(-ETA / 2), math.exp(ETA / 2)


def history_of(
    grid: mg.Grid, numbers: dict[str, float], height: Array, bath: Array, end: float, every: float, **options: Any
) -> Any:
    """The run of the example's equations from a front, given the height of cells above it, and the ions in the bath."""
    parameters = {**CASE["parameters"], **numbers}
    xi = 0.5 * (1.0 - np.tanh(height / (2.0 * parameters["l"])))
    u = (1.0 - parameters["r"] * xi) * bath + parameters["m"] * xi
    model = mg.pde(
        CASE["equations"], grid, parameters=parameters, initial={"xi": xi, "u": u}, integrator="ssprk3", **options
    )
    return mg.run(model, until=end, every=every)


def sharp_advance(numbers: dict[str, float], start: float, length: float, end: float, cells: int) -> float:
    """Advance of a sharp flat front into a closed bath, by finite volumes that shrink with it (Heun's method)."""
    k, m = numbers["k"], numbers["m"]
    edges = np.arange(cells + 1) / cells

    def rates(front: float, c: Array) -> tuple[float, Array]:
        width = (length - front) / cells
        # (m - c_e) v = (c_0 - c_e) / (width / 2) with v = k (c_e forth - back) is quadratic in the edge's c_e.
        a, b = k * FORTH, 2.0 / width
        half = 0.5 * (m * a + k * BACK + b) / a
        edge = half - math.sqrt(half * half - (m * k * BACK + b * c[0]) / a)
        speed = k * (edge * FORTH - BACK)
        moving = speed * (1.0 - edges)
        values = np.concatenate([[edge], 0.5 * (c[1:] + c[:-1]), [c[-1]]])
        slopes = np.concatenate([[(c[0] - edge) * b], np.diff(c) / width, [0.0]])
        return speed, (np.diff(slopes + moving * values) + c * speed / cells) / width

    front, c, time = start, np.ones(cells), 0.0
    while time < end * (1.0 - 1e-12):
        dt = min(0.4 * ((length - front) / cells) ** 2, end - time)
        speed, slope = rates(front, c)
        again, then = rates(front + dt * speed, c + dt * slope)
        front, c, time = front + 0.5 * dt * (speed + again), c + 0.5 * dt * (slope + then), time + dt
    return front - start


FLAT = {"k": 0.05, "m": 5.0, "M": 1.0}


@pytest.mark.slow
def test_a_flat_front_advances_like_a_sharp_one_to_the_square_of_its_thickness() -> None:
    coarse, fine = (sharp_advance(FLAT, 4.0, 20.0, 20.0, cells) for cells in (40, 80))
    expected = fine + (fine - coarse) / 3.0
    errors = []
    for thickness in (0.5, 0.25, 0.125):
        grid = mg.Grid((round(40 / thickness),), ("y",), spacing=thickness / 2.0)
        seen = history_of(
            grid, {**FLAT, "l": thickness, "r": 0.9999}, grid.centres("y") - 4.0, np.ones(grid.shape), 20.0, 20.0,
            boundary=mg.neumann(0.0), dt=0.075 * thickness**2,
        )  # fmt: skip
        advance = float((seen.xi[-1] - seen.xi[0]).sum()) * thickness / 2.0
        errors.append(abs(advance / expected - 1.0))
        assert np.ptp(seen.integral_u.values) < 1e-10 * float(seen.integral_u[0])
    assert errors[0] < 0.05
    assert errors[2] < 0.003
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


def rate_of_wave(numbers: dict[str, float], wave: float, reach: float) -> float:
    """Growth rate of a wave on a sharp front whose bath is `reach` away, where diffusion is much faster than it."""
    k, m, surface = numbers["k"], numbers["m"], numbers["M"]
    a = k * FORTH
    edge = 0.5
    for _ in range(50):
        speed = a * edge - k * BACK
        edge -= (edge - 1.0 + (m - edge) * speed * reach) / (1.0 + reach * ((m - edge) * a - speed))
    speed = a * edge - k * BACK
    gradient, spread = (1.0 - edge) / reach, speed - wave / math.tanh(wave * reach)
    return (a * gradient - surface * wave * wave - a * speed * gradient / spread) / (1.0 - a * (m - edge) / spread)


def error_of_wave(waves: int, surface: float, thickness: float) -> float:
    """Difference of a wave's growth rate from linear theory, relative to the rate without surface energy."""
    wide, high, start, side = 32.0, 40.0, 8.0, thickness / 1.5
    numbers = {"k": 0.15, "m": 40.0, "M": surface, "l": thickness, "r": 0.9999}
    wave = 2.0 * math.pi * waves / wide
    grid = mg.Grid((round(high / side), round(wide / side)), ("y", "x"), spacing=side, periodic=(False, True))
    y, x = grid.centres("y")[:, None], grid.centres("x")
    seen = history_of(
        grid, numbers, y - start - 0.1 * np.cos(wave * x),
        np.maximum(y - start, 0.0) / (high - start) + 0.0 * x, 1000.0, 200.0,
        boundary={"u": {"y": (mg.neumann(0.0), mg.dirichlet(1.0))}}, dt=0.04 * side,
    )  # fmt: skip
    tops = seen.xi.values.sum(axis=1)[1:] * side
    heights = 2.0 * (tops * np.cos(wave * x)).mean(axis=1)
    expected = float(np.mean([rate_of_wave(numbers, wave, high - top) for top in tops.mean(axis=1)]))
    found = math.log(heights[-1] / heights[0]) / 800.0
    return (found - expected) / rate_of_wave({**numbers, "M": 0.0}, wave, high - start)


@pytest.mark.slow
@pytest.mark.parametrize(("waves", "surface"), [(1, 0.3), (2, 0.3), (1, 1.2)])
def test_waves_on_a_front_grow_and_shrink_as_linear_theory_says(waves: int, surface: float) -> None:
    """The first one grows, the others shrink; a front that is half as thick is closer to the sharp one.

    Linear theory takes the concentrations to be steady, which costs it 1 or 2 % here.
    """
    coarse, fine = (error_of_wave(waves, surface, thickness) for thickness in (1.0, 0.5))
    assert abs(coarse) < 0.12
    assert abs(fine) < max(0.5 * abs(coarse), 0.02)
