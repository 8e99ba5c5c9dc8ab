"""Small signals, noise and transients of devices with surfaces, incomplete ionisation, barriers and tunnelling.

Nothing here needs a reference beside the steady currents and charges: slow oscillations follow the slope of the steady
curve, what a step stores is the difference of two steady states, and a small sine is the small signal.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform

from .photodiodes import device, solved
from .transients import followed, loaded

DIODE = [
    {"material": "Si", "thickness": 0.5, "p": 3e17, "tau_n": 1e-8, "tau_p": 1e-8},
    {"material": "Si", "thickness": 1.0, "n": 1e16, "tau_n": 1e-8, "tau_p": 1e-8},
]
PIN = [
    {"material": "InGaAs", "thickness": thickness} | doping
    for thickness, doping in ((0.2, {"p": 1e18}), (0.3, {"n": 1e16}), (0.2, {"n": 1e18}))
]
SILICON_LIGHT, TELECOM = {"wavelength": 800.0, "power": 1e-3}, {"wavelength": 1550.0, "power": 1e-3}
LOOSE = {"anode": {"recombination": 1e3}, "cathode": {"recombination": 1e4}}
METAL = {"kind": "schottky", "barrier": 0.7, "image_force": True, "tunnelling": True}
BOTH = {"band_to_band": True, "trap_assisted": True}
TABLES: dict[str, dict[str, Any]] = {
    "surfaces": {"contacts": LOOSE, "surfaces": [{"x": 0.5, "velocity_n": 1e4, "velocity_p": 2e4}]},
    "dopants": {"incomplete_ionisation": True, "temperature": 200.0},
    "degenerate dopants": {"incomplete_ionisation": True, "statistics": "fermi-dirac", "temperature": 150.0},
    "barrier": {
        "layers": [{"material": "Si", "thickness": 1.0, "n": 1e17}], "contacts": {"anode": METAL, "cathode": "ohmic"},
        "emission": True,
    },
    "tunnelling": {"layers": PIN, "tunnelling": BOTH, "light": TELECOM},
}  # fmt: skip
"""Settings of devices, by the model that they try."""
BIASES = {
    "surfaces": (-1.0, 0.5), "dopants": (-1.0, 0.7), "degenerate dopants": (-1.0, 0.9), "barrier": (-1.0, 0.2),
    "tunnelling": (-4.0, 0.3),
}  # fmt: skip


def made(**table: Any) -> Device:
    common = {
        "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "layers": DIODE, "light": SILICON_LIGHT,
        "mesh": {"graded": {"first": "2 nm", "growth": 1.3, "cap": "60 nm"}},
    }  # fmt: skip
    return device_of(read_settings("photodiode", common | table), Path())


@functools.cache
def example(kind: str) -> Device:
    return made(**TABLES[kind])


def slope(of: Device, volts: float, step: float = 1e-3) -> float:
    """The slope of the lit steady curve, by the four-point rule."""
    bias = tuple(volts + k * step for k in (-2, -1, 1, 2))
    j = [row["J_lit"] for row in solved(of, Problem(bias, ("lit",), ionisation=False, tolerance=1e-10))]
    return (8.0 * (j[2] - j[1]) - (j[3] - j[0])) / (12.0 * step)


def small_signal(of: Device, volts: tuple[float, ...], *frequencies: float, ranks: int = 1) -> list[dict[str, Any]]:
    problem = Problem(
        volts, ("lit",), ionisation=False, mode="ac", frequencies=frequencies, quasistatic_capacitance=True
    )
    return solved(of, problem, ranks=ranks)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_slow_oscillations_follow_the_steady_curve(kind: str) -> None:
    for volts in BIASES[kind]:
        (row,) = small_signal(example(kind), (volts,), 1e-3, 1e6, 1e10)
        assert row["G_lit"][0] == pytest.approx(slope(example(kind), volts), rel=2e-6)
        assert max(row["ac_uniformity_lit"]) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "barrier"])
def test_capacitance_is_what_steady_states_store(kind: str) -> None:
    """In reverse bias, where it is the charge of the depleted layer: neutral dopants keep part of it."""
    (row,) = small_signal(example(kind), (BIASES[kind][0],), 1e3)
    assert row["C_lit"][0] == pytest.approx(row["C_quasistatic_lit"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_a_small_sine_has_the_small_signal_admittance(kind: str) -> None:
    frequency, amplitude, volts = 1e9, 1e-5, BIASES[kind][1]
    wave = Waveform((0.0,), (volts,), amplitude, frequency)
    what = Transient(6.0 / frequency, wave, tolerance=1e-6, largest=0.0025 / frequency)
    rows = [row for row in followed(example(kind), what) if row["t"] >= 5.0 / frequency]
    phase = 2.0 * math.pi * frequency * np.array([row["t"] for row in rows])
    parts = np.stack((np.sin(phase), np.cos(phase), np.ones_like(phase)), axis=1)
    fit = np.linalg.lstsq(parts, np.array([row["J"] for row in rows]), rcond=None)[0] / amplitude
    problem = Problem((volts,), ionisation=False, mode="ac", frequencies=(frequency,))
    (row,) = solved(example(kind), problem)
    assert fit[0] == pytest.approx(row["G"][0], rel=1e-4)
    assert fit[1] / (2.0 * math.pi * frequency) == pytest.approx(row["C"][0], rel=1e-4)
    assert max(item["uniformity"] for item in rows) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_a_step_ends_in_the_steady_state(kind: str) -> None:
    volts = BIASES[kind][1]
    bias = (volts, volts - 0.01)
    rows = followed(example(kind), Transient(1e-6, Waveform((0.0, 1e-12), bias)))
    steady = solved(example(kind), Problem(bias, ionisation=False, tolerance=1e-10))
    for row, other in zip((rows[0], rows[-1]), steady, strict=True):
        assert row["J"] == pytest.approx(other["J"], rel=1e-9)
    assert max(row["uniformity"] for row in rows[1:]) < 1e-9


@pytest.mark.slow
def test_a_barrier_that_follows_the_field_in_a_circuit() -> None:
    """The device's current, its displacement included, is that of the resistance in series."""
    resistance = 0.01
    what = Transient(5e-8, Waveform((0.0, 0.0), (0.2, -0.5)), circuit=loaded(resistance))
    rows = followed(example("barrier"), what)
    for row in rows[2:]:
        assert row["J"] == pytest.approx((row["V_source"] - row["V"]) / resistance, rel=1e-8, abs=1e-9)
    (steady,) = solved(example("barrier"), Problem((rows[-1]["V"],), ionisation=False))
    assert rows[-1]["J"] == pytest.approx(steady["J"], rel=1e-6)
    assert max(row["uniformity"] for row in rows[1:]) < 1e-9


@pytest.mark.slow
def test_a_transient_with_the_anode_at_the_last_row() -> None:
    """The mirror image of a device and its contacts has the same currents in a circuit."""
    turned = made(layers=DIODE[::-1], contacts={"anode": {"at": "bottom"}, "cathode": {"at": "top"}})
    what = Transient(1e-10, Waveform((0.0, 1e-12), (0.5, 0.3)), circuit=loaded(0.01))
    expected, found = (followed(of, what)[-1] for of in (made(), turned))
    for name in ("J", "J_conduction", "J_displacement", "V", "charge"):
        assert found[name] == pytest.approx(expected[name], rel=1e-6), name


@pytest.mark.slow
def test_contacts_that_take_no_minority_store_it() -> None:
    """Without recombination, only what is stored passes the edge at the cathode, whose half cell stores holes."""
    contacts = {name: {"recombination": 0.0} for name in ("anode", "cathode")}
    closed = made(contacts=contacts, recombination=[], mesh={"nodes": 31})
    rows = followed(closed, Transient(1e-6, Waveform((0.0, 1e-12), (0.6, 0.5))), fields=True)
    electrons, holes, fields = (
        np.array([row["fields"][name] for row in (rows[0], rows[-1])]) for name in ("electrons", "holes", "field")
    )
    grown = CHARGE * closed.volumes * (electrons[1] - electrons[0])
    minority = CHARGE * closed.volumes[-1] * (holes[1, -1] - holes[0, -1])
    displaced = closed.permittivity[-1] * VACUUM * (fields[1, -2] - fields[0, -2])
    assert rows[-1]["charge"] == pytest.approx(math.fsum(grown[:-1]) + minority + displaced, rel=1e-9)
    assert min(abs(grown[0]), abs(minority)) > 1e-6 * abs(rows[-1]["charge"])


@pytest.mark.slow
def test_neutral_dopants_keep_charge() -> None:
    """The charge that passes is that of free holes, of those which acceptors keep, and of the displacement."""
    cold = made(incomplete_ionisation=True, temperature=150.0, recombination=[], statistics="fermi-dirac")
    bias = (-1.0, -2.0)
    rows = followed(cold, Transient(1e-8, Waveform((0.0, 1e-12), bias)), fields=True)
    holes, fields = (np.array([row["fields"][name] for row in (rows[0], rows[-1])]) for name in ("holes", "field"))
    free = CHARGE * math.fsum((cold.volumes * (holes[1] - holes[0]))[1:])
    displaced = cold.permittivity[0] * VACUUM * (fields[1, 1] - fields[0, 1])
    kept = (rows[-1]["charge"] - free - displaced) / (rows[-1]["charge"] - displaced)
    assert kept > 0.1
    capacitance = solved(
        cold, Problem((-1.5,), ionisation=False, mode="cv", frequencies=(1e3,), quasistatic_capacitance=True)
    )[0]["C"]
    assert rows[-1]["charge"] == pytest.approx(capacitance * (bias[1] - bias[0]), rel=1e-2)


@pytest.mark.slow
def test_shot_noise_of_a_current_that_tunnelling_generates() -> None:
    """Without multiplication all pairs of a dark current in reverse bias make its noise, 2 q J."""
    problem = Problem((-4.0,), ("dark",), ionisation=False, mode="noise", circuit=Circuit(1e-5))
    (row,) = solved(example("tunnelling"), problem)
    (plain,) = solved(made(layers=PIN, light=TELECOM), problem)
    assert row["J"] < 2.0 * plain["J"] < 0.0
    assert row["S_shot"] == pytest.approx(-2.0 * CHARGE * 1e-5 * row["J"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_same_bits_on_any_number_of_ranks(kind: str) -> None:
    one, three = (small_signal(example(kind), (BIASES[kind][1],), 1e6, 1e10, ranks=ranks) for ranks in (1, 3))
    assert_same(one, three)
    volts = BIASES[kind][1]
    what = Transient(4e-12, Waveform((0.0, 1e-12), (volts, volts - 0.1)), tolerance=0.1, first=1e-14)
    assert_same(*(followed(example(kind), what, ranks=ranks) for ranks in (1, 3)))


def assert_same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for name, value in a.items():
            if name != "fields":
                assert np.array_equal(np.asarray(b[name]), np.asarray(value), equal_nan=True), name


@pytest.mark.slow
def test_oscillations_of_a_plane_with_surfaces_and_tunnelling() -> None:
    """A coarse planar diode with a passivated top and a contact with a velocity of recombination."""
    plane = device(
        "planar", contacts={"anode": {"y": [0.0, 5.0], "recombination": 1e3}},
        surfaces=[{"x": 0.0, "velocity_n": 1e4, "velocity_p": 1e3}], tunnelling=BOTH,
        mesh={"graded": {"first": "60 nm", "growth": 1.6, "cap": "300 nm"},
              "across": {"first": "200 nm", "growth": 1.8, "cap": "2 um"}},
    )  # fmt: skip
    (row,) = small_signal(plane, (-2.0,), 1.0, 1e10)
    assert row["G_lit"][0] == pytest.approx(slope(plane, -2.0, 2e-3), rel=1e-6)
    assert max(row["ac_uniformity_lit"]) < 1e-9
    assert_same([row], small_signal(plane, (-2.0,), 1.0, 1e10, ranks=3))
