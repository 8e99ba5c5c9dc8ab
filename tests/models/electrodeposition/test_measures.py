"""Measures of deposits: exact dimensions of regular fractals, lines and blocks, and fronts that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.electrodeposition import DepositHistory, box_counts, deposit_history
from minga.models.electrodeposition.measures import gyration

CARPET = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
VICSEK = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])


def fractal(pattern: np.ndarray[Any, Any], depth: int) -> np.ndarray[Any, Any]:
    found = np.ones((1,) * pattern.ndim, int)
    for _ in range(depth):
        found = np.kron(found, pattern)
    return found


@pytest.mark.parametrize(
    ("pattern", "cells", "dimension"), [(CARPET, 32768, 1.8927892607), (VICSEK, 3125, 1.4649735207)]
)
def test_dimensions_of_regular_fractals_are_exact(pattern: np.ndarray[Any, Any], cells: int, dimension: float) -> None:
    boxes = box_counts(fractal(pattern, 5), base=3)
    assert boxes.widths.tolist() == [1, 3, 9, 27, 81, 243]
    assert (int(boxes.counts[0]), int(boxes.counts[-1])) == (cells, 1)
    np.testing.assert_allclose(boxes.slopes, dimension, rtol=1e-9)
    assert boxes.dimension() == pytest.approx(dimension, rel=1e-9)
    assert boxes.dimension(3, 81) == pytest.approx(dimension, rel=1e-9)


def test_dimensions_in_three_axes() -> None:
    """A block has three, a plane two, a line one, and the sponge of Menger log 20 / log 3."""
    block = np.ones((16, 16, 16), bool)
    plane, line = np.zeros_like(block), np.zeros_like(block)
    plane[:, 5], line[3, :, 2] = True, True
    assert [box_counts(s).dimension() for s in (block, plane, line)] == pytest.approx([3.0, 2.0, 1.0], rel=1e-12)
    sponge = np.ones((3, 3, 3), int)
    sponge[1, 1, :], sponge[1, :, 1], sponge[:, 1, 1] = 0, 0, 0
    assert box_counts(fractal(sponge, 3), base=3).dimension() == pytest.approx(2.7268330279, rel=1e-9)


def test_boxes_that_do_not_fit_count_too() -> None:
    """Five cells in a row are covered by 5, 3, 2 and 1 boxes of 1, 2, 4 and 8 cells."""
    assert box_counts(np.ones(5)).counts.tolist() == [5, 3, 2, 1]
    assert box_counts(np.ones((1, 1))).counts.tolist() == [1]


@pytest.mark.parametrize(
    ("solid", "base", "match"),
    [
        (np.zeros((4, 4)), 2, "no cell belongs"),
        (np.array([[1.0, np.nan]]), 2, "finite"),
        (np.array(["a"]), 2, "finite"),
        (3.0, 2, "0 axes"),
        (np.ones(4), 1, "base"),
        (np.ones(4), 2.5, "base"),
        (np.ones(4), True, "base"),
    ],
)
def test_bad_sets_are_refused(solid: Any, base: Any, match: str) -> None:
    with pytest.raises(CaseError, match=match):
        box_counts(solid, base)


def test_slopes_need_two_widths() -> None:
    with pytest.raises(CaseError, match="only 1 of the widths"):
        box_counts(np.ones(8)).dimension(4, 7)


def test_the_velocity_is_that_of_a_moving_front() -> None:
    time = np.array([0.0, 1.0, 3.0, 4.0])
    nothing = np.zeros(4)
    history = DepositHistory(time, nothing.astype(int), nothing, 2.0 + 0.5 * time, nothing, nothing, np.ones(1, bool))
    assert history.velocity() == pytest.approx(0.5, rel=1e-14)
    assert history.velocity(1.0, 3.0) == pytest.approx(0.5, rel=1e-14)
    with pytest.raises(CaseError, match="1 frames lie between"):
        history.velocity(3.5)


def test_the_dimension_is_that_of_cells_over_their_gyration() -> None:
    reach = np.array([1.0, 2.0, 4.0, 8.0])
    nothing, cells = np.zeros(4), np.round(1000 * reach**1.5).astype(np.int64)
    history = DepositHistory(nothing, cells, nothing, nothing, nothing, reach, np.ones(1, bool))
    assert history.dimension() == pytest.approx(1.5, rel=1e-4)
    assert history.dimension(2000, 9000) == pytest.approx(1.5, rel=1e-3)
    with pytest.raises(CaseError, match="fewer than two sizes between 2000 and 2500 cells"):
        history.dimension(2000, 2500)


def test_the_gyration_of_a_full_square() -> None:
    side = np.arange(50) + 0.5
    assert gyration(np.ones((50, 50), bool), [side, 2.0 * side]) == pytest.approx(np.sqrt(5 * (50**2 - 1) / 12))
    assert gyration(np.zeros((50, 50), bool), [side, side]) == 0.0


def test_runs_without_a_deposit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no frames of a deposit"):
        deposit_history(tmp_path)


@pytest.mark.slow
def test_the_history_of_a_run_agrees_with_its_frames(tmp_path: Path) -> None:
    case = """
model = "electrodeposition"
[grid]
shape = [12, 8]
[electrodeposition]
electrolyte = "CuSO4"
concentration = "0.1 M"
length = "1 mm"
width = "0.6 mm"
periodic = ["x"]
voltage = 0.2
growth = true
time = { end = "4 s", every = "1 s", first = "0.05 s", tolerance = 1e-2 }
[output]
every = 1
observe = 1
"""
    (tmp_path / "cell.toml").write_text(case, encoding="utf-8")
    frames = mg.run(mg.read_case(str(tmp_path / "cell.toml")).model, 4, every=1, out=tmp_path / "run")
    history = deposit_history(tmp_path / "run")
    kinds = np.asarray(frames["kind"].transpose("time", "y", "x"))
    assert history.time.tolist() == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0])
    assert history.cells.tolist() == (kinds == 1).sum(axis=(1, 2)).tolist()
    assert history.cells[-1] > 3
    for number, kind in enumerate(kinds):
        tops = [max([0, *(1 + np.flatnonzero(kind[:, x] == 1))]) / 12 * 1e-3 for x in range(8)]
        assert history.highest[number] == pytest.approx(max(tops))
        assert history.height[number] == pytest.approx(np.mean(tops))
        assert history.roughness[number] == pytest.approx(np.std(tops))
        y, x = np.argwhere(kind == 1).reshape(-1, 2).T
        spread = np.var(y / 12 * 1e-3) + np.var(x / 8 * 0.6e-3) if y.size else 0.0
        assert history.gyration[number] == pytest.approx(np.sqrt(spread))
    assert (history.solid == (kinds[-1] == 1)).all()
    assert 0 < history.velocity() < history.highest[-1] / 4.0 * 2
