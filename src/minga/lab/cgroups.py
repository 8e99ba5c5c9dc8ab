"""CPU shares and memory limits, enforced through control groups of version 1 or 2.

A quota lets a group run for ``share * period`` in each period. The kernel subtracts any excess from later periods, so
the share is correct on average over several periods, and a throttled program may wait for up to one period.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.errors import LaunchError

__all__ = [
    "LEAST_SHARE", "Hierarchies", "Throttling", "find_hierarchies", "killed_for_memory", "limits", "make_group",
    "members", "quota", "remove", "set_quota", "throttling",
]  # fmt: skip

_LEAST_QUOTA = 1000
"""Smallest quota that the kernel accepts, in microseconds; small shares therefore need longer periods."""
_MOST_PERIOD = 1_000_000
LEAST_SHARE = _LEAST_QUOTA / _MOST_PERIOD
"""Smallest share of a core that a quota can express."""
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Directories in which groups can be created; ``cpu`` and ``memory`` are equal for version 2."""

    version: int
    cpu: Path
    memory: Path


@dataclass(frozen=True, slots=True)
class Throttling:
    """Throttling statistics of a group, as the kernel reports them.

    ``periods`` is the number of periods that have passed, ``throttled`` the number of those in which the group had
    used up its quota, and ``seconds`` the time for which it had to wait; all are zero if the kernel does not tell.
    """

    periods: int = 0
    throttled: int = 0
    seconds: float = 0.0


def find_hierarchies(mounts: str | None = None, own: str | None = None) -> Hierarchies | None:
    """Return the directories in which this process may create groups with a CPU quota and a memory limit, or None.

    ``mounts`` and ``own`` are the texts of /proc/self/mountinfo and /proc/self/cgroup; None reads those files.
    """
    own_paths = _own_paths(_text("/proc/self/cgroup") if own is None else own)
    found = _mounted(_text("/proc/self/mountinfo") if mounts is None else mounts)
    if "cpu" in found and "memory" in found:
        cpu, memory = (_below(*found[name], own_paths.get(name, "/")) for name in ("cpu", "memory"))
        if all(os.access(place, os.W_OK) for place in (cpu, memory)):
            return Hierarchies(1, cpu, memory)
        return None
    if "" in found and (place := _delegated(found[""][0], _below(*found[""], own_paths.get("", "/")))):
        return Hierarchies(2, place, place)
    return None


def limits(version: int, share: float, memory: int | None, period: float) -> tuple[dict[str, str], dict[str, str]]:
    """Return the control files of a group and their contents, first for the CPU, then for memory (swap included).

    Nodes get the highest scheduling weight, so that they take precedence over other programs of the machine: only
    their quota limits them.
    """
    micros = round(min(_MOST_PERIOD, max(period * 1e6, _LEAST_QUOTA / share)))
    quota = max(_LEAST_QUOTA, round(share * micros))
    if version == 2:
        size = {} if memory is None else {"memory.max": str(memory), "memory.swap.max": "0"}
        return {"cpu.max": f"{quota} {micros}", "cpu.weight": "10000"}, size
    size = (
        {}
        if memory is None
        # The limit that includes swap must not be below the one that excludes it, so it is written second.
        else {"memory.limit_in_bytes": str(memory), "memory.memsw.limit_in_bytes": str(memory)}
    )
    return {"cpu.cfs_period_us": str(micros), "cpu.cfs_quota_us": str(quota), "cpu.shares": "262144"}, size


def make_group(directories: Sequence[str], version: int, share: float, memory: int | None, period: float) -> None:
    """Create the control groups of a node.

    Parameters
    ----------
    directories
        Directories to create: that of the CPU controller and, for version 1 and if it differs, that of memory.
    version
        Version of the control groups, 1 or 2.
    share
        Cores that the node may use.
    memory
        Memory limit in bytes; None sets no limit.
    period
        Period of the CPU quota in seconds.
    """
    cpu, size = limits(version, share, memory, period)
    contents = [{**cpu, **size}] if version == 2 else [cpu, size]
    for directory, files in zip(directories, contents):
        place = Path(directory)
        place.mkdir()
        for name, value in files.items():
            if name.startswith(("memory.memsw", "memory.swap")) and not (place / name).exists():
                continue  # this kernel does not account for swap
            (place / name).write_text(value)


def set_quota(directory: str, share: float, period: float) -> None:
    """Change the CPU quota of an existing group to ``share`` cores in each ``period`` (seconds)."""
    place = Path(directory)
    version = 2 if (place / "cpu.max").exists() else 1
    for name, value in limits(version, share, None, period)[0].items():
        (place / name).write_text(value)


def quota(directories: Sequence[str]) -> float | None:
    """Return the number of cores that a group may use now; None if it is unlimited or cannot be read."""
    for directory in directories:
        place = Path(directory)
        with contextlib.suppress(OSError, ValueError):
            most, period = (place / "cpu.max").read_text().split()
            return int(most) / int(period)
        with contextlib.suppress(OSError, ValueError):
            most, period = ((place / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            return int(most) / int(period) if int(most) > 0 else None
    return None


def members(directories: Sequence[str]) -> set[int]:
    """Return the ids of the processes in a group."""
    found: set[int] = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            found.update(map(int, (Path(directory) / "cgroup.procs").read_text().split()))
    return found


def throttling(directories: Sequence[str]) -> Throttling:
    """Return how often, and for how long, a group has been throttled by its quota."""
    for directory in directories:
        with contextlib.suppress(OSError, ValueError):
            pairs = (line.split() for line in (Path(directory) / "cpu.stat").read_text().splitlines())
            values = {key: int(value) for key, value in pairs}
            seconds = values.get("throttled_time", 0) * 1e-9 + values.get("throttled_usec", 0) * 1e-6
            return Throttling(values.get("nr_periods", 0), values.get("nr_throttled", 0), seconds)
    return Throttling()


def killed_for_memory(directories: Sequence[str]) -> int:
    """Return the number of processes of a group that were killed because it reached its memory limit."""
    for directory in directories:
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, ValueError):
                pairs = (line.split() for line in (Path(directory) / name).read_text().splitlines())
                return {key: int(value) for key, value in pairs}.get("oom_kill", 0)
    return 0


def remove(directories: Sequence[str]) -> None:
    """Remove groups whose processes have ended."""
    for directory in directories:
        _remove_when_empty(Path(directory))


def _remove_when_empty(place: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            place.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise LaunchError(
                    f"the control group {place} cannot be removed: {error.strerror}",
                    remedy=f"end the processes in {place / 'cgroup.procs'}, then rmdir {place}",
                ) from error
            time.sleep(0.005)
        else:
            return


def _mounted(mounts: str) -> dict[str, tuple[Path, str]]:
    """Return the mount point, and the root of the mounted hierarchy, of each controller ("" stands for version 2)."""
    found: dict[str, tuple[Path, str]] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if not after:
            continue
        root, place = before.split()[3:5]
        kind, _, options = (*after.split(), "", "")[:3]
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            found.setdefault(name, (Path(place), root))
    return found


def _own_paths(text: str) -> dict[str, str]:
    """Return the group of this process for each controller of version 1 ("" stands for version 2)."""
    rows = (line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2)
    return {name: path for _, names, path in rows for name in names.split(",")}


def _below(place: Path, root: str, own: str) -> Path:
    """Return the directory of group ``own``, given that the hierarchy is mounted at ``place`` from ``root`` on."""
    if root != "/" and (own == root or own.startswith(root + "/")):
        own = own[len(root) :]
    directory = place / own.lstrip("/")
    return directory if directory.is_dir() else place


def _delegated(top: Path, own: Path) -> Path | None:
    """Return the outermost version 2 group from ``top`` to ``own`` whose subgroups can get CPU and memory limits.

    Except for the root, a group that contains processes cannot enable controllers for its subgroups. The groups of a
    lab therefore lie beside the group of this process, in a group that was delegated to this user.
    """
    inside = own.relative_to(top).parts if own.is_relative_to(top) else ()
    for count in range(len(inside) + 1):
        place = top.joinpath(*inside[:count])
        if os.access(place, os.W_OK) and os.access(place / "cgroup.procs", os.W_OK) and _enable(place):
            return place
    return None


def _enable(place: Path) -> bool:
    """Enable CPU and memory limits for the subgroups of ``place``; return False if that is not permitted."""
    wanted = {"cpu", "memory"}
    control = place / "cgroup.subtree_control"
    try:
        missing = sorted(wanted - set(control.read_text().split()))
        if missing:
            control.write_text(" ".join(f"+{name}" for name in missing))
        return wanted <= set(control.read_text().split())
    except OSError:
        return False


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
