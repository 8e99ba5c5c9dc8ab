"""Frames of a run as comma-separated values (``.csv``): a row for each point and frame, a column for each quantity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.store import FrameReader
from minga.output.variables import STEP, TIME, Coordinate

__all__ = ["rows", "together"]

_ROWS = 1 << 14
"""Rows that are made at once."""


def together(reader: FrameReader, fields: Sequence[str]) -> list[str]:
    """Return those of the fields that lie at the same points: those of the first one that does not lie on faces."""
    first = min(fields, key=lambda name: any(axis.on_faces for axis in reader.coordinates(name)))
    points = _points(reader.coordinates(first))
    return [name for name in fields if _points(reader.coordinates(name)) == points]


def _points(axes: Sequence[Coordinate]) -> list[tuple[str, bytes]]:
    return [(axis.name, axis.values.tobytes()) for axis in axes]


def rows(reader: FrameReader, fields: Sequence[str], frames: Sequence[int]) -> Iterator[str]:
    """Yield the text of a table in parts, each of whole lines, the first one with the names of the columns.

    Parameters
    ----------
    reader
        The frames of a run.
    fields
        Names of fields that lie at the same points.
    frames
        Numbers of the frames. If there are several, the first column is the time of the model or, if the model has no
        clock, the step.

    Raises
    ------
    CaseError
        If the fields lie at different points; before anything is yielded.
    """
    kept = together(reader, fields)
    apart = [name for name in fields if name not in kept]
    if apart:
        raise CaseError(
            f"{', '.join(apart)} lies at other points than {kept[0]}",
            key="--field",
            remedy="write them one after the other",
        )
    axes = reader.coordinates(fields[0])
    several = len(frames) > 1
    clock = [TIME if reader.unit else STEP] if several else []
    yield ",".join([*clock, *(axis.name for axis in axes), *fields]) + "\n"
    texts = [_text(axis.values) for axis in axes]
    for index in frames:
        when = [[repr(reader.times[index])]] if several else []
        places = product(*when, *texts)
        values = [reader.frame(field, index).ravel() for field in fields]
        for start in range(0, values[0].size, _ROWS):
            columns = [_text(each[start : start + _ROWS]) for each in values]
            found = zip(zip(*columns, strict=True), places, strict=False)  # places last, so that none is lost
            yield "".join(",".join((*place, *numbers)) + "\n" for numbers, place in found)


def _text(values: NDArray[Any]) -> list[str]:
    """Return numbers with the fewest digits that give the same bits when they are read; bools as 0 and 1."""
    plain = values.view(np.uint8) if values.dtype == bool else values
    found: list[str] = plain.astype(np.str_).tolist()
    return found
