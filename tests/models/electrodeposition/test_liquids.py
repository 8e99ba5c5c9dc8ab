"""Density and viscosity of baths, against handbooks and an independent implementation of the same fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minga.case.load import read_settings
from minga.case.settings import GridSettings
from minga.models.electrodeposition.case import problem_of
from minga.models.electrodeposition.electrolytes import METALS, bath
from minga.models.electrodeposition.groups import Salt
from minga.models.electrodeposition.liquids import Liquid, liquid_of
from minga.models.electrodeposition.preflight import notes_of
from minga.models.electrodeposition.problem import Species


def ions(**concentrations: float) -> list[Species]:
    return [Species(name, 1, 1e-9, c, 0.0) for name, c in concentrations.items()]


def known(celsius: float = 25.0, **concentrations: float) -> Liquid:
    found = liquid_of(ions(**concentrations), celsius)
    assert found is not None
    return found


# CRC Handbook, concentrative properties of aqueous solutions, 20 C: mol/l, g/ml, mPa s.
HANDBOOK = [
    ("Cu", 0.128, 1.0190, 1.084), ("Cu", 0.329, 1.0511, 1.221), ("Cu", 0.694, 1.1070, 1.543),
    ("Zn", 0.126, 1.0190, 1.081), ("Zn", 0.326, 1.0511, 1.227), ("Zn", 0.686, 1.1071, 1.545),
]  # fmt: skip


@pytest.mark.parametrize(("metal", "molar", "density", "viscosity"), HANDBOOK)
def test_sulphates_are_those_of_the_handbook(metal: str, molar: float, density: float, viscosity: float) -> None:
    found = known(20.0, **{metal: 1e3 * molar, "SO4": 1e3 * molar})
    assert found.density == pytest.approx(1e3 * density, rel=1e-3)
    assert found.viscosity == pytest.approx(1e-3 * viscosity, rel=0.03)


def test_fits_are_those_of_another_implementation() -> None:
    # thermo 0.6.1, Laliberte_density_mix and Laliberte_viscosity_mix at 298.15 K: mass fractions .1, and .07 and .08.
    density, viscosity = 1108.5783701696785, 0.0014304231382659303
    molar = 0.1 * density / 0.15475
    found = known(Ni=molar, SO4=molar)
    assert (found.density, found.viscosity) == pytest.approx((density, viscosity), rel=1e-9)
    density, viscosity = 1130.5068355223993, 0.00141681891553047
    copper, acid = 0.07 * density / 0.15963, 0.08 * density / 0.09808
    found = known(Cu=copper, H=2 * acid, SO4=copper + acid)
    assert (found.density, found.viscosity) == pytest.approx((density, viscosity), rel=1e-9)


def test_silver_nitrate_is_interpolated_in_its_table() -> None:
    found = known(Ag=641.0, NO3=641.0)  # 10 % by mass, a row that is left out here: 1.0882 g/ml, 1.039 mPa s
    assert found.celsius == 20.0
    assert found.density == pytest.approx(1088.2, rel=3e-4)
    assert found.viscosity == pytest.approx(1.039e-3, rel=1e-3)


def test_unknown_baths_have_none() -> None:
    assert liquid_of(ions(Cu=100.0, Cl=200.0)) is None
    assert liquid_of(ions(Cu=3000.0, SO4=3000.0)) is None  # above the fits
    assert liquid_of(ions(Cu=100.0, SO4=100.0), 80.0) is None


@pytest.mark.parametrize("salt", ["ZnSO4", "CuSO4", "NiSO4", "AgNO3"])
def test_expansions_are_the_slopes_of_these_densities(salt: str) -> None:
    first, second = bath(salt, 100.0, None, 0.0), bath(salt, 300.0, None, 0.0)
    low, high = liquid_of(first, 20.0), liquid_of(second, 20.0)
    assert low is not None
    assert high is not None
    slope = (high.density - low.density) / 200.0 / 998.2
    assert sum(ion.expansion for ion in first) == pytest.approx(slope, rel=0.02)


def test_diffusivities_are_those_of_conductivities_at_infinite_dilution() -> None:
    thermal, faraday = 8.314462618 * 298.15, 96485.33212
    by_name = {ion.name: ion for salt in ("NiSO4", "AgNO3") for ion in bath(salt, 1.0, None, 0.0)}
    for name, conductivity in (("Ni", 49.6e-4), ("Ag", 61.9e-4)):
        ion = by_name[name]
        assert ion.diffusivity == pytest.approx(thermal * conductivity / (ion.charge * faraday**2), rel=1e-3)
    nickel, silver = Salt.of(bath("NiSO4", 100.0, None, 0.0)), Salt.of(bath("AgNO3", 100.0, None, 0.0))
    assert nickel is not None
    assert silver is not None
    assert nickel.transference == pytest.approx(0.660 / (0.660 + 1.07))
    assert silver.transference == pytest.approx(1.648 / (1.648 + 1.9))
    assert METALS["Ni"] == pytest.approx(6.5947e-6, rel=1e-4)
    assert METALS["Ag"] == pytest.approx(1.02731e-5, rel=1e-4)


@pytest.mark.parametrize(
    ("electrolyte", "words"),
    [
        ("CuSO4", "1013 kg/m3 and 0.949 mPa s at 25 C"),
        ("NiSO4", "at 25 C"),
        ("AgNO3", "1013 kg/m3 and 1.01 mPa s at 20 C"),
    ],
)
def test_a_run_says_what_the_bath_and_the_equations_have(electrolyte: str, words: str) -> None:
    said: dict[str, Any] = {"electrolyte": electrolyte, "concentration": "0.1 M", "length": "1 mm", "voltage": 0.1}
    settings = read_settings("electrodeposition", {**said, "time": {"end": "1 s"}})
    notes = dict(notes_of(problem_of(settings, GridSettings(shape=(12,)), Path())))
    assert words in notes["liquid"]
    assert "the equations have 997 kg/m3 and 0.89 mPa s" in notes["liquid"]
    assert ("not known for this salt" in notes.get("ion pairs", "")) == (electrolyte == "NiSO4")
