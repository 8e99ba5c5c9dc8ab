"""The command ``minga compare``: list where the settings, results and speeds of two runs differ."""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import CaseError
from minga.output.directory import RunDirectory
from minga.output.store import FrameReader
from minga.view.progress import extent_text, speed_text, time_text

__all__ = ["Comparison", "Difference", "FieldDifference", "as_json", "compare", "text"]

_MOST_LINES: Final = 24
"""Most differing settings or observables that are printed one by one."""
_SAME: Final = 1e-9
"""Relative difference of coordinates that may be rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Setting or observable in two runs; None where a run lacks it.

    ``relative`` is the difference b - a divided by the larger magnitude; None for values that are not numbers.
    """

    name: str
    a: Any
    b: Any
    relative: float | None = None


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """Field after the last step that both runs kept.

    Attributes
    ----------
    name
        Name of the field.
    step
        The step.
    largest
        Largest magnitude of the difference; NaN if only one of two values is a number; None if `reason` says why the
        fields cannot be compared.
    where
        Index of the first cell with the largest difference.
    differing
        Share of the cells whose values differ.
    scale
        Largest finite magnitude of the field in both runs.
    reason
        Why the fields cannot be compared; empty if they can.
    """

    name: str
    step: int
    largest: float | None = None
    where: tuple[int, ...] = ()
    differing: float = 0.0
    scale: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs beside each other.

    ``same`` is True if the digests of the last states are equal.
    """

    runs: tuple[str, str]
    results: tuple[Mapping[str, Any], Mapping[str, Any]]
    settings: tuple[Difference, ...]
    fields: tuple[FieldDifference, ...]
    observables: tuple[Difference, ...]
    same: bool


def compare(a: Path, b: Path) -> Comparison:
    """Compare the settings, last common frames, observables at the end, and speeds of two runs.

    Raises
    ------
    CaseError
        If one of the directories is not a run with a result.
    """
    directories = RunDirectory.open(a), RunDirectory.open(b)
    first, second = (_result(directory) for directory in directories)
    readers = [FrameReader.open(directory.fields) for directory in directories]
    cases = [directory.case for directory in directories]
    known = all(case.is_file() for case in cases)  # runs that began in Python have no case
    settings = [_settings(case) for case in cases] if known else [{}, {}]
    return Comparison(
        (str(a), str(b)),
        (first, second),
        tuple(_differing(*settings)),
        tuple(_fields(*readers)),
        tuple(_differing(first["observables"], second["observables"])),
        first["digest"] == second["digest"],
    )


def _result(directory: RunDirectory) -> dict[str, Any]:
    found: Any = None
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(directory.result.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not {"observables", "digest"} <= found.keys():
        raise CaseError(
            f"{directory.path} has no result: the run has not ended, or it failed",
            remedy=f"complete it with minga run --resume {directory.path}",
        )
    return found


def _settings(case: Path) -> dict[str, Any]:
    try:
        return _entries(tomllib.loads(case.read_text(encoding="utf-8")))
    except ValueError as error:
        raise CaseError(f"{case} cannot be read: {error}", remedy="restore the file, or run the case again") from error


def _entries(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the entries of a case by their dotted names; tables in lists are numbered."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            value = {str(number): entry for number, entry in enumerate(value)}
        found |= _entries(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the entries that differ, in the order of the first run; then those of the second run alone."""
    for name in [*a, *(name for name in b if name not in a)]:
        one, other = a.get(name), b.get(name)
        if not _equal(one, other):
            yield Difference(name, one, other, _relative(one, other))


def _equal(a: Any, b: Any) -> bool:
    """Return True for equal values; NaN equals NaN, which files hold as a word."""
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _relative(a: Any, b: Any) -> float | None:
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in (a, b)):
        return None
    larger = max(abs(a), abs(b))
    return (b - a) / larger if larger and math.isfinite(larger) else None


def _fields(a: FrameReader, b: FrameReader) -> Iterator[FieldDifference]:
    """Yield the difference of each field that both runs kept, after the last step that both have."""
    common = sorted(set(a.steps) & set(b.steps))
    if not common:
        return
    step = common[-1]
    places = a.steps.index(step), b.steps.index(step)
    for name in a.fields:
        if name in b.fields:
            frames = a.frame(name, places[0]), b.frame(name, places[1])
            if frames[0].shape == frames[1].shape and not _at_the_same_places(a, b, name):
                yield FieldDifference(name, step, reason="points of different coordinates")
            else:
                yield _field(name, step, *frames)


def _at_the_same_places(a: FrameReader, b: FrameReader, name: str) -> bool:
    """Return True if the points of a field have the same coordinates in both runs, but for rounding."""
    pairs = zip(a.coordinates(name), b.coordinates(name), strict=True)
    return all(np.allclose(one.values, other.values, 0.0, _SAME * np.abs(one.values).max()) for one, other in pairs)


def _field(name: str, step: int, a: Any, b: Any) -> FieldDifference:
    if a.shape != b.shape:
        shapes = " and ".join(" x ".join(map(str, each.shape)) for each in (a, b))
        return FieldDifference(name, step, reason=f"grids of {shapes} points")
    one, other = a.astype(np.float64), b.astype(np.float64)
    unlike = (a != b) & ~((one != one) & (other != other))
    with np.errstate(invalid="ignore"):  # infinities of one sign
        apart = np.where(unlike, np.abs(other - one), 0.0)
    finite = [np.abs(each[np.isfinite(each)]) for each in (one, other)]
    scale = max((float(np.max(each)) for each in finite if each.size), default=0.0)
    worst = int(np.argmax(np.where(np.isnan(apart), np.inf, apart))) if apart.size else 0
    where = tuple(int(index) for index in np.unravel_index(worst, apart.shape)) if apart.size else ()
    largest = float(apart[where]) if apart.size else 0.0
    return FieldDifference(name, step, largest, where, float(np.mean(unlike)) if apart.size else 0.0, scale)


def as_json(comparison: Comparison) -> str:
    """Return the comparison as one JSON object; numbers that are not finite are null."""
    about = ("model", "shape", "steps", "ranks", "seconds", "cells_per_second", "digest")
    table = {
        "runs": [
            {"run": run, **{key: result.get(key) for key in about}}
            for run, result in zip(comparison.runs, comparison.results, strict=True)
        ],
        "same": comparison.same,
        "settings": [asdict(each) for each in comparison.settings],
        "fields": [asdict(each) for each in comparison.fields],
        "observables": [asdict(each) for each in comparison.observables],
    }
    return json.dumps(_finite(table), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)  # dates and times of TOML


def text(comparison: Comparison) -> str:
    """Return the comparison as text for a terminal."""
    lines = [
        _run_line(letter, *each)
        for letter, each in zip("AB", zip(comparison.runs, comparison.results, strict=True), strict=True)
    ]
    lines.append("last state: " + ("the same bits" if comparison.same else "different digests"))
    lines += _listed("settings that differ", comparison.settings)
    lines += ["fields", *(f"  {_field_line(each)}" for each in comparison.fields)] if comparison.fields else []
    lines += _listed("observables that differ at the end", comparison.observables)
    fast = [result["cells_per_second"] for result in comparison.results]
    if all(fast):
        lines.append(f"speed of B relative to A: {fast[1] / fast[0]:.3g}")
    return "\n".join(lines)


def _run_line(letter: str, run: str, result: Mapping[str, Any]) -> str:
    speed = f"{time_text(result['seconds'])}, {speed_text(result)}"
    what = f"{result['model']}, {extent_text(result)}, {result['steps']} steps"
    return f"{letter}  {run}: {what}, {speed}, {result['digest']}"


def _listed(title: str, differences: tuple[Difference, ...]) -> list[str]:
    if not differences:
        return []
    shown = differences[:_MOST_LINES]
    wide = max(len(each.name) for each in shown)
    lines = [title, *(f"  {each.name:{wide}}  {_pair(each)}" for each in shown)]
    more = len(differences) - len(shown)
    return [*lines, f"  and {more} more"] if more else lines


def _pair(each: Difference) -> str:
    relative = "" if each.relative is None else f"  ({100 * each.relative:+.3g} %)"
    return f"{_value(each.a)}  ->  {_value(each.b)}{relative}"


def _value(value: Any) -> str:
    if value is None:
        return "(none)"
    shown = f"{value:.8g}" if isinstance(value, float) else str(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _field_line(each: FieldDifference) -> str:
    if each.reason:
        return f"{each.name}: {each.reason}"
    if not each.differing:
        return f"{each.name}: equal after step {each.step}"
    relative = f" ({each.largest / each.scale:.2g} of the largest value)" if each.scale and each.largest else ""
    place = ", ".join(map(str, each.where))
    return (
        f"{each.name}: differs in {100 * each.differing:.3g} % of the points after step {each.step}, "
        f"at most by {each.largest:.6g}{relative} at ({place})"
    )
