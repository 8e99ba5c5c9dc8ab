"""Several reactions at one electrode: hydrogen beside copper, partial currents, and what they leave in the balance."""

from __future__ import annotations

import math
from typing import Any

import pytest

from minga.errors import CaseError

from .test_programs import model_of, run

FARADAY, THERMAL = 96485.33212, 8.314462618 * 298.15
ACID = {"acid": "H2SO4", "acid_concentration": "1 M", "stretched": {"y": {"geometric": 1.2}}, "reference": "1 um"}
HYDROGEN = {"exchange": "2e-3 A/m2", "equilibrium": "-0.3 V", "tafel": True, "reference": 1000.0}
TIME = {"every": "1 s", "first": "10 ms", "tolerance": 1e-2}


def beyond(**hydrogen: Any) -> Any:
    """Observed with five times the limiting current, most of which copper cannot carry."""
    return run(
        (24,), cathode={"Cu": "reversible", "H": {**HYDROGEN, **hydrogen}}, time=TIME, **ACID,
        program=[{"hold": "500 A/m2", "time": "3 s"}],
    ).observables  # fmt: skip


@pytest.mark.slow
def test_hydrogen_takes_what_copper_cannot_carry() -> None:
    seen = beyond()
    assert seen["current_of_Cu"] + seen["current_of_H"] == pytest.approx(seen["current"], rel=1e-6)
    assert 0.2 < seen["current_efficiency"] < 0.6 < seen["charge_efficiency"] < 0.9
    assert seen["current_efficiency"] == pytest.approx(seen["current_of_Cu"] / seen["current"], rel=1e-6)
    assert seen["charge_of_Cu"] + seen["charge_of_H"] == pytest.approx(1500.0, rel=2e-6)
    # Cathode's potential -0.8 V: a Tafel slope of 0.118 V, with about 2 M of H at the wall.
    expected = 2e-3 * 2.07 * math.exp(-0.5 * FARADAY / THERMAL * (seen["cathode_potential"] + 0.3))
    assert seen["current_of_H"] == pytest.approx(expected, rel=2e-2)


@pytest.mark.slow
def test_the_charge_of_an_ion_is_what_the_solution_loses() -> None:
    seen = beyond()
    lost = 2.0 - seen["total_H"]
    assert FARADAY * lost == pytest.approx(seen["charge_of_H"], rel=1e-9)
    assert seen["total_SO4"] == pytest.approx(1.1, rel=1e-12)


@pytest.mark.slow
def test_the_order_of_a_reaction() -> None:
    """A reaction of half the order in an ion of four times its reference is half as fast, 0.118 V * log10(2) later."""
    first, half = beyond(reference=500.0), beyond(reference=500.0, order=0.5)
    shift = 2 * THERMAL / FARADAY * math.log(math.sqrt(2.07 / 0.5))
    assert first["cathode_potential"] - half["cathode_potential"] == pytest.approx(shift, rel=2e-2)


@pytest.mark.slow
def test_a_rest_has_no_efficiency_of_its_current() -> None:
    """Copper dissolves as fast as hydrogen forms; before the first current not even the charge has an efficiency."""
    cathode = {"Cu": {"exchange": 30.0}, "H": HYDROGEN}
    seen = run((12,), cathode=cathode, time=TIME, **ACID, program=[{"rest": "1 s"}]).observables
    assert seen["current_of_H"] > 1e-6
    assert seen["current_of_Cu"] == pytest.approx(-seen["current_of_H"], rel=1e-2)
    assert math.isnan(seen["current_efficiency"])
    assert math.isnan(seen["charge_efficiency"])
    plated = [{"hold": "20 A/m2", "time": "1 s"}, {"rest": "1 s"}]
    seen = run((12,), cathode=cathode, time=TIME, **ACID, program=plated).observables
    assert math.isnan(seen["current_efficiency"])
    assert seen["charge_efficiency"] == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("entry", [{"tafel": True}, {"order": 2.0}])
def test_entries_of_kinetics_without_kinetics_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(CaseError, match="applies only to exchange"):
        model_of(cathode={"Cu": {"held": 1.0, **entry}}, voltage=0.1, time={"end": "1 s"})


@pytest.mark.slow
@pytest.mark.parametrize("cells", [10, 40])
@pytest.mark.parametrize(
    "reactions",
    [
        {"Cu": {"exchange": 30.0, "tafel": True}},
        {"Cu": {"exchange": 30.0, "order": 0.5}},
        {"Cu": {"exchange": 30.0}, "H": {"exchange": 1e-9, "tafel": True, "reference": 1000.0}},
    ],
)
def test_limiting_currents_include_the_half_cell_at_the_electrode(cells: int, reactions: dict[str, Any]) -> None:
    """4 F D c / L: acid and sulphate stay in the bath, so that copper keeps its mean c, and has 2 c at the anode."""
    seen = run(
        (cells,), concentration="10 mM", acid="H2SO4", acid_concentration="2 M", length="0.1 mm", anode="held",
        voltage=0.2, cathode=reactions, time={"end": "100 s", "every": "100 s", "tolerance": 1e-2},
    ).observables  # fmt: skip
    assert seen["current"] == pytest.approx(28.289, rel=5e-3)


def test_tafel_kinetics_are_for_the_cathode() -> None:
    with pytest.raises(CaseError, match="nothing would dissolve at the anode") as caught:
        model_of(anode={"Cu": {"exchange": 30.0, "tafel": True}}, voltage=0.1, time={"end": "1 s"})
    assert caught.value.key == "electrodeposition.anode.Cu.tafel"
