"""Transients of photodiodes against an independent program, DEVSIM, exact solutions of circuits, and steady states.

The values of the light step and of the reverse recovery are those of an independent program on the same nodes,
extrapolated over its steps; DEVSIM (backward Euler, two steps extrapolated) agrees within 4e-5 and 1e-4.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.transients.model import transient
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform
from thinned import thinned

from .evidence import Evidence
from .photodiodes import device as example
from .photodiodes import digits, solved
from .transients import PHYSICS, ac_1, assert_same_bits, at, coarse, followed, interrupted, loaded, pin_a, step

SECTION = "photodiode: transients"
LIGHT_STEP = {0.5: 0.07623, 1: 0.15125, 2: 0.29100, 5: 0.62864, 7: 0.78577, 10: 0.92190, 15: 0.99331, 20: 0.99990}
RECOVERY = {
    1: (-0.381560, 0.563119), 10: (-0.378638, 0.557277), 100: (-0.363121, 0.526241), 200: (-0.325484, 0.450967),
    300: (-0.16940, 0.13881), 600: (-0.047757, -0.104486), 1000: (-0.016183, None),
}  # fmt: skip


@pytest.mark.slow
def test_a_step_of_light(evidence: Evidence) -> None:
    device = pin_a()
    assert device.grid.shape == (333,)
    what = Transient(20e-12, Waveform((0.0,), (-5.0,)), Waveform(*step(0.0, 1.0)), tolerance=1e-4)
    rows = followed(device, what, [1e-12 * time for time in LIGHT_STEP])
    dark, lit = rows[0]["J"], -1.65724186e-3
    assert digits(dark, "-5.56222864e-5")
    for time, expected in LIGHT_STEP.items():
        found = (at(rows, 1e-12 * time)["J"] - dark) / (lit - dark)
        evidence.absolute(SECTION, f"light step, J at {time:g} ps over the last", found, expected, 1e-4)
    evidence.at_most(SECTION, "difference of the charges of all edges", max(r["uniformity"] for r in rows), 1e-11)


@functools.cache
def recovery() -> list[dict[str, Any]]:
    what = Transient(1e-6, Waveform(*step(1.2, -0.2)), circuit=loaded(2.0), tolerance=1e-4)
    return followed(ac_1(1e-6), what, [1e-9 * time for time in RECOVERY])


@pytest.mark.slow
def test_reverse_recovery(evidence: Evidence) -> None:
    rows = recovery()
    assert digits(rows[0]["V"], "0.591910579")
    assert digits(rows[0]["J"], "0.304044711")
    for time, (current, volts) in RECOVERY.items():
        row = at(rows, 1e-9 * time)
        evidence.relative(SECTION, f"recovery, J at {time} ns, A/cm2", row["J"], current, 1e-3)
        assert row["J"] == pytest.approx((row["V_source"] - row["V"]) / 2.0, rel=1e-12)
        if volts is not None:
            evidence.absolute(SECTION, f"recovery, V at {time} ns", row["V"], volts, 1e-4)
    times, volts = (np.array([row[name] for row in rows]) for name in ("t", "V"))
    k = int(np.argmax(volts < 0.0))
    near = np.polyfit(volts[k - 2 : k + 2], times[k - 2 : k + 2], 3)
    evidence.absolute(SECTION, "recovery, V crosses 0 at, ns", 1e9 * near[-1], 394.94, 0.03)
    assert max(row["uniformity"] for row in rows) < 1e-9


@pytest.mark.slow
def test_second_order_in_the_step(evidence: Evidence) -> None:
    """With steps of one length that end at the corners; the errors fall by 4 as steps are halved."""
    found = []
    for count in (40, 80, 160):
        h = 10e-12 / count
        what = Transient(
            10e-12, Waveform((0.0, 2e-12), (-5.0, -4.0)), Waveform(*step(0.0, 1.0, 5e-12)), tolerance=1e300, first=h,
            largest=h,
        )  # fmt: skip
        rows = followed(coarse(mobility="field"), what)
        assert len(rows) == count + 1
        found.append((rows[-1]["J"], rows[-1]["charge"]))
    for name, values in zip(("J", "charge"), np.array(found).T, strict=True):
        ratio = (values[1] - values[0]) / (values[2] - values[1])
        evidence.between(SECTION, f"error of {name} over that of half the step", ratio, 3.6, 4.4)


def test_charge_is_conserved() -> None:
    """Without generation and recombination the holes that are stored passed the edge at the anode.

    The charge that passed is theirs and that of the displacement there; minority carriers carry nothing.
    """
    device = coarse(recombination=())
    device = replace(device, generation=0.0 * device.generation)
    what = Transient(20e-12, Waveform((0.0, 5e-12), (-1.0, -3.0)))
    rows = followed(device, what, fields=True)
    holes, fields = (np.array([row["fields"][name] for row in (rows[0], rows[-1])]) for name in ("holes", "field"))
    stored = CHARGE * math.fsum((device.volumes * (holes[1] - holes[0]))[1:])
    displaced = device.permittivity[0] * VACUUM * (fields[1, 1] - fields[0, 1])
    assert rows[-1]["charge"] == pytest.approx(stored + displaced, rel=1e-9)
    assert max(row["uniformity"] for row in rows) < 1e-10


@pytest.mark.slow
def test_a_pulse_of_light_is_collected() -> None:
    device = coarse(recombination=())
    light = Waveform((1e-12, 1e-12, 3e-12, 3e-12), (0.0, 1.0, 1.0, 0.0))
    rows = followed(device, Transient(200e-12, Waveform((0.0,), (-3.0,)), light))
    made = CHARGE * float((device.generation * device.volumes).sum()) * 2e-12
    dark = rows[0]["J"] * 200e-12
    assert -(rows[-1]["charge"] - dark) == pytest.approx(made, rel=2e-4)  # some pairs leave by the wrong contact
    times = [row["t"] for row in rows]
    assert {1e-12, 3e-12, 200e-12} <= set(times)
    after = times.index(1e-12) + 1
    assert times[after] - 1e-12 == pytest.approx(200e-18), "after a corner the steps begin small again"


def test_a_resistance_and_a_capacitance() -> None:
    """A capacitance much larger than the device's is charged exponentially."""
    what = Transient(3.0, Waveform(*step(-1.0, -2.0)), circuit=loaded(2.0, 0.0, 1.0), tolerance=1e-4)
    for row in followed(coarse(), what):
        assert row["V"] == pytest.approx(-2.0 + math.exp(-row["t"] / 2.0), abs=1e-4)


@pytest.mark.slow
def test_an_inductance() -> None:
    resistance = 0.5
    circuit = loaded(resistance, 1.0, 1.0)
    what = Transient(6.0, Waveform(*step(-1.0, -2.0)), circuit=circuit, tolerance=1e-4, first=0.3, largest=0.3)
    damping = 0.5 * resistance
    turn = math.sqrt(1.0 - damping * damping)
    rows = followed(coarse(), what)
    assert rows[-1]["steps_rejected"] > 0, "rejected steps leave nothing behind"
    for row in rows:
        t = row["t"]
        exact = -2.0 + math.exp(-damping * t) * (math.cos(turn * t) + damping / turn * math.sin(turn * t))
        assert row["V"] == pytest.approx(exact, abs=1e-3)


@pytest.mark.slow
def test_a_small_step_charges_the_small_signal_capacitance() -> None:
    """PIN-A at -5 V has 1.22634568e-8 F/cm2 up to frequencies far above that of the circuit."""
    time = 100.0 * 1.22634568e-8
    what = Transient(3.0 * time, Waveform(*step(-5.0, -5.001)), circuit=loaded(100.0), tolerance=1e-7)
    rows = followed(pin_a(), what)
    for row in rows:
        grown = (rows[0]["V"] - row["V"]) / 1e-3
        assert grown == pytest.approx(1.0 - math.exp(-row["t"] / time), abs=2e-4)


@pytest.mark.slow
def test_a_small_sine_has_the_small_signal_admittance() -> None:
    """AC-1 at 0.5 V and 100 MHz: G 13.0280136 S/cm2, C 1.20024183e-8 F/cm2, also by DEVSIM's analysis."""
    frequency, amplitude = 1e8, 1e-5
    what = Transient(6e-8, Waveform((0.0,), (0.5,), amplitude, frequency), tolerance=1e-6, largest=5e-11)
    rows = [row for row in followed(ac_1(), what) if row["t"] >= 5e-8]
    phase = 2.0 * math.pi * frequency * np.array([row["t"] for row in rows])
    currents = np.array([row["J"] for row in rows])
    parts = np.stack((np.sin(phase), np.cos(phase), np.ones_like(phase)), axis=1)
    fit = np.linalg.lstsq(parts, currents, rcond=None)[0] / amplitude
    assert fit[0] == pytest.approx(13.0280136, rel=1e-4)
    assert fit[1] / (2.0 * math.pi * frequency) == pytest.approx(1.20024183e-8, rel=1e-4)


@pytest.mark.slow
def test_the_spectrum_of_a_step_is_the_small_signal_response() -> None:
    """The Fourier transform of dJ/dt after a step of light, exactly for lines between the steps."""
    what = Transient(200e-12, Waveform((0.0,), (-5.0,)), Waveform(*step(0.0, 1.0)), tolerance=1e-5)
    rows = followed(pin_a(), what)
    times, currents = (np.array([row[name] for row in rows]) for name in ("t", "J"))
    slopes = np.diff(currents) / np.diff(times)
    for frequency, size, phase in ((1e10, 0.97715566, -0.27817295), (4e10, 0.70245107, -1.01326801)):
        turn = 2j * math.pi * frequency
        found = (slopes * np.diff(np.exp(-turn * times)) / -turn).sum() / (currents[-1] - currents[0])
        assert abs(found) == pytest.approx(size, rel=1e-3)
        assert np.angle(found) == pytest.approx(phase, abs=1e-3)


@pytest.mark.slow
def test_a_slow_sine_passes_through_steady_states() -> None:
    rows = followed(coarse(), Transient(1.0, Waveform((0.0,), (-0.2,), 0.2, 1.0)), [0.25, 0.5, 0.75])
    picked = [at(rows, time) for time in (0.25, 0.75)]
    assert [row["V"] for row in picked] == pytest.approx([0.0, -0.4], abs=1e-12)
    steady = solved(coarse(), Problem((0.0, -0.4), ionisation=False))
    for row, other in zip(picked, steady, strict=True):
        assert row["J_conduction"] == pytest.approx(other["J"], rel=1e-4, abs=1e-12)


@pytest.mark.slow
def test_many_points_are_like_the_function_they_describe() -> None:
    frequency, until = 1e9, 2e-9
    times = np.linspace(0.0, until, 401)
    points = Waveform(tuple(times), tuple(-1.0 + 0.2 * np.sin(2.0 * math.pi * frequency * times)))
    found, exact = (
        followed(coarse(), Transient(until, wave), [1.25e-9])
        for wave in (points, Waveform((0.0,), (-1.0,), 0.2, frequency))
    )
    assert len(found) < 401 * 10
    charges = [at(rows, 1.25e-9)["charge"] for rows in (found, exact)]
    assert charges[0] == pytest.approx(charges[1], rel=1e-3)


@pytest.mark.slow
def test_a_steady_state_stays() -> None:
    """With Fermi-Dirac statistics, fields that saturate mobilities, and light from the beginning."""
    device = coarse(statistics="fermi-dirac", mobility="doping-field")
    what = Transient(1e-9, Waveform((0.0,), (0.2,)), Waveform((0.0,), (0.3,)), circuit=loaded(5.0))
    rows = followed(device, what)
    assert len(rows) < 80
    for row in rows:
        assert row["J"] == pytest.approx(rows[0]["J"], rel=1e-7)
        assert row["V"] == pytest.approx(0.2 - 5.0 * row["J"], rel=1e-12)


@pytest.mark.slow
def test_fermi_dirac_statistics_in_time() -> None:
    """The state after a change is the steady one of the new voltage."""
    device = coarse(statistics="fermi-dirac")
    rows = followed(device, Transient(1e-6, Waveform((0.0, 1e-12), (-1.0, -2.0))), fields=True)
    steady = solved(device, Problem((-2.0,), ionisation=False))[0]
    assert max(row["uniformity"] for row in rows) < 1e-10
    for name in ("electrons", "holes"):
        assert rows[-1]["fields"][name] == pytest.approx(steady["fields"][name], rel=1e-4)


@pytest.mark.slow
def test_an_avalanche_is_quenched_by_a_resistance() -> None:
    """Beyond breakdown the current grows until the resistance lowers the voltage to that of breakdown."""
    device = example("pin-inp")
    physics = Problem((0.0,), ionisation=True)
    what = Transient(8e-6, Waveform((0.0, 1e-10), (-40.0, -46.0)), circuit=loaded(100.0), tolerance=5e-3)
    rows = followed(device, what, physics=physics)
    breakdown = solved(device, Problem((-40.0, -46.0), ionisation=True))[-1]["breakdown"]
    assert rows[-1]["V"] == pytest.approx(breakdown, abs=0.1)
    assert rows[-1]["J"] == pytest.approx((-46.0 - rows[-1]["V"]) / 100.0, rel=1e-3)
    assert max(row["uniformity"] for row in rows) < 1e-6


@pytest.mark.parametrize(("ranks", "threads"), thinned([(2, 1), (3, 2)], (2, 1)))
def test_the_same_bits_on_ranks_and_threads(ranks: int, threads: int) -> None:
    light = Waveform((0.0, 1e-12), (0.0, 1.0))
    what = Transient(
        4e-12, Waveform((1e-12, 2e-12), (-1.0, -2.0)), light, loaded(1e-4, 0.0, 1e-8), tolerance=0.1, first=1e-14
    )
    alone, found = (followed(coarse(), what, fields=True, ranks=r, threads=t) for r, t in ((1, 1), (ranks, threads)))
    assert_same_bits(alone, found)


@pytest.mark.slow
def test_the_same_bits_after_an_interruption(tmp_path: Path) -> None:
    what = Transient(4e-12, Waveform((1e-12, 2e-12), (-1.0, -2.0)), circuit=loaded(1e-4, 1e-17, 1e-8))
    model = transient(coarse(), PHYSICS, what)
    whole = interrupted(model, tmp_path / "run", every=10, steps=30)
    assert whole.sizes["observed"] == int(whole["steps_taken"][-1]) + 1
    assert (float(whole["t"][0]), float(whole["t"][1])) == (0.0, pytest.approx(4e-18))
    assert float(whole["V"][0]) == pytest.approx(-1.0, rel=1e-8), "the first record is the steady state"
    table = (tmp_path / "run" / "transient.csv").read_text().splitlines()
    assert table[0] == "t,V,V_source,J,J_conduction,J_displacement,charge,light"
    assert len(table) == 1 + int(whole["steps_taken"][-1]) + 1
