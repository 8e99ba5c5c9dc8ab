"""Two shots over an anomaly in 60 x 60 cells: order 4, zeros beyond the ends, of which there are published numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from minga.models.waves import Medium, PointSource, Receivers, Release, Ricker, Shot, prepare, shot_traces
from minga.models.waves.waves import Waves

I, J = np.meshgrid(np.arange(60.0), np.arange(60.0), indexing="ij")
START: Final = 2000 + 8 * I
TRUE: Final = START + 200 * np.exp(-((I - 32) ** 2 + (J - 28) ** 2) / 50)
SPREAD: Final = Receivers([(10.0 * row, 10.0 * column) for row in (6, 55) for column in range(2, 58, 5)])


def waves_in(vp: np.ndarray) -> Waves:
    return prepare((60, 60), 10.0, dt=1e-3, medium=Medium(vp), order=4, boundary=Release(), dtype="f8")


def waves_of(values: Any, shot: Shot) -> Waves:
    return waves_in(values["vp"])


def recorded() -> list[Shot]:
    """The shots with their data."""
    found = []
    for column in (15, 45):
        shot = Shot([PointSource((40.0, 10.0 * column), Ricker(15.0, 0.08))], SPREAD)
        found.append(Shot(shot.sources, SPREAD, shot_traces(waves_in(TRUE), shot, 401)))
    return found
