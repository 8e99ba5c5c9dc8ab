"""Surveys of elastic waves: components in one file, on any ranks and after interruptions; cases; wrong inputs."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import minga as mg
from minga.cli.toml import dump
from minga.errors import CaseError
from minga.models.waves import (
    Faces,
    Free,
    Medium,
    Periodic,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    Survey,
    shot_traces,
)
from minga.models.waves.cli.survey_reading import facts, read_survey
from minga.models.waves.elastic import ElasticMedium, Explosion, Force, Moment, prepare_elastic
from minga.models.waves.survey_case import SurveyCase
from minga.output.segy import SegyFile
from minga.output.survey_cube import read_cube, write_cube

SHAPE, H, DT, SAMPLES = (16, 50), 10.0, 1e-3, 21
ROWS = np.arange(16.0)[:, None] + 0.0 * np.arange(50.0)
MEDIUM = ElasticMedium(2000.0 + 20.0 * ROWS, lambda box: (1000.0 + 10.0 * ROWS)[box.slices((0, 0))], 2000.0)
ENDS = Faces(Sponge(4), z=(Free(), Sponge(4)))
RECORD = ("vz", "vx", "p")
LINE = Receivers([(20.0, float(x)) for x in range(180, 300, 40)], every=2)


def survey(**options: Any) -> Survey:
    """Blows on the ground, an explosion and a couple of forces over a ground with a free surface."""
    sources: list[Any] = [
        Force((0.0, 200.0), (1.0, 0.0), Ricker(25.0, amplitude=1e6)),
        Explosion((35.0, 240.0), Ricker(25.0, amplitude=1e6)),
        Moment((42.0, 280.0), ((0.0, 1.0), (1.0, 0.0)), Ricker(25.0, amplitude=1e6)),
    ]
    shots = [Shot([source], LINE, record=RECORD) for source in sources]
    settings: dict[str, Any] = {
        "medium": MEDIUM, "shots": shots, "order": 4, "boundary": ENDS, "aperture": 60.0
    }  # fmt: skip
    return Survey(SHAPE, H, DT, **(settings | options))


@functools.cache
def written() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return survey().record(Path(folder) / "a.sgy", SAMPLES).read_bytes()


def test_a_file_of_components(tmp_path: Path) -> None:
    """Kinds and units by the codes of the standard: 12 and 14 for velocities, 11 for pressure; 6 m/s, 1 Pa."""
    path = tmp_path / "land.sgy"
    path.write_bytes(written())
    file = SegyFile.open(path)
    headers = file.headers
    assert (len(file), file.samples, file.interval) == (27, SAMPLES, 2000)
    assert headers["record"].tolist() == [1] * 9 + [2] * 9 + [3] * 9
    assert headers["number"].tolist() == [*range(1, 10)] * 3
    assert headers["kind"].tolist() == [12, 12, 12, 14, 14, 14, 11, 11, 11] * 3
    assert headers["unit"].tolist() == [6, 6, 6, 6, 6, 6, 1, 1, 1] * 3
    assert headers["x"][9:18].tolist() == [18000, 22000, 26000] * 3
    assert headers["offset"][9:18].tolist() == [-60, -20, 20] * 3
    assert headers["source_depth"][::9].tolist() == [0, 3500, 4200]
    text = written()[:3200].decode("cp037")
    assert "ORDER VZ, VX, P " in text
    assert "HALF A STEP, 0.5 MS, BEFORE" in text


def test_shots_are_computed_on_the_cells_around_them() -> None:
    """The same bits as those of waves in the part of the medium, whose entries are an array and a function."""
    found = survey().traces(1, SAMPLES)
    part = slice(12, 33)  # 60 m on either side of 180 m to 260 m
    medium = ElasticMedium(2000.0 + 20.0 * ROWS[:, part], 1000.0 + 10.0 * ROWS[:, part], 2000.0)
    waves = prepare_elastic((16, 21), H, dt=DT, medium=medium, order=4, boundary=ENDS)
    spread = Receivers([(z, x - 120.0) for z, x in LINE.positions], every=2)
    source = Explosion((35.0, 120.0), Ricker(25.0, amplitude=1e6))
    assert np.array_equal(found, shot_traces(waves, Shot([source], spread, record=RECORD), SAMPLES))
    assert np.abs(found).max(axis=0).all()
    file = np.frombuffer(written(), ">f4", offset=3600).reshape(27, 60 + SAMPLES)[9:18, 60:]
    assert np.array_equal(file, found.T.astype("f4"))


@pytest.mark.parametrize("ranks", [3])
def test_ranks_write_the_same_file(tmp_path: Path, ranks: int) -> None:
    path = tmp_path / "land.sgy"
    mg.run_virtual(ranks, lambda comm: survey().record(path, SAMPLES, comm=comm))
    assert path.read_bytes() == written()


def test_an_interrupted_survey_goes_on(tmp_path: Path) -> None:
    path, seen = tmp_path / "land.sgy", list[int]()
    survey().record(path, SAMPLES, callback=lambda progress: seen.append(progress.done), stop=lambda: len(seen) > 0)
    assert not path.exists()
    with pytest.raises(CaseError, match="beginning of another survey"):
        survey(medium=ElasticMedium(2000.0, 1000.0, 2000.0)).record(path, SAMPLES)
    changed = [Shot(shot.sources, LINE, record=("vz", "vx", "szz")) for shot in survey().shots]
    with pytest.raises(CaseError, match="beginning of another survey"):
        survey(shots=changed).record(path, SAMPLES)
    survey().record(path, SAMPLES, callback=lambda progress: seen.append(progress.done))
    assert path.read_bytes() == written()
    assert seen[0] < 3
    assert seen[-1] == 3


def test_arrays_of_components(tmp_path: Path) -> None:
    path = tmp_path / "land.sgy"
    path.write_bytes(written())
    cube = read_cube(path, RECORD)
    assert cube.values.shape == (3, 3, 3, SAMPLES)
    assert cube.units == ("m s-1", "m s-1", "Pa")
    traces = SegyFile.open(path).traces(slice(None))
    assert np.array_equal(cube.values[1, 2], traces[21:24])
    write_cube(tmp_path / "land.zarr", cube)
    store = xarray.open_zarr(tmp_path / "land.zarr")
    assert store["vx"].dims == ("shot", "receiver", "time")
    assert store["vx"].units == "m s-1"
    assert np.array_equal(store["p"].sel(shot=2), traces[15:18])
    write_cube(tmp_path / "land.rsf", cube)
    header = (tmp_path / "land.rsf").read_bytes()[:400].decode(errors="replace")
    assert all(word in header for word in ("n1=21", "n2=3", "n3=3", "n4=3", 'label4="quantity"'))
    with pytest.raises(CaseError, match="traces of vz, vx"):
        read_cube(path, RECORD[:2])


# Cases ---------------------------------------------------------------------------------------------------------------
ELASTIC = {"medium": {"vp": 2000.0, "vs": 1000.0, "rho": 2000.0}, "spacing": 10.0, "order": 4, "dt": 1e-3,
           "record": ["vz", "vx"], "boundary": {"sponge": 4, "z": ["free", "sponge"]}}  # fmt: skip
SAID: dict[str, Any] = {
    "length": 0.04, "interval": 0.002, "wavelet": {"ricker": 20.0, "scale": 1e6}, "aperture": 50.0,
    "force": [1.0, 0.0], "shots": {"first": [0.0, 100.0], "step": [0.0, 50.0], "count": 3},
    "receivers": {"first": [0.0, 120.0], "last": [0.0, 180.0], "count": 4},
}  # fmt: skip


def case(folder: Path, elastic: Any = None, **said: Any) -> SurveyCase:
    table = {"model": "elastic", "grid": {"shape": [20, 40]}, "elastic": ELASTIC | (elastic or {})}
    kept = {name: value for name, value in (SAID | said).items() if value is not None}
    (folder / "land.toml").write_text(dump(table | {"survey": kept}))
    return read_survey(str(folder / "land.toml"), ())[1]


def test_a_case_is_the_survey_of_its_tables(tmp_path: Path) -> None:
    found = case(tmp_path)
    said = dict(facts(found, tmp_path / "land.sgy"))
    assert said["shots"] == "3 with 4 receivers of vz, vx, 24 traces"
    assert "points per wavelength at 20 Hz" in said["slowest waves"]
    (source,) = found.survey.shots[1].sources
    assert source == Force((0.0, 150.0), (1.0, 0.0), Ricker(20.0, amplitude=1e6))
    assert found.survey.quantities == ("vz", "vx")
    content = found.survey.record(tmp_path / "land.sgy", found.samples).read_bytes()
    assert len(content) == 3600 + 24 * (240 + 4 * 21)
    again = Survey(
        (20, 40), 10.0, 1e-3, ElasticMedium(2000.0, 1000.0, 2000.0), found.survey.shots,
        Faces(Sponge(4), z=(Free(), Sponge(4))), 50.0, order=4,
    )  # fmt: skip
    assert again.record(tmp_path / "again.sgy", 21).read_bytes() == content


def test_explosions_and_moments_of_cases(tmp_path: Path) -> None:
    below = {"first": [30.0, 100.0], "step": [0.0, 50.0], "count": 3}
    (one,) = case(tmp_path, force=None, shots=below).survey.shots[0].sources
    assert isinstance(one, Explosion)
    (one,) = case(tmp_path, force=None, moment=[[0.0, 1.0], [1.0, 0.0]], shots=below).survey.shots[0].sources
    assert isinstance(one, Moment)
    (tmp_path / "s.csv").write_text("shot,z,x\n7,0,100\n9,0,150\n")
    (tmp_path / "r.csv").write_text("shot,z,x\n*,0,120\n")
    tables = {"shots": "s.csv", "receivers": "r.csv"}
    found = case(tmp_path, shots=None, receivers=None, tables=tables).survey
    assert found.records == [7, 9]
    assert all(isinstance(shot.sources[0], Force) and shot.record == ("vz", "vx") for shot in found.shots)


@pytest.mark.parametrize(
    ("elastic", "said", "text"),
    [
        ({}, {"force": None}, "shot 1: source 0, a source of stress, lies at a depth of 0 m"),
        ({}, {"moment": [[0.0, 1.0], [1.0, 0.0]]}, "a force or a moment, not both"),
        ({}, {"injection": "legacy"}, "one of acoustic waves"),
        ({}, {"wavelet": {"ricker": 90.0}}, "too coarse for waves"),
        ({"record": ["vy"]}, {}, "receivers record"),
        ({"dt": 1.0}, {}, "elastic.dt: the time step of 1 s is above"),
        ({"time": 1.0}, {}, "elastic.time: a survey takes its time from"),
        ({"medium": {"vp": 2000.0, "vs": 1900.0, "rho": 2000.0}}, {}, "elastic.medium.vs"),
        ({}, {"receivers": {"positions": [[0.0, 900.0]]}}, "shot 1: a receiver lies at"),
    ],
)  # fmt: skip
def test_mistakes_in_cases(tmp_path: Path, elastic: Any, said: Any, text: str) -> None:
    with pytest.raises(CaseError) as caught:
        case(tmp_path, elastic, **said)
    assert text in str(caught.value)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="elastic waves have no sigma"):
        survey(sigma=0.5)
    with pytest.raises(CaseError, match="record different quantities"):
        survey(shots=[Shot([Explosion((30.0, 200.0))], LINE), *survey().shots])
    with pytest.raises(CaseError, match="source 0 is a PointSource"):
        survey(shots=[Shot([PointSource((30.0, 200.0))], LINE)]).record(tmp_path / "a.sgy", 3)
    with pytest.raises(CaseError, match="source 0 is a Force"):
        survey(medium=Medium(2000.0), shots=[Shot([Force((30.0, 200.0), (1.0, 0.0))], LINE)]).record(
            tmp_path / "a.sgy", 3
        )
    for interpolation, place, cells in (("sinc", 13.0, "4 cells"), ("linear", 3.0, "1 cell")):
        near: Any = Receivers([(50.0, place)], 2, interpolation)  # type: ignore[arg-type]
        with pytest.raises(CaseError, match=f"within {cells} of the periodic ends of x") as caught:
            survey(
                shots=[Shot([Explosion((30.0, 200.0))], each, record=("vx",)) for each in (LINE, near)],
                boundary=Faces(Sponge(4), x=Periodic()), aperture=None,
            ).record(tmp_path / "a.sgy", 3)  # fmt: skip
        assert caught.value.key == "shots[1]"
    assert not list(tmp_path.iterdir())
