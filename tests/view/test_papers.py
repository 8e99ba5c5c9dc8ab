"""Figures for papers, from the datasets that runs return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg


@pytest.fixture(scope="module")
def history() -> Any:
    """Heat on 8 x 12 points of 0.5 m, 3 frames."""
    start = np.zeros((8, 12))
    start[3:5, 3:9] = 1.0
    model = mg.pde("laplace(u)", mg.Grid((8, 12), spacing=0.5), initial={"u": start}, dt=0.01, units={"u": "K"})
    return mg.run(model, steps=4, every=2)


def test_a_field_has_the_width_of_the_column_and_units(history: Any) -> None:
    figure = history.mg.figure("u", width=100.0)
    plot, bar = figure.axes
    assert figure.get_figwidth() == pytest.approx(100 / 25.4)
    assert bar.get_ylabel() == "u (K)"
    assert plot.get_xlabel() == history.x.name
    (image,) = plot.images
    assert np.array_equal(np.asarray(image.get_array()), history.u.values[-1])


def test_frames_share_their_colours(history: Any) -> None:
    first, last = (history.mg.figure("u", frame).axes[0].images[0].get_clim() for frame in (0, -1))
    assert first == last


def test_an_observable_is_drawn_over_the_steps() -> None:
    cells = mg.run(mg.automaton("B3/S23", (16, 16), init={"soup": 0.3, "seed": 1}), steps=8, every=2)
    (plot,) = cells.mg.figure("population").axes
    (line,) = plot.lines
    assert np.array_equal(line.get_xdata(), cells.observed.values)
    assert np.array_equal(line.get_ydata(), cells.population.values)
    assert (plot.get_xlabel(), plot.get_ylabel()) == ("step", "population")


def test_it_is_written_as_vector_graphics(history: Any, tmp_path: Path) -> None:
    history.mg.figure().savefig(tmp_path / "u.pdf")
    assert (tmp_path / "u.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "v"}, "no field or observable over time 'v'"),
        ({"name": 3}, "no field or observable over time 3"),
        ({"frame": 9}, "no frame 9"),
        ({"frame": 1.5}, "no frame 1.5"),
        ({"frame": "last"}, "no frame 'last'"),
        ({"width": 2}, "from 20 to 1000"),
        ({"width": "wide"}, "from 20 to 1000"),
        ({"width": float("nan")}, "from 20 to 1000"),
    ],
)
def test_invalid_arguments(history: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        history.mg.figure(**arguments)
