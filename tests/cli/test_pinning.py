"""Ranks go to their cores before they allocate, and stay where a launcher bound them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import minga as mg
from command_line import SMALL, in_process
from minga.cli import perform
from minga.engine.comm import Comm
from minga.engine.pin import Pinning, available_cores
from minga.plan.topology import seats_of
from minga.running import session
from mpi_launch import run_ranks

CORES = available_cores()
two_cores = pytest.mark.skipif(
    len(CORES) < 2 or not hasattr(os, "sched_setaffinity"),
    reason="binds ranks to cores: run it on Linux with two cores or more",
)

AS_A_LAUNCHER_BINDS = f"""
import os, runpy, sys
os.sched_setaffinity(0, {{{[core[0] for core in CORES]}[-1 - int(os.environ["PMI_RANK"])]}})
runpy.run_module("minga.cli.main", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case, ``small.toml``, in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_memory_comes_after_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to start a run leads through here: first touch must happen on the rank's own cores."""
    happened: list[str] = []

    def pin(*place: Any) -> Pinning:
        happened.append("pinned")
        return Pinning((0,), False, "for the test")

    class Engine(session.Engine):
        def __init__(self, *layouts: Any, **settings: Any) -> None:
            happened.append("allocates")
            super().__init__(*layouts, **settings)

    monkeypatch.setattr(perform, "pin", pin)
    monkeypatch.setattr(session, "Engine", Engine)
    assert in_process("run", "small.toml", "--json").status == 0
    assert happened == ["pinned", "allocates"]


@pytest.mark.slow
@two_cores
@pytest.mark.mpi
def test_where_a_launcher_bound_ranks_they_stay(in_tmp_path: Path) -> None:
    script = in_tmp_path / "bound.py"
    script.write_text(AS_A_LAUNCHER_BINDS)
    job = run_ranks(2, script, "run", "small.toml", "--json").check()
    ledger = json.loads(Path(json.loads(job.out[0])["run"], "ledger.json").read_text())
    assert [entry["processor"] for entry in ledger["ranks"]] == [[CORES[-1][0]], [CORES[-2][0]]]
    first, second = ledger["machine"]["seats"]
    assert first[0] == second[0]
    assert first > second


@two_cores
def test_seats_of_bound_ranks_are_told_apart() -> None:
    """Each rank sees its own processor only; what it shares with the others the system still tells."""

    def seats(comm: Comm) -> list[list[int]]:
        before = os.sched_getaffinity(0)  # of this thread
        os.sched_setaffinity(0, {CORES[1 - comm.rank][0]})
        try:
            found = seats_of(comm)
        finally:
            os.sched_setaffinity(0, before)
        return found.paths.tolist()

    first, second = mg.run_virtual(2, seats)[0]
    assert first > second
