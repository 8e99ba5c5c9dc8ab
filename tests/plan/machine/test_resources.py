"""What a host has, as the system tells it: limits of control groups of both versions count."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.engine.quotas import quota
from minga.plan.machine.resources import available_memory, processor_name, total_memory


def files(root: Path, **content: str) -> Path:
    """A system's files: names with __ for /."""
    for name, text in content.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


MEMORY = "MemTotal:       1000 kB\nMemAvailable:    600 kB"


def put(root: Path, place: str, text: str) -> None:
    file = root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def test_memory_without_limits(tmp_path: Path) -> None:
    files(tmp_path, proc__meminfo=MEMORY, proc__self__cgroup="0::/")
    assert total_memory(tmp_path) == 1000 << 10
    assert available_memory(tmp_path) == 600 << 10


def test_the_tightest_group_of_version_2_counts(tmp_path: Path) -> None:
    files(tmp_path, proc__meminfo=MEMORY, proc__self__cgroup="0::/lab/node1")
    put(tmp_path, "sys/fs/cgroup/lab/memory.max", "409600")
    put(tmp_path, "sys/fs/cgroup/lab/memory.current", "102400")
    put(tmp_path, "sys/fs/cgroup/lab/node1/memory.max", "max")
    put(tmp_path, "sys/fs/cgroup/lab/node1/memory.current", "100")
    put(tmp_path, "sys/fs/cgroup/lab/node1/cpu.max", "2500 5000")
    put(tmp_path, "sys/fs/cgroup/lab/cpu.max", "max 100000")
    assert total_memory(tmp_path) == 409600
    assert available_memory(tmp_path) == 307200
    assert quota(tmp_path) == pytest.approx((2.5e-3, 5e-3))


def test_version_1(tmp_path: Path) -> None:
    groups = "5:memory:/lab\n4:cpu,cpuacct:/lab/node2\n0::/"
    files(tmp_path, proc__meminfo=MEMORY, proc__self__cgroup=groups)
    put(tmp_path, "sys/fs/cgroup/memory/lab/memory.limit_in_bytes", "204800")
    put(tmp_path, "sys/fs/cgroup/memory/lab/memory.usage_in_bytes", "4800")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/lab/node2/cpu.cfs_quota_us", "20000")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/lab/node2/cpu.cfs_period_us", "100000")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_quota_us", "-1")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_period_us", "100000")
    assert available_memory(tmp_path) == 200_000
    assert quota(tmp_path) == pytest.approx((0.02, 0.1))


def test_nobody_tells(tmp_path: Path) -> None:
    assert total_memory(tmp_path) is None
    assert available_memory(tmp_path) is None
    assert quota(tmp_path) is None
    assert processor_name(tmp_path)


def test_the_processor_is_what_its_maker_calls_it(tmp_path: Path) -> None:
    files(tmp_path, proc__cpuinfo="processor : 0\nmodel name : Pentium  II\n")
    assert processor_name(tmp_path) == "Pentium II"
    assert available_memory() is None or available_memory() > 0  # type: ignore[operator]
