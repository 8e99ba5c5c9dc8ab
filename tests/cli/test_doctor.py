"""The doctor: finds what is here, and says what is wrong."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from command_line import in_process
from minga import plugins
from minga.cli.doctor import GROUP, examine


@pytest.mark.mpi
def test_a_sound_machine() -> None:
    said = in_process("doctor", "--json")
    report = json.loads(said.out)
    found = {finding["name"]: finding for finding in report["findings"]}
    assert [name for name, finding in found.items() if finding["state"] == "problem"] == []
    assert report["ok"]
    assert said.status == 0
    assert found["packages"]["data"]["numpy"]
    assert found["compiler"]["data"]["llvm"]
    assert found["processor"]["data"]["features"]
    assert found["cores"]["data"]["cores"] >= 1
    assert found["MPI library"]["data"]["vendor"] == found["MPI launcher"]["data"]["vendor"]
    assert found["ranks"]["data"]["world"] == "2"


def test_a_launcher_that_is_none_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_MPIEXEC", "no-such-program")
    said = in_process("doctor")
    assert said.status == 1
    problems = [line for line in said.out.splitlines() if line.startswith("PROBLEM")]
    assert len(problems) == 2
    assert all("no-such-program" in line for line in problems)
    assert "ok      Python" in said.out
    assert "MPIs for labs" in said.out  # a check that a satellite adds


def test_a_check_that_cannot_be_imported_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("gauge", "no_such_package:check", GROUP)
    monkeypatch.setattr("minga.plugins.entry_points", lambda *, group: [broken])
    monkeypatch.setenv("MINGA_MPIEXEC", "no-such-program")  # starts no ranks
    plugins._found.cache_clear()
    try:
        (gauge,) = [finding for finding in examine() if finding.name == "gauge"]
    finally:
        plugins._found.cache_clear()
    assert gauge.state == "problem"
    assert "no_such_package" in gauge.text


def test_a_cache_that_cannot_be_written_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINGA_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("MINGA_MPIEXEC", "no-such-program")  # starts no ranks
    (cache,) = [finding for finding in examine() if finding.name == "cache"]
    assert cache.state == "problem"
    assert "cannot be written" in cache.text
