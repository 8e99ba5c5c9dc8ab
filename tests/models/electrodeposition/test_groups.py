"""Dimensionless groups and what electrochemists work out by hand, against published and derived numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.groups import (
    Salt,
    Scales,
    conductivity,
    debye_length,
    groups_of,
    limiting_current,
    permittivity_for,
)
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.space.grid import Grid

WATER = Constants()
ZINC = bath("ZnSO4", 100.0, None, 0.0)
COPPER = bath("CuSO4", 100.0, None, 0.0)
THERMAL = WATER.thermal / WATER.faraday
AMBIPOLAR = 8.572e-10

SETS = {
    "A": (Scales(0.5e-3, 10e-6, 1.0, 100.0), (11.13, -16.66, 6.99, 4.67, 3.48e9, 5.6e-3, 9.7e13, 7.8e5, 9.6e-7)),
    "B": (Scales(1e-2, 10e-6, 1.0, 100.0), (0.557, -0.833, 139.9, 93.5, 1.39e12, 0.112, 9.7e13, 1.57e7, 4.8e-8)),
    "C": (
        Scales(1e-2, AMBIPOLAR / 1e-2, THERMAL, 100.0),
        (1.668, -2.497, 1.199, 0.801, 5.4e13, 9.6e-4, 3.4e16, 2.1e11, 4.8e-8),
    ),
    "D": (Scales(1e-2, 100e-6, 10.0, 100.0), (0.557, -0.833, 1399, 935, 1.39e11, 1.12, 9.7e12, 1.57e5, 4.8e-8)),
}


@pytest.mark.parametrize("name", SETS)
def test_the_groups_of_a_zinc_cell(name: str) -> None:
    scales, expected = SETS[name]
    found = groups_of(ZINC, WATER, scales)
    debye = debye_length(ZINC, WATER) / scales.length
    ours = (*found.migration, *found.peclet, found.poisson, found.reynolds, found.coulomb, sum(found.buoyancy), debye)
    for mine, known in zip(ours, expected, strict=True):
        assert mine == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize("name", SETS)
def test_identities_between_groups(name: str) -> None:
    """Nernst and Einstein; the dielectric time; the Debye length; Coulomb's force against Poisson's number."""
    scales, _ = SETS[name]
    found = groups_of(ZINC, WATER, scales)
    theta = scales.potential / THERMAL
    for ion, m, pe in zip(ZINC, found.migration, found.peclet, strict=True):
        assert m * pe == pytest.approx(ion.charge * theta, rel=1e-12)
    shares = [s.bulk / scales.concentration for s in ZINC]
    charges = sum(s.charge**2 * c for s, c in zip(ZINC, shares, strict=True))
    lengths = 1 / (theta * found.poisson * charges)
    assert (debye_length(ZINC, WATER) / scales.length) ** 2 == pytest.approx(lengths, rel=1e-12)
    moving = sum(s.charge * m * c for s, m, c in zip(ZINC, found.migration, shares, strict=True))
    relaxation = WATER.permittivity / conductivity(ZINC, WATER) * scales.velocity / scales.length
    assert relaxation == pytest.approx(1 / (found.poisson * moving), rel=1e-12)
    force = WATER.permittivity * scales.potential**2 / (WATER.density * (scales.velocity * scales.length) ** 2)
    assert found.force == pytest.approx(force, rel=1e-12)
    viscous = WATER.permittivity * scales.potential**2 / (WATER.viscosity * scales.velocity * scales.length)
    assert found.force * found.reynolds == pytest.approx(viscous, rel=1e-12)


def salt(species: tuple[Species, ...]) -> Salt:
    found = Salt.of(species)
    assert found is not None
    return found


def test_salts_diffuse_and_carry_currents_as_known() -> None:
    zinc, copper = salt(ZINC), salt(COPPER)
    assert (zinc.diffusivity, copper.diffusivity) == pytest.approx((8.572e-10, 8.700e-10), rel=2e-4)
    assert (zinc.transference, copper.transference) == pytest.approx((0.4006, 0.4065), abs=1e-4)
    assert debye_length(ZINC, WATER) == pytest.approx(0.4807e-9, rel=1e-3)
    assert (conductivity(ZINC, WATER), conductivity(COPPER, WATER)) == pytest.approx((2.68, 2.71), abs=5e-3)
    assert zinc.limiting_current(1e-2, WATER.faraday) == pytest.approx(5.519, abs=1e-3)
    assert zinc.limiting_current(1e-2, WATER.faraday, reservoir=True) == pytest.approx(5.519 / 2, abs=1e-3)
    for current, seconds in ((50, 279.1), (100, 69.77), (500, 2.791)):
        assert zinc.sand(current, WATER.faraday) == pytest.approx(seconds, rel=2e-4)
    for current, seconds in ((50, 289.0), (100, 72.25), (500, 2.890)):
        assert copper.sand(current, WATER.faraday) == pytest.approx(seconds, rel=2e-4)


def test_the_limiting_current_of_a_cell() -> None:
    """Zinc passes at both electrodes; where sulphate is held at the anode as well it is half of that."""
    zinc, sulphate = {"Zn": Held(100.0)}, {"SO4": Held(100.0)}
    grid = Grid((10,), axes=("y",), spacing=1e-3)

    def limit(cathode: dict[str, Held], anode: dict[str, Held], *more: Species) -> float | None:
        problem = Problem(
            grid, (*ZINC, *more), Steps(1.0, 1.0, 1.0), cathode=Electrode(cathode), anode=Electrode(anode)
        )
        return limiting_current(problem)

    assert limit(zinc, zinc) == pytest.approx(5.519, abs=1e-3)
    assert limit(zinc, zinc, Species("tracer", 0, 1e-9, 1.0)) == pytest.approx(5.519, abs=1e-3)
    assert limit(zinc, {**zinc, **sulphate}) == pytest.approx(5.519 / 2, abs=1e-3)
    assert limit(zinc, {"Zn": Held(50.0), **sulphate}) == pytest.approx(5.519 / 4, abs=1e-3)
    assert limit(zinc, {}) is limit({}, zinc) is limit({**zinc, **sulphate}, zinc) is None
    assert limit(zinc, zinc, Species("Na", 1, 1e-9, 1.0)) is None


def test_rolls_between_level_plates() -> None:
    nu = WATER.viscosity / WATER.density
    assert salt(ZINC).roll_velocity(1e4, 0.5e-3, nu) == pytest.approx(17.6e-6, rel=0.01)
    assert salt(ZINC).roll_velocity(1e4, 0.25e-3, nu) == pytest.approx(2.2e-6, rel=0.01)


def test_a_debye_length_of_ones_own() -> None:
    soft = replace(WATER, permittivity=permittivity_for(2e-6, ZINC, WATER))
    assert debye_length(ZINC, soft) == pytest.approx(2e-6, rel=1e-12)
    scaled = Constants(1.0, 1.0, 1.0)
    pair = (Species("a", 1, 1.0, 1.0), Species("b", -1, 1.0, 1.0))
    assert permittivity_for(0.05, pair, scaled) == pytest.approx(2 * 0.05**2, rel=1e-12)


def test_only_two_ions_are_a_salt() -> None:
    assert Salt.of(bath("CuSO4", 100.0, "H2SO4", 10.0)) is None
    assert Salt.of((*ZINC, Species("tracer", 0, 1e-9, 1.0))) is not None
    assert math.isclose(salt(ZINC).expansion, 1.6e-4)
