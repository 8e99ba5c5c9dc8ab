"""Waves on the command line: what is said before a run, what it leaves, and the receivers' samples in other formats."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray

from command_line import in_process, nothing_written
from minga.cli.case import find_source, read_case
from minga.cli.preflight import notes_before
from minga.output.formats import rounded
from minga.output.segy import SegyFile
from minga.plan.speed import Speed

CASE = """\
model = "fletcher"
[grid]
shape = [16, 12, 18]
[fletcher]
spacing = 10.0
order = 4
medium = {synthetic = "layered"}
boundary = {sponge = 4}
dt = 1e-3
time = 0.021
[[fletcher.sources]]
position = [40, 60, 50]
wavelet = {ricker = 30.0}
[fletcher.receivers]
first = [20, 60, 10]
last = [20, 60, 160]
count = 6
every = 2
[run]
ranks = 1
[output]
every = 5
pictures = 0
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the case above."""
    folder = tmp_path_factory.mktemp("waves")
    (folder / "shot.toml").write_text(CASE)
    said = in_process("run", folder / "shot.toml", "--out", folder / "run")
    assert said.status == 0, said.err
    (folder / "said").write_text(said.err)
    return folder / "run"


def test_it_says_what_to_know_before_it_starts(run: Path) -> None:
    said = (run.parent / "said").read_text()
    assert "shot, before it starts" in said
    for text in ("% of the stability limit", "points per wavelength at 30 Hz", "24 x 20 x 26", "6 frames", "at least"):
        assert text in said, said
    kept = json.loads((run / "preflight.json").read_text())
    assert list(kept)[:2] == ["time step", "velocities"]
    assert json.loads((run / "result.json").read_text())["preflight"] == kept
    assert "Before it started" in (run / "report.html").read_text()


def test_frames_are_the_model_without_its_layers(run: Path) -> None:
    frames = xarray.open_zarr(run / "fields.zarr")
    assert frames.p.shape[1:] == (16, 12, 18)
    assert float(frames.z[0]) == 0.0
    assert float(frames.x[-1]) == 170.0
    assert np.allclose(frames.time, frames.step * 1e-3)
    assert frames.step.values.tolist()[-1] == 21
    assert frames.time.attrs == {"units": "s", "long_name": "time of the model", "axis": "T"}
    assert frames.z.attrs["positive"] == "down"


def test_receivers_hold_the_wave_field_where_they_are(run: Path) -> None:
    record = xarray.open_zarr(run / "receivers.zarr")
    assert record.samples.dims == ("time", "receiver")
    assert np.allclose(record.time, np.arange(11) * 2e-3)
    assert np.allclose(record.x, np.linspace(10, 160, 6))
    frames = xarray.open_zarr(run / "fields.zarr")
    at_ten = frames.p.sel(time=0.01).isel(z=2, y=6, x=[1, 4, 7, 10, 13, 16]).values
    assert np.abs(at_ten).max() > 0
    assert np.allclose(record.samples[5], at_ten, rtol=1e-6)


@pytest.mark.slow
def test_receivers_in_other_formats(run: Path, tmp_path: Path) -> None:
    samples = xarray.open_zarr(run / "receivers.zarr").samples.values
    for name in ("shot.sgy", "shot.npy", "shot.png"):
        said = in_process("export", run, "--field", "receivers", "--out", tmp_path / name)
        assert said.status == 0, said.err
        assert "6 traces, 11 samples each, 2 ms apart" in said.out
        assert "microseconds" not in said.out
    assert np.array_equal(np.load(tmp_path / "shot.npy"), samples)
    file = SegyFile.open(tmp_path / "shot.sgy")
    assert (len(file), file.samples, file.interval) == (6, 11, 2000)
    assert np.array_equal(file.traces(slice(0, 6)), samples.T.astype("f4"))
    assert file.headers["x"].tolist() == [1000, 4000, 7000, 10000, 13000, 16000]
    assert file.headers["coordinate_scale"].tolist() == [-100] * 6
    assert file.headers["offset"].tolist() == [40, 10, 20, 50, 80, 110]
    assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG")
    with nothing_written(tmp_path):
        assert (
            "the formats for receivers are npy, png, segy, sgy"
            in in_process("export", run, "--field", "receivers", "--out", tmp_path / "a.rle").err
        )
        assert "'receivers'?" in in_process("export", run, "--field", "receiver", "--out", tmp_path / "a.sgy").err


def test_intervals_that_segy_rounds_are_told() -> None:
    assert rounded(2e-3, 1001) is rounded(0.1 + 0.2, 1001) is None
    assert "the file says 2214, so that its last sample is 101 microseconds off" in str(rounded(2.2139e-3, 1011))


@pytest.mark.slow
def test_the_plan_says_it_too(run: Path) -> None:
    said = in_process("plan", run.parent / "shot.toml", "--machine", "two-ages", "--json")
    assert said.status == 0, said.err
    told = json.loads(said.out)["preflight"]
    assert "as planned" in told["computing"]
    assert "stability limit" in told["time step"]


@pytest.mark.slow
def test_what_was_measured_before_is_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And that run.steps counts where the case has a time as well."""
    case = read_case(find_source(str(run.parent / "shot.toml")), ["run.steps=7"])
    monkeypatch.setattr("minga.plan.probe.probe.known_speed", lambda *_: Speed.constant(1e6))
    told = dict(notes_before(case, 1, None))
    assert told["steps"] == "7 as run.steps says, instead of the 21 that the model's end time would need"
    assert told["computing"].startswith("7 steps, about 87 ms by speeds measured here before, at least ")
    there = read_case(find_source(str(run.parent / "shot.toml")), ["run.machine=two-ages"])
    assert "by the speeds in two ages: " in dict(notes_before(there, 2, None))["computing"]
    assert "steps" not in dict(notes_before(there, 2, None))


def test_steps_may_be_left_to_the_time(run: Path) -> None:
    assert json.loads((run / "result.json").read_text())["steps"] == 21
    assert "steps = 21" in (run / "case.toml").read_text()


@pytest.mark.slow
def test_large_media_are_not_copied(in_tmp_path: Path) -> None:
    assert in_process("medium", "salt", "salt.zarr", "--shape", "12,12,12").status == 0
    text = CASE.replace('{synthetic = "layered"}', '"salt.zarr"')
    text = text.replace("shape = [16, 12, 18]", "").replace("spacing = 10.0", "").replace("0.021", "0.002")
    text = text[: text.index("[[fletcher")] + text[text.index("[run]") :]
    (in_tmp_path / "case.toml").write_text(text)
    said = in_process("run", "case.toml", "--out", "out")
    assert said.status == 0, said.err
    assert str(in_tmp_path / "salt.zarr") in (in_tmp_path / "out" / "case.toml").read_text()
    assert not (in_tmp_path / "out" / "inputs").exists()
