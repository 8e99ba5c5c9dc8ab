"""Small-signal analysis of diodes against DEVSIM and an independent program, on the same nodes.

The numbers of AC-1, SI-1 and PIN-A are those of a program of finite volumes with complex-step derivatives and refined
solutions; DEVSIM 2.11.2 agrees in 8 to 9 digits of C, and of G under forward bias.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Curve, Problem
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.stack import Light

from .evidence import Evidence
from .photodiodes import EXAMPLES, absorbing_pin, apd, device, junction, silicon, solved

SECTION = "photodiode: admittance and response"

JUNCTION = {
    # J; G and C at 100 Hz; C at 10 MHz; G and C at 100 MHz; C at 1 GHz
    0.0: (0.0, 1.7719586e-5, 1.14448981e-8, 1.14320011e-8, 2.15863726, 1.02857058e-8, 1.01936927e-9),
    -1.0: (-5.77801272e-6, 3.9204327e-6, 7.07219439e-9, 7.06916487e-9, 0.87507626, 6.78174359e-9, 1.40631926e-9),
    -5.0: (-1.64868536e-5, 1.1557027e-6, 3.81640952e-9, 3.81593901e-9, 0.25934307, 3.76994167e-9, 1.74106157e-9),
    0.3: (4.31051686e-4, 1.0436923e-2, 1.62953596e-8, 1.62573787e-8, 3.98114733, 1.32521474e-8, 7.7597072e-10),
    0.5: (0.139194564, 3.9523084, 3.57307233e-8, 3.40788438e-8, 13.0280136, 1.20024183e-8, 4.0966130e-10),
    0.6: (1.04763577, 13.536406, 3.36649661e-8, 2.87133066e-8, 19.0196337, 4.02812335e-9, 2.1826813e-10),
    0.7: (2.63969189, 17.667496, 2.08988249e-8, 1.68347919e-8, 20.5862672, 1.89000461e-9, 1.6063091e-10),
    0.8: (4.51170467, 19.587666, 1.14792174e-8, 9.62791548e-9, 21.2909021, 1.17977030e-9, 1.4013473e-10),
}
SILICON = {
    # G and C at 100 Hz, G and C at 1 GHz
    0.0: (1.539196e-7, 7.28663176e-8, 22.5134087, 7.26866633e-8),
    0.3: (1.073209e-4, 9.28258452e-8, None, None),
    0.5: (0.122570955, 1.21961165e-7, 63.4704981, 1.20723044e-7),
    0.7: (264.156981, 1.32279094e-6, 2034.22767, 3.37273950e-7),
    0.8: (6503.02695, 1.09400144e-5, None, None),
    -1.0: (4.826673e-8, 4.82639901e-8, 9.81866847, 4.82120223e-8),
}
RESPONSE = {
    # dJ/dG, f3dB, C at 1 GHz
    0.0: (-1.59941085e-3, 5.591839e9, 1.71805194e-8),
    -2.0: (-1.60089406e-3, 2.859940e10, 1.25646586e-8),
    -5.0: (-1.60161958e-3, 3.960117e10, 1.22634568e-8),
}


def spectra(
    made: Device, bias: tuple[float, ...], frequencies: tuple[float, ...], curves: tuple[Curve, ...] = ("dark",),
    *, ranks: int = 1, **options: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Observables at each voltage."""
    problem = Problem(bias, curves, ionisation=False, mode="ac", frequencies=frequencies, **options)
    return solved(made, problem, ranks=ranks)


@functools.cache
def of_the_junction() -> list[dict[str, Any]]:
    made = junction()
    assert made.grid.shape == (619,)
    return spectra(made, tuple(JUNCTION), (1e-3, 100.0, 1e7, 1e8, 1e9))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ac", "noise"])
def test_an_anode_at_the_last_row(mode: str) -> None:
    """The mirror image of a device, contacts and layers, has the same currents, admittance and noise."""
    layers = [
        {"name": "p", "material": "Si", "thickness": 0.5, "p": 1e18},
        {"name": "i", "material": "Si", "thickness": 2.0, "n": 1e14},
        {"name": "n", "material": "Si", "thickness": 0.5, "n": 1e18},
    ]
    table: dict[str, Any] = {"bias": [0.0], "layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"}}
    table |= {"mesh": {"graded": {"first": "2 nm", "growth": 1.3, "cap": "100 nm"}}}
    table |= {"light": {"wavelength": 700.0, "power": 1e-3, "side": "anode"}}
    turned = table | {"layers": layers[::-1], "contacts": {"anode": {"at": "bottom"}, "cathode": {"at": "top"}}}
    turned["light"] = table["light"]  # of the same contact
    options: dict[str, Any] = {"ionisation": False, "mode": mode, "circuit": Circuit(1e-5)}
    if mode == "ac":
        options["frequencies"] = (1e6, 1e9)
    problem = Problem((-2.0,), ("dark", "lit"), **options)
    expected, found = (
        solved(device_of(read_settings("photodiode", each), EXAMPLES), problem)[-1] for each in (table, turned)
    )
    names = ("G", "C", "G_lit", "H_lit") if mode == "ac" else ("S_shot", "S_shot_lit", "NEP_lit", "F_lit")
    for name in ("J", "J_lit", *names):
        assert np.array(found[name]) == pytest.approx(np.array(expected[name]), rel=1e-5), name


@pytest.mark.slow
def test_admittance_of_a_long_diode(evidence: Evidence) -> None:
    names = ("C at 100 Hz, F/cm2", "C at 10 MHz", "G at 100 MHz, S/cm2", "C at 100 MHz", "C at 1 GHz")
    for row, (current, g_low, *expected) in zip(of_the_junction(), JUNCTION.values(), strict=True):
        what = f"long diode at {row['V']:g} V"
        assert row["J"] == pytest.approx(current, rel=1e-8, abs=1e-30)
        evidence.relative(SECTION, f"{what}: G at 100 Hz, S/cm2", row["G"][1], g_low, 1e-5)
        found = [row["C"][1], row["C"][2], row["G"][3], row["C"][3], row["C"][4]]
        for name, number, known in zip(names, found, expected, strict=True):
            evidence.relative(SECTION, f"{what}: {name}", number, known, 1e-7)
        evidence.at_most(SECTION, f"{what}: variation of the current along it", max(row["ac_uniformity"]), 1e-9)
        impedance = np.array(row["Z_re"]) + 1j * np.array(row["Z_im"])
        f = np.array(row["f"])
        assert 1.0 / impedance == pytest.approx(np.array(row["G"]) + 2j * np.pi * f * row["C"], rel=1e-12)


@pytest.mark.slow
def test_admittance_of_a_silicon_diode(evidence: Evidence) -> None:
    rows = spectra(silicon(), tuple(SILICON), (100.0, 1e9))
    for row, (g_low, c_low, g, c) in zip(rows, SILICON.values(), strict=True):
        what = f"si-1 at {row['V']:g} V"
        within = 1e-5 if g_low > 1e-5 else 1e-6
        evidence.relative(SECTION, f"{what}: G at 100 Hz, S/cm2", row["G"][0], g_low, within)
        evidence.relative(SECTION, f"{what}: C at 100 Hz, F/cm2", row["C"][0], c_low, 1e-7)
        assert max(row["ac_uniformity"]) < 1e-9
        if g is not None and c is not None:
            evidence.relative(SECTION, f"{what}: G at 1 GHz, S/cm2", row["G"][1], g, 1e-7)
            evidence.relative(SECTION, f"{what}: C at 1 GHz, F/cm2", row["C"][1], c, 1e-7)


@pytest.mark.slow
def test_slow_oscillations_follow_the_steady_curve() -> None:
    step = 1e-3
    for volts, row in zip((0.0, -1.0, 0.3, 0.6), (of_the_junction()[k] for k in (0, 1, 3, 5)), strict=True):
        # The four-point rule: its error is a fifth derivative.
        bias = tuple(volts + k * step for k in (-2, -1, 1, 2))
        j = [item["J"] for item in solved(junction(), Problem(bias, ionisation=False, tolerance=1e-10))]
        slope = (8.0 * (j[2] - j[1]) - (j[3] - j[0])) / (12.0 * step)
        assert row["G"][0] == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
def test_slow_oscillations_without_recombination_or_light() -> None:
    """A resistor: G is its conductance, C that of its plates, and there is no response."""
    layer = {"material": "Si", "thickness": 2.0, "n": 1e15}
    bar = device("si-1", mesh={"graded": None, "nodes": 41}, layers=[layer], recombination=[])
    (row,) = spectra(bar, (0.0,), (1.0, 1e9))
    conductivity = 1.602176634e-19 * 1e15 * 1330.0
    assert row["G"] == pytest.approx([conductivity / 2e-4] * 2, rel=1e-6)
    assert row["C"] == pytest.approx([11.7 * 8.8541878128e-14 / 2e-4] * 2, rel=1e-3)
    assert "H" not in row


@functools.cache
def of_the_pin() -> list[dict[str, Any]]:
    made = absorbing_pin()
    assert made.grid.shape == (333,)
    return spectra(made, tuple(RESPONSE), (1e9, 1e10, 4e10, 1e11), ("dark", "lit"), circuit=Circuit(1e-5))


@pytest.mark.slow
def test_response_and_bandwidth_of_a_pin_diode(evidence: Evidence) -> None:
    for row, (_, bandwidth, capacitance) in zip(of_the_pin(), RESPONSE.values(), strict=True):
        what = f"p-i-n at {row['V']:g} V: bandwidth of transit, Hz"
        evidence.relative(SECTION, what, row["f3dB_transit_lit"], bandwidth, 1e-6)
        assert row["C_lit"][0] == pytest.approx(capacitance, rel=1e-7)
    last = of_the_pin()[-1]
    assert last["J"] == pytest.approx(-5.56222864e-5, rel=1e-8)
    assert last["J_lit"] == pytest.approx(-1.65724186e-3, rel=1e-8)
    response = (0.99976622, 0.97715566, 0.70245107, 0.25699612), (-0.02798532, -0.27817295, -1.01326801, -1.50061596)
    for f, amplitude, phase, size, angle in zip(
        last["f"], last["H_lit"], last["H_phase_lit"], *response, strict=True
    ):  # fmt: skip
        evidence.absolute(SECTION, f"p-i-n at -5 V, {1e-9 * f:g} GHz: amplitude of H", amplitude, size, 1e-8)
        evidence.absolute(SECTION, f"p-i-n at -5 V, {1e-9 * f:g} GHz: phase of H", phase, angle, 1e-8)
    evidence.relative(SECTION, "p-i-n at -5 V: bandwidth into 50 ohm, Hz", last["f3dB_lit"], 20.75188e9, 1e-6)
    assert last["G_lit"][1] == pytest.approx(0.690269, rel=2e-6)
    # A capacitor alone would give 25.956 GHz; the conductance grows with the frequency.
    assert last["f3dB_RC_lit"] == pytest.approx(1.0 / (2.0 * np.pi * 50.0 * 1e-5 * RESPONSE[-5.0][2]), rel=3e-3)


@pytest.mark.slow
def test_bandwidths_in_a_circuit() -> None:
    """Against formulas of complex numbers, at the frequencies that were found."""
    made, circuit = absorbing_pin(), Circuit(1e-5, 40.0, 15.0, 3e-14)
    (row,) = spectra(made, (-5.0,), (1.0,), ("lit",), circuit=circuit)
    found = tuple(row[f"{name}_lit"] for name in ("f3dB_transit", "f3dB_RC", "f3dB"))
    (row,) = spectra(made, (-5.0,), (1.0, *found), ("lit",), circuit=circuit)
    w = 2.0 * np.pi * np.array(row["f"])
    device_admittance = circuit.area * (np.array(row["G_lit"]) + 1j * w * np.array(row["C_lit"]))
    load = 1.0 / (1.0 / circuit.load + 1j * w * circuit.pad)
    # The current of the load: a current divider, after the device has been loaded by series resistance and load.
    passed = np.abs(load / circuit.load / (1.0 + device_admittance * (circuit.series + load)))
    passed /= passed[0]
    assert passed * row["H_lit"] == pytest.approx(np.array(row["H_load_lit"]), rel=1e-9)
    half = np.sqrt(0.5)
    assert row["H_lit"][1] == pytest.approx(half, rel=1e-8)
    assert passed[2] == pytest.approx(half, rel=1e-8)
    assert row["H_load_lit"][3] == pytest.approx(half, rel=1e-8)
    assert found[2] < min(found[:2])


@pytest.mark.slow
def test_response_to_slow_light_is_the_difference_of_steady_currents() -> None:
    made, change = replace(absorbing_pin(), light=Light(1550.0, power=1.0)), 1e-3
    more, less = (
        solved(replace(made, generation=factor * made.generation), Problem((-2.0,), ("lit",), ionisation=False))
        for factor in (1.0 + change, 1.0 - change)
    )
    slope = (more[0]["J_lit"] - less[0]["J_lit"]) / (2.0 * change)
    (row,) = spectra(made, (-2.0,), (1e3,), ("lit",))
    assert row["H_lit"][0] == pytest.approx(1.0, abs=1e-9)
    assert row["responsivity_lit"][0] == pytest.approx(-slope, rel=1e-6)
    assert row["responsivity_lit"][0] == pytest.approx(-RESPONSE[-2.0][0], rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("ionisation", [False, True])
def test_same_bits_on_any_number_of_ranks(ionisation: bool) -> None:
    circuit = Circuit(1e-5, 50.0, 5.0, 2e-14)
    problem = Problem(
        (0.0, -30.0), ("dark", "lit"), ionisation=ionisation, mode="ac", frequencies=(1e6, 1e10), circuit=circuit
    )
    one, three = (solved(apd(5), problem, ranks=ranks) for ranks in (1, 3))
    for a, b in zip(one, three, strict=True):
        for name, value in a.items():
            if name != "fields":
                assert np.array_equal(np.asarray(b[name]), np.asarray(value), equal_nan=True), name


@pytest.mark.slow
def test_matrix_includes_ionisation_emission_statistics_and_mobility() -> None:
    """The slope of the steady curve and the response, for every model of physics at once."""
    made = device(
        "apd", mesh={"coarsen": 10}, statistics="fermi-dirac", mobility="doping-field", emission=True, curves=["lit"]
    )
    step, volts = 2e-3, -58.0
    bias = tuple(volts + k * step for k in (-2, -1, 1, 2))
    rows = solved(made, Problem(bias, ("lit",), tolerance=1e-10))
    j = [item["J_lit"] for item in rows]
    slope = (8.0 * (j[2] - j[1]) - (j[3] - j[0])) / (12.0 * step)
    problem = Problem((volts,), ("lit",), mode="ac", frequencies=(1.0,))
    (row,) = solved(made, problem)
    assert row["G_lit"][0] == pytest.approx(slope, rel=1e-6)
    assert row["ac_uniformity_lit"][0] < 1e-9


@pytest.mark.slow
def test_capacitance_over_voltage() -> None:
    problem = Problem((0.0, -1.0), ionisation=False, mode="cv", frequencies=(1e7,), quasistatic_capacitance=True)
    rows = solved(junction(), problem)
    for row in rows:
        assert row["C"] == pytest.approx(JUNCTION[row["V"]][3], rel=1e-7)
        assert row["C_quasistatic"] == pytest.approx(row["C"], rel=2e-3)
        assert row["C_quasistatic"] != row["C"]


@pytest.mark.slow
def test_two_axes_are_one_where_nothing_varies_across() -> None:
    plane = device("si-1", width=2.0, columns=3)
    rows = spectra(plane, (0.0, -1.0, 0.5), (100.0, 1e9))
    for row, volts in zip(rows, (0.0, -1.0, 0.5), strict=True):
        expected = np.array(SILICON[volts])
        assert [row["C"][0], row["C"][1]] == pytest.approx(expected[[1, 3]].tolist(), rel=1e-7)
        assert [row["G"][0], row["G"][1]] == pytest.approx(expected[[0, 2]].tolist(), rel=1e-6)
        assert max(row["ac_uniformity"]) < 1e-9


@pytest.mark.slow
def test_an_oscillation_that_bends_around_a_contact() -> None:
    """A coarse planar diode, on any number of ranks: the slope of the steady curve, and dQ/dV in reverse bias."""
    plane = device("planar", mesh={"graded": {"first": "60 nm", "growth": 1.6, "cap": "300 nm"},
                                   "across": {"first": "200 nm", "growth": 1.8, "cap": "2 um"}})  # fmt: skip
    problem = Problem(
        (0.0, -2.0), ("dark", "lit"), ionisation=False, mode="ac", frequencies=(1.0, 1e10), quasistatic_capacitance=True
    )
    one, three = (solved(plane, problem, ranks=ranks) for ranks in (1, 3))
    for name, value in one[-1].items():
        if name != "fields":
            assert np.array_equal(np.asarray(three[-1][name]), np.asarray(value), equal_nan=True), name
    step = 2e-3
    bias = tuple(-2.0 + k * step for k in (-2, -1, 1, 2))
    rows = solved(plane, Problem(bias, ("lit",), ionisation=False, tolerance=1e-10))
    j = [item["J_lit"] for item in rows]
    slope = (8.0 * (j[2] - j[1]) - (j[3] - j[0])) / (12.0 * step)
    assert one[-1]["G_lit"][0] == pytest.approx(slope, rel=1e-6)
    assert one[-1]["C"][0] == pytest.approx(one[-1]["C_quasistatic"], rel=1e-3)
    assert max(one[-1]["ac_uniformity"]) < 1e-9
    assert 0.0 < one[-1]["H"][1] < one[-1]["H"][0] <= 1.0
