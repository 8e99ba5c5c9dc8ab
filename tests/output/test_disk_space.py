"""Room on the disk is looked at before a run starts, from Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import minga as mg
from command_line import in_process
from minga.options import RunOptions
from minga.output import disk_space
from minga.output.checkpoint.keeper import Checkpointing
from minga.output.directory import RunDirectory

FRAME = 32 * 64
"""Bytes of a frame of the model."""
CASE = """\
model = "automaton"
[grid]
shape = [32, 64]
[automaton]
rule = "B3/S23"
init = { soup = 0.4, seed = 1 }
[run]
steps = 4
ranks = 1
[output]
every = 1
pictures = 0
report = false
"""


def life() -> mg.Model:
    return mg.automaton("B3/S23", (32, 64), init={"soup": 0.4, "seed": 1})


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """What the file system says is free; an entry to be changed."""
    said: list[int | None] = [5 * FRAME - 1]
    monkeypatch.setattr(disk_space, "free_bytes", lambda place: said[0])
    return said


@pytest.mark.few(2)
@pytest.mark.parametrize(("steps", "every", "frames"), [(0, None, 1), (9, None, 2), (9, 3, 4), (10, 3, 5), (0, 4, 1)])
def test_frames_are_counted(tmp_path: Path, steps: int, every: int | None, frames: int) -> None:
    assert disk_space.frames_of(steps, every) == frames
    assert mg.run(life(), steps, every=every, out=tmp_path / "run").sizes["time"] == frames


def test_what_cannot_fit_is_refused_with_numbers(tmp_path: Path, free: list[int | None]) -> None:
    with pytest.raises(mg.CaseError, match=r"5 frames of 2\.05 kB, 10\.2 kB in all; .*/run has room for 10\.2 kB"):
        mg.run(life(), 4, every=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    free[0] = 100 * FRAME
    assert mg.run(life(), 4, every=1, out=tmp_path / "run").sizes["time"] == 5


def test_frames_that_are_there_need_no_room(tmp_path: Path, free: list[int | None]) -> None:
    free[0] = None
    mg.run(life(), 4, every=1, out=tmp_path / "run", checkpoint=Checkpointing(steps=2, at_end=True))
    free[0] = 2 * FRAME
    off = Checkpointing(off=True)
    assert mg.run(life(), 6, every=1, out=tmp_path / "run", checkpoint=off, resume=True).sizes["time"] == 7
    options = RunOptions.of({}, {"every": "off"}, steps=9, every=1)
    need = disk_space.need_of(RunDirectory(tmp_path / "run"), life(), life().fields, options)
    assert (need.frames, need.checkpoints) == (3, 0)


def test_what_may_not_fit_is_told(tmp_path: Path, free: list[int | None], capfd: pytest.CaptureFixture[str]) -> None:
    mg.run(life(), 4, every=1, out=tmp_path / "a", stop=mg.Stop(when="step > 2"))
    assert "may write 5 frames of 2.05 kB, 10.2 kB in all at most and" in capfd.readouterr().err
    free[0] = 5 * FRAME
    mg.run(life(), 4, every=1, out=tmp_path / "b")
    assert "of checkpoints; " in capfd.readouterr().err
    mg.run(life(), 4, every=1, out=tmp_path / "c", checkpoint=Checkpointing(off=True))
    assert "room" not in capfd.readouterr().err


def test_the_command_line_looks_as_well(tmp_path: Path, free: list[int | None]) -> None:
    (tmp_path / "life.toml").write_text(CASE)
    said = in_process("run", tmp_path / "life.toml", "--out", tmp_path / "run")
    assert said.status == 2
    assert "the run would write 5 frames" in said.err
    assert not (tmp_path / "run").exists()
    said = in_process("run", tmp_path / "life.toml", "--out", tmp_path / "run", "--set", "output.codec=blosc")
    assert said.status == 0
    assert "the run may write 5 frames" in said.err


def test_a_file_system_is_asked(tmp_path: Path) -> None:
    assert (disk_space.free_bytes(tmp_path) or 0) > 0
    assert disk_space.free_bytes(tmp_path / "nowhere") is None
