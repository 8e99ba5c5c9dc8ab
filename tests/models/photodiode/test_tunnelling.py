"""Tunnelling: coefficients and Gamma against an independent program, and the currents that follow from fields."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, thermal_voltage
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.tunnelling import kane, shipped_tunnelling, trap_field

sys.path.insert(0, str(Path(__file__).parents[2]))

from physics.photodiodes import solved

Floats = NDArray[np.float64]
THERMAL = thermal_voltage(300.0)
BOTH = {"band_to_band": True, "trap_assisted": True}


def pin(**changes: Any) -> Device:
    """A p-i-n diode of InGaAs with 1 um between its doped layers, whose field exceeds 2e5 V/cm at -20 V."""
    layers = [
        {"material": "InGaAs", "thickness": thickness, kind: doping}
        for thickness, kind, doping in ((0.3, "p", 1e18), (1.0, "n", 1e15), (0.3, "n", 1e18))
    ]
    table = {"layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "mobility": "field"}
    return device_of(read_settings("photodiode", table | changes), Path())


@pytest.mark.slow
@pytest.mark.parametrize("tunnelling", [{"band_to_band": True}, {"trap_assisted": True}])
def test_schemes_agree_and_ranks_do(tunnelling: dict[str, bool]) -> None:
    device = pin(tunnelling=tunnelling)
    volts = (0.0, 0.3, -10.0, -22.0)
    newton, gummel, ranks = (
        solved(device, Problem(volts, ionisation=False, scheme=scheme), ranks=ranks)
        for scheme, ranks in (("newton", 1), ("gummel", 1), ("newton", 3))
    )
    assert newton[0]["J"] == 0.0
    assert [row["J"] for row in gummel[1:]] == pytest.approx([row["J"] for row in newton[1:]], rel=1e-7)
    assert [row["J"] for row in ranks] == [row["J"] for row in newton]
    assert max(row["uniformity"] for row in newton[1:]) < 1e-10


@pytest.mark.slow
def test_two_axes_and_all_solvers() -> None:
    """With a contact on half of the width, where fields and currents have both directions."""
    device = pin(
        tunnelling=BOTH,
        contacts={"anode": {"y": [0.0, 2.0]}, "cathode": "ohmic"},
        mesh={"graded": {"first": "2 nm", "growth": 1.4, "cap": "80 nm"}},
        width=4.0,
        columns=5,
    )
    choices: list[tuple[dict[str, Any], int]] = [
        ({"linear": "rows"}, 1), ({"linear": "krylov"}, 1), ({"linear": "krylov"}, 2), ({"scheme": "gummel"}, 1)
    ]  # fmt: skip
    rows, krylov, ranks, gummel = (
        solved(device, Problem((-20.0,), ionisation=False, current_parts=True, **choice), ranks=count)[0]
        for choice, count in choices
    )
    assert krylov["J"] == pytest.approx(rows["J"], rel=1e-10)
    assert ranks["J"] == krylov["J"]
    assert ranks["J_btb"] == krylov["J_btb"]
    assert gummel["J"] == pytest.approx(rows["J"], rel=1e-7)
    assert sum(value for name, value in rows.items() if name.startswith("J_")) == pytest.approx(rows["J"], rel=1e-10)


@pytest.mark.slow
def test_tunnelling_current_is_that_of_the_field() -> None:
    """q int G dx of the solved field: 13 A/cm2 do not fill the states that carriers tunnel to."""
    device = pin(tunnelling={"band_to_band": True}, recombination=["srh"])
    row = solved(device, Problem((-31.0,), ionisation=False, current_parts=True))[0]
    a, b = kane(0.74, 0.041)
    lengths = np.diff(device.nodes[0])
    field = np.abs(np.diff(row["fields"]["potential"]) / lengths)
    made = a * field**2 * np.exp(-b / np.maximum(field, 1e4))
    expected = -CHARGE * float(made @ lengths)
    assert -20.0 < expected < -5.0
    assert row["J_btb"] == pytest.approx(expected, rel=1e-3)


def mean_square(device: Device, values: Floats) -> Floats:
    """Mean over each node's volume of the square of the gradient, (unit/cm)^2."""
    lengths = np.diff(device.nodes[0])
    square = (np.diff(values) / lengths) ** 2 * lengths
    total = np.append(lengths, 0.0) + np.insert(lengths, 0, 0.0)
    found: Floats = (np.append(square, 0.0) + np.insert(square, 0, 0.0)) / total
    return found


@pytest.mark.slow
@pytest.mark.parametrize("light", [0.0, 1.0])
def test_parts_are_those_of_the_densities(light: float) -> None:
    """Both kinds of tunnelling, evaluated in NumPy from the fields of a solution, also with 1 A/cm2 of light."""
    lit = {"light": {"wavelength": 1550.0, "power": light}} if light else {}
    device = pin(tunnelling=BOTH, recombination=["srh"], **lit)
    problem = Problem((-22.0,), ("lit",) if light else ("dark",), ionisation=False, current_parts=True)
    end = "_lit" if light else ""
    row = solved(device, problem)[0]
    fields = {name.removesuffix("_lit"): value for name, value in row["fields"].items()}
    n, p, nie = fields["electrons"], fields["holes"], device.nie
    square, of_n, of_p = (
        mean_square(device, fields[f"{name}"]) for name in ("potential", "electron_level", "hole_level")
    )
    at_ends = []
    for density, gradient, states in ((n, of_n, device.nc), (p, of_p, device.nv)):
        ratio = np.minimum(gradient / np.maximum(square, 1e6), 1.0)
        at_ends.append(density * (nie / states) ** (ratio * (2.0 - ratio)))
    field = np.sqrt(np.maximum(square, 1e6))
    a, b = kane(0.74, 0.041)
    rate = a * field**2 * np.exp(-b / field)
    tunnelled = rate * (at_ends[0] * at_ends[1] - nie**2) / ((at_ends[0] + nie) * (at_ends[1] + nie))
    assert row[f"J_btb{end}"] == pytest.approx(CHARGE * float((device.volumes * tunnelled)[1:-1].sum()), rel=1e-6)
    u = np.linspace(0.0, 1.0, 4001) ** 2
    d, strength = 0.37 / THERMAL, trap_field(0.37, 0.041)
    gamma = np.array([d * np.trapezoid(np.exp(d * u - strength / e * u**1.5), u) for e in field])
    low = np.minimum(square / 1e6, 1.0)
    gamma *= low * (5.0 - 2.0 * low) / 3.0
    caught = [density + gamma * other for density, other in zip((n, p), at_ends, strict=True)]
    own = (1.0 + gamma) * nie
    through = (caught[0] * caught[1] - own**2) / (device.tau_p * (caught[0] + own) + device.tau_n * (caught[1] + own))
    traps = CHARGE * float((device.volumes * through)[1:-1].sum())
    assert row[f"J_srh{end}"] + row[f"J_tat{end}"] == pytest.approx(traps, rel=1e-5)
    assert traps < 0.0


@pytest.mark.slow
def test_parts_add_up_to_the_current() -> None:
    device = pin(tunnelling=BOTH, ionisation=True, light={"wavelength": 1550.0, "power": 1e-3})
    rows = solved(device, Problem((0.3, -10.0, -20.0), curves=("dark", "lit"), current_parts=True))
    for row in rows:
        for end in ("", "_lit"):
            parts = [
                v for k, v in row.items() if k.startswith("J_") and k != "J_lit" and k.endswith("_lit") == bool(end)
            ]
            assert len(parts) == (8 if end else 7)
            assert sum(parts) == pytest.approx(row[f"J{end}"], rel=1e-9)
    assert rows[0]["J_srh"] > 0.0 > rows[1]["J_srh"]
    assert rows[1]["J_tat"] < rows[1]["J_srh"] < 0.0


def refused(**changes: Any) -> CaseError:
    """The error of a case that is refused."""
    with pytest.raises(CaseError) as caught:
        photodiode(pin(**changes), Problem((0.0,), scheme=changes.get("scheme", "newton")))
    return caught.value


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"tunnelling": {"band_to_band": {"Si": "hurkx"}}}, "no layer is made of 'Si'"),
        ({"tunnelling": {"band_to_band": {"InGaAs": "hurx"}}}, "'hurx'"),
        ({"tunnelling": {"trap_assisted": True}, "scheme": "pointwise", "mobility": "constant"}, "tunnelling"),
    ],
)
def test_refusals(changes: dict[str, Any], word: str) -> None:
    error = refused(**changes)
    assert word in str(error)
    assert error.remedy


def test_mass_is_needed(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        "[Ge]\ngap = 0.66\naffinity = 4.0\npermittivity = 16.0\nnc = 1.04e19\nnv = 6e18\nmobility_n = 3900.0\n"
        "mobility_p = 1900.0\ntau_n = 1e-6\ntau_p = 1e-6\n"
    )
    table = {
        "layers": [{"material": "Ge", "thickness": 1.0, "n": 1e16}],
        "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "materials": "own.toml",
        "tunnelling": {"trap_assisted": True},
    }  # fmt: skip
    with pytest.raises(CaseError, match="tunnelling mass of Ge"):
        device_of(read_settings("photodiode", table), tmp_path)
    with pytest.raises(CaseError, match="Ge has no set"):
        device_of(read_settings("photodiode", table | {"tunnelling": {"band_to_band": True}}), tmp_path)


def test_every_set_has_a_source() -> None:
    assert all(item.source and item.materials for item in shipped_tunnelling().values())
