"""Tables against their schema: strict types, and errors that name the key and what was meant."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from minga.errors import CaseError
from minga.schema import dotted, validate


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    depth: Annotated[int, Field(ge=1, description="layers of halo")] = 1


class PoreSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    share: Annotated[float, Field(ge=0, lt=1, description="of the volume")] = 0.0


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    steps: Annotated[int, Field(ge=0, description="say how many")]
    rate: float = 0.5
    sizes: tuple[int, ...] | None = None
    inner: Inner = Inner()
    pores: PoreSettings | bool = False
    kind: Any = None


def test_what_is_right_passes() -> None:
    table = validate(Table, {"steps": 3, "rate": 1, "sizes": [1, 2], "inner": {"depth": 2}, "kind": {"a": [1]}}, "run")
    assert (table.steps, table.rate, table.sizes, table.inner.depth) == (3, 1.0, (1, 2), 2)
    assert table.kind == {"a": [1]}


@pytest.mark.parametrize(
    ("table", "key", "text", "suggestion"),
    [
        ({"stepz": 3}, "run.stepz", "unknown key 'run.stepz'", "steps"),
        ({"steps": 3, "inner": {"deptt": 1}}, "run.inner.deptt", "[run.inner] has depth", "depth"),
        ({}, "run.steps", "'run.steps' is missing", None),
        ({"steps": "3"}, "run.steps", "expected a whole number of at least 0, found '3'", None),
        ({"steps": True}, "run.steps", "expected a whole number of at least 0, found True", None),
        ({"steps": 3.0}, "run.steps", "expected a whole number of at least 0, found 3.0", None),
        ({"steps": -1}, "run.steps", "at least 0", None),
        ({"steps": 3, "rate": "fast"}, "run.rate", "expected a number, found 'fast'", None),
        ({"steps": 3, "sizes": 4}, "run.sizes", "expected a list, found 4", None),
        ({"steps": 3, "sizes": [1, "x"]}, "run.sizes[1]", "expected a whole number, found 'x'", None),
        ({"steps": 3, "inner": 4}, "run.inner", "expected a table, found 4", None),
        ({"steps": 3, "inner": {"depth": 0}}, "run.inner.depth", "layers of halo", None),
        (
            {"steps": 3, "pores": {"share": 1.0}},
            "run.pores.share",
            "expected a number of at least 0 and below 1, found 1.0",
            None,
        ),
        ({"steps": 3, "pores": {"share": 1.0}}, "run.pores.share", "of the volume", None),
        ({"steps": 3, "pores": {"shara": 0.5}}, "run.pores.shara", "[run.pores] has share", "share"),
    ],
)
def test_mistakes(table: dict[str, object], key: str, text: str, suggestion: str | None) -> None:
    with pytest.raises(CaseError) as caught:
        validate(Table, table, "run")
    assert caught.value.key == key
    assert text in str(caught.value)
    assert caught.value.suggestion == suggestion


def test_dotted_keys() -> None:
    assert dotted("grid", "shape", 1) == "grid.shape[1]"
    assert dotted("", "steps") == "steps"
    assert dotted() == ""


def test_an_unknown_key_may_be_called_like_a_type() -> None:
    with pytest.raises(CaseError, match=r"unknown key 'run\.inner\.int'"):
        validate(Table, {"inner": {"int": 3}}, "run")
