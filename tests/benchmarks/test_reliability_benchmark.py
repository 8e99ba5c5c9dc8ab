"""The benchmark of faults: what is stored has no fault that was not survived, and quick runs of the parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.reliability.__main__ import markdown

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "reliability.json"


def test_the_stored_counts_are_complete_and_without_a_fault() -> None:
    content = json.loads(STORED.read_text())
    found = content["results"]
    kills = found["kills"]
    assert (kills["runs"], kills["killed_and_resumed"], kills["equal"], kills["differing"]) == (200, 200, 200, [])
    assert kills["kills"] >= 200
    assert (found["hosts"]["faults"], found["hosts"]["problems"]) == (50, [])
    assert found["inputs"]["inputs"] >= 1_000_000
    assert found["inputs"]["faulty"] == 0
    assert all(each["passed"] for each in found["broadcasts"].values())
    soak = found["soak"]
    assert soak["simulated_hours"] >= 24
    assert soak["events"] >= 500
    assert soak["digest"] == soak["undisturbed"]
    assert soak["given_up"] == 0
    assert soak["efficiency"] >= 0.85
    assert markdown(content) in (ROOT / "docs" / "reliability.md").read_text()


def quick(tmp_path: Path, part: str) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.reliability", "--quick", "--only", part]
    done = subprocess.run([*words, "--out", str(tmp_path / "out.json")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())["results"][part]
    return found


@pytest.mark.slow
@pytest.mark.mpi
def test_killed_runs_have_the_same_bits(tmp_path: Path) -> None:
    found = quick(tmp_path, "kills")
    assert found["killed_and_resumed"] == found["equal"] == 4
    assert found["differing"] == []


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists(),
    reason="builds a lab with ssh servers: run it as root, with the Debian package openssh-server",
)
def test_runs_survive_the_loss_of_hosts(tmp_path: Path) -> None:
    assert quick(tmp_path, "hosts")["problems"] == []


@pytest.mark.slow
def test_an_hour_of_a_soak_loses_nothing(tmp_path: Path) -> None:
    found = quick(tmp_path, "soak")
    assert found["digest"] == found["undisturbed"]
    assert found["events"] > 0


@pytest.mark.slow
def test_broken_inputs_are_answered(tmp_path: Path) -> None:
    assert quick(tmp_path, "inputs")["faulty"] == 0
