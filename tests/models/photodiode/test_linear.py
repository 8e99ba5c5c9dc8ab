"""Which solver takes the linear systems of two axes, and what is said of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of, problem_of
from minga.models.photodiode.preflight import notes_of
from minga.models.photodiode.solver.linear import check_linear, description_of
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.floating import floats


def planar(nodes: int, columns: int, **changes: Any) -> Device:
    """A diode of silicon, 3 um deep and 9 um wide."""
    said = {
        "bias": 0.0, "width": 9.0, "columns": columns, "mesh": {"nodes": nodes},
        "layers": [{"name": "n", "material": "Si", "thickness": 3.0, "n": 1e15}],
        "regions": [{"name": "p", "x": [0.0, 0.5], "y": [0.0, 3.0], "doping": -1e18}],
        "contacts": {"anode": {"y": [0.0, 2.0]}, "cathode": "ohmic"},
    }  # fmt: skip
    return device_of(read_settings("photodiode", said | changes), Path())


@pytest.mark.parametrize(
    ("nodes", "columns", "name"), [(900, 4, "rows"), (90, 40, "sparse"), (200, 100, "krylov")]
)  # fmt: skip
def test_it_is_chosen_by_the_number_of_nodes(nodes: int, columns: int, name: str) -> None:
    device = planar(nodes, columns)
    assert description_of("auto", device).endswith(f"({name}, chosen by the number of nodes)")
    assert description_of("rows", device).endswith("(rows)")


@pytest.mark.parametrize("symmetry", ["plane", "cylinder"])
def test_a_region_that_floats_takes_sparse_factors(symmetry: str) -> None:
    p = {"name": "p", "x": [0.0, 0.5], "y": [0.0, 3.0], "doping": -1e18}
    ring = {"name": "ring", "x": [0.0, 0.5], "y": [5.0, 6.0], "doping": -1e18}
    device = planar(200, 100, regions=[p, ring], symmetry=symmetry)
    assert floats(device)
    assert description_of("auto", device).endswith("(sparse, chosen by a region that floats)")
    joined = planar(200, 100, regions=[p, ring | {"y": [2.0, 6.0]}], symmetry=symmetry)
    assert not floats(joined)
    assert description_of("auto", joined).endswith("(krylov, chosen by the number of nodes)")


def test_a_choice_needs_two_axes_and_newtons_method() -> None:
    check_linear("sparse", mg.Grid((9, 9)), "newton")
    for shape, scheme in (((9,), "newton"), ((9, 9), "gummel")):
        check_linear("auto", mg.Grid(shape), scheme)
        with pytest.raises(CaseError, match="is for Newton's method in two axes") as caught:
            check_linear("krylov", mg.Grid(shape), scheme)
        assert "photodiode.linear" in str(caught.value)


def test_it_is_named_before_the_start() -> None:
    path = examples()["planar"]
    said = read_settings("photodiode", tomllib.loads(path.read_text())["photodiode"] | {"linear": "krylov"})
    notes = dict(notes_of(device_of(said, path.parent), problem_of(said)))
    assert notes["linear systems"] == "BiCGStab with multigrid, on all ranks (krylov)"
