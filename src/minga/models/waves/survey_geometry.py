"""Geometry of surveys: lines of points, towed spreads, and tables of sources and receivers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minga.errors import CaseError
from minga.models.waves.domain import is_number
from minga.models.waves.receivers import Receivers
from minga.models.waves.shot import Shot
from minga.models.waves.source import Injection, PointSource
from minga.models.waves.wavelets import Ricker, Signal

__all__ = ["Point", "named_shots", "points_between", "shots_of_files", "streamer"]

Point = tuple[float, ...]


def points_between(first: Sequence[float], last: Sequence[float], count: int) -> list[Point]:
    """Return points on a line at equal distances.

    Parameters
    ----------
    first, last
        Its ends, m.
    count
        Number of points.

    Returns
    -------
    list of tuple
        The points.
    """
    ends = [tuple(point) for point in (first, last)]
    if len(ends[0]) != len(ends[1]) or not all(is_number(x) and np.isfinite(x) for point in ends for x in point):
        raise CaseError(
            f"the ends of a line are {first!r} and {last!r}", key="points", remedy="give metres, z, x, to both"
        )
    _check_count(count, "points")
    share = [number / max(1, count - 1) for number in range(count)]
    return [tuple(a + (b - a) * s for a, b in zip(first, last, strict=True)) for s in share]


def streamer(
    sources: Sequence[Sequence[float]], depth: float, nearest: float, spacing: float, count: int, **options: Any
) -> list[Receivers]:
    """Return the receivers of a streamer towed along x behind each of some sources.

    Parameters
    ----------
    sources
        Positions of the sources, m.
    depth
        Depth of the receivers, m.
    nearest, spacing
        Offset of the first receiver along x, and from one to the next, m; negative ones lie at smaller x.
    count
        Number of receivers.
    **options
        Further parameters of `Receivers`: every, interpolation.

    Returns
    -------
    list of Receivers
        Those of each source.
    """
    if not all(is_number(value) and np.isfinite(value) for value in (depth, nearest, spacing)):
        raise CaseError(
            f"a streamer at depth {depth!r}, from {nearest!r}, every {spacing!r}", key="streamer", remedy="give metres"
        )
    _check_count(count, "receivers")
    return [
        Receivers([(depth, *point[1:-1], point[-1] + nearest + k * spacing) for k in range(count)], **options)
        for point in sources
    ]


def _check_count(count: object, what: str) -> None:
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
        raise CaseError(f"{count!r} {what}", key="count", remedy="give a whole number, 1 or more")


def shots_of_files(
    shots: str | Path,
    receivers: str | Path,
    wavelet: Signal | None = None,
    *,
    injection: Injection = "physical",
    **options: Any,
) -> list[Shot]:
    """Return the shots of two tables: ``shot,z,x`` or ``shot,z,y,x`` with a line for each source and each receiver.

    Parameters
    ----------
    shots
        CSV file of the sources, whose shots are in the order in which they first occur.
    receivers
        CSV file of the receivers; those of the shot ``*`` belong to all.
    wavelet
        Wavelet of all sources; None: Ricker().
    injection
        Meaning of its amplitude: "physical" or "legacy".
    **options
        Further parameters of `Receivers`: every, interpolation.

    Returns
    -------
    list of Shot
        The shots.

    Raises
    ------
    CaseError
        If a file cannot be read, a number is invalid, or receivers belong to no shot.
    """
    signal = Ricker() if wavelet is None else wavelet

    def source(point: Point) -> PointSource:
        return PointSource(point, signal, injection=injection)

    return [*named_shots(Path(shots), Path(receivers), source, **options).values()]


def named_shots(
    shots: Path, receivers: Path, source: Callable[[Point], Any], record: Sequence[str] = ("p",), **options: Any
) -> dict[str, Shot]:
    """Return the shots of two tables by their names, with the `source` of each point; see `shots_of_files`."""
    sources: dict[str, list[Point]] = {}
    for name, point in _read_points(shots):
        sources.setdefault(name, []).append(point)
    places: dict[str, list[Point]] = {}
    for name, point in _read_points(receivers):
        places.setdefault(name, []).append(point)
    stray = [name for name in places if name != "*" and name not in sources]
    if stray:
        raise CaseError(f"{receivers}: there is no shot {stray[0]!r} in {shots}", key="receivers")
    return {
        name: Shot(
            [source(point) for point in points],
            Receivers([*places.get(name, []), *places.get("*", [])], **options),
            record=record,
        )
        for name, points in sources.items()
    }


def _read_points(path: Path) -> Iterator[tuple[str, Point]]:
    """Yield the shot and the point of each line of a table."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"cannot read {path}: {error}") from error
    try:
        yield from _points(path, csv.DictReader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise CaseError(f"cannot read {path}: {error}") from error


def _points(path: Path, table: csv.DictReader[str]) -> Iterator[tuple[str, Point]]:
    names = [name for name in ("z", "y", "x") if name in (table.fieldnames or ())]
    if "shot" not in (table.fieldnames or ()) or "".join(names) not in ("z", "zx", "zyx"):
        raise CaseError(
            f"{path} has the columns {', '.join(table.fieldnames or ()) or 'of no table'}",
            remedy="write a first line shot,z,x or shot,z,y,x",
        )
    for row in table:
        try:
            point = tuple(float(row[name]) for name in names)
        except (TypeError, ValueError):
            point = ()
        if not point or not all(np.isfinite(point)):
            raise CaseError(f"{path}, line {table.line_num}: a position is not a number", remedy="give metres")
        yield str(row["shot"]).strip(), point
