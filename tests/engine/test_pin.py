"""Cores: which there are, how ranks share them, and when a rank is kept on its share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minga.engine.pin import available_cores, local_place, pin, share

ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
linux = pytest.mark.skipif(not ALLOWED, reason="needs a system with processor affinity, such as Linux")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight logical processors on four cores, as the system describes them."""
    for cpu in range(8):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    return tmp_path


def test_hardware_threads_of_a_core_count_once(machine: Path) -> None:
    assert available_cores(machine, machine / "none") == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_affinity_is_honoured(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 2, 6}, raising=False)
    assert available_cores(machine, machine / "none") == ((1,), (2, 6))


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 4), ("150000 100000", 2), ("50000 100000", 1)])
def test_a_container_quota_is_honoured(machine: Path, quota: str, cores: int) -> None:
    """Also that of a group around the process's own."""
    for place in ("/", "/user.slice/run-1.scope"):
        root = machine / place.strip("/").replace("/", "-")
        for folder in (root / "proc/self", root / "sys/fs/cgroup" / place.strip("/")):
            folder.mkdir(parents=True)
        (root / "proc/self/cgroup").write_text(f"0::{place}\n")
        group = root / "sys/fs/cgroup" / ("user.slice" if place != "/" else "")
        (group / "cpu.max").write_text(quota + "\n")
        assert len(available_cores(machine, root)) == cores


def test_without_a_description_every_processor_is_a_core(machine: Path) -> None:
    assert len(available_cores(machine / "none", machine / "none")) == 8


@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (3, 2), (4, 2), (8, 1), (2, 4), (1, 8)])
def test_shares_do_not_meet_and_spread(ranks: int, threads: int) -> None:
    cores = [(i,) for i in range(8)]
    shares = [share(cores, rank, ranks, threads) for rank in range(ranks)]
    assert all(len(mine) == threads for mine in shares)
    used = [core for mine in shares for core in mine]
    assert len(set(used)) == len(used)
    assert [mine[0][0] for mine in shares] == [rank * 8 // ranks for rank in range(ranks)]


def test_the_launcher_says_who_is_where(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert local_place(3, 4) == (3, 4)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    assert local_place(3, 4) == (1, 2)


def in_a_process(rank: int, ranks: int, threads: int, **environment: str) -> tuple[list[int], bool]:
    """What is left to a process that pins itself, and whether it says it did."""
    code = f"""
import os
from minga.engine.pin import pin
pinned = pin({rank}, {ranks}, {threads}).pinned
print(*sorted(os.sched_getaffinity(0)), pinned)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    *cpus, pinned = done.stdout.split()
    return [int(cpu) for cpu in cpus], pinned == "True"


@linux
def test_ranks_that_fill_the_machine_are_kept_apart() -> None:
    cores = available_cores()
    left = [in_a_process(rank, len(cores), 1) for rank in range(len(cores))]
    assert all(pinned for _, pinned in left)
    assert sorted(cpu for cpus, _ in left for cpu in cpus) == sorted(cpu for core in cores for cpu in core)


@linux
def test_nothing_is_pinned_where_it_would_not_help() -> None:
    count = len(available_cores())
    assert in_a_process(0, count + 1, 1) == (ALLOWED, False)
    assert in_a_process(0, count, 1, MINGA_PIN="off") == (ALLOWED, False)
    if count > 1:
        assert in_a_process(0, 1, 1) == (ALLOWED, False)


@linux
def test_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_PIN", "off")
    assert pin(0, 1, 1).reason == "MINGA_PIN is off"
