"""Conversion of a case with the tables [fletcher] or [elastic], and [survey], to a Survey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from minga.case.files import find_file
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.waves.boundary import domain_of, faces_of
from minga.models.waves.case import check_grid, receivers_of, wavelet_of
from minga.models.waves.elastic.settings import ElasticSettings
from minga.models.waves.keys import keys_of
from minga.models.waves.medium import Medium, Sampler
from minga.models.waves.preflight import sampled_notes, warnings_of
from minga.models.waves.receivers import Receivers
from minga.models.waves.settings import FletcherSettings, ReceiverSettings, WaveletSettings
from minga.models.waves.shot import Shot
from minga.models.waves.source_density import density_warnings
from minga.models.waves.survey import Survey
from minga.models.waves.survey_checks import refuse_aliased
from minga.models.waves.survey_field_data import read_geometry
from minga.models.waves.survey_frame import Frame, MapShot, placed
from minga.models.waves.survey_geometry import Point, named_shots, streamer
from minga.models.waves.survey_settings import SurveySettings
from minga.models.waves.survey_sps import read_sps
from minga.models.waves.survey_waves import SurveyWaves, waves_of
from minga.models.waves.time_step import stable_step, step_for
from minga.models.waves.wavelets import Ricker, Signal
from minga.space.box import Box

__all__ = ["SurveyCase", "make_survey"]

_WAYS: Final = ("shots", "tables", "sps", "segy")
_TOLERANCE: Final = 1e-6
_AIR: Final = 400.0
"""Velocity below which a cell is of air, m/s."""
_MOST_SAMPLES: Final = 32767
"""Largest number of samples of a trace: many programs read the number as a signed integer of two bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class SurveyCase:
    """A survey, the samples of its traces, and notes before it starts."""

    survey: Survey
    samples: int
    notes: tuple[tuple[str, str], ...]
    geometry: Path | None = None

    @property
    def interval(self) -> float:
        """Seconds between samples."""
        return self.survey.step * self.survey.shots[0].receivers.every


def make_survey(
    settings: FletcherSettings | ElasticSettings, said: SurveySettings, grid: GridSettings, directory: Path
) -> SurveyCase:
    """Make the survey that a case describes.

    Parameters
    ----------
    settings, said, grid
        The tables [fletcher] or [elastic], [survey] and [grid].
    directory
        The directory of the case.

    Raises
    ------
    CaseError
        If an entry is invalid.
    """
    table = "elastic" if isinstance(settings, ElasticSettings) else "fletcher"
    _check_tables(settings, said, grid, table)
    found = waves_of(settings, said, grid.shape, directory)
    with keys_of(table):
        dt, every = _steps(settings.dt, said, found.limit)
    wavelet = wavelet_of(_whole_delay(said), dt, directory, "survey.wavelet")
    frame = Frame(said.origin, said.bearing, said.datum)
    shots, records, points, notes = _shots(said, found, wavelet, every, frame, directory)
    first = _multiple(said.begin, said.interval, "survey.begin")
    samples = _multiple(said.length, said.interval, "survey.length") + 1
    if samples > _MOST_SAMPLES:
        raise CaseError(
            f"{samples:.6g} samples of a trace; in SEG-Y, all programs read up to {_MOST_SAMPLES:,}",
            key="survey.length",
            remedy="record shorter traces, or samples at longer intervals",
        )
    refuse_aliased(wavelet, said.interval, "survey.interval")
    survey = Survey(
        found.shape, found.spacing, dt, found.medium, shots, found.boundary, said.aperture, records=records,
        points=points, first=first, delay=_delay(said, wavelet), frame=frame, **found.options,
    )  # fmt: skip
    said_before = [*found.notes(dt, [shots[0].sources[0]]), *notes]
    said_before += sampled_notes(shots[0].sources[:1], said.interval)
    _check_aliasing(said_before)
    said_before += _amplitudes(survey, found)
    if found.slowest < _AIR:
        _check_air(survey, found)
    geometry = None if said.segy is None else find_file(said.segy.file, directory, "survey.segy.file")
    return SurveyCase(survey, samples, tuple(said_before), geometry)


def _check_tables(
    settings: FletcherSettings | ElasticSettings, said: SurveySettings, grid: GridSettings, table: str
) -> None:
    check_grid(grid, table)
    for name in ("sources", "receivers", "time"):
        if getattr(settings, name):
            raise CaseError(
                f"a survey takes its {name} from [survey]", key=f"{table}.{name}", remedy=f"leave {table}.{name} out"
            )
    ways = [name for name in _WAYS if getattr(said, name) is not None]
    if len(ways) != 1:
        raise CaseError(
            f"the shots of a survey come from one of {', '.join(_WAYS)}; found {', '.join(ways) or 'none of them'}",
            key="survey",
            remedy="write one of the tables [survey.shots], [survey.tables], [survey.sps] and [survey.segy]",
        )
    spreads = [name for name in ("receivers", "streamer") if getattr(said, name) is not None]
    if (ways == ["shots"]) != (len(spreads) == 1) or len(spreads) > 1:
        raise CaseError(
            f"[survey.{ways[0]}] with {' and '.join(spreads) or 'no receivers'}",
            key=f"survey.{(spreads or ways)[0]}",
            remedy="[survey.shots] has either [survey.receivers] or [survey.streamer] beside it, other tables neither",
        )


def _steps(given: float | Literal["auto"], said: SurveySettings, limit: float) -> tuple[float, int]:
    """Return the time step, and the number of steps between samples."""
    micro = said.interval * 1e6
    if abs(micro - round(micro)) > 1e-3 or not 1 <= round(micro) <= 65535:
        raise CaseError(
            f"a sample every {said.interval:g} s: SEG-Y has 1 to 65535 whole microseconds between samples",
            key="survey.interval",
            remedy="write a whole number of microseconds: interval = 0.002",
        )
    if given == "auto":
        every = max(1, math.ceil(said.interval / step_for(limit) - _TOLERANCE))
        return said.interval / every, every
    return stable_step(given, limit), max(1, _multiple(said.interval, given, "survey.interval", "time step"))


def _multiple(length: float, step: float, key: str, what: str = "interval") -> int:
    """Return how often a step fits into a length; raise CaseError if it does not fit."""
    count = round(length / step)
    if abs(count * step - length) > _TOLERANCE * max(step, length):
        raise CaseError(
            f"{length:g} s is no multiple of the {what}, {step:g} s",
            key=key,
            remedy=f"write {max(1, count) * step:g}, or another multiple of {step:g}",
        )
    return count


def _whole_delay(said: SurveySettings) -> WaveletSettings:
    """Return the wavelet, its peak moved to a whole millisecond where records count from there."""
    wavelet = said.wavelet
    if said.zero != "peak":
        return wavelet
    if wavelet.ricker is None:
        raise CaseError(
            "only a Ricker wavelet has a known peak", key="survey.zero", remedy="give the time that records call 0, s"
        )
    if wavelet.delay is not None:
        return wavelet
    return wavelet.model_copy(update={"delay": math.ceil(Ricker(wavelet.ricker).starts * 1e3) / 1e3})


def _delay(said: SurveySettings, wavelet: Signal) -> float:
    """Return the time of the first sample in the records, which SEG-Y stores in whole milliseconds."""
    zero = wavelet.starts if said.zero == "peak" and isinstance(wavelet, Ricker) else float(said.zero)
    milliseconds = (said.begin - zero) * 1e3
    if abs(milliseconds - round(milliseconds)) > 1e-3 or abs(milliseconds) > 32767:
        raise CaseError(
            f"the first sample is at {milliseconds:g} ms: SEG-Y has whole milliseconds, 32767 at most",
            key="survey.zero",
            remedy="choose begin, zero and the wavelet's delay in whole milliseconds",
        )
    return round(milliseconds) / 1e3


def _check_aliasing(notes: Sequence[tuple[str, str]]) -> None:
    for text in warnings_of(notes):
        what, _, remedy = text.rpartition(": ")
        raise CaseError(what, key="survey.wavelet", remedy=remedy)


def _amplitudes(survey: Survey, found: SurveyWaves) -> list[tuple[str, str]]:
    """Return a note on the sources whose amplitudes a change of density falsifies."""
    if not isinstance(found.medium, Medium) or not found.medium.has_density:
        return []
    domain = domain_of(found.shape, found.spacing, faces_of(found.boundary, len(found.shape)))
    sampler = Sampler(found.medium, found.shape, domain.low)
    texts = [text for shot in survey.shots for text in density_warnings(shot.sources, sampler, domain)]
    return [("amplitudes", f"{len(texts)} of {len(survey.shots)} sources are affected: {texts[0]}")] if texts else []


def _check_air(survey: Survey, found: SurveyWaves) -> None:
    """Raise CaseError for sources and receivers in cells whose velocity is that of air."""
    sampler = Sampler(found.medium, found.shape, (0,) * len(found.shape))
    wrong = []
    known: dict[tuple[int, ...], float] = {}
    for number, shot in enumerate(survey.shots):
        points = [("source", s.position) for s in shot.sources]
        points += [("receiver", tuple(point)) for point in shot.receivers.positions]
        for what, point in points:
            cell = tuple(round(x / h) for x, h in zip(point, found.spacing, strict=True))
            if all(0 <= k < n for k, n in zip(cell, found.shape, strict=True)):
                if cell not in known:
                    known[cell] = float(sampler.values("vp", Box(cell, tuple(k + 1 for k in cell))).ravel()[0])
                if known[cell] < _AIR:
                    where = f"lies at {list(point)}, where vp is {known[cell]:g} m/s"
                    wrong.append(f"shot {survey.name(number)}: a {what} {where}")
    if wrong:
        raise CaseError(
            f"{len(wrong)} positions are in the air\n  " + "\n  ".join(wrong[:20]),
            key="survey",
            remedy="put sources and receivers into the ground or the water",
        )


def _shots(
    said: SurveySettings, found: SurveyWaves, wavelet: Signal, every: int, frame: Frame, directory: Path
) -> tuple[list[Shot], list[int] | None, list[float] | None, list[tuple[str, str]]]:
    """Return the shots, their numbers and those of their source points, and notes."""

    def shot(source: Point, receivers: Receivers) -> Shot:
        return Shot([found.source(source, wavelet)], receivers, record=found.record)

    if said.tables is not None:
        sources, spread = (
            find_file(getattr(said.tables, name), directory, f"survey.tables.{name}") for name in ("shots", "receivers")
        )
        named = named_shots(sources, spread, lambda point: found.source(point, wavelet), found.record, every=every)
        shots = [*named.values()]
        _check_axes([p for each in shots for p in each.receivers.positions], found.axes, "survey.tables.receivers")
        _check_axes([s.position for each in shots for s in each.sources], found.axes, "survey.tables.shots")
        return shots, *_records_of(list(named), sources.name)
    if said.shots is not None:
        line = said.shots
        _check_axes([line.first, line.step], found.axes, "survey.shots")
        places = [tuple(a + k * b for a, b in zip(line.first, line.step, strict=True)) for k in range(line.count)]
        if said.streamer is not None:
            towed = said.streamer
            spreads = streamer(places, towed.depth, towed.nearest, towed.spacing, towed.count, every=every)
        else:
            assert said.receivers is not None  # one of both, as was checked
            table = ReceiverSettings(**said.receivers.model_dump())
            spreads = [receivers_of(table, found.axes, every, "survey.receivers")] * line.count
            _check_axes(spreads[0].positions, found.axes, "survey.receivers")
        return [shot(*each) for each in zip(places, spreads, strict=True)], None, None, []
    on_map = _of_files(said, directory)
    rows, away = [], 0.0
    for each in on_map:
        points, off = placed([each.source, *each.receivers], frame, found.axes)
        away = max(away, off)
        rows.append(shot(points[0], Receivers(points[1:], every)))
    notes = [("off the line", f"points lie up to {away:.3g} m beside x, and were moved onto it")] if away > 0.5 else []
    return rows, [each.record for each in on_map], [each.source.number for each in on_map], notes


def _records_of(names: Sequence[str], file: str) -> tuple[list[int] | None, list[float] | None, list[tuple[str, str]]]:
    """Return the numbers of records and source points of shots with names, and a note if names are no numbers."""
    numbers = [int(name) for name in names if name.isascii() and name.isdigit() and 0 < int(name) < 2**31]
    if len(set(numbers)) == len(names):
        return numbers, [float(number) for number in numbers], []
    return None, None, [("numbers", f"shots are numbered 1, 2, ... in the order of {file}: some names are no numbers")]


def _of_files(said: SurveySettings, directory: Path) -> list[MapShot]:
    """Return the shots of SPS files or of a SEG-Y file."""
    if said.segy is not None:
        return read_geometry(find_file(said.segy.file, directory, "survey.segy.file"))
    assert said.sps is not None  # one of both, as was checked
    shots, receivers, relation = (
        find_file(getattr(said.sps, name), directory, f"survey.sps.{name}")
        for name in ("shots", "receivers", "relation")
    )
    return read_sps(shots, receivers, relation, said.sps.revision)


def _check_axes(points: Sequence[Sequence[float]], axes: str, key: str) -> None:
    for point in points:
        if len(point) != len(axes):
            raise CaseError(
                f"{list(point)} is no point of the model, which has the axes {', '.join(axes)}",
                key=key,
                remedy=f"write [{', '.join(axes)}] in metres",
            )
