"""Constants of tunnelling from band to band and to traps, against an independent program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.models.photodiode.solver.tunnelling import enhancement
from minga.models.photodiode.structure.constants import thermal_voltage
from minga.models.photodiode.structure.tunnelling import kane, shipped_tunnelling, trap_field

from .evidence import Evidence

Floats = NDArray[np.float64]
SECTION = "photodiode: tunnelling"
THERMAL = thermal_voltage(300.0)


@pytest.mark.parametrize(
    ("gap", "mass", "a", "b"),
    [
        (0.74, 0.041, 1.619931e20, 5.186423e6),
        (1.344, 0.077, 1.647275e20, 1.739693e7),
        (0.8, 0.038, 1.499917e20, 5.612485e6),
    ],
)
def test_coefficients_of_kane(gap: float, mass: float, a: float, b: float, evidence: Evidence) -> None:
    """InGaAs, InP and the direct gap of Ge."""
    found = kane(gap, mass)
    evidence.relative(SECTION, f"Kane, gap {gap:g} eV, mass {mass:g}: A, 1/(cm3 s (V/cm)^2)", found[0], a, 5e-7)
    evidence.relative(SECTION, f"Kane, gap {gap:g} eV, mass {mass:g}: B, V/cm", found[1], b, 5e-7)


def test_generation_at_known_fields(evidence: Evidence) -> None:
    a, b = kane(0.74, 0.041)
    for field, expected in ((2e5, 3.54309e19), (3e5, 4.52505e23)):
        what = f"InGaAs, generation at {field:.0e} V/cm, 1/(cm3 s)"
        evidence.relative(SECTION, what, a * field**2 * np.exp(-b / field), expected, 5e-6)
    for name, expected in (("hurkx", 2.24112e21), ("kane-si", 8.65335e21)):
        a, b, power = shipped_tunnelling()[name].at(1.12)
        found = a * 1e6**power * np.exp(-b / 1e6)
        evidence.relative(SECTION, f"Si by {name}, generation at 1e6 V/cm, 1/(cm3 s)", found, expected, 5e-6)


def gamma_of(depth: float, strength: float, fields: Floats) -> tuple[Floats, Floats]:
    """Gamma and its derivative by the square of the field, from a kernel."""

    @mg.kernel
    def gamma(square: Any, out: Any, slope: Any) -> None:
        found = enhancement(mg.max(square[0], 0.0) * 0.0 + depth, mg.max(square[0], 0.0) * 0.0 + strength, square[0])
        out[0] = found
        slope[0] = mg.derivative(found, square[0])

    grid = mg.Grid((fields.size,))
    square, out, slope = (mg.Field(name, grid) for name in ("square", "out", "slope"))
    program = mg.Program("gamma")
    program.apply(gamma, square, out, slope)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(square, fields * fields)
        engine.run(program)
        return engine.gather(out), engine.gather(slope)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "mass", "known"),
    [
        (0.37, 0.041, {1e5: 5.477502, 2e5: 47.12037, 3e5: 445.5359}),
        (0.672, 0.077, {1e5: 3.060848, 3e5: 74.91577}),
        (0.56, 0.25, {1e5: 1.354844, 5e5: 50.39461}),
    ],
)
def test_enhancement_by_traps(depth: float, mass: float, known: dict[float, float], evidence: Evidence) -> None:
    """Known values, the integral by a fine trapezoid rule at any field, and the derivative by differences."""
    a, strength = depth / THERMAL, trap_field(depth, mass)
    found, _ = gamma_of(a, strength, np.array(list(known)))
    for (field, expected), number in zip(known.items(), found, strict=True):
        evidence.relative(
            SECTION, f"Gamma of traps {depth:g} eV deep, mass {mass:g}, {field:.0e} V/cm", number, expected, 5e-7
        )
    fields = np.geomspace(1.001e3, 2e6, 25)
    found, slopes = gamma_of(a, strength, fields)
    root = np.linspace(0.0, 1.0, 400_001)  # u = root^2
    exact = [a * np.trapezoid(2 * root * np.exp(a * root**2 - strength / e * root**3), root) for e in fields]
    assert found == pytest.approx(exact, rel=3e-7)
    below, above = (gamma_of(a, strength, fields * np.sqrt(1.0 + h))[0] for h in (-1e-5, 1e-5))
    assert slopes * fields**2 == pytest.approx((above - below) / 2e-5, rel=1e-6)
    none, _ = gamma_of(a, strength, np.array([0.0, 1.0]))
    assert none[0] == 0.0
    assert none[1] < 1e-6
