"""Directories of runs on hosts that do not see them: what is kept there, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.launch.stand_in import StandIn, default_place


def checkpoint(folder: Path) -> Path:
    file = folder / "checkpoints/a/checkpoint.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    return file


def test_nothing_is_kept_but_checkpoints(tmp_path: Path) -> None:
    made = StandIn.made(str(tmp_path), "life-1")
    (made.folder / "checkpoints/a").mkdir(parents=True)
    made.leave()
    assert list(tmp_path.iterdir()) == []
    made = StandIn.made(str(tmp_path), "life-1")
    file = checkpoint(made.folder)
    made.leave()
    assert file.exists()
    again = StandIn.made(str(tmp_path), "life-1")
    assert again.folder == made.folder
    file.unlink()
    made.leave()  # it is no longer its own
    assert again.folder.exists()
    again.leave()
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_in_another_place_are_kept_and_go_with_it(tmp_path: Path) -> None:
    made = StandIn.made(str(tmp_path), "life-1")
    file = checkpoint(tmp_path / "fast")
    (made.folder / "checkpoints").symlink_to(tmp_path / "fast/checkpoints")
    made.leave()
    assert made.folder.exists()
    file.unlink()
    made.leave()
    assert [path.name for path in tmp_path.iterdir()] == ["fast"]
    assert list((tmp_path / "fast").iterdir()) == []


def test_a_run_that_was_resumed_on_its_host_is_left_alone(tmp_path: Path) -> None:
    made = StandIn.made(str(tmp_path), "life-1")
    (made.folder / "case.toml").write_text("")
    (made.folder / ".host").unlink()  # as `minga run --resume` there does
    other = StandIn.made(str(tmp_path), "life-1")
    assert other.folder.name == "life-1-2"
    for each in (made, other):
        each.leave()
    assert [path.name for path in tmp_path.iterdir()] == ["life-1"]


def test_the_default_place_outlives_a_restart_where_there_is_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_place() == tmp_path / "state/minga/runs"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert default_place() == tmp_path
