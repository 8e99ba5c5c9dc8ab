"""Parts of a model around shots: their cells, their medium, and positions in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from minga.models.waves.attenuation import Attenuation
from minga.models.waves.elastic.medium import ElasticMedium
from minga.models.waves.medium import Medium, Quantity
from minga.models.waves.shot import Shot
from minga.models.waves.source import PlaneSource
from minga.models.waves.survey_geometry import Point
from minga.space.box import Box

__all__ = ["cut", "cut_attenuation", "moved", "part_of"]


def part_of(shot: Shot, lengths: tuple[int, ...], widths: tuple[float, ...], aperture: float | None) -> Box:
    """Return the cells of the model that a shot needs."""
    low, high = [0] * len(lengths), list(lengths)
    planes = any(isinstance(source, PlaneSource) for source in shot.sources)
    points = [source.position for source in shot.sources]
    if aperture is not None and not planes and None not in points:
        every = np.array([*points, *shot.receivers.positions], np.float64).reshape(-1, len(lengths))
        for axis in range(1, len(lengths)):
            ends = every[:, axis].min() - aperture, every[:, axis].max() + aperture
            low[axis] = max(0, int(np.floor(ends[0] / widths[axis])))
            high[axis] = min(lengths[axis], int(np.ceil(ends[1] / widths[axis])) + 1)
    return Box(tuple(low), tuple(high))


def cut(medium: Medium | ElasticMedium, part: Box) -> Medium | ElasticMedium:
    """Return the part of a medium in a box of its cells."""
    return type(medium)(*(cut_quantity(getattr(medium, entry.name), part) for entry in fields(medium)))


def cut_attenuation(attenuation: Attenuation, part: Box) -> Attenuation:
    """Return attenuation with the part of Q in a box of the model's cells."""
    qs = None if attenuation.qs is None else cut_quantity(attenuation.qs, part)
    return replace(attenuation, q=cut_quantity(attenuation.q, part), qs=qs)


def cut_quantity(entry: Quantity, part: Box) -> Quantity:
    """Return the part of a quantity in a box of its cells."""
    if callable(entry):
        function = entry
        return lambda box: function(box.shift(part.lo))
    return entry if np.ndim(entry) == 0 else np.asarray(entry)[part.slices((0,) * len(part.lo))]


def moved(shot: Shot, offset: Point, axes: str) -> Shot:
    """Return a shot with its positions measured from another cell."""

    def shifted(point: Sequence[float]) -> Point:
        return tuple(a - b for a, b in zip(point, offset, strict=True))

    def source(given: Any) -> Any:
        if isinstance(given, PlaneSource):
            return replace(given, position=given.position - offset[axes.index(given.axis)])
        return given if given.position is None else replace(given, position=shifted(given.position))

    receivers = replace(shot.receivers, positions=[shifted(point) for point in shot.receivers.positions])
    return replace(shot, sources=[source(each) for each in shot.sources], receivers=receivers)
