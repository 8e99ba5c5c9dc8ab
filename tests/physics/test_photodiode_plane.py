"""Photodiodes with two axes: strips are devices of one axis, and what is not a strip keeps its current and symmetry."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from minga.models.photodiode.case import device_of, read_settings
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device

from .photodiodes import EXAMPLES, apd, merged, solved


def diode(columns: int, **changes: object) -> Device:
    """SI-1 on few nodes; `columns` 1 um apart, 0 for one axis."""
    table = tomllib.loads((EXAMPLES / "si-1.toml").read_text())["photodiode"]
    table = {**table, "mesh": {"nodes": 61}}
    if columns:
        table |= {"columns": columns, "width": float(columns)}
    return device_of(read_settings(merged(table, changes)), EXAMPLES)


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


def test_both_contacts_on_one_side() -> None:
    """An interdigitated detector: the current goes down, across and up again, and what enters leaves."""
    contacts = {
        "anode": {"kind": "ohmic", "at": "top", "y": [0.0, 2.0]},
        "cathode": {"kind": "ohmic", "at": "top", "y": [7.0, 9.0]},
    }
    there, back = (
        solved(diode(9, contacts=contacts), Problem((volts,), ionisation=False))[-1] for volts in (0.5, -0.5)
    )
    assert there["J"] > 1.0, "a layer of 1e17 acceptors between them conducts"
    assert there["uniformity"] < 1e-10
    assert back["J"] == pytest.approx(-there["J"], rel=1e-9)
