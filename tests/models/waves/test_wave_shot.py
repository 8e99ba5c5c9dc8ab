"""Shots: what cannot be computed is refused before anything is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from minga.errors import CaseError, MingaError
from minga.models.waves import (
    Attenuation,
    Medium,
    Ormsby,
    PlaneSource,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    Survey,
    Wavelet,
    prepare,
    shot_born,
    shot_gradient,
    shot_snapshots,
    shot_traces,
)

SPREAD = Receivers([(40.0, 60.0), (40.0, 90.0)])
SOURCES = [PointSource((50.0, 60.0), Ricker(20.0))]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Shot(PointSource(), SPREAD), "sources of a shot"),  # type: ignore[arg-type]
        (lambda: Shot("abc", SPREAD), "sources of a shot"),
        (lambda: Shot(SOURCES, SPREAD, record="p"), "a shot records 'p'"),
        (lambda: Shot(SOURCES, SPREAD, record=5), "a shot records 5"),  # type: ignore[arg-type]
        (lambda: Shot(SOURCES, SPREAD, record=()), "a shot records"),
        (lambda: Shot(SOURCES, SPREAD, "data"), "real numbers"),  # type: ignore[arg-type]
        (lambda: Shot(SOURCES, SPREAD, [[1.0], [1.0, 2.0]]), "real numbers"),  # type: ignore[arg-type]
        (lambda: Shot(SOURCES, SPREAD, np.ones((3, 2), complex)), "real numbers"),
        (lambda: PointSource((50.0, 60.0), 5), "wavelet of a source is 5"),  # type: ignore[arg-type]
        (lambda: PlaneSource(5, 10.0), "along the axis 5"),  # type: ignore[arg-type]
        (lambda: PlaneSource("z", "a"), "plane source at 'a'"),  # type: ignore[arg-type]
        (lambda: PlaneSource("z", float("nan")), "plane source at nan"),
        (lambda: Wavelet([1.0], frequency="a"), "frequency of a wavelet is 'a'"),  # type: ignore[arg-type]
        (lambda: Wavelet([1.0], frequency=-1.0), "frequency of a wavelet is -1.0"),
        (lambda: Ricker(True), "frequency is True"),
        (lambda: Ormsby((5, 10, 40, 30)), "corner frequencies"),
    ],
)  # fmt: skip
def test_what_is_no_shot_is_refused(make: Any, said: str) -> None:
    with pytest.raises(CaseError, match=said) as error:
        make()
    assert error.value.remedy


def test_corner_frequencies_may_be_an_array() -> None:
    found = Ormsby(np.array([5, 10, 40, 60]))  # type: ignore[arg-type]
    assert found == Ormsby((5.0, 10.0, 40.0, 60.0))
    assert hash(found)


@pytest.mark.parametrize("samples", ["10", -3, 1.5, 0])
def test_wrong_numbers_of_samples_are_refused(samples: Any) -> None:
    waves = prepare((16, 20), 10.0, dt=1e-3, medium=Medium(2000.0), boundary=Sponge(4))
    with pytest.raises(CaseError, match="samples"):
        shot_traces(waves, Shot(SOURCES, SPREAD), samples)


def test_dipoles_where_the_density_varies_are_refused() -> None:
    medium = Medium(2000.0, rho=np.linspace(1000.0, 2000.0, 320).reshape(16, 20))
    waves = prepare((16, 20), 10.0, dt=1e-3, medium=medium, boundary=Sponge(4))
    dipole = PointSource((50.0, 60.0), Ricker(20.0), direction=(1.0, 0.0))
    with pytest.raises(CaseError, match="a dipole where the density varies"):
        shot_traces(waves, Shot([dipole], SPREAD), 10)


def test_surveys_have_attenuation(tmp_path: Any) -> None:
    """On parts of the model: the traces are those of waves that are prepared with the part of Q."""
    q = np.linspace(20.0, 80.0, 16 * 60).reshape(16, 60)
    attenuation = Attenuation(q, (5.0, 60.0))
    shots = [
        Shot([PointSource((50.0, x), Ricker(20.0))], Receivers([(40.0, x - 30.0), (40.0, x + 50.0)]))
        for x in (100.0, 400.0)
    ]
    survey = Survey((16, 60), 10.0, 1e-3, Medium(2000.0), shots, Sponge(4), aperture=60.0, attenuation=attenuation)
    found = survey.traces(1, 80)
    low, high = 31, 52
    part = Attenuation(q[:, low:high], (5.0, 60.0))
    waves = prepare((16, high - low), 10.0, dt=1e-3, medium=Medium(2000.0), boundary=Sponge(4), attenuation=part)
    moved = Shot(
        [PointSource((50.0, 400.0 - 10.0 * low), Ricker(20.0))],
        Receivers([(40.0, 370.0 - 10.0 * low), (40.0, 450.0 - 10.0 * low)]),
    )
    assert np.array_equal(found, shot_traces(waves, moved, 80))
    plain = Survey((16, 60), 10.0, 1e-3, Medium(2000.0), shots, Sponge(4), aperture=60.0)
    assert not np.array_equal(found, plain.traces(1, 80))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda waves, shot: shot_traces(5, shot, 10), "the waves are 5"),  # type: ignore[arg-type]
        (lambda waves, shot: shot_traces(waves, 5, 10), "a shot is 5"),  # type: ignore[arg-type]
        (lambda waves, shot: shot_gradient(waves, 5), "a shot is 5"),  # type: ignore[arg-type]
        (lambda waves, shot: shot_gradient(waves, shot, memory="1G"), "memory of '1G'"),
        (lambda waves, shot: shot_born(waves, shot, 5, 10), "the changes are 5"),
        (lambda waves, shot: shot_born(waves, shot, {}, 10), "the changes are {}"),
        (lambda waves, shot: shot_born(waves, shot, {"vp": "a"}, 10), "not an array of real numbers"),
        (lambda waves, shot: shot_born(waves, shot, {"vp": np.ones((16, 20), complex)}, 10), "real numbers"),
        (lambda waves, shot: shot_snapshots(waves, shot, [10, 5]), "snapshots after"),
        (lambda waves, shot: shot_snapshots(waves, shot, [-1]), "snapshots after"),
        (lambda waves, shot: shot_snapshots(waves, shot, ["a"]), "snapshots after"),
        (lambda waves, shot: shot_snapshots(waves, shot, []), "snapshots after"),
    ],
)  # fmt: skip
def test_wrong_arguments_of_shots_are_refused(call: Any, said: str) -> None:
    waves = prepare((16, 20), 10.0, dt=1e-3, medium=Medium(np.full((16, 20), 2000.0)), boundary=Sponge(4))
    with pytest.raises(MingaError, match=re.escape(said)) as error:
        call(waves, Shot(SOURCES, SPREAD, np.zeros((11, 2))))
    assert error.value.remedy
