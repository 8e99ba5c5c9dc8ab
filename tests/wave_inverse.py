"""A small inversion of two shots, for tests of restarts, errors and inputs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from minga.models.waves import Inversion, Medium, PointSource, Receivers, Ricker, Shot, Sponge, prepare, shot_traces
from minga.models.waves.waves import Waves

SHAPE = (14, 16)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
START = 1900 + 10 * Z
TRUE = START + 80 * np.exp(-((Z - 8) ** 2 + (X - 8) ** 2) / 8)
SPREAD = Receivers([(10.0, 10.0 * column) for column in range(1, 15, 2)])


def waves_of(values: Any, shot: Shot) -> Waves:
    return prepare(SHAPE, 10.0, dt=1e-3, medium=Medium(values["vp"]), order=4, boundary=Sponge(4), dtype="f8")


@functools.cache
def shots() -> tuple[Shot, ...]:
    found = []
    for column in (3.0, 12.0):
        source = PointSource((20.0, 10.0 * column), Ricker(25.0))
        shot = Shot([source], SPREAD)
        found.append(Shot([source], SPREAD, shot_traces(waves_of({"vp": TRUE}, shot), shot, 80)))
    return tuple(found)


def inversion(**options: Any) -> Inversion:
    return Inversion(**({"shots": shots(), "waves": waves_of} | options))
