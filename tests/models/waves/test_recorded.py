"""Registers of samples: native code, Python, any number of ranks and tables of shots have the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import Medium, PointSource, Receivers, Ricker, Sponge, fletcher
from minga.models.waves.boundary import domain_of, faces_of
from minga.models.waves.elastic import ElasticMedium, Explosion, elastic, prepare_elastic
from minga.models.waves.receivers import Taps
from minga.models.waves.recorded import record_sensors
from minga.models.waves.sensors import Recorded, Sensors
from minga.models.waves.shot import Shot, shot_traces
from minga.space.cuts import parse_layout

DOMAIN = domain_of((11, 14), (10.0, 10.0), faces_of(Sponge(3), 2))
GRID = mg.Grid(DOMAIN.cells, axes=("z", "x"))
POINTS = [(20.0, 30.0), (55.0, 61.0), (100.0, 130.0), (43.7, 90.0)]


def samples(ranks: int = 1, *, native: bool = True) -> list[float]:
    u, v = mg.Field("u", GRID, "f4"), mg.Field("v", GRID, "f8")
    taps = {item: Taps.of(Receivers(POINTS).placed(DOMAIN)) for item in (u, v)}
    program = mg.Program("sample")
    registers = record_sensors(
        program, Sensors((Recorded("p", (u, v), -3.0), Recorded("v", (v,))), taps), ["receivers.p", "receivers.v"]
    )

    def run(comm: Any) -> list[float]:
        layout = parse_layout("slabs", GRID.box, comm.size)
        with mg.Engine({GRID: layout}, comm=comm, native=native and comm.size == 1) as engine:
            for item, factor in ((u, 1.0), (v, 0.3)):
                engine.set(
                    item, lambda box, f=factor: np.sin(f * np.arange(GRID.size).reshape(GRID.shape))[box.slices((0, 0))]
                )
            engine.run(program, 3)
            return [engine.read(register) for register in registers]

    first, *others = mg.run_virtual(ranks, run)
    assert all(other == first for other in others)
    return first


def test_native_code_has_the_bits_of_python(in_python: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = samples()
    assert in_python == ["receivers"] * 3
    monkeypatch.undo()
    found = samples()
    assert len(set(found)) == 8
    assert found == expected
    assert samples(native=False) == expected


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_have_the_same_bits(ranks: int) -> None:
    assert samples(ranks) == samples()


def test_observables_of_elastic_waves_are_the_traces_of_shots() -> None:
    medium = ElasticMedium(2000.0, 1100.0, 2200.0)
    sources, receivers = [Explosion((60.0, 90.0), Ricker(20.0))], Receivers(POINTS)
    model = elastic(
        (14, 18),
        10.0,
        dt=1e-3,
        medium=medium,
        boundary=Sponge(4),
        sources=sources,
        receivers=receivers,
        record=("vz", "p"),
    )
    waves = prepare_elastic((14, 18), 10.0, dt=1e-3, medium=medium, boundary=Sponge(4))
    traces = shot_traces(waves, Shot(sources, receivers, record=("vz", "p")), 41)
    found = mg.run(model, steps=40, observe=1)
    assert np.array_equal(found.receivers, traces)
    assert np.abs(traces[-1]).min() > 0


def test_velocities_are_integrated_in_the_loop(in_python: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model = fletcher(
        (14, 18), 10.0, dt=1e-3, medium=Medium(2000.0, 0.2, 0.1, theta=0.4), boundary=Sponge(4),
        sources=[PointSource((60.0, 90.0), Ricker(20.0))], receivers=Receivers(POINTS), record=("vx", "p"),
    )  # fmt: skip
    expected = mg.run(model, steps=20, observe=1)
    assert "receivers" in in_python
    monkeypatch.undo()
    found = mg.run(model, steps=20, observe=1)
    assert np.array_equal(found.receivers, expected.receivers)
    assert np.abs(found.receivers[-1]).min() > 0
