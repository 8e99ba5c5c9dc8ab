"""Curves in one picture."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from minga.errors import RunError
from minga.view.curves import curves_figure, draw_curves
from minga.view.report.charts import Curve, curves


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


def test_a_half_circle_in_the_complex_plane_is_round() -> None:
    angles = [math.pi * number / 40 for number in range(41)]
    x, y = [3.0 + math.cos(each) for each in angles], [math.sin(each) for each in angles]
    drawn = str(curves("Nyquist", [Curve("Z", x, y)], "Z_re", logarithmic=False, equal=True))
    (path,) = re.findall(r'class="curve"[^>]*d="([^"]+)"|d="([^"]+)"[^>]*class="curve"', drawn)
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", "".join(path))[1:]]
    wide = max(p[0] for p in points) - min(p[0] for p in points)
    tall = max(p[1] for p in points) - min(p[1] for p in points)
    assert wide == pytest.approx(2 * tall, rel=0.01)
    figure = curves_figure([("Z", x, y)], title="", xlabel="", ylabel="", equal=True)
    assert figure.axes[0].get_aspect() == 1.0
