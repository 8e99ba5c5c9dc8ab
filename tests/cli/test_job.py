"""Ranks of a job on several hosts: one case for all, and a word where they have too little room."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

import minga as mg
from command_line import SMALL
from minga.cli import job
from minga.cli.case import Case, find_source, read_case
from minga.cli.job import agreed_case, crowded
from minga.engine.comm import Comm
from minga.errors import CaseError, MingaError


@pytest.fixture
def cases(in_tmp_path: Path) -> list[Path]:
    """The same case twice, and one that differs in a step."""
    paths = [in_tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.mkdir()
        text = SMALL if path.name != "c" else SMALL.replace("steps = 10", "steps = 11")
        (path / "small.toml").write_text(text)
    return paths


def agreed(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each rank gets of its own file: the steps of the case, or the error."""
    monkeypatch.setattr(job.platform, "node", iter(f"pc{n}" for n in range(99)).__next__)

    def run(comm: Comm) -> str:
        def read() -> Case:
            return read_case(find_source(str(files[comm.rank] / "small.toml")))

        try:
            return str(agreed_case(comm, read).run.steps)
        except MingaError as error:
            return str(error)

    return mg.run_virtual(len(files), run)


def test_equal_files_on_every_host_are_one_case(cases: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert agreed(cases[:2], monkeypatch) == ["10", "10"]


def test_another_case_on_a_host_is_told_on_all_ranks(cases: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    said = agreed(cases, monkeypatch)
    assert len(set(said)) == 1
    assert "has another case" in said[0]


def test_a_host_without_the_file_is_named(cases: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    said = agreed([cases[0], Path("nowhere")], monkeypatch)
    assert len(set(said)) == 1
    assert said[0].startswith("on pc")
    assert "there is no file" in said[0]


def test_files_that_a_case_names_count(cases: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for path, pattern in zip(cases, ("b2o$2o$bo!", "3o!"), strict=False):
        (path / "r.rle").write_text(f"x = 3, y = 3\n{pattern}\n")
        (path / "small.toml").write_text(SMALL.replace("{soup = 0.3, seed = 1}", '"r.rle"'))
    assert "other files that it names" in agreed(cases[:2], monkeypatch)[0]


def test_crowded_nodes_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def notes(cores: tuple[tuple[int, ...], ...], threads: int) -> tuple[str, ...]:
        monkeypatch.setattr(job, "available_cores", lambda: cores)
        (found,) = set(mg.run_virtual(2, lambda comm: crowded(comm, threads)))
        return found

    assert notes(((0,), (1,)), 1) == ()
    (note,) = notes(((0,), (1,)), 2)
    assert note.startswith(f"minga: 4 workers (ranks x threads) share 2 physical cores of {platform.node()}")
    assert "share 1 physical core of" in notes(((0, 8),), 1)[0]


def test_errors_of_rank_0_stay_as_they_are(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job.platform, "node", lambda: "pc")

    def read() -> Case:
        raise CaseError("no such thing", key="run.steps")

    def run(comm: Comm) -> tuple[str | None, str]:
        with pytest.raises(CaseError) as caught:
            agreed_case(comm, read)
        return caught.value.key, caught.value.message

    assert set(mg.run_virtual(2, run)) == {("run.steps", "no such thing")}
