"""Films by transfer matrices, and what silicon absorbs behind one, against PyPI's tmm 0.2.0."""

from __future__ import annotations

import numpy as np
import pytest

from minga.models.photodiode.structure.indices import shipped_index
from minga.models.photodiode.structure.transfer_matrix import Film, waves_in

from .evidence import Evidence

SECTION = "photodiode: optics"
NM = 1e-7
QUARTER = Film(np.sqrt(3.167), 0.0, 1550 * NM / 4 / np.sqrt(3.167))
WINDOW, ABSORBER = Film(3.167, 0.0, 500 * NM), Film(3.56, 0.0752405, 1000 * NM)


@pytest.mark.parametrize(
    ("name", "films", "beyond", "reflected", "absorbed"),
    [
        ("coated InP/InGaAs/InP", (QUARTER, WINDOW, ABSORBER), (3.167, 0.0), 0.00776383, 0.45369875),
        ("InP/InGaAs/InP", (WINDOW, ABSORBER), (3.167, 0.0), 0.32655304, 0.30793278),
        ("coated, before a metal", (QUARTER, WINDOW, ABSORBER, WINDOW), (0.55, 11.5), 0.25656819, 0.71619975),
    ],
)
def test_films_on_indium_phosphide(
    name: str, films: tuple[Film, ...], beyond: tuple[float, float], reflected: float, absorbed: float,
    evidence: Evidence,
) -> None:  # fmt: skip
    """Eight digits of PyPI's tmm 0.2.0."""
    waves = waves_in(1.0, films, beyond, 1550.0)
    whole = waves.reflected + waves.transmitted + sum(waves.absorbed)
    evidence.absolute(SECTION, f"{name}, 1550 nm: reflected", waves.reflected, reflected, 1e-8)
    evidence.absolute(SECTION, f"{name}, 1550 nm: absorbed", sum(waves.absorbed), absorbed, 1e-8)
    evidence.at_most(SECTION, f"{name}, 1550 nm: difference of the sum of all parts from 1", abs(whole - 1.0), 1e-12)


@pytest.mark.parametrize(
    ("wavelength", "reflected", "collected"),
    [
        (500, 0.37931167, 0.356317),
        (700, 0.11935647, 0.680188),
        (850, 0.01516593, 0.396733),
        (940, 0.00284354, 0.165238),
    ],
)
def test_nitride_on_silicon(wavelength: int, reflected: float, collected: float, evidence: Evidence) -> None:
    """Reflection, and what 0.5 to 10.5 um of thick silicon absorb."""
    silicon = shipped_index("Si").at(wavelength)
    waves = waves_in(1.0, (Film(2.0, 0.0, 117.5 * NM), Film(*silicon, 1e-2)), silicon, wavelength)
    whole = waves.reflected + waves.transmitted + sum(waves.absorbed)
    what = f"117.5 nm of nitride on Si, {wavelength} nm"
    evidence.absolute(SECTION, f"{what}: reflected", waves.reflected, reflected, 1e-8)
    first, last = waves.power(np.array([1, 1]), np.array([0.5e-4, 10.5e-4]))
    evidence.absolute(SECTION, f"{what}: quantum efficiency of 0.5 to 10.5 um", first - last, collected, 1e-6)
    evidence.at_most(SECTION, f"{what}: difference of the sum of all parts from 1", abs(whole - 1.0), 1e-12)
