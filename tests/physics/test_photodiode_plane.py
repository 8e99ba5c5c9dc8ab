"""Photodiodes with two axes: strips are devices of one axis, and what is not a strip keeps its current and symmetry."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.problem import Linear, Problem
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device

from .photodiodes import EXAMPLES, apd, merged, solved


def diode(columns: int, **changes: object) -> Device:
    """SI-1 on few nodes; `columns` 1 um apart, 0 for one axis."""
    table = tomllib.loads((EXAMPLES / "si-1.toml").read_text())["photodiode"]
    table = {**table, "mesh": {"nodes": 61}}
    if columns:
        table |= {"columns": columns, "width": float(columns)}
    return device_of(read_settings("photodiode", merged(table, changes)), EXAMPLES)


@pytest.mark.slow
def test_a_strip_of_three_columns_is_a_device_of_one_axis() -> None:
    problem = Problem((0.0, 0.3, 0.7, -1.0), ionisation=False)
    line, strip = (solved(diode(columns), problem) for columns in (0, 3))
    for one, other in zip(line, strip, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-12, abs=1e-30)
        assert other["E_max"] == pytest.approx(one["E_max"], rel=1e-12)
        for column in range(3):
            found = other["fields"]["potential"][:, column]
            np.testing.assert_allclose(found, one["fields"]["potential"], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_gummels_iteration_of_a_strip() -> None:
    biases = (0.0, 0.3, -1.0)
    line = solved(diode(0), Problem(biases, ionisation=False))
    strip = solved(diode(3), Problem(biases, ionisation=False, scheme="gummel"))
    for one, other in zip(line, strip, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-6, abs=1e-15)


@pytest.mark.slow
def test_gummels_iteration_of_interdigitated_contacts() -> None:
    biases = (0.5, -0.5)
    found = solved(diode(9, contacts=INTERDIGITATED), Problem(biases, ionisation=False, scheme="gummel"))
    for one, other in zip(interdigitated(), found, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-6)


@pytest.mark.slow
def test_gummels_iteration_helps_where_newtons_method_fails_at_first() -> None:
    few, many = (solved(apd(10, columns=3), Problem((-1.0, -20.0), limit=limit)) for limit in (12, 60))
    for one, other in zip(few, many, strict=True):
        assert one["J"] == pytest.approx(other["J"], rel=1e-9)


@pytest.mark.slow
def test_a_strip_of_the_avalanche_photodiode() -> None:
    problem = Problem((-1.0, -50.0, -60.0), ("lit",))
    line, strip = (solved(apd(10, columns=columns), problem) for columns in (0, 3))
    for one, other in zip(line, strip, strict=True):
        assert other["J_lit"] == pytest.approx(one["J_lit"], rel=1e-6)
        assert other["M_lit"] == pytest.approx(one["M_lit"], rel=1e-6)


@pytest.mark.slow
def test_a_narrow_contact() -> None:
    """Half of the anode's row is a contact: the current spreads, is the same through all planes, and has less to go."""
    problem = Problem((0.0, 0.7), ionisation=False)
    contacts = {"anode": {"kind": "ohmic", "at": "top", "y": [2.0, 5.0]}, "cathode": "ohmic"}
    narrow = solved(diode(7, contacts=contacts), problem)[-1]
    whole = solved(diode(0), problem)[-1]
    assert 3 / 7 * whole["J"] < narrow["J"] < whole["J"]
    assert narrow["uniformity"] < 1e-10
    potential = narrow["fields"]["potential"]
    np.testing.assert_allclose(potential, potential[:, ::-1], rtol=0, atol=1e-12)
    assert np.abs(narrow["fields"]["field_y"][:, 1:-1]).max() > 1.0


INTERDIGITATED = {
    "anode": {"kind": "ohmic", "at": "top", "y": [0.0, 2.0]},
    "cathode": {"kind": "ohmic", "at": "top", "y": [7.0, 9.0]},
}


@functools.cache
def interdigitated() -> list[dict[str, Any]]:
    """At 0.5 V and -0.5 V, by the solver that is chosen: sparse factors."""
    return solved(diode(9, contacts=INTERDIGITATED), Problem((0.5, -0.5), ionisation=False))


@pytest.mark.slow
def test_a_round_device_of_layers_is_a_device_of_one_axis() -> None:
    problem = Problem((0.3, 0.7, -1.0), ionisation=False)
    line, disc = solved(diode(0), problem), solved(diode(4, symmetry="cylinder"), problem)
    for one, other in zip(line, disc, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-11)
        for column in range(4):
            found = other["fields"]["potential"][:, column]
            np.testing.assert_allclose(found, one["fields"]["potential"], rtol=0, atol=1e-11)


RINGED: dict[str, Any] = {
    "symmetry": "cylinder",
    "width": 24.0,
    "mesh": {
        "graded": {"first": "40 nm", "growth": 1.6, "cap": "600 nm"},
        "across": {"first": "100 nm", "growth": 1.8, "cap": "2 um"},
    },
    "contacts": {"anode": {"y": [0.0, 5.0]}, "cathode": "ohmic"},
    "layers": [
        {"name": "body", "material": "Si", "thickness": 8.0, "n": 1e15},
        {"name": "substrate", "material": "Si", "thickness": 1.0, "n": 1e18},
    ],
}


@pytest.mark.slow
def test_a_floating_guard_ring_takes_a_potential_of_its_own_and_lowers_the_field() -> None:
    main = {"name": "main", "x": [0.0, 0.8], "y": [0.0, 6.0], "doping": -1e18}
    ring = {"name": "ring", "x": [0.0, 0.8], "y": [8.0, 10.0], "doping": -1e18}
    table = {"bias": [0.0]} | RINGED
    alone = device_of(read_settings("photodiode", table | {"regions": [main]}), EXAMPLES)
    ringed = device_of(read_settings("photodiode", table | {"regions": [main, ring]}), EXAMPLES)
    problem = Problem((-5.0, -20.0), ionisation=False)
    without, found = solved(alone, problem)[-1], solved(ringed, problem)[-1]
    assert without["uniformity"] < 1e-12
    assert found["uniformity"] < 1e-12, "round-off in the planes of the ring does not count"
    assert found["J"] < 1.2 * without["J"] < 0.0  # carriers generated around the ring
    assert found["E_max"] < 0.95 * without["E_max"]
    inside = (1e4 * ringed.nodes[1] > 8.3) & (1e4 * ringed.nodes[1] < 9.7)
    levels = found["fields"]["hole_level"][2, inside]
    assert levels.max() - levels.min() < 1e-6
    assert 1.0 < levels.mean() < 15.0  # V, from the anode's


@pytest.mark.slow
def test_both_contacts_on_one_side() -> None:
    """An interdigitated detector: the current goes down, across and up again, and what enters leaves."""
    there, back = interdigitated()
    assert there["J"] > 1.0, "a layer of 1e17 acceptors between them conducts"
    assert there["uniformity"] < 1e-10
    assert back["J"] == pytest.approx(-there["J"], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["rows", "krylov"])
def test_linear_systems_are_solved_to_the_same_digits(linear: Linear) -> None:
    """By dense blocks, sparse factors, or iterations on two ranks: the same current to round-off."""
    problem = Problem((0.5,), ionisation=False, linear=linear)
    expected = interdigitated()[0]
    found: dict[str, Any] = solved(diode(9, contacts=INTERDIGITATED), problem, ranks=2)[0]
    assert found["J"] == pytest.approx(expected["J"], rel=1e-12)
    assert found["iterations"] == expected["iterations"]
    assert found["uniformity"] < 1e-10
    for name in ("potential", "field_y"):
        size = np.abs(expected["fields"][name]).max()
        np.testing.assert_allclose(found["fields"][name], expected["fields"][name], rtol=0, atol=1e-11 * size)


@pytest.mark.slow
def test_iterations_have_the_same_bits_on_any_ranks() -> None:
    """An avalanche photodiode with its pairs, in light."""
    device, problem = apd(20, columns=12), Problem((-1.0, -50.0), ("lit",), linear="krylov")
    one, other = (solved(device, problem, ranks=ranks) for ranks in (1, 3))
    direct = solved(device, replace(problem, linear="sparse"))
    for a, b, c in zip(one, other, direct, strict=True):
        assert a["J_lit"] == b["J_lit"]
        assert a["fields"]["potential_lit"].tobytes() == b["fields"]["potential_lit"].tobytes()
        assert a["J_lit"] == pytest.approx(c["J_lit"], rel=1e-9)


@pytest.mark.slow
def test_factors_take_over_where_iterations_fail() -> None:
    """Meshes that are very fine along both axes, with a floating ring: the run goes on, and has the same current."""
    fine = {"first": "2 nm", "growth": 2.0, "cap": "2 um"}
    said: dict[str, Any] = {
        "width": 20.0, "bias": [-0.1], "contacts": {"anode": {"y": [0.0, 5.0]}, "cathode": "ohmic"},
        "layers": [
            {"name": "i", "material": "Si", "thickness": 6.0, "n": 1e15},
            {"name": "n", "material": "Si", "thickness": 1.0, "n": 1e18},
        ],
        "regions": [
            {"name": "p", "x": [0.0, 0.8], "y": [0.0, 6.0], "doping": -1e18},
            {"name": "ring", "x": [0.0, 0.8], "y": [8.0, 10.0], "doping": -1e18},
        ],
        "mesh": {"graded": fine, "across": fine},
    }  # fmt: skip
    device = device_of(read_settings("photodiode", said), EXAMPLES)
    problem = Problem((-0.1,), ionisation=False, linear="krylov")
    found, direct = (solved(device, replace(problem, linear=linear))[0] for linear in ("krylov", "sparse"))
    assert found["factorised"] == 1.0
    assert "factorised" not in direct
    assert found["J"] == pytest.approx(direct["J"], rel=1e-9)


@pytest.mark.slow
def test_light_from_the_left_and_from_the_right() -> None:
    """Mirror images in a device that is symmetric; the photocurrent is that of the photons absorbed."""
    light = {"wavelength": 850.0, "flux": 1e17, "x": [0.5, 1.5], "power": None}
    problem = Problem((-1.0,), ("dark", "lit"), ionisation=False)
    left, right = (diode(5, light=light | {"side": side}) for side in ("left", "right"))
    assert (left.generation > 0.0).any()
    np.testing.assert_allclose(left.generation, right.generation[:, ::-1], rtol=1e-12)
    one, other = solved(left, problem)[0], solved(right, problem)[0]
    assert one["J_lit"] == pytest.approx(other["J_lit"], rel=1e-12)
    np.testing.assert_allclose(
        one["fields"]["electrons_lit"], other["fields"]["electrons_lit"][:, ::-1], rtol=1e-9, atol=1.0
    )
    absorbed = -CHARGE * float((left.generation * left.volumes).sum()) / left.areas[0][1].sum()
    assert 0.2 * absorbed > one["J_lit"] - one["J"] > absorbed


@pytest.mark.slow
def test_responsivities_are_per_power_that_falls_on_the_device() -> None:
    """The same for modulated light and as a quantum efficiency, on a third of a strip and on all of it."""
    found = []
    for window in (None, [1.0, 2.0]):
        light = {"wavelength": 850.0, "power": "1 uW/cm2", "side": "anode", "y": window}
        problem = Problem((-1.0,), ("lit",), ionisation=False, mode="ac", frequencies=(1e3,))
        found.append(solved(diode(3, light=light), problem)[0]["responsivity_lit"][0])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_round_device_with_one_axis_is_refused() -> None:
    with pytest.raises(CaseError, match="a round device with one axis"):
        diode(0, symmetry="cylinder")


def test_a_choice_of_linear_solvers_where_there_is_none() -> None:
    with pytest.raises(CaseError, match="linear = 'sparse' is for Newton's method in two axes"):
        photodiode(diode(0), Problem((0.5,), linear="sparse"))
