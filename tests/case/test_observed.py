"""Observables have units and descriptions, and whatever a run leaves tells them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.observed import quantities
from minga.cli.case import find_source, read_case
from minga.engine.model import Model
from minga.errors import ProgramError
from thinned import thinned

LONG = ("electroconvection", "fingers", "growth", "membrane", "zn-cell")
MODELS = thinned(sorted(examples()), *(name for name in examples() if not name.startswith(LONG)))
CHANGES = {
    "apd": ["photodiode.quasistatic_capacitance=true"],
    "ising": ['automaton.observe=["entropy", "mean", "changed", "bounding_box", {avalanches = true}]'],
    "fingers": ['electrodeposition.scheme="relaxation"'],
}


def shipped(name: str, *changes: str) -> Model:
    return read_case(find_source(name), changes).model


def check(model: Model) -> None:
    assert set(model.observables) == set(model.quantities), "the model says the unit of each observable"
    for name, (unit, words) in model.quantities.items():
        assert unit, name
        assert words or model.name in ("heat", "laplace"), name


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MODELS)
def test_observables_of_shipped_models_have_units(name: str) -> None:
    check(shipped(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(CHANGES, "apd", "ising"))
def test_so_have_those_that_a_case_asks_for(name: str) -> None:
    check(shipped(name, *CHANGES[name]))


@pytest.mark.slow
def test_those_of_the_pointwise_scheme_and_of_lines() -> None:
    quiet = ['photodiode.scheme="pointwise"', "photodiode.gain=false"]
    check(shipped("apd", *quiet))
    for case, expected in {"pnp-1d": "1", "voltammetry": "mol/m2", "zn-cell": "mol/m"}.items():
        totals = {unit for name, (unit, _) in shipped(case).quantities.items() if name.startswith("total_")}
        assert totals == {expected}


def test_the_longest_prefix_describes_what_has_no_entry_of_its_own() -> None:
    known = {"E_max": ("V/cm", "most"), "E_*": ("V/m", "in {}"), "*": ("1", "{}!")}
    found = quantities(["E_max", "E_p", "n"], known)
    assert found == {"E_max": ("V/cm", "most"), "E_p": ("V/m", "in p"), "n": ("1", "n!")}
    assert quantities(["a"], {"b": ("1", "")}) == {}


def warm() -> Model:
    """The shipped heat equation, small, with a table of what it observes, and with words for one of the two."""
    model = shipped("heat", "grid.shape=[8, 8]")
    return replace(model, units={"warmest": ("K", "highest temperature"), "heat": "K"}, tables={"seen": ("heat",)})


def test_what_a_run_leaves_tells_them(tmp_path: Path) -> None:
    found = mg.run(warm(), steps=2, observe=1, out=tmp_path / "run")
    assert found.warmest.attrs == {"units": "K", "long_name": "highest temperature"}
    assert found.heat.attrs == {"units": "K"}
    assert json.loads(found.attrs["observables"])["heat"] == {"units": "K"}
    (column,) = json.loads((tmp_path / "run" / "seen.csv-metadata.json").read_text())["tableSchema"]["columns"]
    assert (column["name"], column["schema:unitText"]) == ("heat", "K")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["units"] == {"warmest": "K", "heat": "K"}


def test_units_of_what_is_not_observed_are_refused() -> None:
    with pytest.raises(ProgramError, match="a unit of 'cold', which is not one of its observables"):
        replace(warm(), units={"cold": "K"})
