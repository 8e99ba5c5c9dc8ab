"""Where the cells start: files, soups, constants and functions, whatever box of the grid is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.lang.rule import Rule, rule
from minga.models.automaton.initial import initial_values
from minga.models.automaton.rules import elementary, life_like
from minga.space.box import Box

LIFE = life_like("B3/S23")
BOXES = [Box((0, 0), (10, 12)), Box((3, 5), (4, 12)), Box((9, 0), (10, 1)), Box((2, 2), (2, 6)), Box((1, 3), (8, 9))]


@rule(states=4)
def four(cell, near):
    return cell


@rule(fields=("u", "v"))
def pair(cell, near):
    return {"u": cell.u, "v": cell.v}


def whole(init: Any, chosen: Rule = LIFE, shape: tuple[int, ...] = (10, 12), **options: Any) -> np.ndarray:
    """The only field on the whole grid; boxes must give parts of the same."""
    (values,) = initial_values(init, chosen, shape, **options).values()
    everything = values(Box.of(shape))
    assert everything.shape == shape
    assert everything.dtype == next(iter(chosen.fields.values()))
    if shape == (10, 12):
        for box in BOXES:
            assert np.array_equal(values(box), everything[box.slices((0, 0))])
    return everything


def refused(init: Any, chosen: Rule = LIFE, shape: tuple[int, ...] = (10, 12), **options: Any) -> str:
    with pytest.raises(CaseError, match=r"automaton\.init") as caught:
        everywhere(init, chosen, shape, **options)
    return str(caught.value)


def everywhere(init: Any, chosen: Rule, shape: tuple[int, ...], **options: Any) -> list[np.ndarray]:
    return [values(Box.of(shape)) for values in initial_values(init, chosen, shape, **options).values()]


# Patterns
def test_patterns_are_centred(tmp_path: Path) -> None:
    (tmp_path / "p.rle").write_text("3o$o!")
    expected = np.zeros((10, 12), "u1")
    expected[4, 4:7] = expected[5, 4] = 1
    assert np.array_equal(whole("p.rle", directory=tmp_path), expected)
    assert np.array_equal(whole({"pattern": "p.rle"}, directory=tmp_path), expected)
    assert np.array_equal(whole([[1, 1, 1], [1, 0, 0]]), expected)
    np.save(tmp_path / "p.npy", np.array([[True, True, True], [True, False, False]]))
    assert np.array_equal(whole("p.npy", directory=tmp_path), expected)
    (tmp_path / "p.cells").write_text("OOO\nO..\n")
    assert np.array_equal(whole("p.cells", directory=tmp_path), expected)
    moved = whole({"pattern": "p.rle", "at": [0, 9]}, directory=tmp_path)
    assert np.array_equal(moved, np.roll(expected, (-4, 5), (0, 1)))
    assert np.array_equal(whole({"pattern": [[1]], "at": [9, 11]}).nonzero(), [[9], [11]])


def test_a_whole_array(tmp_path: Path) -> None:
    cells = np.random.default_rng(1).integers(0, 4, (10, 12))
    np.save(tmp_path / "cells.npy", cells)
    assert np.array_equal(whole("cells.npy", four, directory=tmp_path), cells)
    assert np.array_equal(whole(cells, four), cells)


def test_dead_margins_do_not_count() -> None:
    wide = np.zeros((30, 30), "u1")
    wide[20, 3:5] = 1
    assert np.argwhere(whole(wide)).tolist() == [[4, 5], [4, 6]]
    assert not whole(np.zeros((30, 30), "u1")).any()


def test_other_dimensions(tmp_path: Path) -> None:
    assert whole([1], elementary(30), (7,)).tolist() == [0, 0, 0, 1, 0, 0, 0]
    (tmp_path / "row.rle").write_text("3o!")
    assert whole("row.rle", elementary(30), (5,), directory=tmp_path).tolist() == [0, 1, 1, 1, 0]
    assert whole([[[1]]], life_like("B5/S45", 3), (3, 4, 5)).sum() == 1


# Soups
def test_soups_have_their_density_and_do_not_depend_on_the_box() -> None:
    cells = whole({"soup": 0.375, "seed": 1}, shape=(400, 500))
    assert abs(cells.mean() - 0.375) < 5 * np.sqrt(0.375 * 0.625 / cells.size)
    small = whole({"soup": 0.5, "seed": 1})
    assert 0 < small.sum() < small.size
    assert not np.array_equal(small, whole({"soup": 0.5, "seed": 2}))
    assert np.array_equal(small, whole({"soup": 0.5}, seed=1))
    assert not whole({"soup": 0}).any()
    assert whole({"soup": 1}).all()


def test_soups_of_several_states() -> None:
    cells = whole({"soup": [0.1, 0.2, 0.3], "seed": 3}, four, (300, 300))
    shares = np.bincount(cells.ravel(), minlength=4) / cells.size
    assert np.allclose(shares, [0.4, 0.1, 0.2, 0.3], atol=0.01)


def test_soups_of_two_fields_differ() -> None:
    values = initial_values({"u": {"soup": 0.5}, "v": {"soup": 0.5}}, pair, (10, 12))
    u, v = (values[name](Box.of((10, 12))) for name in "uv")
    assert u.dtype == v.dtype == np.float64
    assert not np.array_equal(u, v)


# Functions and constants
def test_functions(tmp_path: Path) -> None:
    def wave(shape: tuple[int, ...], y: np.ndarray, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"u": y / shape[0] + x, "v": np.float64(2.5) * (x >= 0)}

    for init in (wave, "start.py:wave"):
        (tmp_path / "start.py").write_text(
            "def wave(shape, y, x):\n    return {'u': y / shape[0] + x, 'v': 2.5 * (x >= 0)}\n"
        )
        values = initial_values(init, pair, (10, 12), tmp_path)
        for box in BOXES:
            y, x = np.mgrid[box.lo[0] : box.hi[0], box.lo[1] : box.hi[1]]
            assert np.array_equal(values["u"](box), y / 10 + x)
            assert np.array_equal(values["v"](box), np.full(box.shape, 2.5))
    assert np.array_equal(whole(lambda shape, y, x: (y + x) % 2), np.indices((10, 12)).sum(0) % 2)


def test_fields_start_each_in_their_own_way() -> None:
    values = initial_values({"u": {"fill": 1}, "v": [[0.5]]}, pair, (10, 12))
    assert np.array_equal(values["u"](BOXES[4]), np.ones((7, 6)))
    assert values["v"](Box.of((10, 12))).sum() == 0.5


# Mistakes
def test_mistakes_name_the_key(tmp_path: Path) -> None:
    np.save(tmp_path / "big.npy", np.ones((11, 3)))
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "glider.rle").write_text("bo$2bo$3o!")
    (tmp_path / "wide.rle").write_text("13o!")
    (tmp_path / "start.py").write_text("def wave(shape, y, x):\n    return y\n")
    here = {"directory": tmp_path}
    cases = [
        (refused("glidr.rle", **here), "did you mean 'glider.rle'"),
        (refused("wide.rle", **here), "1 x 13 cells, larger than the grid, 10 x 12"),
        (refused("big.npy", **here), "larger than the grid"),
        (refused("cube.npy", **here), "3 dimensions"),
        (refused("text.npy", **here), "not a .npy file"),
        (refused("words.npy", **here), "not numbers"),
        (refused("photo.jpg", **here), "known kind"),
        (refused({"pattern": "glider.rle", "at": [8, 0]}, **here), "leaves the grid"),
        (refused({"pattern": "glider.rle", "at": [-1, 0]}, **here), "leaves the grid"),
        (refused({"pattern": "glider.rle", "at": 3}, **here), "at = 3"),
        (refused({"pattern": "glider.rle", "where": 3}, **here), "unknown entry 'where'"),
        (refused({"sup": 0.3}), "did you mean 'soup'"),
        (refused({"soup": 1.5}), "probabilities"),
        (refused({"soup": "0.5"}), "probabilities"),
        (refused({"soup": [0.7, 0.7]}, four), "probabilities"),
        (refused({"soup": [0.1, 0.1]}), "the rule has 1"),
        (refused({"soup": 0.5, "sed": 1}), "did you mean 'seed'"),
        (refused({"soup": 0.5, "seed": -1}), "seed = -1"),
        (refused({"fill": "x"}), "fill = 'x'"),
        (refused({"fill": 2}), "0 .. 1"),
        (refused([[0, 1], [1, 2]]), "holds 2 at row 1, column 1; the rule's states are 0 .. 1"),
        (refused(["bo", "oo"]), "row 0 is the text 'bo'"),
        (refused([[0, 1], [1]]), "row 1 has 1 states, row 0 2"),
        (refused([[0, 0.5]]), "fractions"),
        (refused([[0, 1], [1]]), "differ in length"),
        (refused(3), "found 3"),
        (refused([]), "found []"),
        (refused({"u": {"fill": 1}}, pair), "'v' has no start"),
        (refused({"u": {"fill": 1}, "w": {"fill": 1}}, pair), "no field 'w'"),
        (refused({"soup": 0.5}, pair), "no field 'soup'"),
        (refused([[1.0]], pair), "start each of them"),
        (refused("start.py:wve", **here), "did you mean 'wave'"),
        (refused("start.py", **here), "no function ''"),
        (refused("start.py:wave", pair, **here), "no values for field 'u'"),
        (refused("start.py:wave", **here), "states are 0 .. 1"),
        (refused("missing.py:wave", **here), "there is no file"),
    ]
    for text, words in cases:
        assert words in text, text


FUNCTIONS = """\
import numpy as np
def one(shape, x):
    return 0 * x
def whole(shape, y, x):
    return np.zeros(shape)
def fails(shape, y, x):
    half = shape[0] // 2
    return (y < half) & middle
def ragged(shape, y, x):
    return [[1, 2], [3]]
def words(shape, y, x):
    return "alive"
def nothing(shape, y, x):
    pass
number = 3
"""


@pytest.mark.parametrize(("name", "line", "words"), [
    ("one", 2, "cannot be called with the grid's shape and 2 index arrays"), ("whole", 4, "shape (10, 12)"),
    ("fails", 8, "NameError: name 'middle' is not defined"), ("ragged", 9, "an array:"), ("words", 11, "not numbers"),
    ("nothing", 13, "not numbers"), ("number", 0, "no function 'number'"),
])  # fmt: skip
def test_functions_that_cannot_work_are_found_before_the_run(tmp_path: Path, name: str, line: int, words: str) -> None:
    (tmp_path / "start.py").write_text(FUNCTIONS)
    with pytest.raises(CaseError, match=r"automaton\.init") as caught:
        initial_values(f"start.py:{name}", LIFE, (10, 12), tmp_path)
    assert words in str(caught.value)
    assert not line or f"start.py:{line}" in str(caught.value)


def test_functions_are_tried_on_grids_of_any_size() -> None:
    for shape in [(1,), (1, 1), (2, 1, 3), (1, 2, 1, 2)]:
        (values,) = initial_values(lambda shape, *indices: 0 * sum(indices) + 1, LIFE, shape).values()
        assert values(Box.of(shape)).tolist() == np.ones(shape).tolist()


def test_numbers_of_numpy_are_numbers() -> None:
    def first(init: object) -> np.ndarray:
        return mg.run(mg.automaton("B3/S23", (8, 9), init=init), steps=0).cell.values[0]

    soups = ({"soup": 0.5, "seed": 2}, {"soup": np.float32(0.5), "seed": np.int64(2)})
    places = ({"pattern": [[1]], "at": [2, 3]}, {"pattern": [[1]], "at": np.array([2, 3])})
    for plain, numpy in (soups, places):
        assert np.array_equal(first(plain), first(numpy))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "a"])
def test_seeds_that_are_none(seed: object) -> None:
    with pytest.raises(CaseError, match=r"automaton\.seed"):
        mg.automaton("B3/S23", (8, 9), init=[[1]], seed=seed)  # type: ignore[arg-type]
