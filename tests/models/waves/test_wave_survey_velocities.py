"""Particle velocities of acoustic shots: exact values, bits of single runs, gradients, files and wrong inputs."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.errors import CaseError
from minga.models.waves import (
    Faces,
    Free,
    Medium,
    PlaneSource,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    Survey,
    linearised_shots,
    prepare,
    shot_gradient,
    shot_traces,
)
from minga.output.segy import SegyFile
from minga.output.survey_cube import read_cube, write_cube

SHAPE, H, DT, RHO = (14, 17), 10.0, 1e-3, 1200.0
VP = 1900.0 + 9.0 * np.arange(14.0)[:, None] + 4.0 * np.arange(17.0)
POINTS = [(33.0, 52.0), (87.0, 112.0)]
FACES = Faces(Sponge(4), z=(Free(), Sponge(4)))
RECORD = ("vz", "p", "vx")
SOURCE = PointSource((50.0, 83.0), Ricker(25.0))


def waves(factor: Any = 1.0, **medium: Any) -> Any:
    given = Medium(factor * VP, **({"rho": RHO} | medium))
    return prepare(SHAPE, H, dt=DT, medium=given, order=4, boundary=FACES, dtype="f8")


def shot(samples: int = 0, every: int = 3) -> Shot:
    data = 1e-6 * np.random.default_rng(2).standard_normal((samples, 6)) if samples else None
    if data is not None:
        data[:, 2:4] *= 1e3  # p, in Pa, beside velocities, in m/s
    return Shot([SOURCE], Receivers(POINTS, every), data, RECORD)


def test_a_plane_wave_moves_the_ground_by_its_pressure_over_the_impedance() -> None:
    """p = rho c v for the wave downwards, p = -rho c v for that upwards; both half a step apart."""
    speed, dt = 2000.0, 5e-4
    model = prepare((240,), 5.0, dt=dt, medium=Medium(speed, rho=RHO), time_order=4, boundary=Sponge(20), dtype="f8")
    source = PlaneSource("z", 600.0, Ricker(20.0))
    found = shot_traces(model, Shot([source], Receivers([(300.0,), (900.0,)]), record=("p", "vz")), 500)
    late = (np.arange(500) - 0.5) * dt - 300.0 / speed
    dense = np.arange(-4000, 8000) * (dt / 20)
    integral = np.cumsum(Ricker(20.0).at(dense + dt / 40)) * (dt / 20)  # p = c / 2 times the integral of s
    expected = np.interp(late, dense + dt / 20, integral) * speed / 2 / (RHO * speed)
    for column, sign in ((2, -1.0), (3, 1.0)):
        assert np.linalg.norm(found[:, column] - sign * expected) < 3e-3 * np.linalg.norm(expected)


def test_bits_are_those_of_a_single_run_and_of_any_ranks() -> None:
    found = shot_traces(waves(), shot(), 21)
    model = mg.fletcher(
        SHAPE, H, dt=DT, medium=Medium(VP, rho=RHO), order=4, boundary=FACES, dtype="f8", sources=[SOURCE],
        receivers=Receivers(POINTS, 3), record=RECORD,
    )  # fmt: skip
    assert np.abs(found[:, 0]).max() > 0
    assert np.array_equal(found, mg.run(model, 60, observe=3).receivers.values)

    def body(comm: Comm) -> Any:
        return shot_traces(waves(), shot(), 21, comm=comm)

    for each in mg.run_virtual(3, body):
        assert np.array_equal(each, found)


def test_gradients_are_those_of_differences_on_any_ranks_and_with_any_memory() -> None:
    seen = shot(21)
    misfit, slopes = shot_gradient(waves(), seen)
    assert slopes is not None
    change = np.random.default_rng(3).standard_normal(SHAPE)
    eps = 1e-5

    def value(sign: float) -> float:
        traces = shot_traces(waves(1.0 + sign * eps * change / VP), seen, 21)
        return 0.5 * float(np.square(traces - seen.data).sum())

    assert misfit == pytest.approx(value(0.0), rel=1e-12)
    assert (slopes["vp"] * change).sum() == pytest.approx((value(1.0) - value(-1.0)) / (2 * eps), rel=2e-6)
    again = shot_gradient(waves(), seen, memory=0)[1]

    def body(comm: Comm) -> Any:
        return shot_gradient(waves(), seen, comm=comm)[1]

    for other in (again, mg.run_virtual(2, body)[0]):
        assert other is not None
        assert np.array_equal(other["vp"], slopes["vp"])


def test_born_modelling_is_transposed() -> None:
    jacobian = linearised_shots([waves()], [shot(21)], ("vp",))
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert y @ there == pytest.approx(x @ back, rel=1e-12)


def survey(**options: Any) -> Survey:
    shots = [Shot([PointSource((50.0, x), Ricker(25.0))], Receivers(POINTS, 2), record=RECORD) for x in (40.0, 90.0)]
    return Survey(SHAPE, H, DT, Medium(VP, rho=RHO), shots, FACES, **({"order": 4} | options))


def test_files_say_what_traces_are(tmp_path: Path) -> None:
    path = survey().record(tmp_path / "sea.sgy", 21)
    content = path.read_bytes()
    for byte, codes in ((29, (12, 12, 11, 11, 14, 14)), (203, (6, 6, 1, 1, 6, 6))):
        found = [struct.unpack_from(">h", content, 3600 + k * (240 + 4 * 21) + byte - 1)[0] for k in range(12)]
        assert found == [*codes, *codes]
    assert "VZ, P, VX".encode("cp037") in content[:3200]
    assert np.array_equal(SegyFile.open(path).traces(slice(6, 12)), survey().traces(1, 21).T.astype("f4"))
    cube = read_cube(path, RECORD)
    assert cube.units == ("m s-1", "Pa", "m s-1")
    write_cube(tmp_path / "sea.rsf", cube)
    header = (tmp_path / "sea.rsf").read_bytes()[:400].decode(errors="replace")
    assert all(word in header for word in ("n1=21", "n2=2", "n3=2", "n4=3", 'label4="quantity"'))


def test_the_velocity_across_a_free_surface_is_recorded_on_it(tmp_path: Path) -> None:
    surface = [(0.0, 52.0), (0.0, 112.0)]
    shots = [Shot([SOURCE], Receivers(surface, 2), record=("vz",))]
    traces = Survey(SHAPE, H, DT, Medium(VP, rho=RHO), shots, FACES, order=4)
    path = traces.record(tmp_path / "land.sgy", 21)
    assert np.abs(SegyFile.open(path).traces(slice(None))).max() > 0
    along = [Shot([SOURCE], Receivers(surface, 2), record=("vz", "vx"))]
    with pytest.raises(CaseError, match=r"(?s)2 positions are wrong.*on a free surface"):
        Survey(SHAPE, H, DT, Medium(VP, rho=RHO), along, FACES, order=4).record(tmp_path / "no.sgy", 21)


@pytest.mark.parametrize(
    ("medium", "record", "match"),
    [
        (Medium(VP, 0.2 + 1e-5 * VP, 0.1), ("vz",), "where epsilon varies"),
        (Medium(VP), ("vy",), "receivers record"),
        (Medium(VP), ("szz", "p"), "receivers record"),
    ],
)
def test_velocities_that_cannot_be_are_refused(tmp_path: Path, medium: Medium, record: Any, match: str) -> None:
    shots = [Shot([SOURCE], Receivers(POINTS, 2), record=record)]
    with pytest.raises(CaseError, match=match):
        Survey(SHAPE, H, DT, medium, shots, FACES, order=4).record(tmp_path / "no.sgy", 21)
    assert not list(tmp_path.iterdir())
