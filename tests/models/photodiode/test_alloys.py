"""Materials over composition and temperature: gaps, offsets and mobilities of alloys, and new sets of coefficients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.structure.depletion import built_in_voltage
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import coefficient, shipped_sets
from minga.models.photodiode.structure.materials_file import read_materials, shipped_materials
from minga.models.photodiode.structure.temperature import gap_at
from minga.models.photodiode.structure.ternary import ternary
from minga.models.photodiode.structure.vurgaftman import (
    alloy_gap,
    alloy_valence,
    compound_gap,
    compound_valence,
    direct_up_to,
    valley_gap,
)

MATERIALS = shipped_materials()
GAPS = {
    "GaAs": (1.5076, 1.4225, 1.3758),
    "InP": (1.4146, 1.3529, 1.3203),
    ("InGaAs", 0.47): (0.8057, 0.7373, 0.7014),
    ("InAlAs", 0.48): (1.5205, 1.4507, 1.4100),
    ("AlGaAs", 0.3): (1.9266, 1.8408, 1.7912),
}
"""eV at 77, 300 and 400 K, from openbandparams 1.0."""


@pytest.mark.parametrize("what", GAPS)
def test_gaps_over_the_temperature(what: Any) -> None:
    for temperature, known in zip((77.0, 300.0, 400.0), GAPS[what]):
        alloy = not isinstance(what, str)
        gap = alloy_gap(*what, temperature) if alloy else compound_gap(what, temperature)
        assert gap == pytest.approx(known, abs=1e-4)
        if alloy:
            assert gap_at(ternary(*what, MATERIALS), temperature) == pytest.approx(known, abs=1e-4)
    if what == "GaAs":
        assert [gap_at(MATERIALS["GaAs"], t) for t in (77.0, 300.0, 400.0)] == pytest.approx(GAPS["GaAs"], abs=1e-4)


def test_bands_are_aligned_within_a_family() -> None:
    assert alloy_valence("InAlAs", 0.48) == pytest.approx(-0.7855, abs=1e-4)
    assert alloy_valence("InGaAs", 0.47) == pytest.approx(-0.5940, abs=1e-4)
    narrow, wide = ternary("InGaAs", 0.47, MATERIALS), ternary("InAlAs", 0.48, MATERIALS)
    assert narrow.affinity - wide.affinity == pytest.approx(0.522, abs=1e-3)
    assert (wide.affinity + wide.gap) - (narrow.affinity + narrow.gap) == pytest.approx(0.192, abs=1e-3)
    inp = MATERIALS["InP"]
    assert (inp.affinity + inp.gap) - (narrow.affinity + narrow.gap) == pytest.approx(0.346, abs=1e-3)
    assert narrow.affinity == pytest.approx(MATERIALS["InGaAs"].affinity, abs=5e-3)
    gaas, barrier = MATERIALS["GaAs"], ternary("AlGaAs", 0.3, MATERIALS)
    offset = (barrier.affinity + barrier.gap) - (gaas.affinity + gaas.gap)
    assert offset == pytest.approx(0.3 * (compound_valence("GaAs") - compound_valence("AlAs")), abs=1e-5)


@pytest.mark.parametrize("name", ["AlGaAs", "InAlAs"])
def test_the_file_has_the_values_of_the_formulas(name: str) -> None:
    base = MATERIALS[name]
    assert base.alloy is not None
    made = ternary(*base.alloy, MATERIALS)
    for item in ("gap", "affinity", "permittivity", "nc", "nv", "mobility_n", "mobility_p"):
        assert getattr(made, item) == pytest.approx(getattr(base, item), rel=1e-3), item


def test_algaas_begins_as_gaas_and_ends_indirect() -> None:
    gaas, first, last = MATERIALS["GaAs"], ternary("AlGaAs", 0.0, MATERIALS), ternary("AlGaAs", 1.0, MATERIALS)
    for item in ("gap", "affinity", "permittivity", "nc", "nv", "mobility_n", "mobility_p"):
        assert getattr(first, item) == pytest.approx(getattr(gaas, item), rel=1e-5), item
    for carrier in "np":
        name = f"caughey_thomas_{carrier}"
        ends = [getattr(getattr(first, name), k) for k in ("max", "min", "reference", "exponent", "max_exponent")]
        known = [getattr(getattr(gaas, name), k) for k in ("max", "min", "reference", "exponent", "max_exponent")]
        assert ends == pytest.approx(known, rel=1e-5)
    assert last.gap == pytest.approx(2.24 - 7e-4 * 9e4 / 830)
    assert last.caughey_thomas_n is not None
    assert last.caughey_thomas_n.max == pytest.approx(400.0)
    made = [ternary("AlGaAs", x, MATERIALS) for x in np.linspace(0, 1, 101)]
    for item in ("gap", "affinity", "nc", "nv"):
        values = np.array([getattr(m, item) for m in made])
        assert np.abs(np.diff(np.log(values))).max() < 0.5, f"{item} is continuous over the crossover"
    assert last.radiative < 1e-3 * first.radiative, "few electrons are in the direct valley"
    limit = direct_up_to("AlGaAs", 300.0)
    assert valley_gap("AlGaAs", limit, 300.0, "gamma") == pytest.approx(valley_gap("AlGaAs", limit, 300.0, "x"))
    assert direct_up_to("InGaAs", 300.0) == 1.0
    assert valley_gap("AlGaAs", 0.35, 300.0, "gamma") < valley_gap("AlGaAs", 0.35, 300.0, "x")
    assert valley_gap("AlGaAs", 0.45, 300.0, "gamma") > valley_gap("AlGaAs", 0.45, 300.0, "x")


def diode(material: str, thickness: float = 1.0, doping: float = 1e17, **changes: Any) -> dict[str, Any]:
    layer = {"material": material, "thickness": thickness}
    return {
        "bias": [0.0],
        "layers": [{**layer, "name": "p", "p": doping}, {**layer, "name": "n", "n": doping}],
        "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"graded": {"first": "1 nm", "growth": 1.3, "cap": "50 nm"}},
    } | changes


def device(table: dict[str, Any]) -> Device:
    return device_of(read_settings("photodiode", table), Path())


def test_a_graded_layer_is_linear_in_its_composition() -> None:
    table = diode("GaAs")
    table["layers"].insert(1, {"name": "graded", "material": "AlGaAs", "x": [0.1, 0.3], "thickness": 0.5})
    made = device(table)
    layer = made.layers[1]
    inside = slice(layer.first, layer.last + 1)
    x = 0.1 + 0.2 * (made.nodes[0][inside] - layer.start) / (layer.end - layer.start)
    expected = [ternary("AlGaAs", float(each.clip(0.1, 0.3)), MATERIALS).permittivity for each in x]
    assert made.permittivity[inside] == pytest.approx(expected, rel=1e-9)
    gap = made.thermal_voltage * (np.log(made.nc * made.nv) - 2 * np.log(made.nie))
    assert gap[inside][0] < gap[inside][-1]
    assert gap[inside] == pytest.approx([alloy_gap("AlGaAs", float(each), 300.0) for each in x], abs=1e-3)


def test_the_default_composition_depends_on_the_temperature_as_alloys_do() -> None:
    made = device(diode("InAlAs", temperature=400.0))
    gap = made.thermal_voltage * (np.log(made.nc * made.nv) - 2 * np.log(made.nie))
    assert gap == pytest.approx(np.full(gap.size, 1.4100), abs=1e-4)


@pytest.mark.parametrize(("material", "ni"), [("GaAs", 2.0e6), ("Ge", 2.3e13), ("4H-SiC", 7.6e-9), ("InAlAs", 1.6e6)])
def test_intrinsic_densities(material: str, ni: float) -> None:
    made = device(diode(material))
    assert made.nie == pytest.approx(np.full(made.nie.size, ni), rel=0.05)


@pytest.mark.slow
def test_silicon_carbide_has_a_diode_curve() -> None:
    """With 7.6e-9 intrinsic carriers per cm3, equilibrium is exact and forward currents are those of recombination."""
    table = diode("4H-SiC", bias=[0.0, -10.0, 2.0, 2.4], recombination=["srh"])
    for layer in table["layers"]:
        layer |= {"tau_n": 1e-11, "tau_p": 1e-11}
    assert built_in_voltage(device(table)) == pytest.approx(2 * 0.0258519998 * np.log(1e17 / 7.62e-9), abs=2e-3)
    said = load_model("photodiode", {"photodiode": table}, GridSettings(), Path())
    found = mg.run(said, 4)
    current = found["J"].values[-4:]
    assert current[0] == 0.0
    assert -4e-21 < current[1] < -1e-21, "about q ni W/(2 tau) of the depleted width"
    ideality = 0.4 / (0.0258519998 * np.log(current[3] / current[2]))
    assert 1.7 < ideality < 2.05
    assert found["uniformity"].values[-1] < 1e-6


@pytest.mark.parametrize(
    ("name", "field", "electrons", "holes"),
    [
        ("selberherr", 4e5, 1.889e5 * np.exp(-((5.75 / 4) ** 1.82)), 2.215e5 * np.exp(-((6.57 / 4) ** 1.75))),
        ("ge-100", 2e5, 8.04e6 * np.exp(-7.0), 6.39e6 * np.exp(-6.35)),
        ("hatakeyama", 3e6, 1.76e8 * np.exp(-11.0), 3.41e8 * np.exp(-25 / 3)),
        ("kyuregyan", 3e6, 3.86e7 * np.exp(-25.6 / 3), 5.31e6 * np.exp(-13.1 / 3)),
    ],
)
def test_new_sets_of_coefficients(name: str, field: float, electrons: float, holes: float) -> None:
    chosen = shipped_sets()[name]
    assert float(coefficient(chosen.electrons, field)) == pytest.approx(electrons, rel=1e-12)
    assert float(coefficient(chosen.holes, field)) == pytest.approx(holes, rel=1e-12)
    assert all(MATERIALS[m].ionisation in shipped_sets() for m in chosen.materials)


def test_coefficients_of_gaas_depend_on_the_temperature() -> None:
    warm = shipped_sets()["selberherr"].at(400.0)
    assert warm.electrons[0].a == pytest.approx(1.889e5 * (1 + 0.588 / 3), rel=1e-12)
    assert warm.holes[0].b == pytest.approx(6.57e5 * (1 + 0.248 / 3), rel=1e-12)


def test_a_composition_in_a_file(tmp_path: Path) -> None:
    numbers = ("gap", "affinity", "permittivity", "nc", "nv", "mobility_n", "mobility_p", "tau_n", "tau_p")
    (tmp_path / "my.toml").write_text("\n".join(["[Ge]", "x = 0.3", *(f"{name} = 1.0" for name in numbers)]))
    with pytest.raises(CaseError, match="Ge has no x"):
        read_materials(tmp_path / "my.toml")


def test_an_alloy_of_ones_own_keeps_its_numbers(tmp_path: Path) -> None:
    """Gap and affinity follow from the composition only where a layer states it."""
    values = {"gap": 2.0, "affinity": 3.6, "permittivity": 11.0, "nc": 1e19, "nv": 1e19, "mobility_n": 100.0,
              "mobility_p": 100.0, "tau_n": 1e-9, "tau_p": 1e-9, "x": 0.9}  # fmt: skip
    (tmp_path / "my.toml").write_text("\n".join(["[InAlAs]", *(f"{k} = {v}" for k, v in values.items())]))
    table = diode("InAlAs", materials="my.toml")
    made = device_of(read_settings("photodiode", table), tmp_path)
    vt = made.thermal_voltage
    assert vt * (np.log(1e38) - 2 * np.log(made.nie)) == pytest.approx(np.full(made.nie.size, 2.0), abs=1e-9)
    for layer in table["layers"]:
        layer["x"] = 0.48
    made = device_of(read_settings("photodiode", table), tmp_path)
    assert vt * (np.log(1e38) - 2 * np.log(made.nie)) == pytest.approx(np.full(made.nie.size, 1.4507), abs=1e-4)


def test_parameters_of_another_composition_are_reported_or_left_out() -> None:
    assert ternary("InGaAs", 0.47, MATERIALS).ionisation == "pearsall"
    assert ternary("InGaAs", 0.60, MATERIALS).ionisation is None
    table = diode("InGaAs", ionisation=False)
    table["layers"][0]["x"], table["layers"][1]["x"] = 0.47, 0.6
    notes = dict(load_model("photodiode", {"photodiode": table}, GridSettings(), Path()).notes)
    assert notes["alloy of n"].startswith("InGaAs, x = 0.6; values of the lattice-matched alloy used for: permittivity")
    assert "alloy of p" not in notes
    with pytest.raises(CaseError, match="layer 'n': no ionisation coefficients of InGaAs are known"):
        device(table | {"ionisation": True})
