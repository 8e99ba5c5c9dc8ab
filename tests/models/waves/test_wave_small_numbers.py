"""No field of a step in f4 holds denormal numbers, wherever waves have hardly arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import Attenuation, Cpml, Medium, PointSource, Ricker, Sponge, fletcher
from minga.models.waves.elastic import ElasticMedium, Explosion, elastic

SHAPE = (60, 64)


def acoustic(medium: Medium, **settings: Any) -> mg.Model:
    return fletcher(SHAPE, 10.0, dt=1e-3, medium=medium, sources=[PointSource((50.0, 60.0), Ricker(25.0))], **settings)


def rock(**settings: Any) -> mg.Model:
    medium = ElasticMedium(vp=2500.0, vs=1300.0, rho=2000.0)
    source = Explosion((50.0, 60.0), Ricker(25.0, amplitude=1e6))
    return elastic(SHAPE, 10.0, dt=1e-3, medium=medium, sources=[source], **settings)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(lambda: acoustic(Medium(2000.0), boundary=Sponge(8)), id="sponge"),
        pytest.param(lambda: acoustic(Medium(2000.0, 0.2, 0.1, 0.4), boundary=Sponge(8)), id="tilted"),
        pytest.param(lambda: acoustic(Medium(2000.0), boundary=Cpml(8)), id="layers", marks=pytest.mark.slow),
        pytest.param(
            lambda: acoustic(Medium(2000.0), boundary=Cpml(8), attenuation=Attenuation(40.0)), id="attenuation",
            marks=pytest.mark.slow,
        ),
        pytest.param(lambda: rock(boundary=Cpml(8)), id="elastic", marks=pytest.mark.slow),
        pytest.param(
            lambda: rock(boundary=Sponge(8), attenuation=Attenuation(40.0, qs=20.0)), id="elastic attenuation",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_no_number_is_denormal(model: Any) -> None:
    made = model()
    with mg.Engine(made.layouts("single", 1)) as engine:
        for item in made.fields:
            engine.set(item, made.initial.get(item.name, 0.0))
        engine.run(made.step, times=40)
        for item in made.fields:
            values = engine.gather(item)
            assert values is not None
            small = np.abs(values[values != 0.0])
            assert not small.size or small.min() >= np.finfo(np.float32).tiny, item.name
