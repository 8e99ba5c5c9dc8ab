"""Headers of a survey's traces: coordinates on the map with their scalars, offsets, numbers of shots, delays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.errors import CaseError
from minga.models.waves.domain import axes_of, check_spacing
from minga.models.waves.medium import Floats
from minga.models.waves.source import PlaneSource
from minga.output.traces import codes_of

if TYPE_CHECKING:
    from minga.models.waves.survey import Survey

__all__ = ["about_quantities", "headers_of"]

_CENTIMETRES: Final = 100


def headers_of(survey: Survey, number: int) -> dict[str, Any]:
    """Return the entries of trace headers for a shot, by the names of `minga.output.segy.TRACE_KEYS`."""
    shot, axes = survey.shots[number], axes_of(len(survey.shape))

    def along(points: Sequence[tuple[float, ...]], name: str) -> Floats:
        return np.array([point[axes.index(name)] if name in axes else 0.0 for point in points])

    def scaled(values: Floats) -> Any:
        whole = np.rint(values * _CENTIMETRES)
        if not (np.abs(whole) < 2**31).all():
            raise CaseError(
                f"a coordinate of {float(np.abs(values).max()):g} m, too large for centimetres in headers of SEG-Y",
                key="survey.origin",
                remedy="give the map a nearer origin: 2e7 m at most",
            )
        return whole.astype("i4")

    middle = tuple(n // 2 * h for n, h in zip(survey.shape, check_spacing(survey.spacing, len(axes)), strict=True))
    points = [s.position or middle for s in shot.sources if not isinstance(s, PlaneSource)] or [(0.0,) * len(axes)]
    source = {name: along(points[:1], name) for name in "zyx"}
    places = {name: along(list(shot.receivers.positions), name) for name in "zyx"}
    away = np.sqrt(np.square(places["x"] - source["x"]) + np.square(places["y"] - source["y"]))
    signed = np.where(places["x"] < source["x"], -away, away) if len(axes) < 3 else away
    (x, y), (source_x, source_y) = (survey.frame.on_map(found["x"], found["y"]) for found in (places, source))
    found = {
        "x": scaled(x), "y": scaled(y), "elevation": scaled(survey.frame.datum - places["z"]),
        "source_x": scaled(source_x), "source_y": scaled(source_y), "source_depth": scaled(source["z"]),
        "source_elevation": scaled(np.array(survey.frame.datum)), "coordinate_scale": -_CENTIMETRES,
        "elevation_scale": -_CENTIMETRES, "offset": np.rint(signed).astype("i4"), "delay": round(survey.delay * 1e3),
        **_numbers(survey, number),
    }  # fmt: skip
    if not _has_quantities(survey):
        return found
    count, times = len(shot.receivers.positions), len(shot.record)
    repeated = {name: np.tile(each, times) if np.shape(each) == (count,) else each for name, each in found.items()}
    return repeated | codes_of([name for name in shot.record for _ in range(count)])


def about_quantities(survey: Survey) -> list[str]:
    """Return lines about what the traces are; none for the pressure of acoustic waves."""
    if not _has_quantities(survey):
        return []
    late = [name for name in survey.quantities if name.startswith("v")]
    half = f"VELOCITIES ARE THOSE HALF A STEP, {500 * survey.step:g} MS, BEFORE THE TIME"
    return [
        "TRACES OF A SHOT: THOSE OF ALL RECEIVERS FOR EACH QUANTITY",
        f"IN THE ORDER {', '.join(survey.quantities)}",
        "Z POINTS DOWN: VZ IS POSITIVE WHERE THE GROUND SINKS",
        *([half] if late else []),
    ]


def _has_quantities(survey: Survey) -> bool:
    """Return True if traces are of more than the pressure of acoustic waves."""
    return survey.elastic or survey.quantities != ("p",)


def _numbers(survey: Survey, number: int) -> dict[str, int]:
    """Return the numbers of a shot: those given, or none where the file counts shots."""
    record = survey.name(number)
    point = float(record) if survey.points is None else survey.points[number]
    whole = point == round(point)
    return {
        "record": record, "source_point": round(point), "shot_point": round(point if whole else point * 100),
        "shot_point_scale": 1 if whole else -100,
    }  # fmt: skip
