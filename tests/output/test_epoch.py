"""Only the process that has begun last to write a run may go on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import minga as mg
from minga.errors import RunError
from minga.output.epoch import begin_epoch, epoch_number


def test_the_last_one_that_begins_may_write(tmp_path: Path) -> None:
    path = tmp_path / "epoch"
    first = begin_epoch(path)
    first.check()
    second = begin_epoch(path)
    second.check()
    assert (first.number, second.number) == (1, 2)
    with pytest.raises(RunError, match="another process has resumed the run"):
        first.check()
    assert not replace(second, mark="of another one that began at the same time").lasts
    assert replace(second, number=3).lasts  # reads an old copy
    path.unlink()
    second.check()


def test_an_earlier_process_writes_neither_frames_nor_checkpoints(tmp_path: Path) -> None:
    """Another one takes the run over after ten steps."""
    model = mg.automaton("B3/S23", (32, 32), init={"soup": 0.4, "seed": 1})
    run = tmp_path / "run"

    def take_over(simulation: mg.Simulation) -> None:
        if simulation.step == 10:
            begin_epoch(run / "epoch")

    watching = [mg.observer(take_over, steps=1)]
    for settings in ({"checkpoint": 5}, {"every": 5, "checkpoint": "off"}):
        with pytest.raises(RunError, match="another process has resumed the run"):
            mg.run(model, 30, out=run, observers=watching, **settings)
        steps = [int(step) for step in mg.open(run)["step"].values]
        assert max(steps) <= 10
        shutil.rmtree(run)


def test_a_host_with_an_old_run_at_the_same_path_checks_nothing(tmp_path: Path) -> None:
    """Hosts that share no files: the epoch of rank 0 says nothing about a directory that another one has there."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    begin_epoch(there / "epoch")
    mine = begin_epoch(here / "epoch")
    assert mine.at(here / "epoch") == mine
    for elsewhere in (there / "epoch", tmp_path / "nowhere"):
        assert mine.at(elsewhere).lasts
        mine.at(elsewhere).check()
    begin_epoch(here / "epoch")
    assert not mine.lasts
    assert epoch_number(here / "epoch") == 2
