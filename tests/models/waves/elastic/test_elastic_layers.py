"""Matched layers over many crossings: what is left decays, also where layers end between two points of a component."""

from __future__ import annotations

import numpy as np
import pytest

from minga.errors import RunError
from minga.models.waves import Cpml, Medium, PointSource, Receivers, Ricker, Shot, prepare, shot_traces
from minga.models.waves.elastic import ElasticMedium, Explosion, prepare_elastic


def ends(traces: np.ndarray, count: int) -> list[float]:
    """Return the largest value in each of some equal parts."""
    return [float(np.abs(part).max()) for part in np.array_split(traces, count)]


@pytest.mark.few(1)
@pytest.mark.parametrize("vs", [1200.0, 0.0])
def test_nothing_grows_in_layers_of_elastic_waves(vs: float) -> None:
    """At the high ends, half a cell beyond the last one, a decay below 0 let waves of frequency 0 grow."""
    waves = prepare_elastic(
        (24, 24), 10.0, dt=1.5e-3, medium=ElasticMedium(2000.0, vs, 2000.0), boundary=Cpml(10), dtype="f8"
    )
    shot = Shot([Explosion((100.0, 100.0), Ricker(50.0))], Receivers([(200.0, 150.0)]))
    found = ends(shot_traces(waves, shot, 10000), 5)
    assert found[-1] < 0.3 * found[1] < 0.3 * found[0]


def test_nothing_grows_in_layers_where_the_density_varies() -> None:
    medium = Medium(np.full(34, 2000.0), rho=np.full(34, 1000.0))
    waves = prepare((34,), 10.0, dt=2.5e-3, medium=medium, boundary=Cpml(10), dtype="f8")
    shot = Shot([PointSource((100.0,), Ricker(50.0))], Receivers([(200.0,)]))
    found = ends(shot_traces(waves, shot, 8000), 4)
    assert found[-1] < 0.8 * found[1] < 0.1 * found[0]


def test_traces_that_are_not_finite_are_refused() -> None:
    """Thin layers guide waves, which grow in the matched layers."""
    vp = np.where(np.arange(60) // 3 % 2 == 0, 2000.0, 4500.0)[:, None] + np.zeros((60, 30))
    medium = ElasticMedium(vp, vp / 1.8, np.full_like(vp, 2000.0))
    waves = prepare_elastic((60, 30), 10.0, dt=1e-3, medium=medium, boundary=Cpml(12))
    shot = Shot([Explosion((200.0, 150.0), Ricker(25.0))], Receivers([(500.0, 100.0)]))
    with pytest.raises(RunError, match=r"grown without limit: sample \d+ of 10000 is not finite"):
        shot_traces(waves, shot, 10000)
