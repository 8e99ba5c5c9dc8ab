"""Programs against closed formulas for an excess of acid: Cottrell, Sand, Berzins and Delahay, pulses in a layer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.schema import validate

from .evidence import Evidence

FARADAY, THERMAL, DIFFUSIVITY = 96485.33212, 8.314462618 * 298.15, 0.733e-9
BATH = {
    "electrolyte": "CuSO4", "concentration": "10 mM", "acid": "H2SO4", "acid_concentration": "2 M", "length": "2 mm",
    "stretched": {"y": {"geometric": 1.15}},
}  # fmt: skip

pytestmark = pytest.mark.slow


def observed(cells: int, **said: Any) -> Any:
    """A run observed after each step."""
    grid = validate(GridSettings, {"shape": [cells]}, "grid")
    model = load_model("electrodeposition", {"electrodeposition": {**BATH, **said}}, grid, Path())
    return mg.run(model, model.steps, observe=1)


def test_a_held_electrode_follows_cottrell(evidence: Evidence) -> None:
    seen = observed(
        60, cathode="sink", program=[{"hold": "0.1 V", "time": "1 s"}],
        time={"every": "0.1 s", "tolerance": 1e-4, "first": "0.1 ms"},
    )  # fmt: skip
    exact = 2 * FARADAY * 10.0 * math.sqrt(DIFFUSIVITY / math.pi)
    assert exact == pytest.approx(29.476, rel=1e-4)
    # The little copper that migrates adds its transference number, 0.2 %.
    evidence.relative("protocols", "A/m2, Cottrell: copper in acid after 1 s", seen["current"][-1], exact, 3e-3)
    assert float(seen["charge"][-1]) == pytest.approx(2 * exact, rel=3e-3)


def test_a_given_current_ends_at_sands_time(evidence: Evidence) -> None:
    seen = observed(
        60, concentration="0.1 M", acid_concentration="4 M", cutoff="5 V",
        program=[{"hold": "50 A/m2", "until": {"voltage": "0.4 V"}}],
        time={"end": "200 s", "every": "10 s", "tolerance": 1e-4, "first": "0.05 s"},
    )  # fmt: skip
    lasted = float(seen["charge"][-1]) / 50.0
    share = 4 * 0.733 * 0.1 / (4 * 0.733 * 0.1 + 9.31 * 8.0 + 4 * 1.07 * 4.1)
    exact = 85.75
    evidence.relative(
        "protocols", "s, Sand: copper in acid, of which migration carries 0.3 %", lasted, exact / (1 - share) ** 2, 5e-3
    )
    assert lasted == pytest.approx(exact, rel=1e-2)
    # The voltage rises without bound: in the shortest step, 5 ns, by some 10 uV.
    assert float(seen["voltage"][-1]) == pytest.approx(0.4, rel=1e-4)
    assert seen.attrs["ended"].startswith("the program is complete at t = 86.4")


@pytest.mark.parametrize("rate", [12.5, 50.0])
def test_a_sweep_has_the_peak_of_berzins_and_delahay(rate: float, evidence: Evidence) -> None:
    """It grows with the root of the rate."""
    seen = observed(
        80, reference="1 mm", program=[{"ramp": ["0 V", "-0.05 V"], "rate": f"{rate} mV/s"}],
        time={"every": f"{0.5 / rate} s", "tolerance": 3e-4},
    )  # fmt: skip
    current, potential = np.asarray(seen["current"]), np.asarray(seen["cathode_potential"])
    beta = 2 * FARADAY / THERMAL
    exact = 0.610503 * 2 * FARADAY * 10.0 * math.sqrt(DIFFUSIVITY * beta * rate / 1e3)
    what = f"peak of Berzins and Delahay, copper, {rate:g} mV/s"
    evidence.relative("protocols", f"A/m2, {what}", current.max(), exact, 7e-3)
    evidence.absolute("protocols", f"mV, {what}", 1e3 * potential[current.argmax()], -21.942 / 2, 0.7)


def in_a_layer(period: float, duty: float, pulses: int) -> tuple[float, float]:
    """Concentrations at the wall at the end of the last pulse and of the pause after it, in units of the bath's.

    Currents are in units of the limiting one, times in delta^2/D; sums over the modes of the layer.
    """
    decay = ((np.arange(200_000) + 0.5) * math.pi) ** 2
    on = 2 / decay * -np.expm1(-decay * duty * period) * np.expm1(-decay * period * pulses) / np.expm1(-decay * period)
    return 1 - float(on.sum()), 1 - float((on * np.exp(-decay * (1 - duty) * period)).sum())


def test_pulses_in_a_layer(evidence: Evidence) -> None:
    """The middle between equal electrodes keeps its concentration and ends the layers of both."""
    assert in_a_layer(0.01, 0.5, 10**6) == pytest.approx((0.469672, 0.530328), abs=3e-6)
    layer, duty, period = 1e-4, 0.5, 0.1
    limit, unit = 2 * FARADAY * DIFFUSIVITY * 10.0 / layer, layer**2 / DIFFUSIVITY
    on, off = f"{duty * period * unit} s", f"{(1 - duty) * period * unit} s"
    common = {"length": f"{2 * layer} m", "reference": f"{layer} m", "time": {"every": on, "tolerance": 3e-5}}
    for pulses in (1, 4):
        found = observed(
            40, program=[{"pulse": f"{limit} A/m2", "on": on, "off": off, "times": pulses}], **common
        )  # fmt: skip
        walls = np.exp(2 * FARADAY / THERMAL * np.asarray(found["cathode_potential"]))
        for name, wall, exact in zip(("pulse", "rest"), walls[-2:], in_a_layer(period, duty, pulses), strict=True):
            what = f"c / c0 at the wall, Nernst layer, end of {name} {pulses}"
            evidence.relative("protocols", what, wall, exact, 6e-3)
        assert np.asarray(found["segment"])[-2:].tolist() == [2, 2]
        assert float(found["charge"][-1]) == pytest.approx(pulses * duty * period * unit * limit, rel=5e-7)


def impedance(cells: int, frequencies: list[str], **said: Any) -> np.ndarray[Any, Any]:
    """Impedances in ohm m2, in so much acid that copper does not migrate: with 4 M it carries 1 % of the current."""
    part = {"impedance": "0 V", "amplitude": "1 mV", "frequencies": frequencies, "times": said.pop("times", 3)}
    common = {"concentration": "0.1 M", "acid_concentration": "16 M", "time": {"end": "150 s", "every": "150 s"}}
    seen = observed(cells, program=[part], **common, **said)
    assert np.asarray(seen["f"])[-1] == pytest.approx([float(text.split()[0]) for text in frequencies])
    real, imaginary = (np.asarray(seen[name])[-1] for name in ("Z_re", "Z_im"))
    assert np.asarray(seen["Z_size"])[-1] == pytest.approx(np.abs(real + 1j * imaginary))
    assert np.asarray(seen["Z_phase"])[-1] == pytest.approx(np.degrees(np.arctan2(imaginary, real)))
    return np.asarray(real + 1j * imaginary)


def same_impedance(evidence: Evidence, what: str, found: complex, exact: complex, within: float) -> None:
    evidence.absolute("protocols", f"relative error of Z, {what}", abs(found / exact - 1), 0.0, within)


def test_impedance_with_a_double_layer(evidence: Evidence) -> None:
    """Randles' circuit: kinetics and diffusion beside 0.2 F/m2."""
    for frequency, exact in ((100.0, 4.27587e-4 - 2.3737e-5j), (1e4, 1.42918e-5 - 7.6920e-5j)):
        found = impedance(
            80, [f"{frequency} Hz"], reference="1 um", times=4,
            cathode={"Cu": {"exchange": 30.0}, "capacity": "0.2 F/m2"},
        )  # fmt: skip
        same_impedance(evidence, f"Randles' circuit with 0.2 F/m2, {frequency:g} Hz", found[0], exact, 2e-3)


def test_impedance_of_kinetics_and_diffusion(evidence: Evidence) -> None:
    """RT/(n F i0) in series with Warburg's."""
    frequencies = 100.0, 1.0
    found = impedance(120, [f"{f} Hz" for f in frequencies], reference="1 um", cathode={"Cu": {"exchange": 30.0}})
    for frequency, one in zip(frequencies, found, strict=True):
        exact = 4.28210e-4 + 1.73868e-5 * (1 - 1j) / math.sqrt(2 * math.pi * frequency)
        what = f"kinetics and Warburg's impedance, {frequency:g} Hz"
        same_impedance(evidence, what, one, exact, 1e-3)
        evidence.relative("protocols", f"ohm m2, imaginary part of {what}", one.imag, exact.imag, 1e-2)


def test_impedance_of_a_finite_layer_at_its_top(evidence: Evidence) -> None:
    """tanh(s)/s with s^2 = i w delta^2/D; half a cell between equal electrodes is such a layer."""
    layer, concentration = 1e-4, 100.0
    frequency = 2.54065 * DIFFUSIVITY / layer**2 / (2 * math.pi)
    (found,) = impedance(
        60, [f"{frequency!r} Hz"], length=f"{2 * layer} m", reference=f"{layer} m", cathode="reversible", times=4
    )  # fmt: skip
    whole = THERMAL * layer / (4 * FARADAY**2 * DIFFUSIVITY * concentration)
    same_impedance(evidence, "a finite layer at the top of its arc", found, whole * (0.581634 - 0.417227j), 1e-2)
