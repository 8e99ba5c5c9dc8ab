"""Recording of a survey: its shots are shared out over ranks, and rank 0 writes them to one file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, MingaError
from minga.models.waves.boundary import domain_of, faces_of
from minga.models.waves.digests import digest
from minga.models.waves.domain import Domain, check_shape, check_spacing
from minga.models.waves.elastic.sources import position_of
from minga.models.waves.interpolation import check_point, doubtful, place
from minga.models.waves.medium import slabs
from minga.models.waves.shot import Shot
from minga.models.waves.source import PlaneSource, PointSource
from minga.models.waves.survey_checks import check_samples, check_waves
from minga.models.waves.survey_headers import about_quantities, headers_of
from minga.models.waves.survey_sharing import Speeds, shared_out
from minga.output.segy_survey import SegySurvey

if TYPE_CHECKING:
    from minga.models.waves.survey import Survey

__all__ = ["SurveyProgress", "check_geometry", "record"]

_NAMED: Final = 20
"""Largest number of geometry errors that are listed."""


@dataclass(frozen=True, slots=True)
class SurveyProgress:
    """Progress of a survey.

    Attributes
    ----------
    done, shots
        Number of shots that are written, and of all.
    seconds_left
        Seconds that the rest will take, in proportion to the cells of shots.
    seconds
        Seconds since the start.
    updates
        Cell updates so far, those of earlier calls left out.
    """

    done: int
    shots: int
    seconds_left: float
    seconds: float = 0.0
    updates: int = 0


def record(
    survey: Survey,
    path: Path,
    samples: int,
    threads: int,
    comm: Comm | None,
    callback: Callable[[SurveyProgress], None] | None,
    stop: Callable[[], bool] | None,
    weights: Sequence[float] | None = None,
) -> bool:
    """Compute the shots that are missing in a file and write them; return False if `stop` has ended that early."""
    ranks: Any = comm or SerialComm()
    speeds = Speeds(ranks.size, weights)
    writer = _Writer(survey, path, samples, callback, speeds) if ranks.rank == 0 else None
    problem = ranks.bcast(None if writer is None else writer.opened())
    if problem is not None:
        raise problem
    while any(shares := ranks.bcast(None if writer is None else writer.shares())):
        own = _computed(survey, shares[ranks.rank], samples, threads, stop)
        every = ranks.gather(own)
        failed, ends = ranks.bcast(None if writer is None else writer.take(every or []))
        if failed is not None:
            raise failed
        if ends:
            return False
    failed = ranks.bcast(None if writer is None else writer.finish())
    if failed is not None:
        raise failed
    return True


@dataclass(slots=True)
class _Computed:
    """Result of a rank in a round."""

    traces: list[tuple[int, Any]] = field(default_factory=list)
    error: MingaError | None = None
    seconds: float = 0.0
    asked: bool = False


def _computed(
    survey: Survey, numbers: Sequence[int], samples: int, threads: int, stop: Callable[[], bool] | None
) -> _Computed:
    """Return the traces of some shots: those before an error, or before a request to stop."""
    found, begun = _Computed(), time.monotonic()
    try:
        for number in numbers:
            found.traces.append((number, survey.traces(number, samples, threads=threads)))
            if stop is not None and stop():
                break
    except MingaError as error:
        found.error = error
    found.seconds = time.monotonic() - begun
    found.asked = stop is not None and stop()
    return found


def check_geometry(survey: Survey) -> None:
    """Raise one CaseError that lists all sources and receivers which lie outside the model or on a free surface."""
    lengths = check_shape(list(survey.shape))
    domain = domain_of(lengths, check_spacing(survey.spacing, len(lengths)), faces_of(survey.boundary, len(lengths)))
    found: list[str] = []
    first: CaseError | None = None
    for number, shot in enumerate(survey.shots):
        checks = list(_checks(survey, shot, domain))
        if all(len(point) == len(lengths) for point, _ in checks):
            doubts = doubtful(np.array([point for point, _ in checks], np.float64).reshape(-1, len(lengths)), domain)
            checks = [each for each, doubt in zip(checks, doubts, strict=True) if doubt]
        for _, check in checks:
            try:
                check()
            except CaseError as error:
                first = first or error
                found.append(f"shot {survey.name(number)}: {error.message}")
    if first is not None:
        more = f"\n  and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise CaseError(
            f"{len(found)} {'position is' if len(found) == 1 else 'positions are'} wrong\n  "
            + "\n  ".join(found[:_NAMED])
            + more,
            key="survey",
            remedy=first.remedy,
        )


def _checks(survey: Survey, shot: Shot, domain: Domain) -> Iterator[tuple[Sequence[float], Callable[[], object]]]:
    """Yield the points of a shot, and functions that raise CaseError if they are wrong."""
    find = check_point if survey.elastic else place
    faces = faces_of(survey.boundary, len(domain.shape))
    for number, source in enumerate(shot.sources):
        if isinstance(source, PlaneSource):
            continue
        point = domain.middle if source.position is None else source.position
        if survey.elastic:
            yield point, partial(position_of, source, domain, faces, number)
        elif isinstance(source, PointSource) and source.direction is not None:  # it needs cells farther away
            yield (math.nan,) * len(point), partial(source.placed, domain)
        else:
            yield point, partial(place, point, domain, source.interpolation, "source")
    interpolation = shot.receivers.interpolation
    if survey.elastic or "p" in shot.record:
        for point in shot.receivers.positions:
            yield point, partial(find, point, domain, interpolation, "receiver")
        return
    across = [domain.axes.index(name[1]) for name in shot.record if name[1:] and name[1] in domain.axes]
    for point in shot.receivers.positions:  # the derivative across a free surface is not 0 on it
        for axis in across:
            yield (math.nan,) * len(point), partial(place, point, domain, interpolation, "receiver", axis)


def _check_shot(survey: Survey, number: int) -> None:
    """Raise CaseError for a shot that cannot be computed, whose positions are inside the model."""
    waves, shot = survey.of(number)
    try:
        waves.stepping(shot.sources)
        check_waves(waves, shot)
        velocities = not survey.elastic and survey.quantities != ("p",)  # not in all media, nor at all points
        if velocities or any(waves.domain.periodic):  # near such ends points have too few cells around them
            waves.sensors(shot.receivers, shot.record)
    except CaseError as error:
        error.key = f"shots[{number}]"
        raise


class _Writer:
    """Rank 0's file, whose errors all ranks are told."""

    def __init__(
        self,
        survey: Survey,
        path: Path,
        samples: int,
        callback: Callable[[SurveyProgress], None] | None,
        speeds: Speeds,
    ) -> None:
        self.survey, self.path, self.samples, self.callback = survey, path, samples, callback
        self.file: SegySurvey | None = None
        self.begun, self.done = time.monotonic(), 0
        self.costs = [survey.cost(number) for number in range(len(survey.shots))]
        self.missing: set[int] = set()
        self.speeds = speeds

    def opened(self) -> MingaError | None:
        """Open the file after trying all shots, so that none is refused later; return an error."""
        survey = self.survey
        try:
            check_geometry(survey)
            for number in range(len(survey.shots)):
                _check_shot(survey, number)
                headers_of(survey, number)
            check_samples(survey, self.samples)
            interval = survey.step * survey.shots[0].receivers.every
            text = ["SURVEY BY MINGA", "COORDINATES IN METRES, SCALED BY 100", *about_quantities(survey)]
            counts = [shot.traces for shot in survey.shots]
            self.file = SegySurvey(self.path, counts, self.samples, interval, _described(survey, self.samples), text)
        except MingaError as error:
            return error
        self.missing = {number for number in range(len(survey.shots)) if number not in self.file.finished}
        return None

    def shares(self) -> list[list[int]]:
        """Return the shots that each rank computes next."""
        assert self.file is not None
        left = {number: self.costs[number] for number in self.missing - self.file.finished}
        return shared_out(left, self.speeds.each())

    def take(self, every: Sequence[_Computed]) -> tuple[MingaError | None, bool]:
        """Write what ranks have computed; return the first error, and whether to stop before shots that are left."""
        assert self.file is not None
        failed: MingaError | None = None
        try:
            for rank, own in enumerate(every):
                failed = failed or own.error  # the shots of other ranks are kept
                for number, traces in own.traces:
                    self.file.write(number, traces.T, headers_of(self.survey, number))
                    self.done += 1
                self.speeds.measured(rank, sum(self.costs[number] for number, _ in own.traces), own.seconds)
        except MingaError as error:
            failed = error
        if failed is None and self.callback is not None and self.done:
            self.callback(self._progress())
        return failed, any(own.asked for own in every) and bool(self.missing - self.file.finished)

    def _progress(self) -> SurveyProgress:
        assert self.file is not None
        computed = sum(self.costs[number] for number in self.missing & self.file.finished)
        left = sum(self.costs[number] for number in self.missing - self.file.finished)
        seconds = time.monotonic() - self.begun
        steps = (self.survey.first + self.samples - 1) * self.survey.shots[0].receivers.every
        shots = len(self.survey.shots)
        return SurveyProgress(len(self.file.finished), shots, seconds / computed * left, seconds, computed * steps)

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

    def of(value: Any) -> str:
        """Digest of a quantity, whose function counts by its values."""
        if not callable(value):
            return digest(value)
        return digest([digest(np.asarray(value(box))) for box in slabs(check_shape(list(survey.shape)))])

    return {
        "samples": samples,
        "medium": {entry.name: of(getattr(survey.medium, entry.name)) for entry in fields(survey.medium)},
        "survey": {
            entry.name: repr(getattr(survey, entry.name))
            for entry in fields(survey)
            if entry.init and entry.name not in ("medium", "shots", "attenuation")
        },
        "attenuation": None
        if survey.attenuation is None
        else [of(getattr(survey.attenuation, entry.name)) for entry in fields(survey.attenuation)],
        "kind": type(survey.medium).__name__,
        "shots": [digest([*shot.sources, shot.receivers, list(shot.record)]) for shot in survey.shots],
    }
