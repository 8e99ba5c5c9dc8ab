"""The current of a sheet of carriers that crosses an intrinsic layer: a rectangular pulse, by Ramo and Shockley."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform

from .evidence import Evidence
from .photodiodes import solved
from .transients import followed, stack

SECTION = "photodiode: transit of a sheet of carriers"
VOLTS: Final = -40.0
PAIRS: Final = 1e6
"""Pairs of the sheet, 1/cm2: their field is less than a millionth of that of the voltage."""
INSIDE: Final = 0.02e-4
"""Distance of the sheet from the end of the intrinsic layer, cm: none of its carriers diffuse out against the field."""
MOBILITIES: Final = {"electrons": 11000.0, "holes": 300.0}
LIMITS: Final = {"electrons": 1e7, "holes": 5e6}
BETWEEN: Final = (0.1e-4, 1.1e-4)
"""Ends of the intrinsic layer, cm."""


def pin(spacing: float) -> Device:
    """InGaAs whose doped layers end abruptly, without recombination, in which speeds saturate at 1e7 cm/s."""
    layers = [
        {"material": "InGaAs", "thickness": thickness} | doping
        for thickness, doping in ((0.1, {"p": 1e19}), (1.0, {"n": 1e11}), (0.1, {"n": 1e19}))
    ]
    device = stack(layers, np.linspace(0.0, 1.2e-4, round(1.2e-4 / spacing) + 1), mobility="field", recombination=[])
    ones = np.ones(device.grid.shape)
    return replace(
        device, velocity_n=LIMITS["electrons"] * ones, velocity_p=LIMITS["holes"] * ones,
        exponent_n=ones, exponent_p=ones, mobility_n=MOBILITIES["electrons"] * ones,
        mobility_p=MOBILITIES["holes"] * ones,
    )  # fmt: skip


def lit(device: Device, place: float, length: float) -> tuple[Device, Waveform]:
    """The device with a source of pairs at one node, and a flash that makes `PAIRS` there."""
    node = int(np.abs(device.nodes[0] - place).argmin())
    generation = np.zeros(device.grid.shape)
    generation[node] = PAIRS / (float(device.volumes[node]) * length)
    return replace(device, generation=generation), Waveform((0.0, 0.0, length, length), (0.0, 1.0, 1.0, 0.0))


@pytest.mark.slow
@pytest.mark.parametrize("carrier", ["electrons", "holes"])
def test_a_sheet_at_one_end_makes_a_rectangular_pulse(carrier: str, evidence: Evidence) -> None:
    """N carriers make the current q N v/W for the time that they take, and the charge q N; the others leave at once."""
    spacing = 1e-7
    device = pin(spacing)
    capacitance = solved(device, Problem((VOLTS,), ionisation=False, mode="cv", frequencies=(1e6,)))[0]["C"]
    width = float(device.permittivity[0]) * VACUUM / capacitance
    steady = solved(device, Problem((VOLTS,), ionisation=False))[0]
    field = float(np.abs(steady["fields"]["field"])[device.grid.shape[0] // 2])
    mobility, limit = MOBILITIES[carrier], LIMITS[carrier]
    speed = mobility * field / (1.0 + mobility * field / limit)
    device, flash = lit(device, BETWEEN[0] + INSIDE if carrier == "electrons" else BETWEEN[1] - INSIDE, 1e-14)
    near = 0.5 * (width - (BETWEEN[1] - BETWEEN[0])) + INSIDE
    transit = (width - near) / speed
    what = Transient(1.5 * transit, Waveform((0.0,), (VOLTS,)), flash, tolerance=1e-4, largest=0.01 * transit)
    rows = followed(device, what)
    times, currents = (np.array([row[name] for row in rows]) for name in ("t", "J"))
    dark = currents[0]
    pulse = (dark - currents) / (CHARGE * PAIRS * speed / width)
    what = f"sheet of {carrier}"
    inside = (times > 0.2 * transit) & (times < 0.8 * transit)
    for found in (pulse[inside].min(), pulse[inside].max()):
        evidence.relative(SECTION, f"{what}: current over q N v/W", found, 1.0, 1e-6)
    charge = (dark * times[-1] - rows[-1]["charge"]) / (CHARGE * PAIRS)
    evidence.relative(SECTION, f"{what}: charge over q N", charge, 1.0, 1e-9)
    assert np.abs(pulse[times > 1.3 * transit]).max() < 1e-9
    falling = times > 0.8 * transit
    early, middle, late = np.interp([-0.84134, -0.5, -0.15866], -pulse[falling], times[falling]) / transit
    evidence.relative(SECTION, f"{what}: length of the pulse over that of the transit", middle, 1.0, 1e-3)
    # A sheet spreads by diffusion, and by a discretisation in which carriers jump from node to node.
    drop = 0.5 * field * spacing / device.thermal_voltage
    spread = math.sqrt(2.0 * device.thermal_voltage / (field * transit * speed) * drop / math.tanh(drop))
    evidence.relative(SECTION, f"{what}: spread of its arrival", 0.5 * (late - early), spread, 0.02)
