"""Inversions of elastic waves: Gauss-Newton, its Hessian, and stages of frequencies keep what shots record."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from minga.models.waves import (
    Faces,
    Free,
    Inversion,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    band_limited,
    linearised_shots,
    run_in_bands,
    shot_traces,
)
from minga.models.waves.born_normal import shot_normal
from minga.models.waves.elastic import ElasticMedium, Force, prepare_elastic
from minga.models.waves.elastic.waves import ElasticWaves

SHAPE = (12, 18)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
BODY = np.exp(-((Z - 6) ** 2 + (X - 9) ** 2) / 8)
START = {"vp": 2000 + 10 * Z, "vs": 1000 + 6 * Z}
TRUE = {"vp": START["vp"] + 150 * BODY, "vs": START["vs"] - 80 * BODY}
SPREAD = Receivers([(0.0, 10.0 * column) for column in range(2, 17, 3)], every=2)
RECORDS = [("vz",), ("vz", "vx")]


def waves_of(values: Any, shot: Shot) -> ElasticWaves:
    boundary = Faces(Sponge(4), z=(Free(), Sponge(4)))
    medium = ElasticMedium(values["vp"], values["vs"], 2000.0)
    return prepare_elastic(SHAPE, 10.0, dt=1e-3, medium=medium, boundary=boundary, dtype="f8")


@functools.cache
def shots(record: tuple[str, ...]) -> tuple[Shot, ...]:
    found = []
    for column in (4.0, 14.0):
        source = Force((0.0, 10.0 * column), (1.0, 0.0), Ricker(20.0, amplitude=1e6))
        shot = Shot([source], SPREAD, record=record)
        found.append(Shot([source], SPREAD, shot_traces(waves_of(TRUE, shot), shot, 100), record))
    return tuple(found)


@pytest.mark.parametrize("record", RECORDS)
def test_filtered_shots_record_the_same_quantities(record: tuple[str, ...]) -> None:
    source = Force((0.0, 40.0), (1.0, 0.0), Ricker(20.0))
    data = np.random.default_rng(3).standard_normal((100, 5 * len(record)))
    band = band_limited(Shot([source], SPREAD, data, record), 1e-3, 25.0)
    assert tuple(band.record) == record
    assert band.data is not None
    assert band.data.shape == (100, 5 * len(record))


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDS)
def test_stages_of_frequencies_fit_velocities_of_the_ground(record: tuple[str, ...]) -> None:
    inversion = Inversion(shots(record), waves_of, ("vp", "vs"), mask=(Z > 2).astype(float))
    first, second = run_in_bands(inversion, START, [(25.0, 2), (60.0, 2)])
    for stage in (first, second):
        assert stage.iteration == 2
        assert stage.misfits[2] < stage.misfits[1] < stage.misfits[0]


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDS)
def test_the_hessian_is_the_product_of_the_derivative_and_its_transpose(record: tuple[str, ...]) -> None:
    shot = Shot(shots(record)[0].sources, SPREAD, np.zeros((20, 5 * len(record))), record)
    jacobian = linearised_shots([waves_of(START, shot)], [shot], ("vp", "vs"))
    change = np.random.default_rng(3).standard_normal(jacobian.shape[1])
    product, squares = shot_normal(waves_of(START, shot), shot, change, ("vp", "vs"))
    traces = jacobian.matvec(change)
    expected = jacobian.rmatvec(traces)
    assert np.linalg.norm(product - expected) < 1e-12 * np.linalg.norm(expected) != 0
    assert squares == pytest.approx(float(traces @ traces), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDS)
def test_gauss_newton_fits_velocities_of_the_ground(record: tuple[str, ...]) -> None:
    mask = (Z > 2).astype(float)
    inversion = Inversion(shots(record), waves_of, ("vp", "vs"), mask=mask, method="gauss-newton", inner=5)
    found = inversion.run(START, 2)
    assert found.misfits[2] < 0.2 * found.misfits[0]
    for name, values in found.values.items():
        assert np.array_equal(values[:3], START[name][:3])
        assert (values != START[name])[3:].any()
    assert float((found.values["vs"] - START["vs"])[Z > 2] @ BODY[Z > 2]) < 0
