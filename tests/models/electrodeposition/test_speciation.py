"""Ion pairs of sulphates, beside PHREEQC and tables."""

from __future__ import annotations

import pytest

from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.groups import conductivity
from minga.models.electrodeposition.problem import Constants
from minga.models.electrodeposition.speciation import pairs_of


def test_copper_sulphate_conducts_a_third_of_what_its_ions_would() -> None:
    """PHREEQC (phreeqc.dat, 25 C): .484 in pairs and .8634 S/m."""
    species = bath("CuSO4", 100.0, None, 0.0)
    found = pairs_of(species, Constants())
    assert found is not None
    assert found.fraction == pytest.approx(0.484, abs=0.02)
    assert found.conductivity == pytest.approx(0.8634, rel=0.05)
    assert conductivity(species, Constants()) == pytest.approx(2.71, abs=5e-3)


def test_dilute_solutions_have_free_ions() -> None:
    species = bath("ZnSO4", 1e-3, None, 0.0)
    found = pairs_of(species, Constants())
    assert found is not None
    assert found.fraction < 1e-3
    assert found.conductivity == pytest.approx(conductivity(species, Constants()), rel=1e-2)


def test_of_other_baths_nothing_is_said() -> None:
    assert pairs_of(bath("CuSO4", 100.0, "H2SO4", 100.0), Constants()) is None
    assert pairs_of(bath("CuSO4", 1000.0, None, 0.0), Constants()) is None
