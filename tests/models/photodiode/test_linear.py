"""Which solver takes the linear systems of two axes, and what is said of it."""

from __future__ import annotations

import tomllib

import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of, problem_of
from minga.models.photodiode.preflight import notes_of
from minga.models.photodiode.solver.linear import check_linear, in_words


@pytest.mark.parametrize(("shape", "name"), [((900, 4), "rows"), ((90, 40), "sparse"), ((200, 100), "krylov")])
def test_it_is_chosen_by_the_number_of_nodes(shape: tuple[int, int], name: str) -> None:
    assert in_words("auto", mg.Grid(shape)).endswith(f"({name}, chosen by the number of nodes)")
    assert in_words("rows", mg.Grid(shape)).endswith("(rows)")


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
