"""Amplitudes of sources between cells beside a jump of the density: the ratio that is told is that of the waves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import Medium, PointSource, Receivers, Ricker, Shot, Sponge, prepare, shot_traces
from minga.models.waves.source_density import amplitude_ratio, density_warnings

H, CELLS, JUMP = 5.0, 200, 100
SPEED = 2000.0
RICKER = Ricker(5.0)


def waves(jump: float = 3.0) -> Any:
    """1000 kg/m3 above the jump, halfway between cells, and `jump` times as much below; the impedance is the same."""
    below = np.arange(CELLS) >= JUMP
    medium = Medium(np.where(below, SPEED / jump, SPEED), rho=np.where(below, 1000.0 * jump, 1000.0))
    return prepare((CELLS,), H, dt=5e-4, medium=medium, boundary=Sponge(20), dtype="f8")


def largest(place: float) -> float:
    """The largest p above the jump."""
    shot = Shot([PointSource((place * H,), RICKER)], Receivers([(40 * H,)]))
    return float(np.abs(shot_traces(waves(), shot, 1400)).max())


@pytest.mark.parametrize("away", [-0.75, -0.25, 0.25, 0.75])
def test_the_ratio_is_that_of_the_waves(away: float) -> None:
    """On a cell of the same side amplitudes are right; without reflections, the place there has no effect."""
    place = JUMP - 0.5 + away
    on_cell = JUMP - 1 if away < 0 else JUMP
    expected = largest(place) / largest(on_cell)
    ratio = amplitude_ratio(PointSource((place * H,), RICKER), waves().sampler, waves().domain)
    assert ratio == pytest.approx(expected, rel=0.01)
    assert abs(ratio - 1) > 0.02


def test_models_and_cases_tell_it() -> None:
    below = np.arange(CELLS) >= JUMP
    medium = Medium(np.full(CELLS, SPEED), rho=np.where(below, 3000.0, 1000.0))

    def told(place: float) -> tuple[str, ...]:
        source = PointSource((place * H,), RICKER)
        return mg.fletcher((CELLS,), H, dt=5e-4, medium=medium, boundary=Sponge(20), sources=[source]).warnings

    (text,) = told(JUMP - 0.25)
    assert "the source at [498.75] lies between cells beside a change of density" in text
    assert "too large: put it on a cell, [500]" in text
    assert told(JUMP) == told(JUMP - 20.25) == ()
    legacy = PointSource(((JUMP - 0.25) * H,), RICKER, injection="legacy")  # its amplitude is not that of a mass
    assert list(density_warnings([legacy], waves().sampler, waves().domain)) == []
