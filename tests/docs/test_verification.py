"""The page of verification says what tests found, and the tests that it speaks of are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from loading import SCRIPTS, load

ROOT = Path(__file__).parents[2]
SCRIPT = load(SCRIPTS / "verification.py")
CONTENT = json.loads(SCRIPT.STORED.read_text())


def test_the_page_is_made_of_the_stored_numbers() -> None:
    assert SCRIPT.PAGE.read_text() == SCRIPT.page(CONTENT)
    assert {path.name for path in SCRIPT.images(CONTENT)} == {path.name for path in SCRIPT.IMAGES.glob("*.png")}


def test_all_numbers_are_as_close_as_they_should_be() -> None:
    numbers = [item for test in CONTENT["tests"].values() for item in test["numbers"]]
    assert len(numbers) > 50
    assert [item["what"] for item in numbers if not item["met"]] == []
    assert {item["section"] for item in numbers} <= set(SCRIPT.SECTIONS)


def test_the_tests_are_there() -> None:
    for name in CONTENT["tests"]:
        file, test = re.fullmatch(r"([\w.]+)::(\w+)(?:\[.*\])?", name).groups()  # type: ignore[union-attr]
        assert f"def {test}(" in (ROOT / "tests" / "physics" / file).read_text(), name


def test_what_tests_leave_replaces_what_they_left_before(tmp_path: Path) -> None:
    number = {"section": "rest", "what": "w", "found": 2.0, "expected": 1.0, "within": 0.1, "sense": "relative"}
    old = {"date": "", "tests": {"a": {"numbers": [number], "curves": []}, "b": {"numbers": [], "curves": []}}}
    (tmp_path / "a.json").write_text(
        json.dumps({"test": "a", "numbers": [number | {"found": 1.0, "met": False}], "curves": []})
    )
    new = SCRIPT.take_in(old, tmp_path)
    assert list(new["tests"]) == ["a", "b"]
    assert new["tests"]["a"]["numbers"][0]["found"] == 1.0
    assert "| w **missed** | 1 | 1 |" in SCRIPT.page(new)


def test_make_verification_runs_the_tests_of_the_page() -> None:
    """`make verification` selects every file whose tests record evidence; others would keep old numbers."""
    target = re.search(r"^verification:.*\n(?:\t.*\n)*", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert target is not None
    chosen = re.search(r"-k '([\w ]+)'", target[0])
    assert chosen is not None
    parts = chosen[1].split(" or ")
    files = {name.partition("::")[0] for name in CONTENT["tests"]}
    assert [file for file in sorted(files) if not any(word in file for word in parts)] == []


def test_no_name_ends_a_cell_of_the_table() -> None:
    assert [item["what"] for test in CONTENT["tests"].values() for item in test["numbers"] if "|" in item["what"]] == []
