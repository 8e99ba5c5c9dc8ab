"""Notes before a run, as a table and as text."""

from __future__ import annotations

from minga.cli.preflight import table_of, text_of

NOTES = [("warning", "too wide"), ("ions", "two"), ("warning", "too narrow"), ("warning", "too long")]


def test_a_name_that_occurs_again_is_numbered() -> None:
    assert table_of(NOTES) == {
        "warning": "too wide", "ions": "two", "warning 2": "too narrow", "warning 3": "too long",
    }  # fmt: skip
    assert text_of(NOTES).count("warning") == 3
