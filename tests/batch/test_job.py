"""What follows after a job, by how its run has ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minga.batch.job import main
from minga.batch.record import JobEntry, note_entry, read_entries, reopen
from minga.batch.verdict import Told, verdict_of
from minga.output.directory import RunDirectory

LIMIT, ENDED, NOTHING = Told(limit=True), Told(ended=True), Told()


@pytest.mark.parametrize(
    ("reason", "status", "told", "first", "last", "then", "exit_status"),
    [
        ("steps", 0, NOTHING, None, None, "complete", 0),
        ("steps", 0, ENDED, None, None, "complete", 0),
        ("asked", 0, NOTHING, None, 5, "failed", 1),
        ("asked", 130, LIMIT, None, 5, "next", 0),
        ("asked", 130, LIMIT, 5, 9, "next", 0),
        ("asked", 130, LIMIT, 5, 5, "stuck", 1),
        ("asked", 130, LIMIT, None, None, "stuck", 1),
        ("time limit", 75, NOTHING, None, 5, "next", 0),
        ("time limit", 75, NOTHING, 5, 5, "stuck", 1),
        ("asked", 130, ENDED, None, 5, "ended", 130),
        ("asked", 130, Told(limit=True, ended=True), None, 5, "ended", 130),
        ("asked", 130, NOTHING, None, 5, "failed", 130),
        ("asked", 1, LIMIT, None, 5, "failed", 1),
        ("asked", -9, NOTHING, None, 5, "failed", 1),
        ("asked", -9, LIMIT, None, 5, "next", 0),
    ],
)
def test_what_follows(
    tmp_path: Path,
    reason: str,
    status: int,
    told: Told,
    first: int | None,
    last: int | None,
    then: str,
    exit_status: int,
) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"ended": {"reason": reason}}))
    found = verdict_of(RunDirectory(tmp_path), status, told, first, last)
    assert (found.then, found.status) == (then, exit_status)


def test_a_job_is_noted_once_for_each_start(tmp_path: Path) -> None:
    note_entry(tmp_path, JobEntry("7", 100.0))
    note_entry(tmp_path, JobEntry("7", 100.0, 150.0, None, 5, 130, "next"))
    note_entry(tmp_path, JobEntry("7", 200.0, first=5))
    assert [(entry.began, entry.last, entry.then) for entry in read_entries(tmp_path)] == [
        (100.0, 5, "next"),
        (200.0, None, ""),
    ]
    reopen(tmp_path)
    note_entry(tmp_path, JobEntry("8", 300.0, then="complete"))
    reopen(tmp_path)
    assert [entry.then for entry in read_entries(tmp_path)] == ["next", "", "extended"]
    (tmp_path / "jobs.json").write_text("{")
    assert read_entries(tmp_path) == []


def test_the_program_of_a_job_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert main([str(tmp_path), "30"]) == 1
    assert "this is not a job of Slurm" in capsys.readouterr().err
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert main([str(tmp_path), "30"]) == 2
    assert "is not a run directory" in capsys.readouterr().err
