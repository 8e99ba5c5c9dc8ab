"""Writing TOML that reads back, typed values, and the lines keys are on."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.cli.toml import dump, line_of, parse_value

SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@pytest.mark.slow
@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_written_reads_back(table: dict[str, object]) -> None:
    assert tomllib.loads(dump(table)) == table


def test_none_is_left_out_and_nan_survives() -> None:
    table = tomllib.loads(dump({"a": None, "run": {"steps": 3, "ranks": None}, "b": math.nan, "c": {"d": [{"e": 1}]}}))
    assert math.isnan(table.pop("b"))  # type: ignore[arg-type]
    assert table == {"run": {"steps": 3}, "c": {"d": [{"e": 1}]}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("[101, 77]", [101, 77]),
        ("true", True),
        ("1e-3", 1e-3),
        ('"10"', "10"),
        ("B3/S23", "B3/S23"),
        ("{soup = 0.3, seed = 1}", {"soup": 0.3, "seed": 1}),
        ("", ""),
        ("1\nmodel = 2", "1\nmodel = 2"),
        ("patterns/glider.rle", "patterns/glider.rle"),
    ],
)
def test_typed_values(text: str, value: object) -> None:
    assert parse_value(text) == value


TEXT = '''model = "automaton"   # 1
[grid]                # 2
shape = [512, 512]    # 3
boundary = [          # 4
  "periodic",
]
text = """
steps = 5
"""
[run]                 # 10
steps = 100
output.every = 3      # 12
"odd key" = 1
[automaton.parameters]  # 14
p = 0.1
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("model", 1),
        ("grid", 2),
        ("grid.shape", 3),
        ("grid.shape[1]", 3),
        ("grid.spacing", 2),
        ("run.steps", 11),
        ("run.output.every", 12),
        ("run.odd key", 13),
        ("automaton.parameters.p", 15),
        ("automaton.parameters.q", 14),
        ("output.every", 0),
    ],
)
def test_lines(key: str, line: int) -> None:
    assert line_of(TEXT, key) == line


ENTRIES = """\
[[device.layers]]      # 1
name = "top"
n = 1e15
[[device.layers]]      # 4
name = "bottom"
n = 1e18
[device.layers.inner]  # 7
a = 1
[device.light]         # 9
power = 1.0
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("device.layers[0].n", 3),
        ("device.layers[1].n", 6),
        ("device.layers[1].p", 4),
        ("device.layers[1].inner.a", 8),
        ("device.layers[0].inner.a", 1),
        ("device.layers", 1),
        ("device.light.power", 10),
    ],
)
def test_lines_of_entries(key: str, line: int) -> None:
    assert line_of(ENTRIES, key) == line
