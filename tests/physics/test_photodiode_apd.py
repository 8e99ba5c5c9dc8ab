"""The avalanche photodiode in the dark and lit: equilibrium, currents without and with ionisation, gain, breakdown.

Currents without ionisation are those of DEVSIM 2.11.2 in extended precision on the same 364 nodes and of an independent
Newton solver, which agree in all 9 digits printed. Those with ionisation are the independent solver's. DEVSIM's differ
from them by up to 1.5e-5: its model of ionisation is exp(-b/(|E| + 1 V/cm)), so that no field divides by 0, and where
E is 3.5e5 V/cm and b 2.4e6 V/cm the extra volt makes 2e-5 of a coefficient.
"""

from __future__ import annotations

import numpy as np
import pytest

from minga.models.photodiode.solver.problem import Problem

from .evidence import Evidence
from .photodiodes import apd, assert_digits, digits, solved

SECTION = "photodiode: InP/InGaAsP/InGaAs"
BOTH = ("dark", "lit")
PLAIN = {  # J dark and lit, and the fields in the middle of Mult and Absorp when lit
    -1.0: ("-4.92094927e-08", "-4.92111901e-08", "-2.083135e4", "-1.357539e3"),
    -10.0: ("-1.04193407e-07", "-1.04196006e-07", "-1.006549e5", "-1.357539e3"),
    -20.0: ("-1.24881858e-07", "-1.24886238e-07", "-1.768185e5", "-1.357539e3"),
    -45.0: ("-1.67134228e-07", "-2.68412398e-07", "-3.330758e5", "-1.386277e3"),
    -50.0: ("-2.21859553e-06", "-2.10746161e-04", "-3.579814e5", "-5.182088e3"),
}
IONISING = {
    -45.0: ("-1.87807888e-07", "-3.06248807e-07"),
    -50.0: ("-2.88035272e-06", "-2.74891671e-04"),
    -60.0: ("-3.19735644e-05", "-4.16452470e-04"),
}
GAIN = {  # |J| lit and dark, M, and the sizes of the fields in Mult and Absorp
    -50.0: ("3.371e-4", "3.57e-6", "1.605", "3.582e5", "5.17e3"),
    -52.0: ("3.976e-4", "1.492e-5", "1.834", "3.672e5", "1.26e4"),
    -56.0: ("5.665e-4", "3.811e-5", "2.530", "3.849e5", "2.85e4"),
    -60.0: ("8.896e-4", "6.863e-5", "3.929", "4.024e5", "4.43e4"),
    -62.0: ("1.261e-3", "1.010e-4", "5.550", "4.112e5", "5.21e4"),
    -65.0: ("3.534e-3", "2.948e-4", "15.50", "4.243e5", "6.39e4"),
    -66.0: ("9.105e-3", "7.685e-4", "39.89", "4.286e5", "6.78e4"),
}


def test_equilibrium(evidence: Evidence) -> None:
    rows = solved(apd(), Problem((0.0,), ionisation=False))
    potential = rows[0]["fields"]["potential"]
    assert digits(potential[-1] - potential[0], "1.296541510")
    evidence.relative(SECTION, "built-in voltage, V", potential[-1] - potential[0], 1.29654151, 1e-9)
    assert digits(rows[0]["E_max"], "6.459e4")
    assert abs(rows[0]["J"]) <= 6e-23


@pytest.mark.slow
def test_currents_without_ionisation(evidence: Evidence) -> None:
    rows = solved(apd(5), Problem(tuple(PLAIN), BOTH, ionisation=False))
    for row, (volts, (dark, lit, multiplication, absorption)) in zip(rows, PLAIN.items(), strict=True):
        assert_digits([row["J"], row["J_lit"]], [dark, lit], also=5e-9)
        lit_field = row["fields"]["field_lit"]
        assert_digits([lit_field[121], lit_field[253]], [multiplication, absorption])
        evidence.relative(SECTION, f"dark J at {volts:g} V, A/cm2", row["J"], float(dark), 5e-9)
        evidence.relative(SECTION, f"lit J at {volts:g} V, A/cm2", row["J_lit"], float(lit), 5e-9)
        evidence.at_most(SECTION, f"variation of J along the device at {volts:g} V, dark", row["uniformity"], 1e-8)
        evidence.at_most(SECTION, f"variation of J along the device at {volts:g} V, lit", row["uniformity_lit"], 1e-4)
    assert rows[-1]["punch_through"] == pytest.approx(-49.9, abs=0.05)


@pytest.mark.slow
def test_currents_with_ionisation(evidence: Evidence) -> None:
    rows = solved(apd(5, "umebu"), Problem(tuple(IONISING), BOTH))
    for row, (volts, expected) in zip(rows, IONISING.items(), strict=True):
        assert_digits([row["J"], row["J_lit"]], expected, also=5e-9)
        evidence.relative(
            SECTION, f"lit J at {volts:g} V with ionisation (umebu)", row["J_lit"], float(expected[1]), 5e-9
        )


@pytest.mark.slow
def test_gain_and_breakdown_on_all_rows(evidence: Evidence) -> None:
    rows = solved(apd(), Problem((-44.0, -46.0, -48.0, *GAIN, -64.0, -70.0), BOTH, gain=True))
    assert_digits([-row["J_lit"] for row in rows[:3]], ["2.2e-7", "1.2e-6", "2.3e-4"])
    for row, (volts, (lit, dark, gain, multiplication, absorption)) in zip(rows[3:], GAIN.items()):
        found = [-row["J_lit"], -row["J"], row["gain"], -row["E_Mult"], -row["E_Absorp"]]
        assert_digits(found, [lit, dark, gain, multiplication, absorption])
        evidence.relative(SECTION, f"gain at {volts:g} V", row["gain"], float(gain), 5e-4)
        assert row["uniformity_lit"] <= 1e-4
    assert_digits([-rows[-2]["E_Mult"], -rows[-2]["E_Absorp"]], ["4.199e5", "6.00e4"])
    evidence.absolute(SECTION, "breakdown, V", rows[-1]["breakdown"], -66.6, 0.05)
    evidence.absolute(SECTION, "punch-through, V", rows[-1]["punch_through"], -49.9, 0.05)
    assert rows[-1]["V"] > -66.65, "the last voltage is that at which the current would grow without bound"


@pytest.mark.parametrize(
    ("coarsen", "charge", "ionisation", "breakdown", "punch_through"),
    [
        (5, None, "cook", 66.60, 49.9),
        pytest.param(10, None, "cook", 66.53, None, marks=pytest.mark.slow),
        pytest.param(2, None, "cook", 66.63, None, marks=pytest.mark.slow),
        pytest.param(5, 2.0e16, "cook", 74.9, 34.7, marks=pytest.mark.slow),
        pytest.param(5, 2.5e16, "cook", None, 42.3, marks=pytest.mark.slow),
        pytest.param(5, 3.5e16, "cook", None, 57.5, marks=pytest.mark.slow),
        pytest.param(5, None, "umebu", 78.3, 49.9, marks=pytest.mark.slow),
    ],
)
def test_breakdown_and_punch_through(
    coarsen: int, charge: float | None, ionisation: str, breakdown: float | None, punch_through: float | None,
    evidence: Evidence,
) -> None:  # fmt: skip
    device = apd(coarsen, ionisation, charge)
    row = solved(device, Problem((-100.0,)))[-1]
    what = f"{device.grid.shape[0]} rows, {charge or 3e16:g} in Charge, {ionisation}"
    if breakdown is not None:
        evidence.absolute(SECTION, f"breakdown, {what}, V", -row["breakdown"], breakdown, 0.06)
    if punch_through is not None:
        evidence.absolute(SECTION, f"punch-through, {what}, V", -row["punch_through"], punch_through, 0.1)
    # What ionisation's integral over the solver's own field is at breakdown.
    assert hole_integral(device, row["fields"]["field"]) == pytest.approx(1.0, abs=0.02)


def hole_integral(device: object, field: np.ndarray) -> float:
    """Integral of alpha_p exp(-integral of alpha_p - alpha_n) in a field on edges; holes travel towards low x.

    Infinite multiplication where it is 1.
    """
    size = np.maximum(np.abs(field), 1e3)

    def alpha(pieces: object) -> np.ndarray:
        found = np.zeros_like(size)
        low = np.zeros_like(size)
        for k in range(pieces.pieces):  # type: ignore[attr-defined]
            inside = (size >= low) & (size < pieces.to[k])  # type: ignore[attr-defined]
            value = pieces.a[k] * size ** pieces.power[k] * np.exp(-((pieces.b[k] / size) ** pieces.m[k]))  # type: ignore[attr-defined]
            found = np.where(inside, value, found)
            low = pieces.to[k]  # type: ignore[attr-defined]
        return found

    length = device.lengths[0] * (device.areas[0] > 0)  # type: ignore[attr-defined]
    electrons, holes = (alpha(p[0]) * length for p in (device.ionisation_n, device.ionisation_p))  # type: ignore[attr-defined]
    # From the hole's start at high x downwards; half of an edge's own share on average.
    difference = (holes - electrons)[::-1]
    reached = np.cumsum(difference) - 0.5 * difference
    return float((holes[::-1] * np.exp(-reached)).sum())
