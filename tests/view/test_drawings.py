"""Curves that a model wants together: read from what a run left, drawn as pictures and charts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import minga as mg
from minga.engine.drawing import Drawing, Span
from minga.errors import ProgramError
from minga.output.directory import RunDirectory
from minga.view.drawings import draw_all, drawn_of, over_observable
from minga.view.pictures import draw_run
from minga.view.report.drawings import drawing_charts

GRID = mg.Grid((6, 4), axes=("x", "y"), spacing=(0.5, 1.0), units="um")


@mg.kernel
def grow(u, v):  # type: ignore[no-untyped-def]
    u[0, 0] = u[0, 0] * 10
    v[0, 0] = v[0, 0] - 1


@mg.kernel
def largest(u):  # type: ignore[no-untyped-def]
    return mg.max(u[0, 0])


def model(*drawings: Drawing) -> mg.Model:
    u, v = mg.Field("u", GRID), mg.Field("v", GRID)
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(grow, u, v)
    top, down = observe.apply(largest, u), observe.apply(largest, v)
    profile = np.arange(6.0)[:, None] + np.array([100.0, 100.0, 1.0, 100.0])
    return mg.Model(
        "growing", GRID, (u, v), step, initial={u: profile, v: -profile}, observe=observe,
        observables={"top": top, "down": down}, presentation=mg.Presentation(drawings=drawings),
    )  # fmt: skip


PROFILES = Drawing(
    "Profiles, together", {"one": "u", "other": "v"}, unit="1/cm3", logarithmic=True,
    spans=(Span("left", 0.0, 1.0), Span("right", 1.0, 3.0)),
)  # fmt: skip
CURVE = Drawing("Curve", {"top": "top"}, over="down")


@pytest.mark.slow
def test_fields_in_the_middle_and_observables_in_order(tmp_path: Path) -> None:
    mg.run(model(PROFILES, CURVE), steps=3, every=1, out=tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    profiles, curve = drawn_of(directory)
    assert profiles.when == "step 3"
    assert profiles.over == "x (um)"
    (label, places, values), (_, _, other) = profiles.curves
    assert label == "one"
    assert np.allclose(places, 0.25 + 0.5 * np.arange(6))
    assert np.allclose(values, 1000 * np.arange(1.0, 7.0))
    assert np.allclose(other, np.arange(4.0, 10.0))
    ((_, down, top),) = curve.curves
    assert np.allclose(down, [-4.0, -3.0, -2.0])
    assert np.allclose(top, 105 * np.array([1000.0, 100.0, 10.0]))

    paths = draw_all(directory)
    assert [path.name for path in paths] == ["profiles-together.png", "curve.png"]
    for path in paths:
        with PIL.Image.open(path) as image:
            assert image.size == (800, 450)
    charts = drawing_charts(directory)
    assert [chart.title for chart in charts] == ["Profiles, together, step 3", "Curve"]
    assert charts[0].keys[0][0] == "one"
    assert ">right</text>" in str(charts[0].drawing)
    assert charts[1].keys == ()
    assert draw_run(directory.fields, directory.pictures, 2), "fields of two axes are still drawn one by one"


def test_runs_without_numbers_have_no_drawings(tmp_path: Path) -> None:
    mg.run(model(CURVE), steps=1, every=1, out=tmp_path / "once")
    assert drawn_of(RunDirectory(tmp_path / "once")) == []
    mg.run(model(), steps=1, every=1, out=tmp_path / "plain")
    assert drawn_of(RunDirectory(tmp_path / "plain")) == []
    assert drawn_of(RunDirectory(tmp_path / "nothing")) == []


def test_a_drawing_of_what_there_is_not_is_refused() -> None:
    with pytest.raises(ProgramError, match="'w'"):
        model(Drawing("wrong", {"w": "w"}))
    with pytest.raises(ProgramError, match="'u'"):
        model(Drawing("wrong", {"u": "u"}, over="down"))


def test_a_drawing_survives_json() -> None:
    assert Drawing.of(PROFILES.as_dict()) == PROFILES


def test_lists_are_drawn_after_the_last_step() -> None:
    series = {
        "step": [0, 1, 2], "V": [None, 0.0, -1.0], "f": [[0.0, 0.0], [1.0, 100.0], [1.0, 100.0]],
        "C": [[0.0, 0.0], [3.0, 2.0], [5.0, 4.0]], "J": [0.0, 1.0, 2.0],
    }  # fmt: skip
    drawing = Drawing("C", {"dark": "C", "missing": "G", "number": "J"}, "f", state=("V", "V"), logarithmic_over=True)
    drawn = over_observable(drawing, "f", series, "Hz")
    assert drawn is not None
    assert (drawn.over, drawn.when) == ("f (Hz)", "-1 V")
    ((label, places, values),) = drawn.curves
    assert label == "dark"
    assert places.tolist() == [1.0, 100.0]
    assert values.tolist() == [5.0, 4.0]
    assert over_observable(drawing, "f", {"step": []}, "Hz") is None


def test_short_times_have_prefixes_and_amplitudes_are_in_decibels() -> None:
    series = {"step": [0, 1, 2, 3], "t": [0.0, 0.0, 2e-10, 4e-10], "H": [1.0, 1.0, 0.1, 0.0]}
    drawing = Drawing("H", {"H": "H"}, "t", over_name="time", decibels=True)
    drawn = over_observable(drawing, "t", series, "s")
    assert drawn is not None
    assert drawn.over == "time (ps)"
    ((_, places, values),) = drawn.curves
    assert places.tolist() == pytest.approx([0.0, 200.0, 400.0])
    assert values.tolist() == pytest.approx([0.0, -20.0, np.nan], nan_ok=True)
    longer = {"step": [0, 1, 2], "t": [0.0, 1.0, 90.0], "H": [1.0, 1.0, 1.0]}
    drawn = over_observable(Drawing("H", {"H": "H"}, "t"), "t", longer, "s")
    assert drawn is not None
    assert drawn.over == "t (s)"
