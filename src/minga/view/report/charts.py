"""Charts of a report: curves over steps, stacked bars, a matrix of the traffic between ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from minga.view.amounts import quantity
from minga.view.report.svg import Element, drawing, element, number, text, titled

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Bar", "Curve", "curves", "matrix", "stacked_bars"]

Floats = NDArray[np.float64]
Place = Callable[[float], float]
"""Function that returns the position of a value along an axis of the drawing."""

_WIDTH, _HEIGHT = 520, 190
_LEFT, _RIGHT, _ABOVE, _BELOW = 64, 14, 10, 26
_POINTS = 600
"""Columns of a chart; in each the extremes of all samples that fall there are kept."""
_LOGARITHMIC = 1e3
"""Ratio of positive values above which they are drawn on a logarithmic scale."""
_CONSTANT = 1e-9
"""Relative change of values that are drawn as constant: it may be rounding."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over steps; values that are not finite leave a gap."""

    label: str
    steps: Sequence[float] | Floats
    values: Sequence[float] | Floats
    colour: str = "var(--accent)"


def curves(
    name: str,
    lines: Sequence[Curve],
    over: str = "step",
    logarithmic: bool | None = None,
    spans: Sequence[tuple[str, float, float]] = (),
    logarithmic_over: bool = False,
    equal: bool = False,
) -> Markup:
    """Draw one chart of one or more curves over steps, or over an axis of the grid.

    If there are several curves, they are labelled. ``spans`` are named parts of the horizontal axis: (name, from, to).
    With ``logarithmic_over`` the horizontal axis is logarithmic, and its values are positive. With ``equal`` a unit is
    as long on both axes.
    """
    everything = np.concatenate([np.asarray(line.values, np.float64) for line in lines])
    finite = everything[np.isfinite(everything)]
    log = logarithmic if logarithmic is not None else _wants_logarithm(finite)
    ticks_y = _log_ticks(finite) if log else _ticks(finite)
    steps = np.concatenate([np.asarray(line.steps, np.float64) for line in lines])
    steps = np.log10(steps) if logarithmic_over else steps
    left, right = float(steps.min()), float(steps.max())
    low, high = (math.log10(ticks_y[0]), math.log10(ticks_y[-1])) if log else (ticks_y[0], ticks_y[-1])
    if equal:
        left, right, low, high = _equally_scaled(left, right, low, high)
        ticks_y = [tick for tick in _ticks(np.array([low, high])) if low <= tick <= high]

    def place_x(step: float) -> float:
        step = math.log10(step) if logarithmic_over else step
        return _LEFT + (step - left) / ((right - left) or 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def place_y(value: float) -> float:
        value = math.log10(value) if log else value
        return _HEIGHT - _BELOW - (value - low) / ((high - low) or 1.0) * (_HEIGHT - _ABOVE - _BELOW)

    ticks_x = _ticks_along(left, right, logarithmic_over)
    parts = [*_axis_y(ticks_y, place_y), *_axis_x(ticks_x, place_x), *_spans(spans, left, right, place_x)]
    for line in lines:
        path = _path(line, log, place_x, place_y)
        curve = element("path", d=path, fill="none", stroke=line.colour, stroke_width=1.7, class_="curve")
        parts.append(titled(line.label, curve))
    return drawing(_WIDTH, _HEIGHT, *parts, label=f"{name} over {over}", class_="chart")


def _equally_scaled(left: float, right: float, low: float, high: float) -> tuple[float, float, float, float]:
    """Return the ends of both axes, one of which is extended so that a unit has the same length on both."""
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _ABOVE - _BELOW
    unit = max((right - left) / wide, (high - low) / tall)
    across, up = 0.5 * (wide * unit - (right - left)), 0.5 * (tall * unit - (high - low))
    return left - across, right + across, low - up, high + up


def _path(line: Curve, log: bool, place_x: Place, place_y: Place) -> str:
    """Return the curve as a path: all its points, or the extremes in each column if there are too many to be seen."""
    steps, values = np.array(line.steps, np.float64), np.array(line.values, np.float64)
    shown = np.isfinite(values) & ((values > 0) if log else True)
    parts, pen_down = [], False
    for index in _kept(values, shown):
        if not shown[index]:
            pen_down = False
            continue
        parts.append(f"{'L' if pen_down else 'M'}{number(place_x(steps[index]))} {number(place_y(values[index]))}")
        pen_down = True
    return "".join(parts) or "M0 0"


def _kept(values: Floats, shown: NDArray[np.bool_]) -> list[int]:
    count = len(values)
    if count <= 2 * _POINTS:
        return list(range(count))
    kept = {0, count - 1}
    for column in np.array_split(np.arange(count), _POINTS):
        inside = column[shown[column]]
        if inside.size:
            kept |= {int(inside[np.argmin(values[inside])]), int(inside[np.argmax(values[inside])])}
        if inside.size < column.size:
            kept.add(int(column[np.argmin(shown[column])]))
    return sorted(kept)


def _axis_y(ticks: Sequence[float], place: Place) -> list[Element]:
    parts = []
    for tick, label in zip(ticks, _labels(ticks), strict=True):
        y = place(tick)
        parts.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(text(label, _LEFT - 7, y + 3.5, text_anchor="end", class_="tick"))
    return parts


def _labels(ticks: Sequence[float]) -> list[str]:
    """Return texts of ticks; if some would be the same, the first tick and the distances of the others from it."""
    labels = [quantity(tick) for tick in ticks]
    if len(set(labels)) == len(labels):
        return labels
    return [labels[0], *(f"+{quantity(tick - ticks[0])}" for tick in ticks[1:])]


def _ticks_along(left: float, right: float, logarithmic: bool) -> list[float]:
    """Return round numbers between both ends, which are logarithms if the axis is `logarithmic`."""
    if logarithmic:
        powers = list(range(math.ceil(left - 1e-9), math.floor(right + 1e-9) + 1))
        return [10.0**power for power in powers[:: max(1, -(-len(powers) // 6))]]
    return [tick for tick in _ticks(np.array([left, right]), 5) if left <= tick <= right]


def _axis_x(ticks: Sequence[float], place: Place) -> list[Element]:
    parts = []
    for tick in ticks:
        x = place(tick)
        anchor = "end" if x > _WIDTH - _RIGHT - 15 else "middle"
        parts.append(text(quantity(tick), x, _HEIGHT - 8, text_anchor=anchor, class_="tick"))
    return parts


def _spans(spans: Sequence[tuple[str, float, float]], left: float, right: float, place: Place) -> list[Element]:
    """Draw lines where parts of the axis meet, and the name of each part that has enough room."""
    parts = []
    for name, low, high in spans:
        first, last = place(max(low, left)), place(min(high, right))
        if low > left:
            parts.append(element("line", x1=first, x2=first, y1=_ABOVE, y2=_HEIGHT - _BELOW, class_="grid"))
        if last - first > 6 * len(name):
            parts.append(text(name, 0.5 * (first + last), _ABOVE + 9, text_anchor="middle", class_="tick"))
    return parts


def _wants_logarithm(values: Floats) -> bool:
    positive = values[values > 0]
    return bool(positive.size) and bool((values >= 0).all()) and positive.max() > _LOGARITHMIC * positive.min()


def _ticks(values: Floats, most: int = 4) -> list[float]:
    """Return round numbers that enclose all values, 1, 2 or 5 times a power of ten apart."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if high - low <= _CONSTANT * max(abs(low), abs(high)):
        low, high = (low - 0.5 * abs(low), high + 0.5 * abs(high)) if low else (0.0, 1.0)
    if 0 < low < 0.4 * high:
        low = 0.0
    exact = (high - low) / most
    power = 10.0 ** math.floor(math.log10(exact))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= exact * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12 - math.floor(math.log10(step))) for number in range(first, last + 1)]


def _log_ticks(values: Floats) -> list[float]:
    positive = values[values > 0]
    first, last = math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max()))
    stride = max(1, -(-(last - first) // 4))
    last += -(last - first) % stride
    return [10.0**power for power in range(first, last + 1, stride)]


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of parts: (category, amount)."""

    label: str
    parts: Sequence[tuple[str, float]]
    title: str = ""


def stacked_bars(bars: Sequence[Bar], label: str, unit: str = "s") -> Markup:
    """Draw horizontal bars, one below another, on one scale; the categories' colours are CSS classes ``is-NAME``."""
    longest = max((sum(amount for _, amount in bar.parts) for bar in bars), default=0.0) or 1.0
    high = 22 if len(bars) <= 16 else 14 if len(bars) <= 40 else 9
    width, left = 1000, 12 + 8 * max((len(bar.label) for bar in bars), default=0)
    children = []
    for row, bar in enumerate(bars):
        y, x = row * high, float(left)
        children.append(text(bar.label, left - 8, y + high * 0.68, text_anchor="end", class_="tick"))
        for category, amount in bar.parts:
            wide = amount / longest * (width - left)
            if wide >= 0.05:
                piece = element(
                    "rect", x=x, y=y + 1, width=wide, height=high - max(2, high // 5), class_=f"is-{category}"
                )
                children.append(titled(f"{bar.title or bar.label}: {category} {amount:.3g} {unit}", piece))
            x += wide
    return drawing(width, max(1, len(bars)) * high + 2, *children, label=label, class_="bars")


def matrix(amounts: NDArray[np.int64], unit: str, label: str) -> Markup:
    """Draw a square for each pair of ranks, which is the darker the more the row sends to the column."""
    ranks = len(amounts)
    side = max(4.0, min(34.0, 420 / ranks))
    margin = 34.0
    most = max(1, int(amounts.max()))
    children = []
    for sender in range(ranks):
        for receiver in range(ranks):
            amount = int(amounts[sender, receiver])
            square = element(
                "rect",
                x=margin + receiver * side,
                y=margin + sender * side,
                width=side - 1,
                height=side - 1,
                class_="pair" if amount else "pair none",
                **({"fill_opacity": 0.15 + 0.85 * amount / most} if amount else {}),
            )
            children.append(
                titled(f"rank {sender} to rank {receiver}: {amount:,} {unit}", square) if amount else square
            )
    stride = max(1, -(-ranks // 16))
    for rank in range(0, ranks, stride):
        middle = margin + (rank + 0.5) * side
        children.append(text(str(rank), margin - 6, middle + 3.5, text_anchor="end", class_="tick"))
        children.append(text(str(rank), middle, margin - 6, text_anchor="middle", class_="tick"))
    return drawing(margin + ranks * side + 2, margin + ranks * side + 2, *children, label=label, class_="matrix")
