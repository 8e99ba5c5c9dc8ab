"""Geometry from files of the Shell Processing Support format, revisions 0 and 2.1.

Records have fixed columns: S and R records are points with a line, a number, a place and an elevation; X records relate
a source point to receivers between two numbers of a line. Source: Shell Processing Support Format for Land 3D Surveys,
SEG Technical Standards Committee, rev. 2.1, 2006. Columns count from 1, as they do there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.errors import CaseError
from minga.models.waves.survey_frame import MapPoint, MapShot

__all__ = ["read_sps"]

Columns = Mapping[str, tuple[int, int]]

_POINTS: Final[Mapping[str, Columns]] = {
    "0": {"line": (2, 17), "number": (18, 25), "index": (26, 26), "depth": (33, 36), "easting": (47, 55),
          "northing": (56, 65), "elevation": (66, 71)},
    "2.1": {"line": (2, 11), "number": (12, 21), "index": (24, 24), "depth": (31, 34), "easting": (47, 55),
            "northing": (56, 65), "elevation": (66, 71)},
}  # fmt: skip
_RELATIONS: Final[Mapping[str, Columns]] = {
    "0": {"record": (8, 11), "line": (14, 29), "number": (30, 37), "index": (38, 38), "first_channel": (39, 42),
          "last_channel": (43, 46), "channel_step": (47, 47), "to_line": (48, 63), "first": (64, 71),
          "last": (72, 79), "to_index": (80, 80)},
    "2.1": {"record": (8, 15), "line": (18, 27), "number": (28, 37), "index": (38, 38), "first_channel": (39, 43),
            "last_channel": (44, 48), "channel_step": (49, 49), "to_line": (50, 59), "first": (60, 69),
            "last": (70, 79), "to_index": (80, 80)},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Line:
    """A record of a file."""

    path: Path
    place: int
    text: str
    columns: Columns

    def word(self, name: str) -> str:
        first, last = self.columns[name]
        return self.text[first - 1 : last].strip()

    def number(self, name: str, default: float | None = None) -> float:
        word = self.word(name)
        if not word and default is not None:
            return default
        try:
            found = float(word)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            first, last = self.columns[name]
            raise self.fault(f"{word!r} in columns {first} to {last} is no number ({name})")
        return found

    def name(self, name: str) -> str:
        """Return a name in one form, as numbers may be written in several: "101", "101.0"."""
        word = self.word(name)
        try:
            return f"{float(word):.10g}"
        except ValueError:
            return word

    def fault(self, said: str) -> CaseError:
        return CaseError(
            f"{self.path.name}, line {self.place}: {said}",
            key="survey.sps",
            remedy='correct the file, or state its revision of the format: revision = "0" or "2.1"',
        )


def read_sps(shots: Path, receivers: Path, relation: Path, revision: str | None = None) -> list[MapShot]:
    """Return the shots that three files describe, in the order of the relations.

    Parameters
    ----------
    shots, receivers, relation
        Files of S, R and X records.
    revision
        "0" or "2.1"; None: as the header H00 of each file says.

    Raises
    ------
    CaseError
        If a file cannot be read, or a relation names points that do not exist.
    """
    sources = {(e.name("line"), e.name("number"), e.word("index") or "1"): e for e in _records(shots, "S", revision)}
    spread: dict[tuple[str, str], list[tuple[float, MapPoint]]] = {}
    for entry in _records(receivers, "R", revision):
        place = spread.setdefault((entry.name("line"), entry.word("index") or "1"), [])
        place.append((entry.number("number"), _point(entry)))
    found: dict[tuple[int, str, str, str], tuple[MapPoint, list[tuple[int, MapPoint]]]] = {}
    for entry in _records(relation, "X", revision):
        point = entry.name("line"), entry.name("number"), entry.word("index") or "1"
        source = sources.get(point)
        if source is None:
            raise entry.fault(f"there is no source point {entry.word('number')} of line {entry.word('line')}")
        key = int(entry.number("record")), *point
        found.setdefault(key, (_point(source), []))[1].extend(_related(entry, spread))
    return [
        MapShot(key[0], source, tuple(point for _, point in sorted(channels, key=lambda each: each[0])))
        for key, (source, channels) in found.items()
    ]


def _related(
    entry: _Line, spread: Mapping[tuple[str, str], list[tuple[float, MapPoint]]]
) -> list[tuple[int, MapPoint]]:
    """Return the receivers that a relation names, with their channels."""
    first, last = entry.number("first"), entry.number("last")
    low, high = sorted((int(entry.number("first_channel")), int(entry.number("last_channel"))))
    channels = range(low, high + 1, int(entry.number("channel_step", 1.0)) or 1)
    known = spread.get((entry.name("to_line"), entry.word("to_index") or "1"), [])
    there = [each for each in known if min(first, last) <= each[0] <= max(first, last)]
    if len(there) != len(channels):
        raise entry.fault(
            f"{len(channels)} channels, but {len(there)} receivers from {first:g} to {last:g} of line "
            + entry.word("to_line")
        )
    against = (last < first) != (entry.number("last_channel") < entry.number("first_channel"))
    points = [point for _, point in sorted(there, key=lambda each: each[0], reverse=against)]
    return list(zip(channels, points, strict=True))


def _point(entry: _Line) -> MapPoint:
    elevation = entry.number("elevation", 0.0) - entry.number("depth", 0.0)
    return MapPoint(entry.number("easting"), entry.number("northing"), elevation, entry.number("number"))


def _records(path: Path, kind: str, revision: str | None) -> Iterator[_Line]:
    """Yield the records of a kind in a file."""
    lines = _lines(path)
    known = revision or _revision(lines, path)
    columns = (_RELATIONS if kind == "X" else _POINTS)[known]
    entries = [_Line(path, place, text, columns) for place, text in enumerate(lines, 1) if text[:1] == kind]
    if not entries:
        raise CaseError(f"{path.name} has no {kind} records", key="survey.sps", remedy="name another file")
    yield from entries


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise CaseError(f"cannot read {path}: {error.strerror}", key="survey.sps") from error


def _revision(lines: list[str], path: Path) -> str:
    """Return the revision that the header of a file states."""
    said = next((line[3:] for line in lines if line.startswith("H00")), "")
    tests: tuple[tuple[str, Callable[[str], Any]], ...] = (
        ("0", lambda text: "SPS001" in text.upper().replace(" ", "")), ("2.1", lambda text: "2.1" in text),
    )  # fmt: skip
    for revision, test in tests:
        if test(said):
            return revision
    raise CaseError(
        f"{path.name} does not say which revision of SPS it has" + (f": {said.strip()!r}" if said else ""),
        key="survey.sps.revision",
        remedy='write revision = "0" or "2.1"',
    )
