"""The tables of a case offer what the schemes know, and no more."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.electrodeposition.case import options_of
from minga.models.electrodeposition.model import _semi_implicit
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.settings import RelaxationSettings, SemiImplicitSettings


def options(scheme: str, table: dict[str, Any]) -> dict[str, object]:
    given: dict[str, Any] = {"scaled": True, "debye": 0.1, "voltage": 1.0, "time": {"end": 1.0}}
    return options_of(read_settings("electrodeposition", {**given, "scheme": scheme, scheme.replace("-", "_"): table}))


def test_every_option_of_relaxation_can_be_set() -> None:
    defaults = dataclasses.asdict(RelaxationOptions())
    assert set(RelaxationSettings.model_fields) == set(defaults)
    assert options("relaxation", defaults) == defaults
    assert options("relaxation", {}) == {}


def test_every_option_of_the_semi_implicit_scheme_can_be_set() -> None:
    known = inspect.signature(_semi_implicit).parameters
    defaults = {name: p.default for name, p in known.items() if name != "problem"} | {"agreement": 1e-9}
    assert set(SemiImplicitSettings.model_fields) == set(defaults)
    assert options("semi-implicit", defaults) == defaults


@pytest.mark.parametrize(
    ("scheme", "table"),
    [("relaxation", {"wall": 0.0}), ("relaxation", {"across": "rank"}), ("semi-implicit", {"agreement": 1.0})],
)
def test_what_no_scheme_can_do_is_refused(scheme: str, table: dict[str, Any]) -> None:
    (name,) = table
    with pytest.raises(CaseError) as caught:
        options(scheme, table)
    assert caught.value.key == f"electrodeposition.{scheme.replace('-', '_')}.{name}"
