"""Elastic waves advanced from any state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

import minga as mg
from minga.models.waves.elastic import ElasticWaves, elastic_stepping
from minga.models.waves.stepping import Stepping


@contextmanager
def started(waves: ElasticWaves, state: Mapping[str, np.ndarray]) -> Iterator[tuple[mg.Engine, Stepping]]:
    """An engine with waves without sources, in some state at the start."""
    stepping = elastic_stepping(waves, [])
    with mg.Engine({waves.grid: mg.Layout.single(waves.grid.box, 1)}) as engine:
        restart(engine, stepping, state)
        yield engine, stepping


def restart(engine: mg.Engine, stepping: Stepping, state: Mapping[str, np.ndarray]) -> None:
    for field in stepping.fields:
        engine.set(field, state.get(field.name, stepping.initial.get(field.name, 0.0)))
    engine.write(mg.STEP, 0)


def random_state(waves: ElasticWaves, seed: int = 1) -> dict[str, np.ndarray]:
    """Random velocities and stresses of about equal energy."""
    rng = np.random.default_rng(seed)
    return {f.name: rng.standard_normal(waves.grid.shape) * (1.0 if f.name[0] == "v" else 1e7) for f in waves.fields}


def gathered(engine: mg.Engine, waves: ElasticWaves, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    return {f.name: np.array(engine.gather(f)) for f in waves.fields if not names or f.name in names}
