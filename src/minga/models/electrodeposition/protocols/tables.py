"""Programs of currents or voltages in CSV files."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path
from typing import Final, Literal

from minga.errors import CaseError
from minga.models.electrodeposition.protocols.segments import STRONGEST, Repeat, Segment
from minga.paths import reason_of

__all__ = ["table_of"]

Control = Literal["voltage", "current"]

LONGEST: Final = 1e12
"""Largest time, s."""
FORM: Final = "the first line has the names time and current or voltage, the others numbers in s and A/m2 or V"
"""Advice on how to write a table."""


def table_of(path: Path, key: str, most: int) -> Repeat:
    """Return the program of a file: levels that are linear between rows, and jump between rows of the same time.

    Parameters
    ----------
    path
        CSV file with the columns ``time`` in s, and ``current`` in A/m2 or ``voltage`` in V.
    key
        The entry of the case, for error messages.
    most
        Largest number of segments.

    Raises
    ------
    CaseError
        If the file has no such table.
    """
    try:
        lines = enumerate(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()), 1)
        rows = [(number, row) for number, row in lines if any(map(str.strip, row))]
    except (OSError, ValueError, csv.Error) as error:
        raise CaseError(f"cannot read {path}: {reason_of(error)}", key=key, remedy="give a CSV file") from error
    header = [name.strip() for name in rows[0][1]] if rows else []
    controls: list[Control] = [name for name in ("current", "voltage") if name in header]
    if len(controls) != 1 or sorted(header) != sorted(["time", *controls]):
        raise CaseError(f"{path.name} has the columns {', '.join(header) or 'of nothing'}", key=key, remedy=FORM)
    control = controls[0]
    points = [_point(row, header, control, f"line {n} of {path.name}", key) for n, row in rows[1:]]
    if points and points[0][0] != 0.0:
        raise CaseError(f"{path.name} begins at {points[0][0]:g} s", key=key, remedy="begin with the time 0")
    segments = []
    for (start, low), (end, high) in itertools.pairwise(points):
        if end < start:
            raise CaseError(f"in {path.name} {end:g} s follows {start:g} s", key=key, remedy="sort the rows by time")
        if end > start:
            slope = (high - low) / (end - start)
            segments.append(Segment(control, low, slope, duration=end - start))
    if not 0 < len(segments) <= most:
        raise CaseError(
            f"{path.name} has {len(segments)} intervals of time; between 1 and {most} are supported",
            key=key,
            remedy="give two rows or more, and leave out those on a line between others",
        )
    return Repeat(1, tuple(segments))


def _point(row: list[str], header: list[str], control: str, where: str, key: str) -> tuple[float, float]:
    """Return the time and the level of a row."""
    try:
        values = [float(text) for text in row]
    except ValueError as error:
        raise CaseError(f"{where} has a cell that is not a number: {error}", key=key, remedy=FORM) from error
    if len(values) != len(header):
        raise CaseError(f"{where} has {len(values)} of {len(header)} cells: {', '.join(row)}", key=key, remedy=FORM)
    if not all(map(math.isfinite, values)):
        raise CaseError(f"{where} has a cell that is not a finite number: {', '.join(row)}", key=key, remedy=FORM)
    time, level = values[header.index("time")], values[header.index(control)]
    for name, value, most in (("time", time, LONGEST), (control, level, STRONGEST)):
        if abs(value) > most:
            raise CaseError(
                f"{where} has the {name} {value:g}, beyond {most:g}",
                key=key,
                remedy="check the units: times are in s, currents in A/m2 and voltages in V",
            )
    return time, level
