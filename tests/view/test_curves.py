"""Curves in one picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.errors import RunError
from minga.view.curves import draw_curves


def test_curves_are_drawn(tmp_path: Path) -> None:
    curves = {"one": [1.0, 2.0, 4.0], "two": [3.0, 2.0, 1.0]}
    path = draw_curves(
        [1, 2, 3], curves, tmp_path / "curves.svg", title="a title", xlabel="segments", ylabel="speed-up",
        logarithmic=True, marks={"two nodes": 2.0},
    )  # fmt: skip
    text = path.read_text()
    assert all(f"<!-- {word} -->" in text for word in ("a title", "segments", "speed-up", "one", "two", "two nodes"))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write"):
        draw_curves([1], {"one": [1.0]}, tmp_path / "no" / "curves.png", title="", xlabel="", ylabel="")
