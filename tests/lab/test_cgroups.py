"""Quotas and limits of control groups: where they are made and what is written, for both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.lab.cgroups import (
    Hierarchies,
    Throttling,
    find_hierarchies,
    killed_for_memory,
    limits,
    make_group,
    quota,
    set_quota,
    throttling,
)


def mounts(*rows: tuple[str, Path, str, str]) -> str:
    """/proc/self/mountinfo for (root, place, file system, options)."""
    return "".join(
        f"30 20 0:30 {root} {place} rw,relatime shared:9 - {kind} x {options}\n" for root, place, kind, options in rows
    )


@pytest.mark.parametrize(
    ("share", "period", "expected"),
    [
        (0.8, 5e-3, ("5000", "4000")),
        (2.0, 5e-3, ("5000", "10000")),
        (0.2, 5e-3, ("5000", "1000")),
        (0.05, 5e-3, ("20000", "1000")),  # the kernel takes no quota below 1 ms
        (0.0005, 5e-3, ("1000000", "1000")),  # and no period above 1 s
    ],
)
def test_quotas_are_shares_of_a_period(share: float, period: float, expected: tuple[str, str]) -> None:
    first, _ = limits(1, share, None, period)
    assert (first["cpu.cfs_period_us"], first["cpu.cfs_quota_us"]) == expected
    second, _ = limits(2, share, None, period)
    assert second["cpu.max"] == f"{expected[1]} {expected[0]}"


def test_memory_limits_include_swap() -> None:
    assert limits(2, 1.0, 10**9, 5e-3)[1] == {"memory.max": "1000000000", "memory.swap.max": "0"}
    first = limits(1, 1.0, 10**9, 5e-3)[1]
    assert list(first) == ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]  # in the order the kernel takes
    assert set(first.values()) == {"1000000000"}


def test_version_1_is_found_below_our_own_groups(tmp_path: Path) -> None:
    cpu, memory = tmp_path / "cpu,cpuacct", tmp_path / "memory"
    (cpu / "batch/job").mkdir(parents=True)
    (memory / "job").mkdir(parents=True)
    text = mounts(("/", cpu, "cgroup", "rw,cpu,cpuacct"), ("/outer", memory, "cgroup", "rw,memory"))
    own = "5:cpu,cpuacct:/batch/job\n4:memory:/outer/job\n0::/\n"
    assert find_hierarchies(text, own) == Hierarchies(1, cpu / "batch/job", memory / "job")


def version_2(place: Path, *, controls: str) -> None:
    place.mkdir(exist_ok=True)
    (place / "cgroup.procs").write_text("")
    (place / "cgroup.subtree_control").write_text(controls)


def test_version_2_is_found_where_it_was_delegated(tmp_path: Path) -> None:
    slices = [
        tmp_path,
        tmp_path / "user.slice",
        tmp_path / "user.slice/user@7.service",
        tmp_path / "user.slice/user@7.service/app",
    ]
    for place in slices:
        version_2(place, controls="cpu memory pids")
    text = mounts(("/", tmp_path, "cgroup2", "rw"))
    own = "0::/user.slice/user@7.service/app\n"
    for place in slices[:2]:  # not ours to write
        (place / "cgroup.procs").unlink()
    assert find_hierarchies(text, own) == Hierarchies(2, slices[2], slices[2])
    for place in slices[2:]:
        (place / "cgroup.procs").unlink()
    assert find_hierarchies(text, own) is None


def test_without_hierarchies_there_are_no_quotas(tmp_path: Path) -> None:
    assert find_hierarchies("", "") is None
    assert find_hierarchies(mounts(("/", tmp_path, "cgroup", "rw,memory")), "4:memory:/\n") is None


def test_a_group_of_version_2_has_all_in_one_directory(tmp_path: Path) -> None:
    place = tmp_path / "minga-x-0"
    make_group([str(place)], 2, 0.5, 10**9, 5e-3)
    assert (place / "cpu.max").read_text() == "2500 5000"
    assert (place / "memory.max").read_text() == "1000000000"


@pytest.mark.parametrize("version", [1, 2])
def test_a_quota_can_be_changed_and_read(version: int, tmp_path: Path) -> None:
    place = str(tmp_path / "minga-x-0")
    make_group([place], version, 0.5, None, 5e-3)
    assert quota([place]) == 0.5
    set_quota(place, 0.2, 5e-3)
    assert quota([place]) == 0.2
    assert quota([str(tmp_path)]) is None


@pytest.mark.parametrize("name", ["memory.events", "memory.oom_control"])
def test_ends_for_want_of_memory_are_counted(name: str, tmp_path: Path) -> None:
    assert killed_for_memory([str(tmp_path)]) == 0
    (tmp_path / name).write_text("under_oom 0\noom_kill 3\n")
    assert killed_for_memory(["/nowhere", str(tmp_path)]) == 3


def test_nodes_come_before_other_programs() -> None:
    """Else a node gets less than its share while anything else computes; the kernel's default is 1024, and 100."""
    assert limits(1, 0.1, None, 5e-3)[0]["cpu.shares"] == "262144"
    assert limits(2, 0.1, None, 5e-3)[0]["cpu.weight"] == "10000"


def test_waiting_for_the_quota_is_read_from_both_versions(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nthrottled_time 2500000000\n")
    assert throttling([str(tmp_path)]) == Throttling(9, 4, 2.5)
    (tmp_path / "cpu.stat").write_text("usage_usec 77\nnr_periods 9\nnr_throttled 4\nthrottled_usec 2500000\n")
    assert throttling([str(tmp_path)]) == Throttling(9, 4, 2.5)
    assert throttling([str(tmp_path / "gone")]) == Throttling()
