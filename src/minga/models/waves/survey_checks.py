"""Checks of a survey's parameters, and of how its samples hold the waves of its sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.errors import CaseError
from minga.models.waves.boundary import Cpml, Random, Sponge, faces_of
from minga.models.waves.domain import is_number
from minga.models.waves.preflight import FEWEST, aliased, too_coarse
from minga.models.waves.shot import AnyWaves, Shot
from minga.models.waves.wavelets import Signal

if TYPE_CHECKING:
    from minga.models.waves.survey import Survey

__all__ = ["check_parameters", "check_samples", "check_waves", "refuse_aliased"]

_LARGEST: Final = 2**31 - 1
_MOST_MILLISECONDS: Final = 32767


def check_parameters(survey: Survey) -> None:
    """Raise CaseError for a survey without shots, for shots that do not go together, and for invalid numbers.

    Parameters
    ----------
    survey
        The survey.
    """
    _check_shots(survey.shots)
    _check_aperture(survey)
    _check_records(survey)
    for number, shot in enumerate(survey.shots):
        _check_shot(shot, f"shot {survey.name(number)}")
    if len({tuple(shot.record) for shot in survey.shots}) > 1:
        raise CaseError("shots record different quantities", key="shots", remedy="give all of them one record=")
    if len({shot.receivers.every for shot in survey.shots}) > 1:
        raise CaseError(
            "shots have samples at different intervals", key="shots", remedy="give all receivers one every="
        )
    if not _whole(survey.first) or survey.first < 0:
        raise CaseError(f"first is {survey.first!r}", key="first", remedy="give the number of samples to leave out")
    delay = survey.delay * 1e3 if is_number(survey.delay) else math.nan
    if not abs(delay) <= _MOST_MILLISECONDS or abs(delay - round(delay)) > 1e-3:
        raise CaseError(
            f"the delay is {survey.delay!r} s: SEG-Y has whole milliseconds, {_MOST_MILLISECONDS} at most",
            key="delay",
            remedy="give a multiple of 0.001",
        )


def _check_shots(shots: Any) -> None:
    if isinstance(shots, str) or not isinstance(shots, Sequence) or not all(isinstance(each, Shot) for each in shots):
        raise CaseError("the shots of a survey are no list of Shot()", key="shots", remedy="give [Shot(...), ...]")
    if not shots:
        raise CaseError("a survey without shots", key="shots", remedy="give at least one")


def _check_shot(shot: Shot, name: str) -> None:
    for what, given in (("receivers", shot.receivers.positions), ("sources", shot.sources)):
        if not len(given):
            raise CaseError(f"{name} has no {what}", key="shots", remedy="give each shot one or more")


def _check_aperture(survey: Survey) -> None:
    aperture = survey.aperture
    if aperture is None:
        return
    if not is_number(aperture) or not aperture >= 0:
        raise CaseError(f"the aperture is {aperture!r}", key="survey.aperture", remedy="give metres, or None")
    sides = faces_of(survey.boundary, len(survey.shape))[1:]
    if not all(isinstance(face, Sponge | Cpml | Random) for pair in sides for face in pair):
        raise CaseError(
            "an aperture with a boundary at the sides that has no layers: it would stand where grids are cut",
            key="survey.aperture",
            remedy="choose sponges or matched layers at the sides, or leave the aperture out",
        )


def _check_records(survey: Survey) -> None:
    """Check the numbers of shots and of source points."""
    for name, given in (("records", survey.records), ("points", survey.points)):
        if given is not None and len(given) != len(survey.shots):
            raise CaseError(
                f"{len(given)} {name} for {len(survey.shots)} shots", key=name, remedy="give a number for each shot"
            )
    records: list[Any] = [] if survey.records is None else list(survey.records)
    wrong = [each for each in records if not _whole(each) or not 0 < each <= _LARGEST]
    if wrong:
        raise CaseError(
            f"{wrong[0]!r} is no number of a shot", key="records", remedy=f"give whole numbers from 1 to {_LARGEST:,}"
        )
    twice = [each for each in records if records.count(each) > 1] if len(set(records)) < len(records) else []
    if twice:
        raise CaseError(
            f"several shots have the number {twice[0]}", key="records", remedy="give each shot a number of its own"
        )
    points: list[Any] = [] if survey.points is None else list(survey.points)
    odd = [each for each in points if not is_number(each) or not abs(each) * 100 <= _LARGEST]
    if odd:
        raise CaseError(f"{odd[0]!r} is no number of a source point", key="points", remedy="give numbers up to 2e7")


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_samples(survey: Survey, samples: object) -> None:
    """Raise CaseError for an invalid number of samples, and intervals that files or the wavelets do not allow.

    Parameters
    ----------
    survey
        The survey.
    samples
        Number of samples of each trace.
    """
    if not _whole(samples):
        raise CaseError(f"{samples!r} samples", key="samples", remedy="give a whole number, 1 or more")
    every = survey.shots[0].receivers.every
    micro = survey.step * every * 1e6
    if abs(micro - round(micro)) > 1e-3:
        raise CaseError(
            f"samples every {micro:.10g} microseconds: SEG-Y has whole ones, with which times would be wrong",
            key="dt",
            remedy=f"give dt={math.floor(micro / every) / 1e6:g}, or another step with a multiple of a microsecond",
        )
    for number, shot in enumerate(survey.shots):
        for source in shot.sources:
            try:
                refuse_aliased(source.wavelet, survey.step * every)
            except CaseError as error:
                error.message = f"shot {survey.name(number)}: {error.message}"
                raise


def check_waves(waves: AnyWaves, shot: Shot) -> None:
    """Raise CaseError if the cells cannot represent the waves of a shot.

    Parameters
    ----------
    waves
        Waves on the grid of the shot.
    shot
        The shot.
    """
    peak = max((source.wavelet.peak or 0.0 for source in shot.sources), default=0.0)
    points = waves.slowest / (peak * max(waves.domain.spacing)) if peak else FEWEST
    if points < FEWEST:
        what, _, remedy = too_coarse(points).partition(": ")
        raise CaseError(f"the cells are too coarse for its wavelet: {what}", key="shots", remedy=remedy)


def refuse_aliased(wavelet: Signal, interval: float, key: str = "dt") -> None:
    """Raise CaseError if samples hold other waves than those of a wavelet.

    Parameters
    ----------
    wavelet
        The wavelet.
    interval
        Seconds between samples.
    key
        Where the interval was given.
    """
    text = aliased(wavelet.peak, interval)
    if text:
        what, _, remedy = text.partition(": ")
        raise CaseError(what, key=key, remedy=remedy)
