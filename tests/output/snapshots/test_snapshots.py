"""Frames that are taken while a run goes on: complete, the same on any ranks, and never in the way."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import minga as mg
from minga.engine.comm import Comm
from minga.errors import RunError
from minga.options import OutputSettings, RunOptions
from minga.output.snapshots.archive import Archive, manifest_of
from minga.output.snapshots.files import Disk
from minga.output.snapshots.manifest import read_manifest, receipt_of, verified
from minga.output.snapshots.snapshots import Snapshots
from minga.running.session import Outcome, execute
from minga.space.cuts import slabs


@mg.kernel
def mix(u, flux, new, flux_new):  # type: ignore[no-untyped-def]
    new[0, 0, 0] = 0.25 * (u[-1, 0, 0] + u[1, 0, 0] + u[0, 0, -1] + u[0, 1, 0])
    flux_new[0, 0, 0] = u[0, 0, 0] - u[0, 0, -1]


def waves(shape: tuple[int, int, int] = (9, 10, 12)) -> mg.Model:
    """Cells, faces, and cells of a part of the grid."""
    grid = mg.Grid(shape, periodic=True, axes="zyx")
    u = mg.Field("u", grid, "f4", slots=2)
    step = mg.Program("step")
    flux = mg.Field("flux", grid, "f8", centre="x")
    step.apply(mix, u, flux, u.next, flux)
    step.rotate(u)
    rng = np.random.default_rng(3)
    values = rng.random(shape).astype("f4")
    return mg.Model(name="mix", grid=grid, fields=(u, flux), step=step, initial={"u": values})


def chunked(size: int, **settings: Any) -> OutputSettings:
    """Settings with chunks of so many bytes, smaller than a case may have them."""
    return OutputSettings(**settings).model_copy(update={"chunk": size})


def taken(
    path: Path, comm: Comm, settings: OutputSettings, model: mg.Model | None = None, **options: Any
) -> tuple[Outcome, Snapshots]:
    """A run of 7 steps with frames of steps 0, 3, 6 and 7."""
    model = model or waves()
    fields = [model.field(name) for name in model.output]
    snapshots = Snapshots(path, model, fields, settings, comm, **options)
    words = RunOptions.of(steps=7, every=3, writers=settings.writers, layout="cartesian")
    try:
        return execute(model, comm, words, fields, recorder=snapshots), snapshots
    except BaseException:
        snapshots.abandon()
        raise


def expected() -> xarray.Dataset:
    return mg.run(waves(), 7, every=3)


def same(path: Path, frames: xarray.Dataset, cut: Callable[[Any], Any] = lambda a: a) -> None:
    """That a store holds frames bit by bit, and says so itself."""
    with xarray.open_zarr(path) as found:
        assert found.time.values.tolist() == frames.time.values.tolist()
        for name in ("u", "flux"):
            wanted = cut(frames[name])
            assert found[name].dtype == wanted.dtype
            assert found[name].values.tobytes() == wanted.values.tobytes()
            for axis in wanted.dims:
                assert (found[axis].values == wanted[axis].values).all()
    lines = read_manifest(manifest_of(path))
    assert [line.step for line in lines] == frames.time.values.tolist()
    files = {}
    for line in lines:
        for receipt in line.chunks:
            number = 0 if receipt.number is None else receipt.number
            file = path / receipt.variable / f"c.{line.index}.{number}.0.0"
            assert verified(file, receipt, whole=True)
            files[file] = receipt
    assert {file for name in ("u", "flux") for file in (path / name).glob("c.*")} == set(files)
    assert not list(path.rglob("*.partial"))


@pytest.mark.few(2)
@pytest.mark.parametrize("settings", [
    OutputSettings(durable=False),
    OutputSettings(durable=True, direct=True, buffers=2),
    chunked(2000, durable=False, codec="blosc"),
    chunked(1500, durable=False),
], ids=["plain", "durable", "blosc", "slabs"])  # fmt: skip
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_store_holds_what_was_computed(tmp_path: Path, ranks: int, settings: OutputSettings) -> None:
    path = tmp_path / "fields.zarr"
    outcomes = mg.run_virtual(ranks, lambda comm: taken(path, comm, settings)[0])
    same(path, expected())
    entries = outcomes[0].ledger["ranks"]
    assert [entry["snapshots"]["frames"] for entry in entries] == [4] * ranks
    assert entries[0]["snapshots"]["bytes"] > 0


def test_a_part_of_the_cells_and_every_second_of_them(tmp_path: Path) -> None:
    settings = chunked(400, durable=False, region={"z": (2, 9), "x": (1, 8)}, decimate={"z": 2, "x": 3})
    for ranks in (1, 4):
        path = tmp_path / f"{ranks}.zarr"
        mg.run_virtual(ranks, lambda comm, path=path: taken(path, comm, settings))

        def cut(array: xarray.DataArray) -> xarray.DataArray:
            along = {"x": slice(1, 8, 3)} if "x" in array.dims else {"x_face": slice(1, 9, 3)}
            return array.isel(z=slice(2, 9, 2), **along)

        same(path, expected(), cut)


@pytest.mark.parametrize(("writers", "ranks"), [(1, 3), (2, 5)])
def test_ranks_that_only_write_own_no_cells(tmp_path: Path, writers: int, ranks: int) -> None:
    path = tmp_path / "fields.zarr"
    settings = chunked(1500, durable=False, writers=writers)
    outcomes = mg.run_virtual(ranks, lambda comm: taken(path, comm, settings)[0])
    same(path, expected())
    entries = outcomes[0].ledger["ranks"]
    assert [entry["cells"] > 0 for entry in entries] == [True] * (ranks - writers) + [False] * writers
    assert [entry["snapshots"]["raw_bytes"] > 0 for entry in entries] == [False] * (ranks - writers) + [True] * writers
    assert outcomes[0].digest == mg.run(waves(), 7).attrs["digest"]


def test_a_writer_that_is_behind_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rank that makes frames visible hears of the others' chunks of a frame before it has written its own."""
    write, told, exchange = Disk.write, threading.Event(), Snapshots._exchange

    def slow(disk: Disk, path: Path, *arguments: Any) -> None:
        if path.name.startswith("c.0.0."):
            assert told.wait(60)
        write(disk, path, *arguments)

    def tell(snapshots: Snapshots) -> None:
        exchange(snapshots)
        if snapshots.frames > 2:  # others have long said that they have frame 0
            told.set()

    monkeypatch.setattr(Disk, "write", slow)
    monkeypatch.setattr(Snapshots, "_exchange", tell)
    settings = chunked(1500, durable=False, writers=2, buffers=5)
    mg.run_virtual(3, lambda comm: taken(tmp_path / "fields.zarr", comm, settings))
    same(tmp_path / "fields.zarr", expected())


def test_memory_is_bounded_by_the_buffers(tmp_path: Path) -> None:
    """Frames on their way fill K buffers on a rank alone, and with messages K + 1 frames on all ranks together."""
    for ranks, writers in ((1, 0), (4, 0), (4, 1)):
        settings = OutputSettings(durable=False, buffers=2, writers=writers)
        made = mg.run_virtual(
            ranks,
            lambda comm, s=settings, r=ranks: taken(tmp_path / f"{r}{s.writers}.zarr", comm, s, waves((32, 32, 64)))[1],
        )
        frame = sum(chunk.padded for chunk in made[0]._staging.mine(made[0].publisher)) or made[0].frame_bytes
        frame = max(frame, made[0].frame_bytes)
        held = sum(one.counters.buffer_bytes for one in made)
        assert held <= (settings.buffers + (ranks > 1)) * frame * 1.02


class Held:
    """A disk that writes nothing until it is let go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.gate, self.reached = threading.Event(), threading.Event()
        write = Disk.write

        def slow(disk: Disk, path: Path, *arguments: Any) -> None:
            if path.name.startswith("c.0.") and path.parent.name == "u":
                self.reached.set()
                assert self.gate.wait(60)
            write(disk, path, *arguments)

        patch.setattr(Disk, "write", slow)


def test_the_solver_goes_on_while_a_frame_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    model = waves()
    snapshots = Snapshots(
        tmp_path / "s.zarr", model, model.fields, OutputSettings(durable=False, buffers=2), mg.SerialComm()
    )
    with mg.Engine(model.layouts("single", 1)) as engine:
        engine.set(model.field("u"), 1.0)
        snapshots.take(0, engine)
        assert held.reached.wait(60)  # the frame is being written
        engine.set(model.field("u"), 2.0)
        snapshots.take(1, engine)  # the second buffer
        engine.set(model.field("u"), 3.0)
        held.gate.set()
        snapshots.take(2, engine)  # waits for the first
        snapshots.close()
    assert snapshots.counters.most_queued == 2
    with xarray.open_zarr(tmp_path / "s.zarr") as found:
        assert [float(found.u[k].mean()) for k in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("policy", ["drop", "raise"])
def test_a_full_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Any) -> None:
    held = Held(monkeypatch)
    model = waves()
    settings = OutputSettings(durable=False, buffers=2, policy=policy)
    snapshots = Snapshots(tmp_path / "s.zarr", model, model.fields, settings, mg.SerialComm())
    with mg.Engine(model.layouts("single", 1)) as engine:
        snapshots.take(0, engine)
        snapshots.take(1, engine)
        if policy == "drop":
            snapshots.take(2, engine)
            assert snapshots.counters.dropped == 1
        else:
            with pytest.raises(RunError, match="queue of frames is full"):
                snapshots.take(2, engine)
        held.gate.set()
        snapshots.drain()
        snapshots.take(5, engine)
        snapshots.close()
    with xarray.open_zarr(tmp_path / "s.zarr") as found:
        assert found.time.values.tolist() == [0, 1, 5]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_full_disk_is_one_clear_error_on_every_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int
) -> None:
    write = Disk.write

    def full(disk: Disk, path: Path, *arguments: Any) -> None:
        if path.name.startswith("c.2."):
            raise OSError(28, "No space left on device")
        write(disk, path, *arguments)

    monkeypatch.setattr(Disk, "write", full)
    path = tmp_path / "fields.zarr"
    found: list[BaseException] = []

    def body(comm: Comm) -> None:
        try:
            taken(path, comm, chunked(1500, durable=False, writers=max(0, ranks - 2)))
        except RunError as error:
            found.append(error)

    mg.run_virtual(ranks, body)
    assert len(found) == ranks
    assert all("No space left" in str(error) and "make room" in str(error) for error in found)
    with xarray.open_zarr(path) as frames:
        assert frames.time.values.tolist() == [0, 3]
        assert frames.u[1].values.tobytes() == expected().u[1].values.tobytes()
    assert not list(path.rglob("*.partial"))


def test_the_last_frames_of_several_writers_outlast_an_error(tmp_path: Path) -> None:
    """Writers tell each other what is complete with the next frame; an error that has no next one loses nothing."""
    path = tmp_path / "fields.zarr"
    settings = chunked(1500, durable=False, writers=2)

    def body(comm: Comm) -> None:
        model = waves()
        fields = [model.field(name) for name in model.output]
        snapshots = Snapshots(path, model, fields, settings, comm)
        with mg.Engine(model.layouts("single", 3), comm=comm) as engine:
            for step in range(2):
                snapshots.take(step, engine)
        snapshots.abandon()

    mg.run_virtual(3, body)
    with xarray.open_zarr(path) as found:
        assert found.time.values.tolist() == [0, 1]
    assert not list(path.glob(".*"))


def test_going_on_after_a_step(tmp_path: Path) -> None:
    path, model = tmp_path / "fields.zarr", waves()
    settings = chunked(1500, durable=False)
    taken(path, mg.SerialComm(), settings)
    before = path / "u" / "c.1.0.0.0"
    content = before.read_bytes()
    (path / "u" / "c.4.0.0.0.partial").write_bytes(b"half")
    with manifest_of(path).open("a") as stream:
        stream.write('{"index": 4, "st')  # as a process that is killed leaves it
    snapshots = Snapshots(path, model, model.fields, settings, mg.SerialComm(), resume=True)
    assert snapshots.truncate(4) == ()
    assert snapshots.frames == 2
    assert sorted(p.name for p in (path / "u").glob("c.*"))[-1].startswith("c.1.")
    with xarray.open_zarr(path) as found:
        assert found.time.values.tolist() == [0, 3]
    with mg.Engine(model.layouts("single", 1)) as engine:
        engine.set(model.field("u"), 5.0)
        snapshots.take(3, engine)  # is there already
        snapshots.take(6, engine)
        snapshots.close()
    assert before.read_bytes() == content
    with xarray.open_zarr(path) as found:
        assert found.time.values.tolist() == [0, 3, 6]
        assert float(found.u[2].mean()) == 5
    assert [line.index for line in read_manifest(manifest_of(path))] == [0, 1, 2]


def test_a_run_that_was_killed_before_its_first_frame_or_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "fields.zarr"
    (path / "u").mkdir(parents=True)  # killed while the store was made
    taken(path, mg.SerialComm(), OutputSettings(durable=False), resume=True)
    same(path, expected())
    taken(path, mg.SerialComm(), OutputSettings(durable=False), resume=True)  # from the beginning
    same(path, expected())


def test_metadata_that_a_power_failure_took(tmp_path: Path) -> None:
    path, model, settings = tmp_path / "fields.zarr", waves(), OutputSettings(durable=False)
    taken(path, mg.SerialComm(), settings, attributes={"title": "mix"})
    for name in ("", "u", "time"):
        (path / name / "zarr.json").write_bytes(b"")
    (path / "time" / "c.0").unlink()
    snapshots = Snapshots(
        path, model, model.fields, settings, mg.SerialComm(), attributes={"title": "mix"}, resume=True
    )
    assert snapshots.truncate(7) == ()
    same(path, expected())
    with xarray.open_zarr(path) as found:
        assert found.attrs["title"] == "mix"


def test_frames_of_a_checkpoint_outlast_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was left to the system is synced when somebody says that it must last."""
    synced: list[Path] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    path, model = tmp_path.resolve() / "s.zarr", waves()
    snapshots = Snapshots(path, model, model.fields, OutputSettings(durable=False), mg.SerialComm())
    with mg.Engine(model.layouts("single", 1)) as engine:
        snapshots.take(0, engine)
        snapshots.drain()
        assert not synced
        snapshots.drain(lasting=True)
        first = {path / name / "c.0.0.0.0" for name in ("u", "flux")} | {path / "u", manifest_of(path)}
        assert first <= set(synced)
        synced.clear()
        snapshots.take(1, engine)
        snapshots.drain(lasting=True)
        assert path / "u" / "c.1.0.0.0" in synced
        assert path / "u" / "c.0.0.0.0" not in synced
        snapshots.close()


def test_many_small_frames_become_visible_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    publish = Archive.publish

    def counted(archive: Archive, frames: Any) -> None:
        publish(archive, frames)
        calls.append(len(frames))

    monkeypatch.setattr(Archive, "publish", counted)
    monkeypatch.setattr("minga.output.snapshots.snapshots._SHARE", 100)
    path, model = tmp_path / "s.zarr", waves()
    snapshots = Snapshots(path, model, model.fields, OutputSettings(durable=False), mg.SerialComm())
    with mg.Engine(model.layouts("single", 1)) as engine:
        for step in range(40):
            snapshots.take(step, engine)
        end = time.monotonic() + 60
        while sum(calls) < 40 and time.monotonic() < end:  # without another frame
            time.sleep(0.01)
        assert sum(calls) == 40
        assert len(read_manifest(manifest_of(path))) == 40
        snapshots.take(40, engine)
        snapshots.drain()
        assert sum(calls) == 41
        assert len(calls) < 41
        snapshots.close()


@pytest.mark.parametrize("size", [0, 5, 100_000])
def test_what_is_said_of_a_chunk(size: int) -> None:
    """Looked at piece by piece; the file may be shorter than the values, or longer."""
    values = np.random.default_rng(1).standard_normal(size)
    for content in (values.tobytes(), b"packed", b""):
        receipt = receipt_of("u", 0, values, memoryview(content))
        assert (receipt.bytes, receipt.crc32) == (len(content), zlib.crc32(content))
        assert (receipt.min, receipt.max) == ((values.min(), values.max()) if size else (None, None))
    if size:
        values[-1] = np.nan
        assert receipt_of("u", 0, values, memoryview(b"")).min is None


def test_a_damaged_frame_reads_as_nothing(tmp_path: Path) -> None:
    path, model = tmp_path / "fields.zarr", waves()
    settings = OutputSettings(durable=False)
    taken(path, mg.SerialComm(), settings)
    chunk = path / "u" / "c.3.0.0.0"
    content = bytearray(chunk.read_bytes())
    content[100] ^= 1
    chunk.write_bytes(content)
    (path / "flux" / "c.0.0.0.0").unlink()
    snapshots = Snapshots(path, model, model.fields, settings, mg.SerialComm(), resume=True)
    assert snapshots.truncate(7) == (0, 3)
    with xarray.open_zarr(path) as found:
        assert np.isnan(found.u[3]).all()
        assert np.isnan(found.flux[0]).all()
        assert np.isfinite(found.u[0]).all()
    other = OutputSettings(durable=False, decimate=2)
    with pytest.raises(RunError, match="do not fit: the array 'u'"):
        Snapshots(path, model, model.fields, other, mg.SerialComm(), resume=True)
    manifest_of(path).unlink()
    with pytest.raises(RunError, match="which says which frames in"):
        Snapshots(path, model, model.fields, settings, mg.SerialComm(), resume=True)
    assert (path / "u" / "c.0.0.0.0").exists()


def test_frames_follow_cells_that_move(tmp_path: Path) -> None:
    """Another layout between two frames."""
    path = tmp_path / "fields.zarr"
    moved = slabs(waves().grid.box, 2, axis=0)

    def body(comm: Comm) -> None:
        model = waves()
        fields = [model.field(name) for name in model.output]
        snapshots = Snapshots(path, model, fields, OutputSettings(durable=False), comm)
        with mg.Engine(model.layouts("single", 2), comm=comm) as engine:
            engine.set(model.field("u"), lambda box: np.full(box.shape, 1.5))
            snapshots.take(0, engine)
            engine.relayout({model.grid: moved})
            snapshots.take(1, engine)
            snapshots.close()

    mg.run_virtual(2, body)
    with xarray.open_zarr(path) as found:
        assert (found.u.values == 1.5).all()
        assert found.sizes["time"] == 2


def life() -> mg.Model:
    return mg.automaton("B3/S23", (20, 100), init={"soup": 0.4}, storage="bits")


@pytest.mark.slow
def test_cells_that_are_stored_as_bits(tmp_path: Path) -> None:
    assert life().packed
    path = tmp_path / "fields.zarr"
    settings = OutputSettings(durable=False, region={"x": (3, 90)}, decimate={"y": 3})
    mg.run_virtual(3, lambda comm: taken(path, comm, settings, life()))
    wanted = mg.run(life(), 7, every=3).cell.values[:, ::3, 3:90]
    with xarray.open_zarr(path) as found:
        assert found.cell.values.tobytes() == np.ascontiguousarray(wanted).tobytes()
    assert wanted.shape[1:] == (7, 87)
