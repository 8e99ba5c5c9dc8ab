"""Photodiodes solved in other ways: Gummel's iteration, a current that is held, Fermi-Dirac statistics."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from minga.models.photodiode.solver.coefficient_values import neutral_potential
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM, thermal_voltage
from thinned import thinned

from .evidence import Evidence
from .photodiodes import apd, assert_digits, device, silicon, solved

CURRENTS = (3.2492775482e-03, 6.9274200665e00, -6.0953867069e-08, 0.0)


def test_gummel_finds_what_newton_finds() -> None:
    rows = solved(silicon(), Problem((0.3, 0.5, -1.0), ionisation=False, scheme="gummel"))
    assert_digits([row["J"] for row in rows], ["4.030143e-06", "3.249278e-03", "-6.09538671e-08"])


@pytest.mark.slow
@pytest.mark.parametrize("biases", thinned([((-5.0, -8.0),), ((-20.0, -36.0, -42.0),)], ((-5.0, -8.0),)))
def test_gummel_settles_with_ionisation(biases: tuple[float, ...]) -> None:
    """Also where rounding of nearly balanced currents would make pairs: that of `pin-inp` stalled at -4.99 V.

    Pairs at these edges are known to some digits only, which shows where pairs are most of the current.
    """
    newton, gummel = (solved(device("pin-inp"), Problem(biases, scheme=scheme)) for scheme in ("newton", "gummel"))
    for one, other in zip(newton, gummel, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-10 + 1e-3 * (one["M"] - 1.0))
        assert other["M"] - 1.0 == pytest.approx(one["M"] - 1.0, rel=1e-4, abs=1e-11)


@pytest.mark.slow
def test_gummel_settles_in_degenerate_layers() -> None:
    """Where d ln n / d eta < 1/2, as in n InP of 2e18, a level that follows the density alone would diverge."""
    degenerate = device("pin-inp", statistics="fermi-dirac")
    newton, gummel = (solved(degenerate, Problem((-10.0, -36.0), scheme=scheme)) for scheme in ("newton", "gummel"))
    for one, other in zip(newton, gummel, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-8 + 1e-3 * (one["M"] - 1.0))


@pytest.mark.slow
def test_gummel_in_the_avalanche_photodiode() -> None:
    biases = (-1.0, -20.0, -45.0, -60.0)
    newton, gummel = (solved(apd(5), Problem(biases, ionisation=False, scheme=s)) for s in ("newton", "gummel"))
    for one, other in zip(newton, gummel, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-7)


@pytest.mark.slow
def test_gummel_helps_where_newton_fails_at_first() -> None:
    few = solved(apd(10), Problem((-1.0, -20.0), limit=12))
    many = solved(apd(10), Problem((-1.0, -20.0)))
    for one, other in zip(few, many, strict=True):
        assert one["J"] == pytest.approx(other["J"], rel=1e-9)


@pytest.mark.slow
def test_a_current_is_held() -> None:
    rows = solved(silicon(), Problem(current=CURRENTS, ionisation=False))
    assert [row["V"] for row in rows] == pytest.approx([0.5, 0.7, -1.0, 0.0], abs=2e-8)
    assert [row["J"] for row in rows] == pytest.approx(CURRENTS, rel=1e-8, abs=1e-25)


@pytest.mark.slow
def test_a_current_is_held_beyond_breakdown() -> None:
    rows = solved(apd(5), Problem(current=(-1e-4, -1e-1, -10.0), curves=("lit",)))
    assert [row["J_lit"] for row in rows] == pytest.approx([-1e-4, -1e-1, -10.0], rel=1e-8)
    volts = [row["V"] for row in rows]
    assert volts[0] > volts[1] > volts[2]
    assert volts[1:] == pytest.approx([-66.55, -66.60], abs=0.02), "the voltage hardly changes there"


@pytest.mark.slow
def test_degenerate_carriers() -> None:
    """In InP with 1e18 donors, nearly twice Nc, the contact potential is 15 mV more than Boltzmann's."""
    boltzmann = apd(10)
    fermi = replace(boltzmann, statistics="fermi-dirac")
    change = (neutral_potential(fermi) - neutral_potential(boltzmann)) * boltzmann.thermal_voltage
    assert change[-1] == pytest.approx(0.0148, abs=1e-3)


@pytest.mark.slow
def test_currents_of_degenerate_carriers() -> None:
    boltzmann = apd(10)
    fermi = replace(boltzmann, statistics="fermi-dirac")
    one, other = (solved(device, Problem((0.0, -51.0), ("dark", "lit"))) for device in (boltzmann, fermi))
    assert other[0]["J"] == 0.0
    potential = other[0]["fields"]["potential"]
    assert potential[-1] - potential[0] == pytest.approx(
        float(np.diff(neutral_potential(fermi)[[0, -1]])[0]) * boltzmann.thermal_voltage, abs=1e-12
    )
    assert other[1]["J_lit"] == pytest.approx(one[1]["J_lit"], rel=0.01), "depleted layers are not degenerate"
    assert other[1]["uniformity"] < 1e-8


@pytest.mark.slow
def test_capacitance_of_a_depleted_junction(evidence: Evidence) -> None:
    """Of SI-1 in reverse: eps/W with W of the depletion approximation and its correction by 2 kT/q."""
    thermal = thermal_voltage(300.0)
    built_in = thermal * math.log(1e34 / 1e20)
    volts = (0.0, -1.0, -10.0)
    rows = solved(silicon(), Problem(volts, ionisation=False, quasistatic_capacitance=True))
    for row, bias in zip(rows, volts, strict=True):
        width = math.sqrt(2.0 * 11.7 * VACUUM * (built_in - bias - 2.0 * thermal) * 2e-17 / CHARGE)
        evidence.relative(
            "photodiode: silicon",
            f"quasi-static capacitance at {bias:g} V, F/cm2",
            row["C_quasistatic"],
            11.7 * VACUUM / width,
            0.01,
        )
