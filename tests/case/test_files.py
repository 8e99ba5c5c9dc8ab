"""Files that ship with minga can be named in any case; a file beside the case comes first."""

from __future__ import annotations

from pathlib import Path

from minga.case.files import SHIPPED, locate, nearest

NAME = "patterns/r-pentomino.rle"


def test_shipped_files_are_found_from_anywhere(tmp_path: Path) -> None:
    assert locate(NAME, tmp_path) == SHIPPED / NAME


def test_a_file_beside_the_case_comes_first(tmp_path: Path) -> None:
    (tmp_path / "patterns").mkdir()
    (tmp_path / NAME).write_text("bob$2o$b2o!")
    assert locate(NAME, tmp_path) == tmp_path / NAME


def test_what_exists_nowhere_is_reported_beside_the_case(tmp_path: Path) -> None:
    assert locate("no.rle", tmp_path) == tmp_path / "no.rle"


def test_the_nearest_file_is_named_beside_the_case_or_shipped(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "spiral.rle").touch()
    assert nearest("spirl.rle", tmp_path) == "mine/spiral.rle"
    assert nearest("glidr.rle", tmp_path) == "patterns/glider.rle"
    assert nearest("spirl.npy", tmp_path) is None
