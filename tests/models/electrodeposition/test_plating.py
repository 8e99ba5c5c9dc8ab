"""Quantities of plating: thickness by Faraday's law, and notes on pulses and ion pairs that a run leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minga.case.load import read_settings
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.electrodeposition.case import problem_of
from minga.models.electrodeposition.preflight import notes_of

from .test_programs import model_of, run

FARADAY = 96485.33212
COPPER = 63.55e-3 / 8960
HYDROGEN = {"exchange": "2e-3 A/m2", "equilibrium": "-0.3 V", "tafel": True, "reference": 1000.0}
TIME = {"every": "1 s", "first": "10 ms", "tolerance": 1e-2}


def notes_for(**said: Any) -> list[tuple[str, str]]:
    table = {"electrolyte": "CuSO4", "concentration": "0.1 M", "length": "1 mm", "time": {"end": "1 s"}, **said}
    settings = read_settings("electrodeposition", table)
    return list(notes_of(problem_of(settings, GridSettings(shape=(12,)), Path())))


@pytest.mark.slow
def test_the_thickness_is_that_of_the_charge_that_deposits_copper() -> None:
    seen = run(
        (24,), cathode={"Cu": "reversible", "H": HYDROGEN}, time=TIME, acid="H2SO4", acid_concentration="1 M",
        stretched={"y": {"geometric": 1.2}}, reference="1 um", program=[{"hold": "500 A/m2", "time": "3 s"}],
    ).observables  # fmt: skip
    assert seen["charge_efficiency"] < 0.9
    assert seen["thickness"] == pytest.approx(seen["charge_of_Cu"] * COPPER / (2 * FARADAY), rel=1e-12)


@pytest.mark.slow
def test_a_reversed_pulse_takes_thickness_away() -> None:
    program = [{"hold": "20 A/m2", "time": "1 s"}, {"hold": "-20 A/m2", "time": "0.5 s"}]
    seen = run((12,), program=program).observables
    assert seen["thickness"] == pytest.approx(10.0 * COPPER / (2 * FARADAY), rel=1e-4)


def test_a_metal_of_unknown_density_has_no_thickness() -> None:
    ions = [
        {"name": "Cd", "charge": 2, "diffusivity": 0.719e-9, "bulk": 100.0},
        {"name": "SO4", "charge": -2, "diffusivity": 1.07e-9, "bulk": 100.0},
    ]
    said: dict[str, Any] = {"electrolyte": None, "concentration": None, "species": ions}
    assert "thickness" not in model_of(program=[{"hold": "20 A/m2", "time": "1 s"}], **said).observables


@pytest.mark.slow
def test_steps_after_the_edges_of_pulses_converge() -> None:
    """The current jumps between 0 and 66 times that of exchange; without a limit of a pass eight attempts were lost."""
    seen = run(
        (40,), acid="H2SO4", acid_concentration="1 M", length="100 um", anode="bath",
        stretched={"y": {"geometric": 1.1, "at": "low"}}, cathode={"Cu": {"exchange": 30.0}, "H": HYDROGEN},
        program=[{"pulse": "20 A/dm2", "on": "10 ms", "off": "90 ms", "times": 3}],
        time={"every": "2 ms", "first": "1 ms"},
    ).observables  # fmt: skip
    assert seen["rejected_unconverged"] == 0
    assert seen["charge"] == pytest.approx(60.0, rel=1e-6)


@pytest.mark.parametrize(("every", "warned"), [("100 ms", True), ("1 ms", False)])
def test_observations_that_miss_pulses_are_announced(every: str, warned: bool) -> None:
    pulses = [{"pulse": "50 A/m2", "on": "10 ms", "off": "90 ms", "times": 10}]
    texts = [text for name, text in notes_for(program=pulses, time={"every": every}) if name == "warning"]
    assert any("do not show segments of 10 ms" in text for text in texts) == warned


def test_pulses_shorter_than_the_steps_that_are_allowed_are_refused_before_the_run() -> None:
    pulses = [{"pulse": "50 A/m2", "on": "1 us", "off": "1 us", "times": 1000000}]
    with pytest.raises(CaseError) as failed:
        model_of(program=pulses, time={"every": "0.1 s"})
    assert failed.value.key == "electrodeposition.time.every"
    assert "1e+05 in each interval of 0.1 s, which may have 10,000 time steps" in str(failed.value)
    assert "0.001 s or less" in str(failed.value.remedy)
    model_of(program=pulses, time={"every": "1 ms"})
    with pytest.raises(CaseError, match=r"100 corners in 0\.001 s"):
        model_of(
            program=[{"sine": "0 V", "amplitude": "1 mV", "frequency": "1 kHz", "times": 1000}], time={"every": "1 s"}
        )
    model_of(program=[{"sine": "0 V", "amplitude": "1 mV", "frequency": "1 kHz"}], time={"every": "1 s"})


def test_pairs_above_the_known_concentration_are_announced() -> None:
    assert not any("the most they are known for" in text for _, text in notes_for(voltage=0.1))
    text = dict(notes_for(voltage=0.1, concentration="1 M"))["ion pairs"]
    assert "60 % of the metal at 497 mol/m3, the most they are known for" in text
    assert "more than 5.4 times too low" in text


def test_a_scaled_case_has_numbers_without_units() -> None:
    ions = [
        {"name": "cation", "charge": 1, "diffusivity": 1.0, "bulk": 1.0},
        {"name": "anion", "charge": -1, "diffusivity": 1.0, "bulk": 1.0},
    ]
    model = model_of(
        electrolyte=None, concentration=None, species=ions, scaled=True, debye=0.05, length=1.0, voltage=1.0,
        time={"end": 0.1},
    )  # fmt: skip
    assert model.units["current"] == ("1", "current density from the anode, over the cathode's plane")
    assert {unit for unit, _ in model.units.values()} == {"1"}
    assert model_of(voltage=0.1, time={"end": "1 s"}).units["current"][0] == "A/m2"
