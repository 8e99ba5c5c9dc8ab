"""Fields of a run on three axes as numbers of colours; ``sections.js`` shows sections of them that move."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource
from minga.output.plane import plane_of
from minga.output.variables import LEFT_OUT, SECTION, Coordinate
from minga.view.colours import ColourScale, colour_scale
from minga.view.masked import shown_frame
from minga.view.pictures import chosen_frames, label_of, shared_limits
from minga.view.thinning import edges_thinned, strides_within, thinned

__all__ = ["FieldColours", "Volumes", "three_axes", "volumes_of"]

MOST_CELLS: Final = 400_000
"""Largest number of cells that a page receives, of all fields together, one byte each."""
MOST_FIELDS: Final = 6
"""Largest number of fields that a page receives."""
_COMPARED: Final = 8
"""Largest number of frames that determine the ends of a colour scale."""
_MOST_COMPARED: Final = 1 << 27
"""Largest number of values of these frames; of larger fields the last frame alone is read."""


@dataclass(frozen=True, slots=True)
class FieldColours:
    """One field as numbers of colours.

    Attributes
    ----------
    name
        Name of the field.
    label
        Its name with its unit.
    scale
        Colours of its values.
    numbers
        Number of the colour of each cell that is kept, u1.
    """

    name: str
    label: str
    scale: ColourScale
    numbers: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Volumes:
    """Fields after the last step that was kept.

    Attributes
    ----------
    when
        Step and time to which they belong.
    centres
        Positions of the cells that are kept, along each axis.
    edges
        Positions of the edges of these cells, one more along each axis.
    fields
        The fields, all on the same cells.
    across, index
        Axis across which the first section lies, and the number of its cell.
    """

    when: str
    centres: tuple[NDArray[np.float64], ...]
    edges: tuple[NDArray[np.float64], ...]
    fields: tuple[FieldColours, ...]
    across: int
    index: int

    @property
    def data(self) -> dict[str, Any]:
        """Numbers that ``sections.js`` draws, for JSON."""
        return {
            "when": self.when,
            "across": self.across,
            "index": self.index,
            "centres": [_short(places) for places in self.centres],
            "edges": [_short(places) for places in self.edges],
            "fields": [
                {
                    "name": field.name,
                    "label": field.label,
                    "low": f"{field.scale.number(field.scale.low):.4g}",
                    "high": f"{field.scale.number(field.scale.high):.4g}",
                    "clipped": field.scale.clipped,
                    "colours": field.scale.hexadecimal,
                    "states": field.scale.states,
                    "cells": base64.b64encode(field.numbers.tobytes()).decode(),
                }
                for field in self.fields
            ],
        }


def volumes_of(reader: FrameSource) -> Volumes | None:
    """Return the fields of a run on the cells of three axes; None if there are none.

    Values that are not finite, as in cells that a model leaves out, have a number beyond the colours of the scale. Of
    fields with too many cells for a page every second, third, ... cell is kept, first along the longest axes.
    """
    axes = three_axes(reader)
    if axes is None or not reader.steps:
        return None
    names = [axis.name for axis in axes]
    mask = str(reader.attrs.get(LEFT_OUT, ""))
    shown = [
        field for field in reader.fields if field != mask and [axis.name for axis in reader.coordinates(field)] == names
    ][:MOST_FIELDS]
    if not shown:
        return None
    strides = strides_within([len(axis.values) for axis in axes], MOST_CELLS // len(shown))
    last = len(reader.steps) - 1
    cells = math.prod(len(axis.values) for axis in axes)
    compared = chosen_frames(len(reader.steps), max(1, min(_COMPARED, _MOST_COMPARED // cells)))
    found = []
    for field in shown:
        attributes = reader.attributes(field)
        values = shown_frame(reader, field, last)
        scale = colour_scale(shared_limits(reader, field, compared), values.dtype, attributes)
        numbers = scale.numbers(thinned(values, strides))
        found.append(FieldColours(field, label_of(field, attributes, scale), scale, numbers))
    across, index = _first_section(axes, reader.attributes(shown[0]))
    return Volumes(
        reader.when(last),
        tuple(np.asarray(axis.values[::stride], np.float64) for axis, stride in zip(axes, strides, strict=True)),
        tuple(edges_thinned(axis.edges, stride) for axis, stride in zip(axes, strides, strict=True)),
        tuple(found),
        across,
        index // strides[across],
    )


def three_axes(reader: FrameSource) -> tuple[Coordinate, ...] | None:
    """Return the axes of the first field on the cells of a grid with three axes of several cells; None without one."""
    for field in reader.fields:
        axes = reader.coordinates(field)
        if len(axes) == 3 and not any(axis.on_faces or len(axis.values) < 2 for axis in axes):
            return tuple(axes)
    return None


def _first_section(axes: Sequence[Coordinate], attributes: Mapping[str, Any]) -> tuple[int, int]:
    """Return the axis and the cell of the section that a field names, by default the middle of the last axis."""
    if SECTION not in attributes:
        return len(axes) - 1, len(axes[-1].values) // 2
    cut = plane_of(axes, attributes).at
    return next((axis, number) for axis, number in enumerate(cut) if not isinstance(number, slice))


def _short(places: NDArray[np.float64]) -> list[float]:
    return [float(f"{place:.6g}") for place in places]
