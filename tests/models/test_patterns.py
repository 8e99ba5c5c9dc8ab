"""Pattern files: RLE with all its irregularities, plain text, and what is said about files that are neither."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from minga.case.examples import examples
from minga.errors import CaseError
from minga.models.automaton.initial import initial_values
from minga.models.automaton.model import automaton
from minga.models.automaton.patterns import PatternError, read_cells, read_pattern, read_rle, write_rle
from minga.models.automaton.rules import find_rule, life_like
from minga.space.box import Box

GLIDER = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize("text", [
    "bo$2bo$3o!",
    "x = 3, y = 3\nbo$2bo$3o!",
    "x = 3, y = 3, rule = B3/S23\nbob$2bo$3o!",
    "#N Glider\n#C moves\n#r 23/3\nx=3,y=3,rule=b3/s23\n\nb o $\n2b\no$3\no!",
    ".A$2.A$3A!",
    "bo$2bo$3o",
    "bo$2bo$3o!\nwords after the end",
    "x = 1, y = 1\nbo$2bo$3o!",
    "X = 3, Y = 3, rule = Life\r\nbo$2bo$3o!\r\n",
    "bo$2bo\n# between\n$3o!",
])  # fmt: skip
def test_spellings_of_a_glider(text: str) -> None:
    assert read_rle(text).cells.tolist() == GLIDER


def test_the_header_says_the_rule_and_comments_the_rest() -> None:
    pattern = read_rle("#N name\n#CXRLE Pos=-3,4 Gen=12\n#C two\nx = 2, y = 1, rule = B36/S23:T64,48+3\n2o!")
    assert (pattern.rule, pattern.bounds) == ("B36/S23", "T64,48+3")
    assert (pattern.position, pattern.generation) == ((4, -3), 12)
    assert pattern.comments == ("name", "two")
    assert pattern.population == 2
    bare = read_rle("2o!")
    assert (bare.rule, bare.bounds, bare.position, bare.generation, bare.comments) == (None, None, None, 0, ())


def test_a_larger_header_is_a_margin() -> None:
    assert read_rle("x = 4, y = 2\no!").cells.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]
    assert read_rle("x = 1000000000, y = 1000000000\no!").cells.tolist() == [[1]]


def test_rows_are_skipped() -> None:
    assert read_rle("o3$2o$!").cells.tolist() == [[1, 0], [0, 0], [0, 0], [1, 1]]


def test_many_states() -> None:
    assert read_rle(".AXpApXqAyO!").cells.tolist() == [[0, 1, 24, 25, 48, 49, 255]]
    assert read_rle("2pA3.B!").cells.tolist() == [[25, 25, 0, 0, 0, 2]]


@given(
    arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.sampled_from([0, 0, 0, 1, 1])),
    st.sampled_from([1, 2, 24, 25, 255]),
)
def test_written_patterns_read_back(cells: np.ndarray, largest: int) -> None:
    cells = cells * np.uint8(largest)
    text = write_rle(cells, "B36/S23", ("a comment",), 7)
    pattern = read_rle(text)
    assert np.array_equal(pattern.cells, cells)
    assert (pattern.rule, pattern.generation, pattern.comments) == ("B36/S23", 7, ("a comment",))
    assert max(map(len, text.splitlines())) <= 70


def test_empty_patterns() -> None:
    assert read_rle("!").cells.size == 0
    assert read_rle("").cells.size == 0
    assert read_cells("! nothing\n").cells.size == 0
    assert np.array_equal(read_rle(write_rle(np.zeros((3, 4), "u1"))).cells, np.zeros((3, 4)))


def test_write_refuses_what_rle_cannot_hold() -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        write_rle(np.zeros(3, "u1"))
    with pytest.raises(ValueError, match=r"0 \.\. 255"):
        write_rle(np.full((2, 2), 256))


def test_plain_text() -> None:
    pattern = read_cells("!Name: Glider\n!\n.O\n..O\n*OO\n\n")
    assert pattern.cells.tolist() == GLIDER
    assert pattern.comments == ("Name: Glider", "")


@pytest.mark.parametrize(("name", "text", "line", "words"), [
    ("a.rle", "x = 3, y = 3\nbo$\n2bz!", 3, "'z'"), ("a.rle", "pZ!", 1, "'pZ'"),
    ("a.rle", "bob$2q!", 1, "'q!'"), ("a.rle", "bob$2q\n\n", 2, "'2q'"), ("a.rle", "3p", 1, "'3p'"),
    ("a.rle", "bob$2bo$\n3", 2, "after '3'"),
    ("a.rle", "9" * 5000 + "o!", 1, "a run of"), ("a.rle", "yP!", 1, "'yP'"),
    ("a.rle", "99999999999999o!", 1, "99999999999999 cells"), ("a.rle", "999999o999999$o!", 1, "cells large"),
    ("a.cells", "!\n.O\n.x\n", 3, "'x'"),
])  # fmt: skip
def test_broken_files_name_the_line(tmp_path: Path, name: str, text: str, line: int, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CaseError, match=r"automaton\.init") as caught:
        read_pattern(tmp_path / name)
    assert words in str(caught.value)
    assert f"{name}:{line}" in str(caught.value)


@pytest.mark.parametrize("name", ["glider.rle", "GLIDER.RLE", "glider.Cells"])
def test_files_from_other_systems(tmp_path: Path, name: str) -> None:
    """A mark of byte order, line ends of Windows, names in capitals."""
    text = ".O.\r\n..O\r\nOOO\r\n" if "ell" in name else "x = 3, y = 3, rule = B3/S23\r\nbob$2bo$3o!\r\n"
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    start = initial_values(name, find_rule("B3/S23", 2, tmp_path), (3, 3), tmp_path)["cell"]
    assert np.array_equal(start(Box((0, 0), (3, 3))), GLIDER)


@pytest.mark.parametrize("name", ["nothing.rle", "nothing.cells", "nothing.lif"])
def test_an_empty_file_is_no_pattern(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("\n")
    with pytest.raises(CaseError, match="is empty"):
        read_pattern(tmp_path / name)


def test_a_missing_file() -> None:
    with pytest.raises(CaseError, match="cannot read"):
        read_pattern(Path("nowhere.rle"))


def test_the_shipped_patterns() -> None:
    directory = examples()["life"].parent / "patterns"
    populations = {path.stem: read_pattern(path).population for path in directory.iterdir()}
    assert populations == {
        "r-pentomino": 5, "acorn": 7, "diehard": 7, "glider": 5, "gosper-glider-gun": 36,
        "replicator": 12, "bug": 68, "langtons-loop": 86, "wireworld-gates": 280,
    }  # fmt: skip


FILE_TEXT = st.text("bo$!.AXpqyz0123456789 \n#xy=,rule:BS/\u0663", max_size=60) | st.text(max_size=60)


def refusal(make: Callable[[], Any]) -> Any:
    """The error that a person would be told, None where there is none; anything else is a bug."""
    try:
        make()
    except (CaseError, PatternError) as error:
        return error
    return None


@given(FILE_TEXT)
def test_any_text_is_a_pattern_or_is_refused_with_its_line(text: str) -> None:
    for read in (read_rle, read_cells):
        error = refusal(partial(read, text))
        assert error is None or 1 <= error.line <= max(1, len(text.splitlines()))


@given(st.text("BSWVH0123456789,/ w-x.py:", max_size=30) | st.integers(3000, 6000).map(lambda n: "W" + "9" * n))
def test_any_text_is_a_rule_or_is_refused(text: str) -> None:
    for ndim in (1, 2):
        error = refusal(partial(find_rule, text, ndim, Path("nowhere")))
        assert error is None or error.key == "automaton.rule"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["periodic", "fixed", "reflect", "zero-gradient", "shift", "soup", "pattern", "fill", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["shift", "soup", "seed", "pattern", "at", "fill", "cell", "x", "z"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([(4, 6), (3, 3, 2)]))
def test_any_value_is_a_start_and_boundaries_or_is_refused(value: object, shape: tuple[int, ...]) -> None:
    life = life_like("B3/S23", len(shape))

    def start() -> None:
        for values in initial_values(value, life, shape, Path("nowhere")).values():
            values(Box.of(shape))

    error = refusal(start)
    assert error is None or error.key.startswith("automaton.init")
    error = refusal(lambda: automaton(life, shape, init={"fill": 0}, boundary=value))
    assert error is None or error.key.startswith("grid")
