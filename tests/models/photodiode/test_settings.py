"""Cases of devices: what is wrong is told with its key, its layer and what to do."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.engine.stop import Stop, Watch
from minga.errors import CaseError
from minga.models.photodiode.biases import biases_of, check_biases, currents_of
from minga.models.photodiode.case import device_of, problem_of
from minga.models.photodiode.preflight import drift_notes, notes_of
from minga.models.photodiode.quantities import quantity
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.structure.depletion import Depletion
from minga.models.photodiode.structure.ionisation import shipped_sets
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.materials_file import read_materials, shipped_materials
from minga.schema import _LIMITS, _metadata, _table

CASE: dict[str, Any] = {
    "bias": [0.0, -1.0],
    "layers": [
        {"name": "top", "material": "InP", "thickness": 1.0, "p": 1e18},
        {"name": "absorber", "material": "InGaAs", "thickness": "500 nm", "n": 1e15},
        {"name": "bottom", "material": "InP", "thickness": 1.0, "n": 1e18},
    ],
    "contacts": {"anode": "ohmic", "cathode": "ohmic"},
}


def case(layer: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The case with changes, those of its second layer among them; None leaves something out."""
    table = copy.deepcopy(CASE)
    for place, new in ((table, changes), (table["layers"][1], layer or {})):
        for key, value in new.items():
            if value is None:
                place.pop(key, None)
            else:
                place[key] = value
    return table


def make(folder: Path, layer: dict[str, Any] | None = None, **changes: Any) -> None:
    said = read_settings("photodiode", case(layer, **changes))
    problem = problem_of(said)
    device = device_of(said, folder)
    check_biases(device, problem.bias)


def test_the_case_is_right(tmp_path: Path) -> None:
    make(tmp_path)


LIGHT = {"wavelength": 1550.0, "power": 1e-3}
COHERENT = LIGHT | {"optics": "transfer-matrix"}
SLOPE = "photodiode.layers[1]"
FILES = {
    "down.csv": "nm,n,k\n600,2.0,0.0\n500,2.0,0.0\n",
    "short.csv": "# mine\n400 2.0 0.1\n500 2.1 0.0\n",
    "bad.csv": "400 1.5\n",
}

WRONG: list[tuple[str, dict[str, Any] | None, dict[str, Any], str]] = [
    (f"{SLOPE}.begin", {"begin": 0.9}, {}, "'absorber' overlaps layer 'top': it begins at 0.9 um.*ends at 1 um"),
    (f"{SLOPE}.begin", {"begin": 1.2}, {}, "'absorber' leaves a gap to layer 'top'"),
    (f"{SLOPE}.material", {"material": "InGaAS"}, {}, "'absorber': there is no material 'InGaAS'"),
    ("photodiode.layers[0].p", None, {"layers": [CASE["layers"][0] | {"p": 1e21}, *CASE["layers"][1:]]},
     "'top': 1e\\+21 acceptors per cm3 exceed the solubility in InP, 1e\\+19"),
    ("photodiode.contacts", None, {"contacts": None}, "'photodiode.contacts' is missing"),
    ("photodiode.contacts.cathode", None, {"contacts": {"anode": "ohmic"}}, "'photodiode.contacts.cathode' is missing"),
    (f"{SLOPE}.name", {"name": "max"}, {}, "a layer called 'max': E_max would mean two things"),
    (f"{SLOPE}.thickness", {"thickness": -0.5}, {}, "'absorber' is -0.5 um thick"),
    (f"{SLOPE}.thickness", {"thickness": 0.0}, {}, "'absorber' is 0 um thick"),
    (f"{SLOPE}.thickness", {"thickness": 1e-9}, {}, "'absorber' is 1e-09 um thick, less than the distance between at"),
    (f"{SLOPE}.thickness", {"thickness": None}, {}, "'absorber' has no thickness"),
    ("photodiode.mesh.positions[2]", None, {"mesh": {"positions": [0.0, 1.0, 0.9, 2.5]}}, "nodes 1 and 2 of the mesh"),
    ("photodiode.mesh.positions", None, {"mesh": {"positions": [0.0, 1.0, 2.0]}}, "the last node is at 2 um"),
    ("photodiode.mesh.nodes", None, {"mesh": {"nodes": 100, "spacing": 0.1}}, "both spacing and nodes"),
    ("photodiode.mesh", {"thickness": "1 nm"}, {"mesh": {"nodes": 4}}, "no node lies in layer 'absorber'"),
    (f"{SLOPE}.thickness", {"thickness": "501 nm"}, {"mesh": {"spacing": "2.5 nm"}}, "200.4 rows of 2.5 nm"),
    (f"{SLOPE}.n", {"n": float("nan")}, {}, "is NaN; expected a finite number|finite"),
    (f"{SLOPE}.n", {"n": -1e15}, {}, "a number of at least 0 .1/cm3."),
    ("photodiode.light.wavelength", None, {"light": LIGHT | {"wavelength": 1900.0}}, "no layer absorbs light of 1900"),
    ("photodiode.light.wavelength", {"material": "InGaAsP"}, {"light": LIGHT | {"wavelength": 850.0}},
     "'absorber': the absorption of InGaAsP at 850 nm is unknown"),
    ("photodiode.light.wavelength", None, {"light": LIGHT | {"wavelength": 1.31}}, "in nm: did you mean 1310"),
    ("photodiode.light.wavelength", None, {"light": COHERENT | {"wavelength": 1.31}}, "in nm: did you mean 1310"),
    ("photodiode.light.wavelength", None, {"light": LIGHT | {"wavelength": 200.0}},
     "'top': the absorption of InP at 200 nm is unknown; it is known from 206.6 to"),
    ("photodiode.light.wavelength", None, {"light": COHERENT | {"wavelength": 200.0}}, "'top'.*InP.*from 206.6 to 2"),
    ("photodiode.layers", {"material": "InGaAsP"}, {"light": COHERENT},
     "'absorber': the refractive index of InGaAsP is unknown"),
    ("photodiode.light.coatings", None, {"light": LIGHT | {"coatings": [{"thickness": 0.1, "index": 2.0}]}},
     "coatings of a device whose optics are 'beer-lambert'"),
    ("photodiode.light.coatings[0].thickness", None, {"light": COHERENT | {"coatings": [
        {"thickness": 0.0, "index": 2.0}]}}, "a number above 0"),
    ("photodiode.light.coatings[0].thickness", None, {"light": COHERENT | {"coatings": [
        {"thickness": 48.0, "index": 2.0}]}}, "expected a film of up to 20 um, in which light interferes, found 48"),
    ("photodiode.light.substrate.thickness", None, {"light": COHERENT | {"substrate": {
        "thickness": 1e300, "index": "InP"}}}, "expected a thickness of up to 1 cm, found 1e\\+300"),
    ("photodiode.light.power", None, {"light": LIGHT | {"power": 1e12}}, "above 0 and at most 1000000000.0 .W/cm2."),
    ("photodiode.light.flux", None, {"light": {"wavelength": 1550.0, "flux": 1e40}}, "above 0 and at most 1e.28"),
    ("photodiode.mesh.graded", None, {"mesh": {"graded": {"first": "1 um", "cap": "1 nm"}}},
     "expected a cap of at least first, 1000 nm"),
    ("photodiode.light.coatings[0].index", None, {"light": COHERENT | {"coatings": [
        {"thickness": 0.1, "index": 1e300}]}}, "at most 1000"),
    ("photodiode.light.backing[1]", None, {"light": COHERENT | {"backing": [1.0, 1e300]}}, "at most 1000"),
    ("photodiode.light.ambient", None, {"light": COHERENT | {"ambient": 1e-300}}, "at least 0.001"),
    (f"{SLOPE}.absorption", {"absorption": 1e300}, {}, "of at least 0 and at most 1"),
    ("photodiode.light.coatings[0].index", None, {"light": COHERENT | {"coatings": [
        {"thickness": 0.1, "index": "SiN"}]}}, "there is no refractive index 'SiN'"),
    ("photodiode.light.coatings[0].index", None, {"light": COHERENT | {"coatings": [
        {"thickness": 0.1, "index": "down.csv"}]}}, "line 3 of down.csv: 500 nm after 600 nm"),
    ("photodiode.light.wavelength", None, {"light": COHERENT | {"coatings": [
        {"thickness": 0.1, "index": "short.csv"}]}}, "coating 1: .*'short' is known from 400 to 500 nm, not at 1550"),
    ("photodiode.light.wavelength", None, {"light": COHERENT | {"backing": "short.csv"}}, "backing: .*'short'"),
    ("photodiode.light.substrate", None, {"light": COHERENT | {"substrate": {"thickness": "350 um", "index": "Au"}}},
     "the substrate 'Au' absorbs light of 1550 nm"),
    ("photodiode.light.wavelength", None, {"light": COHERENT | {"substrate": {
        "thickness": "350 um", "index": "short.csv"}}}, "substrate short: .*'short'"),
    ("photodiode.light.substrate.thickness", None, {"light": COHERENT | {"substrate": {
        "thickness": 0.0, "index": "InP"}}}, "a number above 0"),
    (f"{SLOPE}.index", {"index": "bad.csv"}, {}, "line 1 of bad.csv: expected three numbers, found '400 1.5'"),
    (f"{SLOPE}.index[0]", {"index": [-1.0, 0.0]}, {}, "layer 'absorber'"),
    ("photodiode.light.power", None, {"light": {"wavelength": 1550.0}}, "neither power nor flux"),
    ("photodiode.curves", None, {"curves": ["dark", "lit"]}, "a lit curve, but there is no light"),
    ("photodiode.bias[1]", None, {"bias": [0.0, -5000.0]}, "-5000 V across 2.5 um is a mean field"),
    ("photodiode.bias", None, {"bias": None}, "'bias' is missing"),
    ("photodiode.bias.step", None, {"bias": {"to": -60.0, "step": 1e-9}}, "60,000,000,001 voltages"),
    (f"{SLOPE}.ionisation", None, {"materials": "ge.toml", "layers": [
        CASE["layers"][0], {"name": "absorber", "material": "Ge", "thickness": 0.5}, CASE["layers"][2]],
        "ionisation": True}, "'absorber': no ionisation coefficients of Ge"),
    ("photodiode.ionisation", None, {"ionisation": {"InP": "kook"}}, "'top': there is no set.*'kook'"),
    ("photodiode.ionisation.InAs", None, {"ionisation": {"InAs": "cook"}}, "no layer is made of 'InAs'"),
    (f"{SLOPE}.name", {"name": "top"}, {}, "two layers are called 'top'"),
    ("photodiode.materials", None, {"materials": "none.toml"}, "no file 'none.toml'"),
    ("photodiode.temperature", {"material": "Ge"}, {"temperature": 350.0, "materials": "ge.toml"},
     "'absorber': Ge is known at 300 K only"),
    ("photodiode.contacts.anode.barrier", None, {"contacts": {"anode": {"kind": "schottky"}, "cathode": "ohmic"}},
     "a Schottky contact without a barrier"),
    ("photodiode.contacts.cathode", None, {"contacts": {"anode": "ohmic", "cathode": {"at": "top"}}}, "cathode touch"),
    ("photodiode.columns", None, {"width": 10.0}, "width without columns"),
    ("photodiode.mesh.across", None, {"mesh": {"across": {}}}, "spacings across without a width"),
    (f"{SLOPE}.rows", {"rows": 200, "thickness": None}, {}, "'absorber' has rows, but the mesh has no spacing"),
    (f"{SLOPE}.y", {"y": 0.5}, {}, "'absorber': InGaAs has no y"),
    (f"{SLOPE}.y", {"material": "InGaAsP", "y": [0.5, 1.5]}, {}, "'absorber': y = "),
    (f"{SLOPE}.x", {"material": "InP", "x": 0.5}, {}, "'absorber': InP has no x"),
    (f"{SLOPE}.x", {"x": 1.5}, {}, "'absorber': x = 1.5"),
    (f"{SLOPE}.x", {"material": "InAlAs", "x": [0.5, 0.8]}, {}, "'absorber': the gap of InAlAs is indirect"),
    (f"{SLOPE}.x", {"material": "AlGaAs", "x": [-0.1, 0.3]}, {}, "'absorber': x = "),
    ("photodiode.light.wavelength", {"x": 0.6}, {"light": LIGHT | {"wavelength": 850.0}},
     "'absorber': the absorption of InGaAs at 850 nm is unknown"),
    ("photodiode.mobility", {"material": "Ge"}, {"mobility": "doping", "materials": "ge.toml"},
     "'absorber': the doping dependence of mobilities in Ge is unknown"),
    ("photodiode.mobility", {"material": "Ge"}, {"mobility": "field", "materials": "ge.toml"},
     "'absorber': the saturation velocities of Ge are unknown"),
    ("photodiode.mobilty", None, {"mobilty": "doping"}, "unknown key"),
    ("photodiode.regions[0].x", None, {"width": 9.0, "columns": 3, "regions": [
        {"name": "ring", "x": [1.2, 0.5], "y": [0.0, 3.0], "doping": -2e18}]}, "'ring' reaches from 1.2 to 0.5 um"),
    ("photodiode.contacts.anode.y", None, {"width": 9.0, "columns": 3, "contacts": {
        "anode": {"y": [5.0, 5.0]}, "cathode": "ohmic"}}, "the anode reaches from 5 to 5 um"),
    (f"{SLOPE}.tickness", {"tickness": 1.0}, {}, "layer 'absorber': unknown key"),
    (f"{SLOPE}.tau_n", {"tau_n": 0.0}, {}, "layer 'absorber': "),
    (f"{SLOPE}.tau_p", {"tau_p": 100.0}, {}, "'absorber': .*at least 1e-15 and at most 1.0 .s., found 100"),
    (f"{SLOPE}.mobility_n", {"mobility_n": 1e15}, {}, "'absorber': .*at least 1e-06 and at most 1000000.0 .cm2/Vs."),
    (f"{SLOPE}.n", {"n": 2e20, "p": 2e20}, {}, "'absorber': 2e\\+20 donors per cm3 exceed the solubility in InGaAs"),
    ("photodiode.regions[0].doping", None, {"width": 9.0, "columns": 3, "regions": [
        {"name": "ring", "x": [0.5, 1.2], "y": [0.0, 3.0], "doping": -2e19}]},
     "region 'ring': 2e\\+19 acceptors per cm3 exceed the solubility in InP of layer 'top'"),
]  # fmt: skip

GE = """
[Ge]
gap = 0.66
affinity = 4.0
permittivity = 16.2
nc = 1.04e19
nv = 6.0e18
mobility_n = 3900.0
mobility_p = 1900.0
tau_n = 1e-6
tau_p = { value = 1e-6, source = "mine" }
"""


@pytest.mark.parametrize(("key", "layer", "changes", "said"), WRONG)
def test_wrong_input(tmp_path: Path, key: str, layer: Any, changes: dict[str, Any], said: str) -> None:
    for name, text in ({"ge.toml": GE} | FILES).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(CaseError, match=said) as caught:
        make(tmp_path, layer, **changes)
    assert caught.value.key == key
    assert caught.value.remedy


def test_the_material_that_was_meant_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError) as caught:
        make(tmp_path, {"material": "InGaAS"})
    assert "InGaAs" in str(caught.value)


def test_materials_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ge.toml").write_text(GE)
    found = read_materials(tmp_path / "ge.toml")["Ge"]
    assert isinstance(found, Material)
    assert found.sources == {"tau_p": "mine"}
    make(tmp_path, {"material": "Ge"}, materials="ge.toml")
    (tmp_path / "bad.toml").write_text("[Ge]\ngap = -0.66\n")
    with pytest.raises(CaseError) as caught:
        make(tmp_path, {"material": "Ge"}, materials="bad.toml")
    assert caught.value.key == "Ge.gap"


@pytest.mark.parametrize(
    ("key", "entry", "said"),
    [
        ("gap", "gap = 66.0", "expected a number from 0.05 to 10 .eV., found 66"),
        ("permittivity", "permittivity = 1.4e-12", "from 1 to 1e.03 .relative to vacuum."),
        ("affinity", "affinity = 40.0", "from 0.1 to 10"),
        ("nc", "nc = 1e40", "from 1e.15 to 1e.23 .1/cm3., found 1e.40"),
        ("mobility_n", "mobility_n = 1e12", "from 1e-06 to 1e.06"),
        ("tau_n", "tau_n = 10.0", "from 1e-15 to 1 .s., found 10"),
        ("ni", "ni = 1e20", "from 0 to 7.9e.18"),
        ("saturation.velocity_n", "saturation = { velocity_n = 1e5, velocity_p = 1e7 }", "from 5e.05 to 1e.09"),
        ("caughey_thomas_n.min", "caughey_thomas_n = { max = 9.0, min = 10.0, reference = 1e17, exponent = 1.0 }",
         "from 0 to 9 .cm2/Vs., found 10"),
        ("absorption", "absorption = { wavelengths = [2.0, 1.0], coefficients = [1.0, 1.0] }",
         "expected ascending wavelengths, found"),
    ],
)  # fmt: skip
def test_materials_in_other_units_are_refused(tmp_path: Path, key: str, entry: str, said: str) -> None:
    others = "".join(line for line in GE.splitlines(True) if not line.startswith(f"{key} ="))
    (tmp_path / "ge.toml").write_text(f"{others}{entry}\n")
    with pytest.raises(CaseError, match=f"Ge.{key}: .*{said}") as caught:
        make(tmp_path, {"material": "Ge"}, materials="ge.toml")
    assert caught.value.key == f"Ge.{key}"
    assert str(tmp_path / "ge.toml") in str(caught.value)


def test_ionisation_of_ones_own(tmp_path: Path) -> None:
    pieces = "electrons = [{ a = 1e6, b = 1e6, to = 2e5 }, { a = 2e6, b = 1.2e6 }], holes = [{ a = 2e6, b = 1e6 }]"
    (tmp_path / "ge.toml").write_text(GE.replace("[Ge]", f"[Ge]\nionisation = {{ {pieces} }}"))
    said = read_settings("photodiode", case({"material": "Ge"}, materials="ge.toml", ionisation=True))
    device = device_of(said, tmp_path)
    layer = device.layers[1]
    edge = (layer.first + layer.last) // 2
    electrons = device.ionisation_n[0]
    assert electrons.a[:2, edge].tolist() == [1e6, 2e6]
    assert electrons.to[0, edge] == 2e5
    (tmp_path / "bad.toml").write_text(
        GE.replace("[Ge]", f"[Ge]\nionisation = {{ {pieces.replace(', to = 2e5', '')} }}")
    )
    with pytest.raises(CaseError, match="ascending"):
        device_of(read_settings("photodiode", case({"material": "Ge"}, materials="bad.toml")), tmp_path)


def test_the_page_says_what_is_known(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "photodiode.md").read_text()
    block = re.search(r"```text\n(\[Ge\].*?)```", page, re.DOTALL)
    assert block is not None
    (tmp_path / "ge.toml").write_text(block[1])
    make(tmp_path, {"material": "Ge"}, materials="ge.toml", ionisation=True)
    rows = {
        cells[0].strip(): [cell.strip() for cell in cells[1:]]
        for line in page.splitlines()
        if line.startswith("| ") and (cells := line.strip("|").split("|")) and len(cells) == 5
    }
    known = shipped_materials()
    for column, name in enumerate(("InP", "InGaAs", "InGaAsP", "Si")):
        material = known[name]
        for row, values in (
            ("gap, affinity, eV", (material.gap, material.affinity)),
            ("permittivity", (material.permittivity,)),
            ("Nc, Nv, 1/cm3", (material.nc, material.nv)),
            ("constant mobilities, cm2/Vs", (material.mobility_n, material.mobility_p)),
            ("lifetimes, s", (material.tau_n,)),
            ("solubility n, p, 1/cm3", (material.solubility_n, material.solubility_p)),
        ):
            assert tuple(map(float, rows[row][column].split(", "))) == values
        assert rows["ionisation"][column] == f"`{material.ionisation}`"
    for name, item in shipped_sets().items():
        assert f"| `{name}` |" in page
        assert item.source in page


def test_every_number_that_ships_has_a_source() -> None:
    # sets have sources of their own
    silent = {"name", "ionisation", "tunnelling", "sources", "ni", "alloy"}
    for material in shipped_materials().values():
        for name in material.__slots__:
            if name not in silent and getattr(material, name) not in (None, 0.0):
                assert material.sources.get(name), f"{material.name}: {name}"
    assert shipped_materials()["Si"].sources["ni"]


@pytest.mark.parametrize(
    ("bias", "values"),
    [
        ([0.5, 0.7, -1], (0.5, 0.7, -1.0)),
        (-2.0, (-2.0,)),
        ({"from": 0.0, "to": -0.3, "step": 0.1}, (0.0, -0.1, -0.2, -0.3)),
        ({"to": -1.0, "step": 0.4}, (0.0, -0.4, -0.8, -1.0)),
    ],
)
def test_biases(bias: Any, values: tuple[float, ...]) -> None:
    assert biases_of(read_settings("photodiode", case(bias=bias))) == values


@pytest.mark.slow
def test_alloys_between_inp_and_ingaas(tmp_path: Path) -> None:
    graded = {"material": "InGaAsP", "y": [0.0, 1.0]}
    device = device_of(read_settings("photodiode", case(graded)), tmp_path)
    layer = device.layers[1]
    inside = slice(layer.first, layer.last + 1)
    assert (device.nie[inside][1:] > device.nie[inside][:-1]).all()
    assert device.permittivity[layer.last] == pytest.approx(13.94, abs=1e-2)


def test_columns_are_close_together_at_edges(tmp_path: Path) -> None:
    said = read_settings(
        "photodiode",
        case(
            width=10.0,
            mesh={"across": {"first": "10 nm", "growth": 1.5, "cap": "1 um"}},
            contacts={"anode": {"y": [0.0, 3.0]}, "cathode": "ohmic"},
            regions=[{"name": "ring", "x": [0.0, 1.2], "y": [0.0, 4.0], "doping": -1e18}],
        ),
    )
    device = device_of(said, tmp_path)
    x, y = device.nodes
    for edge in (3e-4, 4e-4):
        place = int(np.argmin(np.abs(y - edge)))
        assert y[place] == pytest.approx(edge, rel=1e-9)
        assert 0.5e-6 < y[place + 1] - y[place] <= 1e-6
    assert np.abs(x - 1.2e-4).min() < 1e-12
    assert device.terminal("anode").nodes[0].sum() == (y <= 3e-4 + 1e-12).sum()
    row, edge_column = int(np.argmin(np.abs(x - 1.1e-4))), int(np.argmin(np.abs(y - 4e-4)))
    assert device.doping[row, edge_column - 1] == -1e18
    assert device.doping[row, edge_column + 1] == 1e15
    below, above = y[edge_column] - y[edge_column - 1], y[edge_column + 1] - y[edge_column]
    share = below / (below + above)
    assert device.doping[row, edge_column] == pytest.approx(1e15 + share * (-1e18 - 1e15))


def test_before_it_starts_the_rows_are_told(tmp_path: Path) -> None:
    said = read_settings("photodiode", case(light=LIGHT, bias=[0.0, -5.0]))
    notes = dict(notes_of(device_of(said, tmp_path), problem_of(said)))
    assert notes["layer absorber"].endswith("1-1.5 um, InGaAs, n 1e+15")
    assert notes["built-in voltage"] == "1.29654 V"
    assert "primary photocurrent" in notes["light"]
    assert notes["solved for"].startswith("2 voltages, 0 to -5 V, dark and lit: 4 solutions")
    assert notes["field"].endswith("depleted from 0.99 to 1.51 um")


@pytest.mark.parametrize(("mobility", "bias", "told"), [("constant", -5.0, True), ("constant", 1.0, False),
                                                      ("field", -5.0, False)])  # fmt: skip
def test_velocities_without_saturation_are_told(tmp_path: Path, mobility: str, bias: float, told: bool) -> None:
    """The electrons' mobility of InGaAs times the largest field of the depletion approximation."""
    said = read_settings("photodiode", case(mobility=mobility))
    device = device_of(said, tmp_path)
    notes = dict(drift_notes(device, bias))
    assert bool(notes) == told
    if told:
        depletion = Depletion.of(device)
        assert depletion is not None
        inside = device.layers[1]
        field = depletion.field_at(bias)[inside.first + 1 : inside.last].max()
        expected = field * device.mobility_n[inside.first + 1]
        assert f"up to {expected:.2g} cm/s of electrons" in notes["drift"]


@pytest.mark.slow
def test_before_it_starts_it_is_told_what_does_not_follow_the_temperature(tmp_path: Path) -> None:
    said = read_settings(
        "photodiode", case(temperature=350.0, ionisation=True, mobility="field", recombination=["srh"])
    )
    device = device_of(said, tmp_path)
    notes = dict(notes_of(device, problem_of(said)))
    assert notes["temperature"] == (
        "350 K; values at 300 K used for: saturation velocities of InP, InGaAs; ionisation of cook, pearsall; lifetimes"
    )
    assert "temperature" not in dict(
        notes_of(device_of(read_settings("photodiode", case()), tmp_path), problem_of(said))
    )


def test_currents_to_hold() -> None:
    for written, values in (
        (["-1 uA/cm2", "-1 mA/cm2"], (-1e-6, -1e-3)), ("-10 nA/cm2", (-1e-8,)), (0.5, (0.5,)), (["2 A/m2"], (2e-4,)),
    ):  # fmt: skip
        assert currents_of(read_settings("photodiode", case(bias=None, current=written))) == values
    with pytest.raises(CaseError, match="empty list"):
        currents_of(read_settings("photodiode", case(bias=None, current=[])))


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [("2.5 nm", "length", 2.5e-7), (1.5, "length", 1.5e-4), ("1.55 um", "wavelength", 1550.0),
     ("1 mW/cm2", "power", 1e-3), ("-10 mA/cm²", "current", -0.01)],
)  # fmt: skip
def test_quantities(written: Any, kind: Any, value: float) -> None:
    assert quantity(written, kind) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("written", ["2.5 V", "fast", True, float("inf")])
def test_what_is_no_length(written: Any) -> None:
    with pytest.raises(ValueError, match="micrometres"):
        quantity(written, "length")


def bounded(schema: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """All numbers with limits in a schema and the tables within it."""
    for name, field in schema.model_fields.items():
        inner = [_table(field.annotation), *(_table(choice) for choice in get_args(field.annotation))]
        for table in dict.fromkeys(table for table in inner if table is not None):
            yield from bounded(table)
        if any(hasattr(item, limit) for item in (*field.metadata, *_metadata(field.annotation)) for limit in _LIMITS):
            yield f"{schema.__name__}.{name}", field


COUNTS_AND_RATIOS = {
    "LayerSettings.rows", "GradedSettings.growth", "MeshSettings.coarsen", "MeshSettings.nodes",
    "PointwiseSettings.segments", "PointwiseSettings.inner_sweeps", "PointwiseSettings.weight",
    "PointwiseSettings.limit", "PointwiseSettings.growth", "PointwiseSettings.expected", "PhotodiodeSettings.columns",
    "PhotodiodeSettings.limit", "AdaptSettings.error", "AdaptSettings.most", "FrequencySettings.per_decade",
    "LayerSettings.index", "CoatingSettings.index", "LightSettings.ambient",
    "LightSettings.backing", "SubstrateSettings.index",
    "WaveSettings.start",
}  # fmt: skip


def test_limits_of_the_device_have_units() -> None:
    found = dict(bounded(PhotodiodeSettings))
    assert {"ContactSettings.barrier", "BiasSettings.step", "LayerSettings.n", "GradedSettings.cap"} <= set(found)
    without = {name for name, field in found.items() if "unit" not in (field.json_schema_extra or {})}
    assert without == COUNTS_AND_RATIOS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"temperature": 20},
            "photodiode.temperature: expected a number of at least 77 and at most 1000 (K), found 20",
        ),
        (
            {"contacts": {"anode": {"kind": "schottky", "barrier": 5.0}, "cathode": "ohmic"}},
            "photodiode.contacts.anode.barrier: expected a number above 0 and below 5 (eV), found 5.0",
        ),
        ({"bias": {"to": -1.0, "step": 0}}, "photodiode.bias.step: expected a number above 0 (V), found 0"),
        ({"bias": [0.0, "x"]}, "photodiode.bias[1]: expected a number, found 'x'"),
        ({"pointwise": {"weight": 2.0}}, "photodiode.pointwise.weight: expected a number above 0 and below 2, found 2"),
    ],
)
def test_limits_name_the_range_and_the_unit(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        read_settings("photodiode", case(**changes))


@pytest.mark.slow
def test_former_names_are_taken_with_a_warning(tmp_path: Path) -> None:
    grid = GridSettings()
    model = load_model("photodiode", {"photodiode": case(capacitance=True)}, grid, tmp_path)
    assert (
        "capacitance"
        not in load_model("photodiode", {"photodiode": case(quasistatic_capacitance=True)}, grid, tmp_path).notes[0]
    )
    assert model.notes[0][0] == "renamed"
    assert "photodiode.capacitance is now quasistatic_capacitance" in model.notes[0][1]
    assert model.tables["iv"][-1] == "C_quasistatic"
    assert model.former == {"C": "C_quasistatic"}
    Watch(model, Stop(when="C < 1.0"))
    with pytest.raises(CaseError, match="both 'capacitance' and its current name 'quasistatic_capacitance'"):
        read_settings("photodiode", case(capacitance=True, quasistatic_capacitance=True))
