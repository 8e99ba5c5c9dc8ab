"""Surveys: one SEG-Y file of many shots, the same on any ranks and after interruptions; geometry; wrong inputs."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError, RunError
from minga.models.waves import (
    Faces,
    Free,
    Medium,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    Survey,
    points_between,
    prepare,
    shot_snapshots,
    shot_traces,
    shots_of_files,
    streamer,
)
from minga.models.waves.elastic import ElasticMedium, Explosion, prepare_elastic
from minga.models.waves.survey_sharing import shared_out
from minga.output import segy_survey
from minga.output.segy import SegyFile

SHAPE, H, DT, SAMPLES = (16, 60), 10.0, 1e-3, 31
VP = 1500.0 + 20.0 * np.arange(16.0)[:, None] + 0.0 * np.arange(60.0)


def survey(**options: Any) -> Survey:
    """A boat that sails towards larger x, with a streamer behind it; the last shot has fewer receivers."""
    sources = points_between((20.0, 250.0), (20.0, 490.0), 4)
    spreads = streamer(sources, 30.0, -30.0, -20.0, 8, every=2)
    spreads[-1] = Receivers(spreads[-1].positions[:5], every=2)
    shots = [Shot([PointSource(at, Ricker(20.0))], each) for at, each in zip(sources, spreads, strict=True)]
    settings: dict[str, Any] = {"order": 4, "boundary": Faces(Sponge(4), z=(Free(), Sponge(4))), "aperture": 50.0}
    return Survey(SHAPE, H, DT, Medium(VP), shots, **(settings | options))


@functools.cache
def written() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return survey().record(Path(folder) / "a.sgy", SAMPLES).read_bytes()


def test_a_file_of_all_shots(tmp_path: Path) -> None:
    path = tmp_path / "sea.sgy"
    path.write_bytes(written())
    file = SegyFile.open(path)
    assert (len(file), file.samples, file.interval) == (29, SAMPLES, 2000)
    headers = file.headers
    assert headers["record"].tolist() == [1] * 8 + [2] * 8 + [3] * 8 + [4] * 5
    assert headers["source_point"].tolist() == headers["shot_point"].tolist() == headers["record"].tolist()
    assert headers["number"].tolist() == [*range(1, 9)] * 3 + [*range(1, 6)]
    assert headers["in_file"].tolist() == [*range(1, 30)]
    assert (headers["source_x"][8], headers["coordinate_scale"][8], headers["source_depth"][8]) == (33000, -100, 2000)
    assert headers["x"][8:11].tolist() == [30000, 28000, 26000]
    assert headers["offset"][8:11].tolist() == [-30, -50, -70]
    assert headers["elevation"][0] == -3000
    whole = survey()
    for number, first in ((1, 8), (3, 24)):
        expected = whole.traces(number, SAMPLES).T
        assert np.array_equal(file.traces(slice(first, first + len(expected))), expected.astype("f4"))


def test_parts_of_a_model_have_its_density() -> None:
    rho = 1000.0 + 10.0 * np.arange(16.0)[:, None] + 5.0 * np.arange(60.0)
    waves, _ = replace(survey(), medium=Medium(VP, rho=rho)).of(1)
    wide = waves.domain.shape[1]
    found = waves.values("rho", waves.domain.inside)
    low = round((found[0, 0] - 1000.0) / 5.0)
    assert 0 < low < low + wide < 60
    assert np.array_equal(found, rho[:, low : low + wide])
    assert [field.name for field in waves.medium] == ["vp2", "rho"]


@pytest.mark.parametrize("weights", [None, [0.0, 1.0, 2.0]])
def test_ranks_write_the_same_file(tmp_path: Path, weights: list[float] | None) -> None:
    path = tmp_path / "sea.sgy"
    mg.run_virtual(3, lambda comm: survey().record(path, SAMPLES, comm=comm, weights=weights))
    assert path.read_bytes() == written()


def test_a_slow_rank_leaves_the_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written()
    seen: list[list[list[int]]] = []

    def uneven(costs: dict[int, int], speeds: object) -> list[list[int]]:
        seen.append(shared_out(costs, [1.0, 3.0, 1.0]))
        return seen[-1]

    monkeypatch.setattr("minga.models.waves.survey_recording.shared_out", uneven)
    path = tmp_path / "sea.sgy"
    mg.run_virtual(3, lambda comm: survey().record(path, SAMPLES, comm=comm))
    assert path.read_bytes() == expected
    assert max(len(own) for own in seen[0]) > 1


def test_an_interrupted_survey_goes_on(tmp_path: Path) -> None:
    path, seen = tmp_path / "sea.sgy", list[tuple[int, int]]()

    def stop(progress: Any) -> None:
        seen.append((progress.done, progress.shots))
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey().record(path, SAMPLES, callback=stop)
    assert not path.exists()
    partial = tmp_path / ".sea.sgy.partial"
    content = bytearray(partial.read_bytes())
    content[3700] ^= 1  # the first shot is damaged
    partial.write_bytes(content)
    with (tmp_path / ".sea.sgy.shots").open("a") as lines:
        lines.write('{"shot": 2, "dig')  # a line that was not written to its end
    with pytest.raises(CaseError, match="beginning of another survey"):
        survey(order=8).record(path, SAMPLES)
    survey().record(path, SAMPLES, callback=lambda progress: seen.append((progress.done, progress.shots)))
    assert seen == [(1, 4), (2, 4), (2, 4), (3, 4), (4, 4)]
    assert path.read_bytes() == written()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sea.sgy"]
    with pytest.raises(CaseError, match="exists already"):
        survey().record(path, SAMPLES)


def test_a_full_disk_loses_no_shot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, count = tmp_path / "sea.sgy", 0
    write = segy_survey.os.fsync

    def full(number: int) -> None:
        nonlocal count
        count += 1
        if count == 5:
            raise OSError(28, "No space left on device")
        write(number)

    monkeypatch.setattr(segy_survey.os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        survey().record(path, SAMPLES)
    monkeypatch.undo()
    seen: list[int] = []
    survey().record(path, SAMPLES, callback=lambda progress: seen.append(progress.done))
    assert seen == [3, 4]
    assert path.read_bytes() == written()


@pytest.mark.slow
def test_a_cut_grid_gives_the_waves_of_the_whole_one_until_they_reach_its_ends() -> None:
    cut, whole = survey(aperture=120.0), survey(aperture=None)
    assert cut.of(0)[0].shape[1] < SHAPE[1]
    near, far = (each.traces(0, 16)[:, :2] for each in (cut, whole))
    assert abs(far).max() > 0
    assert near == pytest.approx(far, abs=1e-4 * abs(far).max())
    function = survey(aperture=120.0)
    other = Survey(
        SHAPE, H, DT, Medium(lambda box: VP[box.slices((0, 0))]), function.shots, function.boundary, 120.0, order=4
    )
    assert np.array_equal(other.traces(2, 12), cut.traces(2, 12))


def test_shots_of_tables(tmp_path: Path) -> None:
    (tmp_path / "shots.csv").write_text("shot, z, x\na, 10, 100\nb, 10, 200\na, 10, 120\n")
    (tmp_path / "spread.csv").write_text("shot,z,x\n*,5,0\nb,5,50\n*,5,10\n")
    shots = shots_of_files(tmp_path / "shots.csv", tmp_path / "spread.csv", Ricker(9.0), every=4)
    assert [source.position for source in shots[0].sources] == [(10, 100), (10, 120)]  # type: ignore[union-attr]
    assert [tuple(shot.receivers.positions) for shot in shots] == [((5, 0), (5, 10)), ((5, 50), (5, 0), (5, 10))]
    assert shots[0].receivers.every == 4
    assert shots[1].sources[0].wavelet == Ricker(9.0)
    for text, said in [
        ("shot,z,x\nc,5,0\n", "there is no shot 'c'"),
        ("shot,z,x\n*,5,east\n", "line 2: a position is not a number"),
        ("a,b\n1,2\n", "has the columns a, b"),
        ("", "of no table"),
    ]:
        (tmp_path / "wrong.csv").write_text(text)
        with pytest.raises(CaseError, match=said):
            shots_of_files(tmp_path / "shots.csv", tmp_path / "wrong.csv")
    with pytest.raises(CaseError, match="cannot read"):
        shots_of_files(tmp_path / "none.csv", tmp_path / "spread.csv")


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    near, out = Receivers([(30.0, 50.0)]), PointSource((20.0, 900.0), Ricker(20.0))

    def refused(*shots: Shot, **options: Any) -> str:
        with pytest.raises(CaseError) as caught:
            Survey(SHAPE, H, DT, Medium(VP), shots, **options).record(tmp_path / "a.sgy", SAMPLES)
        assert not list(tmp_path.iterdir())
        return str(caught.value)

    good = Shot([PointSource((20.0, 100.0), Ricker(20.0))], near)
    assert "without shots" in refused()
    assert "shot 2 has no receivers" in refused(good, Shot(good.sources, Receivers([])))
    assert "different intervals" in refused(good, Shot(good.sources, Receivers([(30.0, 50.0)], every=2)))
    assert "outside the model" in refused(good, Shot([out], near))
    assert "free surface" in refused(Shot(good.sources, Receivers([(0.0, 50.0)])), boundary=Free())
    assert "the aperture is -1" in refused(good, aperture=-1.0)
    assert "no layers" in refused(good, aperture=50.0, boundary=Faces(Sponge(), x=(Free(), Sponge())))
    missing = tmp_path / "none" / "a.sgy"
    with pytest.raises(CaseError, match="does not exist"):
        survey().record(missing, SAMPLES)


def test_sources_may_be_dipoles(tmp_path: Path) -> None:
    """Their positions are checked, and their shots have waves of their own."""

    def dipoles(z: float) -> Survey:
        shots = [
            Shot([PointSource((z, source.position[1]), Ricker(20.0), direction=(1.0, 0.0))], shot.receivers)
            for shot in survey().shots
            for source in shot.sources
            if isinstance(source, PointSource) and source.position is not None
        ]
        return replace(survey(), shots=shots)

    found = dipoles(20.0).record(tmp_path / "d.sgy", SAMPLES).read_bytes()
    assert len(found) == len(written())
    assert found != written()
    with pytest.raises(CaseError, match="outside the model"):
        dipoles(-30.0).record(tmp_path / "e.sgy", SAMPLES)


def test_snapshots_agree_with_traces_and_elastic_ones_are_of_velocities() -> None:
    """Values at a receiver on a cell after some steps."""
    elastic = ElasticMedium(2000.0, 1100.0, 2000.0)
    points = [(40.0, 60.0)]
    cases = [
        (prepare((20, 24), 10.0, dt=1e-3, medium=Medium(2000.0), boundary=Sponge(5)), PointSource, ("p",)),
        (prepare_elastic((20, 24), 10.0, dt=1e-3, medium=elastic, boundary=Sponge(5)), Explosion, ("vz",)),
    ]
    for waves, source, record in cases:
        shot = Shot([source((100.0, 110.0), Ricker(25.0))], Receivers(points), record=record)
        early, late = shot_snapshots(waves, shot, [40, 90])
        assert early.shape == late.shape == (20, 24)
        if record == ("p",):
            traces = shot_traces(waves, shot, 91)[:, 0]
            assert (early[4, 6], late[4, 6]) == (traces[40], traces[90])
        assert early.any()
        assert not np.array_equal(early, late)
