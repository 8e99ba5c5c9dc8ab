"""Peaks of voltammograms: those of the record, and those of theory."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.load import load_model
from minga.case.settings import GridSettings

FARADAY, THERMAL = 96485.33212, 8.314462618 * 298.15

pytestmark = pytest.mark.slow


def couple(**said: Any) -> Any:
    """The shipped example, observed after each step."""
    table = tomllib.loads(examples()["couple"].read_text())
    table["electrodeposition"] |= said
    model = load_model("electrodeposition", table, GridSettings(**table["grid"]), Path())
    return mg.run(model, model.steps, observe=1)


def test_the_peaks_of_a_reversible_couple() -> None:
    """Compare peaks with the largest recorded currents and with theory: 28.49 mV from the half-wave potential."""
    seen = couple()
    potential, current = (np.asarray(seen[name])[5:] for name in ("cathode_potential", "current_cathode"))
    found, heights = (np.asarray(seen[name])[-1] for name in ("peak_potential", "peak_current"))
    for ramp, at in enumerate((current.argmax(), current.argmin())):
        assert found[ramp] == pytest.approx(potential[at], abs=1.1e-3)
        assert heights[ramp] == pytest.approx(current[at], rel=1e-3)
    half = 0.5 * THERMAL / FARADAY * math.log(0.719 / 0.604)
    assert found[0] - half == pytest.approx(-0.02849, abs=3e-4)
    unit = FARADAY * 5.0 * math.sqrt(0.604e-9 * FARADAY * 0.05 / THERMAL)
    assert heights[0] / unit == pytest.approx(0.4463, rel=5e-3)
    assert np.asarray(seen["peak_separation"])[-1] == pytest.approx(found[1] - found[0], rel=1e-12)
    assert found[1] - found[0] == pytest.approx(0.0577, abs=5e-4)


def test_a_ramp_without_a_maximum_has_no_peak() -> None:
    seen = couple(program=[{"ramp": ["0.4 V", "0.05 V"], "rate": "50 mV/s"}])
    assert np.isnan(np.asarray(seen["peak_potential"])).all()
    assert np.isnan(np.asarray(seen["peak_current"])).all()
