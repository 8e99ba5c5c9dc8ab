"""Pictures of a survey that is complete: its geometry over the model, its first gather, and the spectrum of that."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np

from minga.models.waves.domain import axes_of, check_spacing
from minga.models.waves.medium import Sampler
from minga.models.waves.survey_case import SurveyCase
from minga.output.segy import SegyFile
from minga.space.box import Box
from minga.view.survey import Gain, draw_gather, draw_geometry, draw_spectrum

__all__ = ["pictures"]


def pictures(found: SurveyCase, file: Path, name: str, gain: str) -> tuple[bytes, bytes, bytes]:
    """Return PNG pictures of the geometry, of the gather in the middle of the survey, and of its spectrum."""
    survey = found.survey
    number = len(survey.shots) // 2
    first = sum(shot.traces for shot in survey.shots[:number])
    traces = SegyFile.open(file).traces(slice(first, first + len(survey.shots[number].receivers.positions))).T
    seconds = survey.delay + found.interval * np.arange(len(traces))
    record = number + 1 if survey.records is None else survey.records[number]
    title = f"{name}, shot {record}" + (f", {survey.quantities[0]}" if survey.elastic else "")
    gather = draw_gather(traces, seconds, f"{title}, gain: {gain}", cast(Gain, gain))
    return _geometry(found, name), gather, draw_spectrum(traces, found.interval, f"{title}, mean spectrum")


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
