"""Curves that a model wants in one picture: read from a run, and drawn as PNG. See `minga.engine.drawing`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.drawing import Drawing
from minga.output.directory import RunDirectory, appearing
from minga.output.store import FrameReader
from minga.output.variables import DRAWINGS, QUANTITIES, Coordinate
from minga.view.curves import curves_figure

__all__ = ["Drawn", "draw_all", "drawn_of", "over_observable"]

Floats = NDArray[np.float64]

_DPI = 100
_STEP = "step"
_SHORT = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps"), (1e-15, "fs"))
"""Units of time, in s."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Drawing with its numbers.

    Attributes
    ----------
    drawing
        Description of the drawing.
    over
        Quantity on the horizontal axis, with its unit.
    when
        Step or other state to which the fields belong; empty for observables.
    curves
        For each curve its label, its horizontal coordinates (ascending, unless `ordered`) and its vertical ones.
    """

    drawing: Drawing
    over: str
    when: str
    curves: tuple[tuple[str, Floats, Floats], ...]

    @property
    def file(self) -> str:
        """Name of its picture file."""
        return re.sub(r"[^a-z0-9]+", "-", self.drawing.title.lower()).strip("-") + ".png"


def drawn_of(directory: RunDirectory) -> list[Drawn]:
    """Return the drawings of a run for which it has the numbers; none if it kept no fields."""
    if not directory.fields.exists():
        return []
    reader = FrameReader.open(directory.fields)
    said = json.loads(str(reader.group.attrs.get(DRAWINGS, "[]")))
    units = json.loads(str(reader.group.attrs.get(QUANTITIES, "{}")))
    series = _series(directory)
    found = []
    for drawing in map(Drawing.of, said):
        drawn = (
            _over_axis(drawing, reader, series)
            if drawing.over is None
            else over_observable(drawing, drawing.over, series, units.get(drawing.over, {}).get("units", "1"))
        )
        if drawn is not None:
            found.append(drawn)
    return found


def _series(directory: RunDirectory) -> dict[str, Any]:
    try:
        found = json.loads(directory.series.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def over_observable(drawing: Drawing, over: str, series: Mapping[str, Any], unit: str) -> Drawn | None:
    """Return a drawing of observables after each step, without those of the state before the first step.

    Of observables that are lists, those after the last step are drawn.
    """
    steps = np.asarray(series.get(_STEP, ()), np.float64)
    listed = any(isinstance(value, list) for value in series.get(over, ())[-1:])

    def values_of(name: str) -> Floats:
        found = series.get(name, ())
        values = np.array((found[-1] if found else ()) if listed else found, np.float64)
        if listed:
            return values
        return values[steps > 0] if values.size == steps.size else values[:0]

    places = values_of(over)
    if np.unique(places).size < 2:
        return None
    size, unit = _unit_for(np.nanmax(np.abs(places)), unit)
    places = places / size
    name = drawing.over_name or over
    label = name if unit == "1" else f"{name} ({unit})"
    curves = []
    for name_shown, name in drawing.lines.items():
        values = values_of(name)
        if values.size == places.size:
            curves.append((name_shown, *_ascending(places, values, drawing)))
    when = _state(drawing, int(steps[-1]), series) if listed else ""
    return Drawn(drawing, label, when, tuple(curves)) if curves else None


def _over_axis(drawing: Drawing, reader: FrameReader, series: Mapping[str, Any]) -> Drawn | None:
    """Return a drawing of fields after the last step that was kept."""
    if not reader.steps:
        return None
    curves, over, where = [], drawing.along, ""
    for label, name in drawing.lines.items():
        if name not in reader.fields:
            continue
        coordinates = reader.coordinates(name)
        names = [axis.axis for axis in coordinates]
        if drawing.along not in names:
            continue
        place = names.index(drawing.along)
        middle = tuple(
            slice(None) if k == place else len(axis.values) // 2 if drawing.point is None else drawing.point
            for k, axis in enumerate(coordinates)
        )
        where = "".join(
            f", {axis.axis} = {axis.values[k]:.4g}{_unit(axis)}"
            for axis, k in zip(coordinates, middle, strict=True)
            if not isinstance(k, slice) and drawing.point is not None
        )
        over = coordinates[place].label
        values = np.asarray(reader.frame(name)[middle], np.float64)
        curves.append((label, *_ascending(np.asarray(coordinates[place].values), values, drawing)))
    return Drawn(drawing, over, _state(drawing, reader.steps[-1], series) + where, tuple(curves)) if curves else None


def _unit(axis: Coordinate) -> str:
    """Return the unit of an axis after a blank; nothing if it has none."""
    unit = axis.attributes.get("units", "1")
    return "" if unit == "1" else f" {unit}"


def _state(drawing: Drawing, step: int, series: Mapping[str, Any]) -> str:
    """Describe the state to which fields after a step belong: an observable if the drawing names one, else the step."""
    steps = list(series.get(_STEP, ()))
    if drawing.state is not None and step in steps:
        name, unit = drawing.state
        values = series.get(name, ())
        value = values[steps.index(step)] if len(values) == len(steps) else None
        if isinstance(value, int | float) and math.isfinite(value):
            size, unit = _unit_for(value, unit)
            return f"{value / size:.6g} {unit}".strip()
    return f"step {step}"


def _unit_for(value: float, unit: str) -> tuple[float, str]:
    """Return the unit in which a value is shown, and its size: that of a short time has a prefix."""
    if unit != "s" or not value:
        return 1.0, unit
    return next((pair for pair in _SHORT if abs(value) >= pair[0]), _SHORT[-1])


def _ascending(places: Floats, values: Floats, drawing: Drawing) -> tuple[Floats, Floats]:
    order = np.arange(places.size) if drawing.ordered else np.argsort(places, kind="stable")
    shown = np.abs(values) if drawing.logarithmic or drawing.decibels else values
    if drawing.logarithmic or drawing.decibels:
        shown = np.where(shown > 0, shown, np.nan)
    return places[order], 20.0 * np.log10(shown[order]) if drawing.decibels else shown[order]


def draw_all(directory: RunDirectory) -> list[Path]:
    """Draw the drawings of a run into its folder of pictures and return the files.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    paths = []
    for drawn in drawn_of(directory):
        path = directory.pictures / drawn.file
        with appearing(path) as temporary:
            path.parent.mkdir(exist_ok=True)
            _figure(drawn).savefig(temporary, dpi=_DPI, format="png")
        paths.append(path)
    return paths


def _figure(drawn: Drawn) -> Any:
    drawing = drawn.drawing
    finite = any(np.isfinite(values).any() for _, _, values in drawn.curves)
    return curves_figure(
        drawn.curves,
        title=f"{drawing.title}, {drawn.when}" if drawn.when else drawing.title,
        xlabel=drawn.over,
        ylabel=drawing.unit,
        logarithmic=drawing.logarithmic and finite,
        logarithmic_x=drawing.logarithmic_over,
        equal=drawing.equal,
        spans=drawing.spans,
    )
