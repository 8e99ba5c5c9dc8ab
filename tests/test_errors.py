"""Errors read well, carry their parts, and survive the way between processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from minga.errors import (
    CaseError,
    KernelError,
    LaunchError,
    LayoutError,
    MingaError,
    ProgramError,
    RunError,
    shown,
    suggest,
)


def test_all_parts_are_shown_on_lines_of_their_own() -> None:
    error = KernelError(
        "u has 2 axes, but 3 offsets are given", where=("heat.py", 12), remedy="write u[i, j]\nor u[i, 0]"
    )
    assert str(error) == (
        "u has 2 axes, but 3 offsets are given\n  at: heat.py:12\n  fix: write u[i, j]\n       or u[i, 0]"
    )


def test_a_message_alone_stays_alone() -> None:
    assert str(RunError("u is not finite", where="cell (3, 5)")) == "u is not finite\n  at: cell (3, 5)"
    assert str(RunError("u is not finite")) == "u is not finite"


def test_case_errors_name_their_key_once() -> None:
    error = CaseError("unknown key", key="run.stesp", suggestion="steps", where=("case.toml", 0))
    assert str(error) == "run.stesp: unknown key\n  at: case.toml\n  hint: did you mean 'steps'?"
    assert str(CaseError("run.steps must be positive", key="run.steps")) == "run.steps must be positive"


@pytest.mark.parametrize("kind", [KernelError, CaseError, LayoutError, ProgramError, RunError, LaunchError])
def test_every_kind_is_a_minga_error_with_an_exit_status(kind: type[MingaError]) -> None:
    assert issubclass(kind, MingaError)
    assert kind.exit_status == (2 if kind is CaseError else 1)


def test_pickling_keeps_everything() -> None:
    error = CaseError("unknown key", key="a.b", suggestion="c", where=("case.toml", 3), remedy="remove it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is CaseError
    assert (copy.key, copy.suggestion, copy.where, copy.remedy) == ("a.b", "c", error.where, "remove it")
    assert str(copy) == str(error)


def test_suggestions_are_close_or_absent() -> None:
    assert suggest("stesp", ["steps", "ranks"]) == "steps"
    assert suggest("JACOBI", ["Jacobi", "cg"]) == "Jacobi"
    assert suggest("zebra", ["steps", "ranks"]) is None
    assert suggest("x", []) is None


def test_values_in_messages_are_short() -> None:
    assert shown(np.arange(6000.0).reshape(60, 100)) == "an array of shape (60, 100) and float64"
    assert shown(np.float64(2.5)) == repr(np.float64(2.5))
    assert shown("u") == "'u'"
    long = shown({"array": np.arange(6000.0)})
    assert len(long) == 80
    assert long.endswith(" ...")
    assert "\n" not in long
