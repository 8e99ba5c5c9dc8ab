"""Pictures of a survey that is complete: its geometry, and the gather, spectrum and waves of a shot."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np

from minga.models.waves.domain import axes_of, check_spacing
from minga.models.waves.medium import Sampler
from minga.models.waves.shot import shot_snapshots
from minga.models.waves.survey_case import SurveyCase
from minga.models.waves.survey_cut import part_of
from minga.output.segy import SegyFile
from minga.space.box import Box
from minga.view.survey import Gain, draw_gather, draw_geometry, draw_spectrum, draw_waves

__all__ = ["pictures"]


SHARES = 0.15, 0.35, 0.6
"""Shares of the record at whose ends waves are drawn."""


def pictures(found: SurveyCase, file: Path, name: str, gain: str, threads: int) -> tuple[bytes, bytes, bytes, bytes]:
    """Return PNG pictures of the geometry, and of the shot in the middle: its gather, its spectrum and its waves."""
    survey = found.survey
    number = len(survey.shots) // 2
    first = sum(shot.traces for shot in survey.shots[:number])
    traces = SegyFile.open(file).traces(slice(first, first + len(survey.shots[number].receivers.positions))).T
    seconds = survey.delay + found.interval * np.arange(len(traces))
    record = survey.name(number)
    title = f"{name}, shot {record}" + (f", {survey.quantities[0]}" if survey.quantities != ("p",) else "")
    gather = draw_gather(traces, seconds, f"{title}, gain: {gain}", cast(Gain, gain))
    spectrum = draw_spectrum(traces, found.interval, f"{title}, mean spectrum")
    return _geometry(found, name), gather, spectrum, _waves(found, number, f"{name}, shot {record}", threads)


def _waves(found: SurveyCase, number: int, title: str, threads: int) -> bytes:
    """Return a picture of a shot's waves over its part of the model, on the section along x at its source."""
    survey = found.survey
    waves, shot = survey.of(number)
    total = (survey.first + found.samples - 1) * shot.receivers.every
    steps = sorted({max(1, round(share * total)) for share in SHARES})
    domain = waves.domain
    part = part_of(survey.shots[number], tuple(survey.shape), domain.spacing, survey.aperture)
    low, high = list(part.lo), list(part.hi)
    planes = shot_snapshots(waves, shot, steps, threads=threads)
    if len(low) == 3:
        given = shot.sources[0].position
        place = given if isinstance(given, tuple) else domain.middle
        row = min(domain.shape[1] - 1, max(0, round(float(place[1]) / domain.spacing[1])))
        planes = [plane[:, row] for plane in planes]
        low[1] += row
        high[1] = low[1] + 1
    across = domain.shape[-1] if len(low) > 1 else 1
    shape = domain.shape[0], across
    model = Sampler(survey.medium, tuple(survey.shape), (0,) * len(low)).values("vp", Box(tuple(low), tuple(high)))
    left = part.lo[-1] * domain.spacing[-1]
    ends = (0.0, domain.ends[0]), (left, left + domain.ends[-1]) if len(low) > 1 else (0.0, 1.0)
    times = [survey.delay - survey.first * found.interval + step * waves.dt for step in steps]
    return draw_waves(
        [plane.reshape(shape) for plane in planes], times, model.reshape(shape), ends, ("z", domain.axes[-1]), title
    )


def _geometry(found: SurveyCase, name: str) -> bytes:
    """Return a picture of the section along x at the first source, with all points on it."""
    survey, shape = found.survey, tuple(found.survey.shape)
    axes, widths = axes_of(len(shape)), check_spacing(survey.spacing, len(shape))
    middle = tuple(n // 2 * h for n, h in zip(shape, widths, strict=True))
    shots = np.array([s.position or middle for e in survey.shots for s in e.sources])
    receivers = np.unique(np.array([p for shot in survey.shots for p in shot.receivers.positions]), axis=0)
    low, high = [0] * len(shape), list(shape)
    if len(shape) == 3:
        low[1] = min(shape[1] - 1, max(0, round(float(shots[0, 1]) / widths[1])))
        high[1] = low[1] + 1
    plane = Sampler(survey.medium, shape, (0,) * len(shape)).values("vp", Box(tuple(low), tuple(high)))
    plane = plane.reshape(shape[0], shape[-1] if len(shape) > 1 else 1)
    ends = [(n - 1) * h for n, h in zip(shape, widths, strict=True)]
    columns = [0, -1] if len(shape) > 1 else [0, 0]
    across = ends[-1] if len(shape) > 1 else 1.0
    return draw_geometry(
        plane, (ends[0], across), shots[:, columns], receivers[:, columns], ("z", axes[-1]), f"{name}, geometry"
    )
