"""Shots for Python from SPS and SEG-Y files; those of SEG-Y files have their data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import CaseError
from minga.models.waves.domain import is_number
from minga.models.waves.medium import Floats
from minga.models.waves.receivers import Receivers
from minga.models.waves.shot import Shot
from minga.models.waves.survey_field_data import read_geometry
from minga.models.waves.survey_frame import Frame, MapShot, placed
from minga.models.waves.survey_geometry import Point
from minga.models.waves.survey_sps import read_sps
from minga.output.segy import SegyFile

__all__ = ["shots_of_segy", "shots_of_sps"]

_OFF: Final = 0.5
"""Metres by which points may be moved onto a line without a warning."""
_TOLERANCE: Final = 1e-6


def shots_of_sps(
    shots: str | Path,
    receivers: str | Path,
    relation: str | Path,
    source: Callable[[Point], Any],
    *,
    axes: str = "zx",
    frame: Frame | None = None,
    record: Sequence[str] = ("p",),
    revision: str | None = None,
    **options: Any,
) -> dict[int, Shot]:
    """Return the shots of SPS files by the numbers of their records.

    Parameters
    ----------
    shots, receivers, relation
        Files of S, R and X records.
    source
        Returns the source at a position of the model: ``lambda place: PointSource(place, Ricker(15.0))``.
    axes
        Axes of the model: "zx" or "zyx". In a section points are moved onto its line.
    frame
        Place of the model on the map; None: that of a model whose first cell is the origin of the map.
    record
        Quantities that receivers record.
    revision
        "0" or "2.1"; None: as the files say.
    **options
        Further parameters of `Receivers`: every, interpolation.

    Returns
    -------
    dict
        The shots, in the order of the relations.

    Raises
    ------
    CaseError
        If a file cannot be read, a relation names points that do not exist, or shots have the same number.
    """
    _check_source(source)
    found = read_sps(Path(shots), Path(receivers), Path(relation), revision)
    return {
        number: Shot([source(points[0])], Receivers(points[1:], **options), record=record)
        for number, points in _places(found, axes, frame, str(relation)).items()
    }


def shots_of_segy(
    file: str | Path,
    source: Callable[[Point], Any],
    dt: float,
    *,
    axes: str = "zx",
    frame: Frame | None = None,
    zero: float = 0.0,
    record: Sequence[str] = ("p",),
    interpolation: str = "sinc",
) -> dict[int, Shot]:
    """Return the shots of a SEG-Y file by their numbers (FFID), with geometry and data, without dead traces.

    The first sample of data is that of the time at which waves start: samples of the file before that are left out, and
    0 is put where the file begins later.

    Parameters
    ----------
    file
        The file, as for ``[survey.segy]``.
    source
        Returns the source at a position of the model: ``lambda place: PointSource(place, Ricker(15.0))``.
    dt
        Time step of the waves, s; the interval of the samples is a multiple.
    axes
        Axes of the model: "zx" or "zyx". In a section points are moved onto its line.
    frame
        Place of the model on the map; None: that of a model whose first cell is the origin of the map.
    zero
        Time of the waves that the file calls 0, s, such as that of the wavelet's peak.
    record
        Quantities that traces are, those of all receivers for one after the other.
    interpolation
        As for `Receivers`.

    Returns
    -------
    dict
        The shots, in the order in which their numbers first occur.

    Raises
    ------
    CaseError
        If the file cannot be read, has no geometry, or its samples do not lie on steps.
    """
    _check_source(source)
    for key, value in (("dt", dt), ("zero", zero)):
        if not is_number(value) or not math.isfinite(value) or (key == "dt" and value <= 0):
            raise CaseError(f"{key} is {value!r}", key=key, remedy="give seconds")
    path = Path(file)
    geometry = read_geometry(path)
    data = SegyFile.open(path)
    if not data.interval:
        raise CaseError(
            f"{path.name} does not say the interval of its samples (bytes 3217 to 3218)",
            key="file",
            remedy="write it into the file, in microseconds",
        )
    every = _whole(data.interval * 1e-6, dt, f"{path.name} has samples every {data.interval * 1e-3:g} ms", "dt")
    delays = np.unique(np.asarray(data.headers["delay"])[[trace for shot in geometry for trace in shot.traces]])
    if len(delays) > 1:
        raise CaseError(
            f"{path.name}: records begin at different times, {delays[0]} to {delays[-1]} ms (bytes 109 to 110)",
            key="file",
            remedy="give all traces the same delay",
        )
    begin = zero + float(delays[0]) * 1e-3
    lead = _whole(begin, every * dt, f"{path.name} begins {begin * 1e3:g} ms after the waves", "zero", least=None)
    found = {}
    places = _places(geometry, axes, frame, path.name)
    for shot, (number, points) in zip(geometry, places.items(), strict=True):
        count, rest = divmod(len(points) - 1, len(record))
        if rest or points[1:] != points[1 : count + 1] * len(record):
            raise CaseError(
                f"{path.name}: shot {number} does not have the traces of all receivers for {', '.join(record)}, one "
                "quantity after the other",
                key="record",
                remedy="sort its traces by quantities",
            )
        receivers = Receivers(points[1 : count + 1], every, interpolation)  # type: ignore[arg-type]
        traces = _from_start(np.asarray(data.traces(np.array(shot.traces)).T, np.float64), lead)
        found[number] = Shot([source(points[0])], receivers, traces, record)
    return found


def _check_source(source: object) -> None:
    if not callable(source):
        raise CaseError(
            f"the source is {source!r}",
            key="source",
            remedy="give a function of a position: lambda place: PointSource(place, Ricker(15.0))",
        )


def _places(found: Sequence[MapShot], axes: str, frame: Frame | None, name: str) -> dict[int, list[Point]]:
    """Return the positions of the source and the receivers of each shot by its number."""
    if axes not in ("zx", "zyx"):
        raise CaseError(f"the axes are {axes!r}", key="axes", remedy='give "zx" or "zyx"')
    places: dict[int, list[Point]] = {}
    farthest = 0.0
    for shot in found:
        if shot.record in places:
            raise CaseError(
                f"{name}: several shots have the number {shot.record}", key="file", remedy="give each its own"
            )
        places[shot.record], away = placed([shot.source, *shot.receivers], frame or Frame(), axes)
        farthest = max(farthest, away)
    if farthest > _OFF:
        warnings.warn(f"{name}: points up to {farthest:.3g} m beside x were moved onto it", stacklevel=3)
    return places


def _whole(length: float, step: float, what: str, key: str, least: int | None = 1) -> int:
    """Return how often a step fits into a length; raise CaseError if it does not."""
    count = round(length / step)
    if (least is not None and count < least) or abs(count * step - length) > _TOLERANCE * max(step, abs(length)):
        raise CaseError(
            f"{what}, which is no multiple of {step * 1e3:g} ms",
            key=key,
            remedy=f"choose another time step, or resample the data: {length * 1e3:g} ms are {max(1, count)} steps "
            f"of {length * 1e3 / max(1, count):g} ms"
            if key == "dt"
            else "delay the wavelet, so that samples lie on steps",
        )
    return count


def _from_start(traces: Floats, lead: int) -> Floats:
    """Return traces from the start of the waves, where their first sample is the one after `lead` others."""
    if lead <= 0:
        return traces[-lead:]
    return np.concatenate([np.zeros((lead, traces.shape[1])), traces])
