"""The silicon diode SI-1 against DEVSIM in extended precision, Sesame, and formulas of depletion and diffusion.

The currents are those of DEVSIM 2.11.2 with extended_solver, extended_model and extended_equation on the same nodes,
and of an independent Newton solver; both agree in all digits.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM, thermal_voltage

from .evidence import Evidence
from .photodiodes import assert_digits, digits, silicon, solved

SECTION = "photodiode: silicon"
FORWARD = {
    0.1: ("4.2048886883e-08", "1.026133e5"),
    0.2: ("3.7217253535e-07", "9.478260e4"),
    0.3: ("4.0301426225e-06", "8.624467e4"),
    0.4: ("8.5665979569e-05", "7.676556e4"),
    0.5: ("3.2492775482e-03", "6.595311e4"),
    0.7: ("6.9274200665e+00", "3.713150e4"),
    0.8: ("2.2774088856e+02", "2.048783e4"),
}
REVERSE = {
    -0.1: ("-9.8094976415e-09", "1.167099e5"),
    -1.0: ("-6.0953867069e-08", "1.659399e5"),
    -2.0: ("-1.0386522921e-07", "2.073619e5"),
    -10.0: ("-3.1208549262e-07", "4.083152e5"),
}
SESAME = {0.1: 4.20488836e-08, 0.3: 4.03014192e-06, 0.5: 3.24927743e-03, 0.8: 2.27740889e02}
UNIFORM = {
    1001: ("1.023085e5", "4.54458578e-06", "3.26204698e-03", "6.92844373", "-6.04797778e-08"),
    2001: ("1.061070e5", "4.05704246e-06", "3.24961824e-03", "6.92764498", "-6.09309048e-08"),
    4001: ("1.080233e5", "4.02914784e-06", "3.24921392e-03", "6.92746430", "-6.09376734e-08"),
}


@functools.cache
def at_all_voltages() -> list[dict[str, Any]]:
    """SI-1 in equilibrium and at the voltages of both tables."""
    device = silicon()
    assert device.grid.shape == (679,)
    return solved(device, Problem((0.0, *FORWARD, *REVERSE), ionisation=False))


def test_uniformity_tells_the_error_of_a_solution_that_is_not_converged() -> None:
    (exact,) = solved(silicon(), Problem((0.3,), ionisation=False))
    (rough,) = solved(silicon(), Problem((0.3,), ionisation=False, tolerance=1.0))
    error = abs(rough["J"] / exact["J"] - 1.0)
    assert exact["uniformity"] < 1e-13
    assert 1e-6 < error < rough["uniformity"]


def test_currents_fields_and_uniformity(evidence: Evidence) -> None:
    table = FORWARD | REVERSE
    rows = at_all_voltages()
    assert rows[0]["J"] == 0.0
    assert digits(rows[0]["E_max"], "1.09887711e5")
    built_in = rows[0]["fields"]["potential"][-1] - rows[0]["fields"]["potential"][0]
    assert digits(built_in, "0.833370011")
    for row, (volts, (current, strength)) in zip(rows[1:], table.items(), strict=True):
        evidence.relative(SECTION, f"J at {volts:g} V, A/cm2", row["J"], float(current), 5e-11)
        assert_digits([row["J"], row["E_max"]], [current, strength])
        evidence.at_most(SECTION, f"variation of J along the device at {volts:g} V", row["uniformity"], 1e-9)
    found = {volts: row["J"] for volts, row in zip(table, rows[1:], strict=True)}
    for volts, current in SESAME.items():
        assert found[volts] == pytest.approx(current, rel=3e-7)
    # Local ideality between the voltages of the table: traps at first, then diffusion, then high injection.
    volts = np.array(list(FORWARD))
    slopes = np.diff(np.log([found[v] for v in volts])) * thermal_voltage(300.0)
    assert_digits(list(np.diff(volts) / slopes), ["1.774", "1.624", "1.265", "1.064", "1.0093", "1.107"], also=5e-4)


def test_textbook_formulas() -> None:
    thermal = thermal_voltage(300.0)
    permittivity, doping = 11.7 * VACUUM, 1e17
    known = dict(zip((0.0, *FORWARD, *REVERSE), at_all_voltages(), strict=True))
    rows = [known[volts] for volts in (0.0, 0.5, 0.7, -10.0)]
    built_in = thermal * math.log(doping * doping / 1e20)
    for row, volts in ((rows[0], 0.0), (rows[3], -10.0)):
        width = math.sqrt(2.0 * permittivity * (built_in - volts - 2.0 * thermal) * (2.0 / doping) / CHARGE)
        assert row["E_max"] == pytest.approx(CHARGE * doping * width / (2.0 * permittivity), rel=1e-3)
    # Diffusion in a short diode, without recombination in the depleted zone.
    width = math.sqrt(2.0 * permittivity * built_in * (2.0 / doping) / CHARGE)
    saturation = 0.0
    for mobility in (1000.0, 400.0):
        diffusion = mobility * thermal
        length = math.sqrt(diffusion * 1e-7)
        saturation += CHARGE * 1e20 / doping * diffusion / length / math.tanh((5e-4 - 0.5 * width) / length)
    assert saturation == pytest.approx(1.22e-11, rel=2e-3)
    assert rows[1]["J"] == pytest.approx(saturation * math.expm1(0.5 / thermal), rel=0.07)
    assert rows[2]["J"] == pytest.approx(saturation * math.expm1(0.7 / thermal), rel=0.02)


@pytest.mark.parametrize(
    "nodes", [1001, pytest.param(2001, marks=pytest.mark.slow), pytest.param(4001, marks=pytest.mark.slow)]
)
def test_nodes_at_equal_distances(nodes: int, evidence: Evidence) -> None:
    strength, *currents = UNIFORM[nodes]
    rows = solved(silicon(nodes), Problem((0.0, 0.3, 0.5, 0.7, -1.0), ionisation=False))
    evidence.relative(SECTION, f"largest field, {nodes} nodes, V/cm", rows[0]["E_max"], float(strength), 6e-7)
    assert_digits([rows[0]["E_max"], *(row["J"] for row in rows[1:])], [strength, *currents])
