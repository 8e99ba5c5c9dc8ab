"""Surveys: many shots over one medium, each on a grid cut around it, shared out over ranks, written shot by shot."""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, MingaError
from minga.models.waves.boundary import Boundary, Sponge
from minga.models.waves.domain import axes_of, check_shape, check_spacing
from minga.models.waves.gradient import Shot, shot_traces
from minga.models.waves.kernels import Form
from minga.models.waves.medium import Floats, Medium, Quantity, sampled_boxes
from minga.models.waves.model import Waves, prepare, stepping_of
from minga.models.waves.receivers import Receivers
from minga.models.waves.source import PlaneSource, PointSource, Ricker, Source, Wavelet
from minga.output.segy_survey import SegySurvey
from minga.space.box import Box

__all__ = ["Recorded", "Survey", "points_between", "shots_of_files", "streamer"]

_CENTIMETRES: Final = 100

Point = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Progress of a survey: shots that are written, all of them, and the seconds that the rest will take."""

    done: int
    shots: int
    seconds_left: float


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Shots over a medium; other parameters are those of `fletcher`.

    Parameters
    ----------
    shape
        Cells of the model.
    spacing
        Metres between cells.
    dt
        Seconds of a step.
    medium
        The medium.
    shots
        The shots.
    boundary
        The boundary of the model and of the grids that are cut out of it.
    aperture
        Metres that the grid of a shot has on either side of its sources and receivers, along all axes but z; None: all
        of the model.
    order, time_order, form, sigma, dtype
        As for `fletcher`.
    """

    shape: Sequence[int]
    spacing: Sequence[float] | float
    dt: float
    medium: Medium
    shots: Sequence[Shot]
    boundary: Boundary = field(default_factory=Sponge)
    aperture: float | None = None
    order: int = 8
    time_order: int = 2
    form: Form = "fletcher"
    sigma: float = 0.75
    dtype: str = "f4"

    def __post_init__(self) -> None:
        if not self.shots:
            raise CaseError("a survey without shots", key="shots", remedy="give at least one")
        if self.aperture is not None and not self.aperture >= 0:
            raise CaseError(f"the aperture is {self.aperture}", key="aperture", remedy="give metres, or None")
        for number, shot in enumerate(self.shots):
            if not len(shot.receivers.positions):
                raise CaseError(f"shot {number} has no receivers", key="shots", remedy="give each shot one or more")
        if len({shot.receivers.every for shot in self.shots}) > 1:
            raise CaseError(
                "shots have samples at different intervals", key="shots", remedy="give all receivers one every="
            )

    def of(self, number: int) -> tuple[Waves, Shot]:
        """Return the waves of a shot on its part of the model, and the shot with its positions there.

        Parameters
        ----------
        number
            Number of the shot, from 0.

        Returns
        -------
        tuple
            The waves and the shot.
        """
        lengths, shot = check_shape(list(self.shape)), self.shots[number]
        widths = check_spacing(self.spacing, len(lengths))
        part = self._part(shot, lengths, widths)
        offset = tuple(lo * h for lo, h in zip(part.lo, widths, strict=True))
        try:
            waves = prepare(
                part.shape, widths, dt=self.dt, medium=_cut(self.medium, part), sigma=self.sigma, order=self.order,
                time_order=self.time_order, form=self.form, boundary=self.boundary, dtype=self.dtype,
            )  # fmt: skip
            return waves, _moved(shot, offset, axes_of(len(lengths)))
        except CaseError as error:
            error.key = f"shots[{number}]"
            raise

    def _part(self, shot: Shot, lengths: tuple[int, ...], widths: tuple[float, ...]) -> Box:
        """Return the cells of the model that a shot needs."""
        low, high = [0] * len(lengths), list(lengths)
        points = [source.position for source in shot.sources if isinstance(source, PointSource)]
        if self.aperture is not None and all(isinstance(s, PointSource) for s in shot.sources) and None not in points:
            every = np.array([*points, *shot.receivers.positions], np.float64).reshape(-1, len(lengths))
            for axis in range(1, len(lengths)):
                ends = every[:, axis].min() - self.aperture, every[:, axis].max() + self.aperture
                low[axis] = max(0, int(np.floor(ends[0] / widths[axis])))
                high[axis] = min(lengths[axis], int(np.ceil(ends[1] / widths[axis])) + 1)
        return Box(tuple(low), tuple(high))

    def traces(self, number: int, samples: int, *, threads: int = 1) -> Floats:
        """Return the traces of a shot, of shape (samples, receivers).

        Parameters
        ----------
        number
            Number of the shot, from 0.
        samples
            Number of samples, the first of them at the start.
        threads
            Threads.

        Returns
        -------
        ndarray
            Samples, f8.
        """
        waves, shot = self.of(number)
        return shot_traces(waves, shot, samples, threads=threads)

    def record(
        self,
        file: str | Path,
        samples: int,
        *,
        threads: int = 1,
        comm: Comm | None = None,
        callback: Callable[[Recorded], None] | None = None,
    ) -> Path:
        """Compute all shots and write them to one SEG-Y file; collective.

        Rank 0 writes each shot when it is there. After an interruption, or a disk that was full, the same call computes
        the shots that are missing.

        Parameters
        ----------
        file
            The file (.sgy), which appears when all shots are there.
        samples
            Number of samples of each trace, the first of them at the start.
        threads
            Threads of each rank.
        comm
            Ranks that share the shots; None: this process alone.
        callback
            Called on rank 0 with the progress.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        CaseError
            If a shot is invalid, or the file exists or belongs to another survey.
        RunError
            If the disk fails.
        """
        ranks: Any = comm or SerialComm()
        path = Path(file)
        writer = _Writer(self, path, samples, callback) if ranks.rank == 0 else None
        left = ranks.bcast(None if writer is None else writer.opened())
        if isinstance(left, MingaError):
            raise left
        for first in range(0, len(left), ranks.size):
            own: Any = None
            if first + ranks.rank < len(left):
                number = left[first + ranks.rank]
                try:
                    own = number, self.traces(number, samples, threads=threads)
                except MingaError as error:
                    own = error
            every = ranks.gather(own)
            failed = ranks.bcast(None if writer is None else writer.take(every or []))
            if failed is not None:
                raise failed
        failed = ranks.bcast(None if writer is None else writer.finish())
        if failed is not None:
            raise failed
        return path


class _Writer:
    """Rank 0's file, whose errors all ranks are told."""

    def __init__(self, survey: Survey, path: Path, samples: int, callback: Callable[[Recorded], None] | None) -> None:
        self.survey, self.path, self.samples, self.callback = survey, path, samples, callback
        self.file: SegySurvey | None = None
        self.begun, self.done = time.monotonic(), 0

    def opened(self) -> list[int] | MingaError:
        """Open the file and return the shots that are missing; first try all shots, so that none is refused later."""
        survey = self.survey
        try:
            for number in range(len(survey.shots)):
                waves, shot = survey.of(number)
                stepping_of(waves, shot.sources)
                shot.receivers.placed(waves.domain)
            interval = survey.dt * survey.shots[0].receivers.every
            text = ["SURVEY BY MINGA", "COORDINATES IN METRES, SCALED BY 100"]
            counts = [len(shot.receivers.positions) for shot in survey.shots]
            self.file = SegySurvey(self.path, counts, self.samples, interval, _described(survey, self.samples), text)
        except MingaError as error:
            return error
        return [number for number in range(len(survey.shots)) if number not in self.file.finished]

    def take(self, every: Sequence[Any]) -> MingaError | None:
        """Write what ranks have computed."""
        assert self.file is not None
        try:
            for entry in every:
                if isinstance(entry, MingaError):
                    return entry
                if entry is not None:
                    number, traces = entry
                    self.file.write(number, traces.T, _headers(self.survey, number))
                    self.done += 1
        except MingaError as error:
            return error
        if self.callback is not None and self.done:
            left = len(self.survey.shots) - len(self.file.finished)
            seconds = (time.monotonic() - self.begun) / self.done * left
            self.callback(Recorded(len(self.file.finished), len(self.survey.shots), seconds))
        return None

    def finish(self) -> MingaError | None:
        """Give the file its name."""
        assert self.file is not None
        try:
            self.file.finish()
        except MingaError as error:
            return error
        return None


def _described(survey: Survey, samples: int) -> object:
    """Return what determines the traces of a survey, for the comparison with an unfinished file."""

    def digest(value: Any) -> object:
        if callable(value):
            parts = [np.asarray(value(box)).tobytes() for box in sampled_boxes(check_shape(list(survey.shape)), True)]
            return hashlib.sha256(b"".join(parts)).hexdigest()
        if isinstance(value, np.ndarray):
            return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return repr(value)

    def wavelet(source: Source) -> object:
        return digest(source.wavelet.values) if isinstance(source.wavelet, Wavelet) else repr(source.wavelet)

    def place(source: Source) -> object:
        return source.position if isinstance(source, PointSource) else (source.axis, source.position)

    return {
        "samples": samples,
        "medium": {entry.name: digest(getattr(survey.medium, entry.name)) for entry in fields(survey.medium)},
        "survey": {
            entry.name: repr(getattr(survey, entry.name))
            for entry in fields(survey)
            if entry.name not in ("medium", "shots")
        },
        "shots": [
            [[place(s), wavelet(s), s.injection] for s in shot.sources]
            + [list(map(list, shot.receivers.positions)), shot.receivers.every, shot.receivers.interpolation]
            for shot in survey.shots
        ],
    }


def _headers(survey: Survey, number: int) -> dict[str, Any]:
    """Return the entries of trace headers for a shot."""
    shot, axes = survey.shots[number], axes_of(len(survey.shape))

    def along(points: Sequence[Point], name: str) -> Floats:
        return np.array([point[axes.index(name)] if name in axes else 0.0 for point in points])

    def scaled(values: Floats) -> Any:
        return np.rint(values * _CENTIMETRES).astype("i4")

    middle = tuple(n // 2 * h for n, h in zip(survey.shape, check_spacing(survey.spacing, len(axes)), strict=True))
    points = [s.position or middle for s in shot.sources if isinstance(s, PointSource)] or [(0.0,) * len(axes)]
    source = {name: float(along(points[:1], name)[0]) for name in "zyx"}
    places = {name: along(list(shot.receivers.positions), name) for name in "zyx"}
    away = np.hypot(places["x"] - source["x"], places["y"] - source["y"])
    signed = np.where(places["x"] < source["x"], -away, away) if len(axes) < 3 else away
    return {
        "x": scaled(places["x"]), "y": scaled(places["y"]), "elevation": -scaled(places["z"]),
        "source_x": round(source["x"] * _CENTIMETRES), "source_y": round(source["y"] * _CENTIMETRES),
        "source_depth": round(source["z"] * _CENTIMETRES), "coordinate_scale": -_CENTIMETRES,
        "elevation_scale": -_CENTIMETRES, "offset": np.rint(signed).astype("i4"),
    }  # fmt: skip


def _cut(medium: Medium, part: Box) -> Medium:
    """Return the part of a medium in a box of its cells."""

    def of(entry: Quantity) -> Quantity:
        if callable(entry):
            function = entry
            return lambda box: function(box.shift(part.lo))
        return entry if np.ndim(entry) == 0 else np.asarray(entry)[part.slices((0,) * len(part.lo))]

    return Medium(*(of(getattr(medium, entry.name)) for entry in fields(medium)))


def _moved(shot: Shot, offset: Point, axes: str) -> Shot:
    """Return a shot with its positions measured from another cell."""

    def moved(point: Sequence[float]) -> Point:
        return tuple(a - b for a, b in zip(point, offset, strict=True))

    def source(given: Source) -> Source:
        if isinstance(given, PlaneSource):
            return replace(given, position=given.position - offset[axes.index(given.axis)])
        return given if given.position is None else replace(given, position=moved(given.position))

    receivers = replace(shot.receivers, positions=[moved(point) for point in shot.receivers.positions])
    return Shot([source(each) for each in shot.sources], receivers, shot.data)


# Geometry ------------------------------------------------------------------------------------------------------------
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
    return [
        Receivers([(depth, *point[1:-1], point[-1] + nearest + k * spacing) for k in range(count)], **options)
        for point in sources
    ]


def shots_of_files(
    shots: str | Path, receivers: str | Path, wavelet: Ricker | Wavelet | None = None, **options: Any
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
    sources: dict[str, list[Point]] = {}
    for name, point in _rows(Path(shots)):
        sources.setdefault(name, []).append(point)
    places: dict[str, list[Point]] = {}
    for name, point in _rows(Path(receivers)):
        places.setdefault(name, []).append(point)
    stray = [name for name in places if name != "*" and name not in sources]
    if stray:
        raise CaseError(f"{receivers}: there is no shot {stray[0]!r} in {shots}", key="receivers")
    signal = Ricker() if wavelet is None else wavelet
    return [
        Shot(
            [PointSource(point, signal) for point in points],
            Receivers([*places.get(name, []), *places.get("*", [])], **options),
        )
        for name, points in sources.items()
    ]


def _rows(path: Path) -> Iterator[tuple[str, Point]]:
    """Yield the shot and the point of each line of a table."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"cannot read {path}: {error}") from error
    table = csv.DictReader(lines, skipinitialspace=True)
    names = [name for name in ("z", "y", "x") if name in (table.fieldnames or ())]
    if "shot" not in (table.fieldnames or ()) or "".join(names) not in ("z", "zx", "zyx"):
        raise CaseError(
            f"{path} has the columns {', '.join(table.fieldnames or ()) or 'of no table'}",
            remedy="write a first line shot,z,x or shot,z,y,x",
        )
    for number, row in enumerate(table, 2):
        try:
            point = tuple(float(row[name]) for name in names)
        except (TypeError, ValueError):
            point = ()
        if not point or not all(np.isfinite(point)):
            raise CaseError(f"{path}, line {number}: a position is not a number", remedy="give metres")
        yield str(row["shot"]).strip(), point
