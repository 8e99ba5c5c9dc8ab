"""Checkpoints: what is on the disk, what becomes of damage, and models that go on from them with the same bits."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.state import Position, state_of
from minga.errors import CaseError, RunError
from minga.output.checkpoint import places
from minga.output.checkpoint.blocks import Block, DamagedCheckpoint, read_block, write_blocks
from minga.output.checkpoint.head import heads_of
from minga.output.checkpoint.identity import case_of, changed_entries
from minga.output.checkpoint.keeper import Checkpointing, Keeper
from minga.output.checkpoint.slots import digests
from minga.running.loop import Result, drive
from minga.running.observers.checkpoints import Checkpoints
from minga.running.observers.ending import Asked
from minga.space.cuts import cartesian, slabs
from minga.space.layout import Layout
from thinned import thinned

GRID = mg.Grid((18, 70), periodic=(True, False))
EVERY = Checkpointing(steps=10)


@mg.kernel
def spread(u: Any, k: Any, before: Any, new: Any, *, dt: float) -> Any:
    new[0, 0] = 2 * u[0, 0] - before[0, 0] + dt * k[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])
    return {"most": mg.max(abs(u[0, 0]))}


@mg.kernel
def spark(u: Any) -> None:
    u[0, 0] = u[0, 0] + 1e-3 * mg.random()


def waves(speed: float = 1.0, medium: float = 0.2) -> mg.Model:
    """Three time levels, a field that nothing changes, chance, a register that goes from step to step."""
    u = mg.Field("u", GRID, slots=3, boundary=mg.fixed(0.0))
    k = mg.Field("k", GRID, boundary=mg.zero_gradient())
    dt = mg.Register("dt", "f8", 0.5)
    step = mg.Program("step")
    step.apply(spread, u, k, u.previous, u.next, dt=dt)
    step.rotate(u)
    step.apply(spark, u, region=mg.Region(points=[(3, 7), (11, 60)]))
    step.let(dt, dt * 0.999)
    step.let(mg.STEP, mg.STEP + 1)
    y, x = np.indices(GRID.shape)
    start = np.sin(0.2 * x + y) * speed
    initial = {u: start, u.previous: start, k: medium + 0.01 * x}
    return mg.Model("waves", GRID, (u, k), step, initial=initial, registers={dt: 0.5}, seed=7)


@dataclass
class Done:
    """What a run came to on rank 0."""

    result: Result
    keeper: Keeper
    state: dict[str, bytes]
    notes: list[str] = field(default_factory=list)


def go(
    path: Path,
    steps: int,
    ranks: int = 1,
    model: Callable[[], mg.Model] = waves,
    schedule: Checkpointing = EVERY,
    cut: Callable[[Any, int], Layout] = slabs,
    until: mg.Stop | None = None,
    stop_at: int | None = None,
    **options: Any,
) -> Done:
    notes: list[str] = []
    keepers: list[Keeper] = []

    def run(comm: Comm) -> tuple[Result, dict[str, bytes]]:
        made = model()
        keeper = Keeper(path, comm, schedule, stop=until, note=notes.append, **options)
        if comm.rank == 0:
            keepers.append(keeper)
        done = [0]
        with mg.Engine(cut(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            result = drive(
                made,
                engine,
                steps,
                [
                    Checkpoints(keeper),
                    mg.observer(lambda simulation: done.__setitem__(0, simulation.step), 5, start=True, end=True),
                    Asked(lambda: stop_at is not None and done[0] >= stop_at),
                ],
                until=until,
            )
            state = state_of(made)
            arrays = {name: engine.gather(slot) for name, slot in state.changing.items()}
            values = {name: str(value).encode() for name, value in state.registers(engine).items() if name[0] != "@"}
            values = {name: value for name, value in values.items() if not name.startswith("$stop.")}
        return result, {**{name: array.tobytes() for name, array in arrays.items() if array is not None}, **values}

    result, state = run_virtual(ranks, run)[0]
    return Done(result, keepers[0], state, notes)


# The same bits ------------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@pytest.mark.parametrize(("before", "after"), thinned([(1, 3), (4, 1), (2, 2)], (1, 3), (2, 2)))
def test_a_run_goes_on_with_the_same_bits(tmp_path: Path, before: int, after: int) -> None:
    whole = go(tmp_path / "whole", 50, schedule=Checkpointing(off=True))
    go(tmp_path / "cut", 28, before)
    rest = go(tmp_path / "cut", 50, after, resumes=True, cut=lambda box, n: cartesian(box, (1, n)))
    assert rest.result.resumed.step == 20
    assert rest.state == whole.state
    assert rest.result.steps == 50
    assert rest.result.seconds > rest.result.resumed.seconds > 0


def test_ranks_whose_machine_does_not_share_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = go(tmp_path / "whole", 30, schedule=Checkpointing(off=True))
    content = places._content

    def look(file: Path) -> str | None:
        return None if threading.current_thread().name in ("virtual rank 1", "virtual rank 3") else content(file)

    monkeypatch.setattr(places, "_content", look)
    go(tmp_path / "cut", 28, 4)
    assert sorted(path.name for path in (tmp_path / "cut/b").glob("*.bin")) == [
        "blocks-000000.bin",
        "blocks-000002.bin",
    ]
    rest = go(tmp_path / "cut", 30, 2, resumes=True, cut=lambda box, n: cartesian(box, (1, n)))
    assert rest.result.resumed.step == 20
    assert rest.state == whole.state
    flip(tmp_path / "cut/b/blocks-000002.bin", 40)
    assert go(tmp_path / "cut", 30, 2, resumes=True).result.resumed.step == 10


def test_only_what_changes_is_written(tmp_path: Path) -> None:
    go(tmp_path, 11, 2)
    ((head,), faults) = heads_of(tmp_path)
    assert not faults
    # Slot 1 of u is stored whole by the next step, k by none.
    assert {block.slot for block in head.blocks} == {"u/0", "u/2"}
    assert set(head.constants) == {"k/0"}
    assert {block.file for block in head.blocks} == {0, 1}
    assert all(block.at % 4096 == 0 for block in head.blocks)


@pytest.mark.slow
def test_a_watch_for_repetition_goes_on(tmp_path: Path) -> None:
    def life() -> mg.Model:
        return mg.automaton("B3/S23", GRID.shape, init={"soup": 0.4, "seed": 3}, boundary="periodic", storage="bytes")

    def run(path: str, steps: int, **options: Any) -> Done:
        model = life()
        return go(
            tmp_path / path, steps, 2, model=lambda: model, until=mg.Stop(period=30), cut=_layouts_of(model), **options
        )

    whole = run("whole", 5000, schedule=Checkpointing(off=True))
    assert whole.result.ended.reason in ("period", "fixed point")
    cut = whole.result.steps - 20
    run("cut", cut, schedule=Checkpointing(steps=cut - 7))
    rest = run("cut", 5000, resumes=True, schedule=Checkpointing(off=True))
    assert rest.result.resumed.step == cut - 7
    assert rest.result.ended == whole.result.ended
    assert rest.state == whole.state


def _layouts_of(model: mg.Model, word: str = "slabs") -> Callable[[Any, int], Any]:
    return lambda box, ranks: model.layouts(word, ranks)


AUTOMATA: dict[str, dict[str, Any]] = {
    "bits": {"rule": "B3/S23", "storage": "bits"},
    "states in bits": {"rule": "/2/3", "storage": "bits", "boundary": ["reflect", "periodic"]},
    "quiet tiles left out": {"rule": "B3/S23", "storage": "bytes", "skip_quiet": True},
    "quiet tiles of bits": {"rule": "B3/S23", "storage": "bits", "skip_quiet": True},
    "chance": {"rule": "B3/S23", "update": {"asynchronous": 0.5}},
    "the state before": {"rule": "W90", "update": "second-order", "boundary": "periodic"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(AUTOMATA, "quiet tiles of bits", "chance"))
def test_automata_go_on_with_the_same_bits(tmp_path: Path, kind: str) -> None:
    options = {"boundary": "periodic", "init": {"soup": 0.05, "seed": 5}} | AUTOMATA[kind]
    shape = (300,) if options["rule"] == "W90" else (40, 300)

    def run(path: str, steps: int, ranks: int, word: str, **more: Any) -> Done:
        model = mg.automaton(options["rule"], shape, **{k: v for k, v in options.items() if k != "rule"})
        return go(tmp_path / path, steps, ranks, model=lambda: model, cut=_layouts_of(model, word), **more)

    whole = run("whole", 47, 1, "slabs", schedule=Checkpointing(off=True))
    run("cut", 38, 2, "slabs")
    rest = run("cut", 47, 3, "blocks:2", resumes=True)
    assert rest.result.resumed.step == 30
    assert rest.state == whole.state


# Schedules ----------------------------------------------------------------------------------------------------------
def test_two_are_kept_in_turn(tmp_path: Path) -> None:
    done = go(tmp_path, 35)
    heads, _ = heads_of(tmp_path)
    assert [(head.step, head.slot) for head in heads] == [(30, "a"), (20, "b")]
    assert done.keeper.written == 3
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        (Checkpointing(off=True), []),
        (Checkpointing(steps=40), []),
        (Checkpointing(seconds=1000.0), []),
        (Checkpointing(steps=5, at_end=True), [12, 10]),
    ],
)
def test_when_checkpoints_are_written(tmp_path: Path, schedule: Checkpointing, steps: list[int]) -> None:
    go(tmp_path, 12, schedule=schedule)
    assert [head.step for head in heads_of(tmp_path)[0]] == steps


def test_the_clock_asks_for_one_but_not_too_often(tmp_path: Path) -> None:
    done = go(tmp_path, 400, schedule=Checkpointing(seconds=1e-9))
    assert done.keeper.written >= 1  # after the first chunk of steps, then so seldom that they take 2 % of the time
    assert done.keeper.written <= 1 + done.result.seconds / done.keeper.seconds


@pytest.mark.parametrize(
    ("losses", "cost", "pause"),
    [(0, 0.5, 300.0), (0, 10.0, 500.0), (1, 0.5, 60.0), (4, 0.5, 30.0), (4, 10.0, 134.16), (1, 100.0, 848.5)],
)
def test_losses_make_checkpoints_more_frequent(tmp_path: Path, losses: int, cost: float, pause: float) -> None:
    now = [3600.0]
    keeper = Keeper(
        tmp_path, SerialComm(), Checkpointing(seconds=300.0), clock=lambda: now[0], began=0.0, losses=losses, written=1
    )
    keeper._cost, keeper._last = cost, now[0]
    times = np.arange(0.0, 3600.0, 0.5)
    due = []
    for after in times:
        now[0] = 3600.0 + after
        due.append(keeper.wishes(0.0)[0])
    assert keeper.schedule.seconds is not None
    first = float(times[due.index(True)])
    assert first == pytest.approx(pause * ((3600.0 + first) / 3600.0) ** (0.5 * (losses > 0)), abs=0.6)


def test_a_person_or_the_clock_gets_a_last_one(tmp_path: Path) -> None:
    asked = go(tmp_path / "asked", 10**6, 2, schedule=Checkpointing(), stop_at=15)
    assert asked.result.ended.reason == "asked"
    ((head,), _) = heads_of(tmp_path / "asked")
    assert head.step == asked.result.steps < 10**6
    late = go(tmp_path / "late", 10**6, 2, schedule=Checkpointing(time_limit=1.05))
    assert late.result.ended.reason == "time limit"
    ((head,), _) = heads_of(tmp_path / "late")
    assert head.step == late.result.steps < 10**6


def test_a_run_that_is_complete_needs_none(tmp_path: Path) -> None:
    done = go(tmp_path / "checkpoints", 25)
    done.keeper.discard()
    assert not (tmp_path / "checkpoints").exists()


# Damage -------------------------------------------------------------------------------------------------------------
def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a bit of a block": ("has changed at byte 0", lambda folder: flip(folder / "blocks-000000.bin", 100)),
    "a bit of the head": ("checkpoint.json has changed", lambda folder: flip(folder / "checkpoint.json", 300)),
    "a short file": ("shorter than it was", lambda folder: os.truncate(folder / "blocks-000001.bin", 5000)),
    "no file": ("lacks the parts of rank 1", lambda folder: (folder / "blocks-000001.bin").unlink()),
    "half a head": ("checkpoint.json has changed", lambda folder: os.truncate(folder / "checkpoint.json", 700)),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", DAMAGES)
def test_the_other_one_is_used_where_one_is_damaged(tmp_path: Path, kind: str) -> None:
    whole = go(tmp_path / "whole", 40, schedule=Checkpointing(off=True))
    go(tmp_path / "cut", 38, 2)
    said, damage = DAMAGES[kind]
    damage(tmp_path / "cut/a")  # of step 30; b is of step 20
    rest = go(tmp_path / "cut", 40, 3, resumes=True)
    assert rest.result.resumed.step == 20
    assert rest.state == whole.state
    (note,) = rest.notes
    assert said in note
    assert "step 20 is used" in note
    assert [(head.step, head.slot) for head in heads_of(tmp_path / "cut")[0]] == [(30, "a"), (20, "b")]


def test_where_none_is_whole(tmp_path: Path) -> None:
    go(tmp_path, 38, 2)
    for slot in "ab":
        flip(tmp_path / slot / "blocks-000001.bin", 77)
    with pytest.raises(RunError) as caught:
        go(tmp_path, 40, 2, resumes=True)
    assert str(caught.value).count("blocks-000001.bin has changed") == 2
    assert "remove" in str(caught.value)


def test_none_was_ever_complete(tmp_path: Path) -> None:
    go(tmp_path, 15)
    (tmp_path / "a" / "checkpoint.json").unlink()
    done = go(tmp_path, 30, resumes=True)
    assert done.result.resumed == Position(0, 0.0)
    assert done.result.steps == 30


# Other models -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: waves(medium=0.3), "the values of 'k'"),
        (lambda: _with_grid(), "the grid of the model"),
        (lambda: _with_step(), "the step of the model"),
    ],
)
def test_another_model_is_refused(tmp_path: Path, other: Callable[[], mg.Model], said: str) -> None:
    go(tmp_path, 12)
    model = other()
    with pytest.raises(CaseError, match=said):
        go(tmp_path, 30, 2, model=lambda: model, resumes=True, cut=_layouts_of(model))


def _with_grid() -> mg.Model:
    grid = mg.Grid((18, 70), periodic=(True, False), spacing=0.5)
    u = mg.Field("u", grid, slots=3, boundary=mg.fixed(0.0))
    k = mg.Field("k", grid)
    step = mg.Program("step")
    step.apply(spread, u, k, u.previous, u.next, dt=0.5)
    step.rotate(u)
    return mg.Model("waves", grid, (u, k), step)


def _with_step() -> mg.Model:
    model = waves()
    model.step.apply(spark, model.field("u"), region=mg.Region(points=[(1, 1)]))
    return model


def test_another_stop_is_refused(tmp_path: Path) -> None:
    go(tmp_path, 12, until=mg.Stop(when="step > 1000"))
    with pytest.raises(CaseError, match="the stop of the model"):
        go(tmp_path, 30, until=mg.Stop(when="step > 2000"), resumes=True)


def test_another_case_is_refused(tmp_path: Path) -> None:
    go(tmp_path, 12, case={"automaton.rule": "B3/S23"})
    with pytest.raises(CaseError, match=r"automaton\.rule: it was 'B3/S23', now it is 'B36/S23'"):
        go(tmp_path, 30, case={"automaton.rule": "B36/S23"}, resumes=True)


# The disk -----------------------------------------------------------------------------------------------------------
def test_another_machine_file_is_no_other_case(tmp_path: Path) -> None:
    case, inputs = tmp_path / "case.toml", tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "start.rle").write_text("bo$2bo$3o!")
    found = []
    for name in ("old.toml", "new.toml"):
        (inputs / name).write_text(f"name = {name!r}")
        case.write_text(f"model = 'automaton'\n[run]\nsteps = 3\nmachine = 'inputs/{name}'\n")
        found.append(case_of(case, inputs))
    assert set(found[0]) == {"model", "inputs/start.rle"}
    assert changed_entries(*found) == []
    (inputs / "start.rle").write_text("3o!")
    assert changed_entries(found[0], case_of(case, inputs)) == ["inputs/start.rle: the file has changed"]


def refusing(number: int, calls: Container[int]) -> Callable[[int, Any], int]:
    """Return what stands for `os.write` on a disk that refuses some calls, of which a checkpoint makes two."""
    count = itertools.count(1)
    write = os.write

    def refuse(descriptor: int, content: Any) -> int:
        if next(count) in calls:
            raise OSError(number, os.strerror(number))
        return write(descriptor, content)

    return refuse


def test_a_disk_that_fails_ends_the_run_and_spoils_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = go(tmp_path / "whole", 40, schedule=Checkpointing(off=True))
    with monkeypatch.context() as patch:
        patch.setattr("minga.output.checkpoint.blocks.os.write", refusing(errno.EIO, range(6, 1000)))
        with pytest.raises(RunError) as caught:
            go(tmp_path / "cut", 40)
    assert os.strerror(errno.EIO) in str(caught.value)
    assert "what was written before is intact" in str(caught.value)
    rest = go(tmp_path / "cut", 40, resumes=True)
    assert rest.result.resumed.step == 20
    assert rest.state == whole.state


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    """Of the third checkpoint the part of one rank finds no room; the fourth is written into the same place."""
    whole = go(tmp_path / "whole", 60, schedule=Checkpointing(off=True))
    with monkeypatch.context() as patch:
        calls = {4 * ranks + 1}
        patch.setattr("minga.output.checkpoint.blocks.os.write", refusing(errno.ENOSPC, calls))
        cut = go(tmp_path / "cut", 60, ranks, stop_at=45)
    told = [note for note in cut.notes if "was not written" in note]
    assert len(told) == 1
    assert "the checkpoint of step 30 was not written, and that of step 20 stays" in told[0]
    assert os.strerror(errno.ENOSPC) in told[0]
    assert min(head.step for head in heads_of(tmp_path / "cut")[0]) == 40
    assert go(tmp_path / "cut", 60, resumes=True).state == whole.state
    shutil.rmtree(tmp_path / "cut")
    with monkeypatch.context() as patch:
        patch.setattr("minga.output.checkpoint.blocks.os.write", refusing(errno.ENOSPC, range(4 * ranks + 1, 10**6)))
        cut = go(tmp_path / "cut", 60, ranks)
    assert len([note for note in cut.notes if "that of step 20 stays" in note]) == 3
    assert cut.state == whole.state


def test_blocks_of_all_kinds_and_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.output.checkpoint.blocks._SLAB_BYTES", 100)  # so that a block is read in many pieces
    rng = np.random.default_rng(0)
    shapes = {"f4": (5, 30), "bool": (7,), "u8": (3, 2, 4), "i2": (1, 1, 1)}
    pieces = [
        (name, mg.Box.of(shape).shift((4,) * len(shape)), rng.integers(0, 2, shape).astype(name))
        for name, shape in shapes.items()
    ]
    padded = np.zeros((9, 64))
    pieces.append(("f8", mg.Box((0, 0), (9, 11)), padded[:, 3:14]))
    padded[...] = rng.random(padded.shape)
    path = tmp_path / "blocks"
    blocks = write_blocks(path, 3, pieces)
    for block, (name, box, values) in zip(blocks, pieces, strict=True):
        found = np.zeros_like(values)
        read_block(path, block, name, [(box, found)])
        assert found.tobytes() == values.tobytes()
    part = np.zeros((2, 50))
    read_block(path, blocks[-1], "f8", [(mg.Box((7, 9), (9, 59)), part)])
    assert part[:, :2].tolist() == padded[7:9, 12:14].tolist()
    assert not part[:, 2:].any()
    wrong = dataclasses.replace(blocks[0], crc=1)
    with pytest.raises(DamagedCheckpoint, match="has changed"):
        read_block(path, wrong, "f4", [])
    assert Block.from_list(json.loads(json.dumps(blocks[0].as_list()))) == blocks[0]


def test_digests_do_not_depend_on_the_layout() -> None:
    model = waves()

    def digest(comm: Comm) -> dict[str, str]:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            return digests(engine, state_of(model).constant)

    assert run_virtual(1, digest) == run_virtual(3, digest)[:1]


def test_checkpoints_may_be_moved(tmp_path: Path) -> None:
    whole = go(tmp_path / "whole", 30, schedule=Checkpointing(off=True))
    go(tmp_path / "here", 18)
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert go(tmp_path / "there", 30, resumes=True).state == whole.state
