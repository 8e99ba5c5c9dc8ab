"""Drawings of curves described by the model, as charts of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minga.output.directory import RunDirectory
from minga.view.drawings import Drawn, drawn_of
from minga.view.report.charts import Curve, curves

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["DrawingChart", "drawing_charts"]

_COLOURS = tuple(f"var(--line-{number})" for number in range(1, 9))


@dataclass(frozen=True, slots=True)
class DrawingChart:
    """Drawing in the page: its title, the unit of the vertical axis, the horizontal quantity, and colours by label."""

    title: str
    unit: str
    over: str
    drawing: Markup
    keys: tuple[tuple[str, str], ...]


def drawing_charts(directory: RunDirectory) -> list[DrawingChart]:
    """Return a chart for each drawing of a run that has numbers for it."""
    return [_chart(drawn) for drawn in drawn_of(directory) if _visible(drawn)]


def _visible(drawn: Drawn) -> bool:
    return any(np.isfinite(values).any() for _, _, values in drawn.curves)


def _chart(drawn: Drawn) -> DrawingChart:
    drawing = drawn.drawing
    lines = [
        Curve(label, places, values, _COLOURS[number % len(_COLOURS)])
        for number, (label, places, values) in enumerate(drawn.curves)
    ]
    spans = [(span.name, span.low, span.high) for span in drawing.spans]
    return DrawingChart(
        title=f"{drawing.title}, {drawn.when}" if drawn.when else drawing.title,
        unit=drawing.unit,
        over=drawn.over,
        drawing=curves(
            drawing.title, lines, drawn.over, drawing.logarithmic, spans, drawing.logarithmic_over, equal=drawing.equal
        ),
        keys=tuple((line.label, line.colour) for line in lines) if len(lines) > 1 else (),
    )
