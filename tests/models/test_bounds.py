"""Bounded grids behind rules, and the files that cells start from besides RLE: Life 1.06 and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.models.automaton.bounds import Bounds, parse_bounds, split_bounds
from minga.models.automaton.patterns import PatternError, read_coordinates
from model_runs import run_model

GLIDER = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]])


@pytest.mark.parametrize(
    ("suffix", "bounds"),
    [
        ("T64,32", Bounds((32, 64), "periodic")), ("t8", Bounds((8, 8), "periodic")),
        ("P64,32", Bounds((32, 64), "fixed")), ("P9", Bounds((9, 9), "fixed")),
        ("T30+5,20", Bounds((20, 30), [{"shift": 5}, "periodic"])),
        ("T30, 20-3", Bounds((20, 30), ["periodic", {"shift": -3}])),
        ("K30*,20", Bounds((20, 30), ["twisted", "periodic"])), ("k8", Bounds((8, 8), ["periodic", "twisted"])),
        ("K8*", Bounds((8, 8), ["twisted", "periodic"])), ("K8,6", Bounds((6, 8), ["periodic", "twisted"])),
        ("K30*+2,20", Bounds((20, 30), [{"twisted": 1}, "periodic"])),
        ("K7,4*-1", Bounds((4, 7), ["periodic", {"twisted": 1}])),
        ("K7*+1,4", Bounds((4, 7), ["twisted", "periodic"])),
        ("C20,30", Bounds((30, 20), "twisted")), ("C9", Bounds((9, 9), "twisted")), ("S30", Bounds((30, 30), "sphere")),
        ("P0,20", Bounds((20, 0), ["fixed", "unbounded"])), ("T30,0", Bounds((0, 30), ["unbounded", "periodic"])),
        ("P0", Bounds((0, 0), "unbounded")), ("t0,0", Bounds((0, 0), "unbounded")),
    ],
)  # fmt: skip
def test_bounded_grids(suffix: str, bounds: Bounds) -> None:
    assert parse_bounds(suffix) == bounds


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        ("K20*,30*", "a twist where"), ("C20*,30", "a twist where"), ("S30,30", "one number"), ("T0+1,20", "unbounded"),
        ("K20+1,30*", "a shift where"), ("C20+1,30", "a shift where"), ("S30+1", "a shift where"),
        ("K0*,3", "unbounded"), ("K6,4+1", "a shift where"), ("T20*,30", "a twist where"),
        ("C0,3", "unbounded"), ("S0", "unbounded"), ("P20+1,20", "a shift where"), ("T3+1,4+1", "a shift where"),
        ("T4+1", "a shift where"),
        ("Tx", "not a bounded grid"), ("T1,2,3", "not a bounded grid"), ("T" + "9" * 50, "not a bounded grid"),
    ],
)  # fmt: skip
def test_grids_that_there_are_not(suffix: str, message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        parse_bounds(suffix)


def test_the_suffix_of_a_rule() -> None:
    assert split_bounds("B3/S23:T64,64") == ("B3/S23", "T64,64")
    for plain in ("B3/S23", "rules.py:T6", "R5,C0,M1,S34..58,B34..45,NM"):
        assert split_bounds(plain) == (plain, None)


def rle(rule: str, mark: str = "") -> str:
    return f"{mark}x = 3, y = 3, rule = {rule}\nbo$2bo$3o!\n"


def case(tmp_path: Path, text: str, *, rule: str | None = None, **grid: Any) -> mg.Model:
    (tmp_path / "p.rle").write_text(text)
    section = {"init": "p.rle"} | ({"rule": rule} if rule else {})
    return load_model("automaton", {"automaton": section}, GridSettings(**grid), tmp_path)


def test_a_pattern_brings_its_grid(tmp_path: Path) -> None:
    torus = case(tmp_path, rle("B3/S23:T30+5,20"))
    assert torus.grid.shape == (20, 30)
    assert torus.grid.shift == ((0, 5), (0, 0))
    plane = case(tmp_path, rle("B3/S23:P16,12", "#CXRLE Pos=-8,-6\n"))
    assert (plane.grid.shape, plane.grid.periodic) == ((12, 16), (False, False))
    assert np.array_equal(run_model(plane, 0).cell[:3, :3], GLIDER)
    by_rule = case(tmp_path, rle("B3/S23"), rule="B36/S23:P9,8")
    assert (by_rule.grid.shape, by_rule.parameters["rule"]) == ((8, 9), "B36/S23")


def test_one_number_is_a_square_but_for_a_rule_of_one_dimension(tmp_path: Path) -> None:
    assert case(tmp_path, rle("B36/S23:T20")).grid.shape == (20, 20)
    (tmp_path / "row.rle").write_text("x = 3, y = 1, rule = W30:T40\nbo!\n")
    line = load_model("automaton", {"automaton": {"init": "row.rle"}}, GridSettings(), tmp_path)
    assert (line.grid.shape, line.grid.periodic) == ((40,), (True,))


def test_a_case_has_the_last_word(tmp_path: Path) -> None:
    larger = case(tmp_path, rle("B3/S23:P16,12"), shape=(40, 50))
    assert (larger.grid.shape, larger.grid.periodic) == ((40, 50), (True, True))
    same = case(tmp_path, rle("B3/S23:P16,12"), shape=(12, 16))
    assert same.grid.periodic == (False, False)
    own = case(tmp_path, rle("B3/S23:K16,12"), shape=(12, 16), boundary="periodic")
    assert own.grid.periodic == (True, True)
    for rule, message in {"B3/S23:S16,12": "sphere", "B3/S23": "number of cells", ":T4,4": "no rule"}.items():
        with pytest.raises(mg.CaseError, match=message) as found:
            case(tmp_path, rle(rule))
        assert found.value.key is not None


# Life 1.06
def test_coordinates() -> None:
    pattern = read_coordinates("#Life 1.06\n0 -1\n 1 0\n-1 1\n\n0\t1\n+1 1\n")
    assert np.array_equal(pattern.cells, GLIDER)
    assert pattern.position == (-1, -1)
    assert read_coordinates("#Life 1.06\n").cells.shape == (0, 0)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "does not begin", 1), ("#Life 1.05\n#P 0 0\n*\n", "does not begin", 1), ("#Life 1.06\n1\n", "a cell", 2),
        ("#Life 1.06\n1 2\n1 2 3\n", "not a cell", 3), ("#Life 1.06\n0 0\n99999999 99999999\n", "cells large", 1),
    ],
)  # fmt: skip
def test_no_coordinates(text: str, message: str, line: int) -> None:
    with pytest.raises(PatternError, match=message) as found:
        read_coordinates(text)
    assert found.value.line == line


@pytest.mark.parametrize("name", ["glider.lif", "glider.life"])
def test_life_files_as_a_start(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("#Life 1.06\n1 0\n2 1\n0 2\n1 2\n2 2\n")
    model = mg.automaton("B3/S23", (5, 5), init=name, directory=tmp_path)
    assert np.array_equal(run_model(model, 0).cell[1:4, 1:4], GLIDER)


# PNG
def start(tmp_path: Path, image: Image.Image, rule: Any = "B3/S23") -> Any:
    image.save(tmp_path / "start.png")
    shape = (image.height, image.width)
    return run_model(mg.automaton(rule, shape, init="start.png", directory=tmp_path), 0).cell


def test_a_palette_numbers_states(tmp_path: Path) -> None:
    states = np.arange(12, dtype=np.uint8).reshape(3, 4) % 4
    image = Image.fromarray(states, "P")
    image.putpalette([255, 255, 255, 0, 0, 0, 200, 0, 0, 0, 0, 200])
    assert np.array_equal(start(tmp_path, image, mg.rule(states=4)(lambda c, n: c)), states)


def test_grey_levels(tmp_path: Path) -> None:
    grey = np.array([[0, 60, 90, 128, 200, 255]], np.uint8)
    three = mg.rule(states=3)(lambda c, n: c)
    for image in (Image.fromarray(grey), Image.fromarray(np.stack([grey] * 3, -1))):
        assert start(tmp_path, image, three).tolist() == [[0, 0, 1, 1, 2, 2]]
    assert start(tmp_path, Image.fromarray(grey > 100)).tolist() == [[0, 0, 0, 1, 1, 1]]
    assert np.array_equal(start(tmp_path, Image.fromarray(grey), mg.rule(dtype="f8")(lambda c, n: c)), grey / 255)
    assert np.array_equal(start(tmp_path, Image.fromarray(grey), mg.rule(dtype="i4")(lambda c, n: c)), grey)


def test_pictures_that_are_no_cells(tmp_path: Path) -> None:
    colours = np.zeros((4, 4, 3), np.uint8)
    colours[1, 1] = 255, 0, 0
    (tmp_path / "text.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    Image.fromarray(colours).save(tmp_path / "colours.png")
    palette = Image.fromarray(np.full((4, 4), 5, np.uint8), "P")
    palette.putpalette([0] * 30)
    palette.save(tmp_path / "states.png")
    for name, message in [
        ("text", "readable PNG"),
        ("colours", "in colour"),
        ("states", "holds 5"),
        ("none", "no file"),
    ]:
        with pytest.raises(mg.CaseError, match=message) as found:
            mg.automaton("B3/S23", (8, 8), init=f"{name}.png", directory=tmp_path)
        assert found.value.key == "automaton.init"
