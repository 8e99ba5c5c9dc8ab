"""Shares of a CPU and limits of memory, by control groups of version 1 and 2.

A quota lets a group run for ``share * period`` in each period; the kernel takes back what was used too much, so the
share is right on average over some periods, and a waiting program may wait for up to one of them.
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
"""Microseconds: the kernel takes no smaller quota, so that small shares need longer periods."""
_MOST_PERIOD = 1_000_000
LEAST_SHARE = _LEAST_QUOTA / _MOST_PERIOD
"""Of a core; less cannot be given."""
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where groups can be made: ``cpu`` and ``memory`` are directories, equal for version 2."""

    version: int
    cpu: Path
    memory: Path


@dataclass(frozen=True, slots=True)
class Throttling:
    """CPU seconds a group has used where the kernel tells, and how often and how long it had to wait for its quota."""

    periods: int = 0
    throttled: int = 0
    seconds: float = 0.0


def find_hierarchies(mounts: str | None = None, own: str | None = None) -> Hierarchies | None:
    """The directories in which this process may make groups with a CPU quota and a memory limit, or None.

    ``mounts`` and ``own`` are the texts of /proc/self/mountinfo and /proc/self/cgroup.
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
    """The files of a group and what to write there: those of the CPU, those of memory (swap included).

    Before other programs of the machine, nodes come first: their quota is all that holds them back.
    """
    micros = round(min(_MOST_PERIOD, max(period * 1e6, _LEAST_QUOTA / share)))
    quota = max(_LEAST_QUOTA, round(share * micros))
    if version == 2:
        size = {} if memory is None else {"memory.max": str(memory), "memory.swap.max": "0"}
        return {"cpu.max": f"{quota} {micros}", "cpu.weight": "10000"}, size
    size = (
        {}
        if memory is None
        # The limit with swap may not be below the one without, so that it comes second.
        else {"memory.limit_in_bytes": str(memory), "memory.memsw.limit_in_bytes": str(memory)}
    )
    return {"cpu.cfs_period_us": str(micros), "cpu.cfs_quota_us": str(quota), "cpu.shares": "262144"}, size


def make_group(directories: Sequence[str], version: int, share: float, memory: int | None, period: float) -> None:
    """Make the group of a node: in ``directories``, that of the CPU and, for version 1, that of memory."""
    cpu, size = limits(version, share, memory, period)
    contents = [{**cpu, **size}] if version == 2 else [cpu, size]
    for directory, files in zip(directories, contents):
        place = Path(directory)
        place.mkdir()
        for name, value in files.items():
            if name.startswith(("memory.memsw", "memory.swap")) and not (place / name).exists():
                continue  # a kernel that does not count swap
            (place / name).write_text(value)


def set_quota(directory: str, share: float, period: float) -> None:
    """Change the quota of a group that is there."""
    place = Path(directory)
    version = 2 if (place / "cpu.max").exists() else 1
    for name, value in limits(version, share, None, period)[0].items():
        (place / name).write_text(value)


def quota(directories: Sequence[str]) -> float | None:
    """Cores that a group may use now; None where that is not limited or cannot be read."""
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
    """The processes in a group."""
    found: set[int] = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            found.update(map(int, (Path(directory) / "cgroup.procs").read_text().split()))
    return found


def throttling(directories: Sequence[str]) -> Throttling:
    """How much the quota of a group has bitten."""
    for directory in directories:
        with contextlib.suppress(OSError, ValueError):
            pairs = (line.split() for line in (Path(directory) / "cpu.stat").read_text().splitlines())
            values = {key: int(value) for key, value in pairs}
            seconds = values.get("throttled_time", 0) * 1e-9 + values.get("throttled_usec", 0) * 1e-6
            return Throttling(values.get("nr_periods", 0), values.get("nr_throttled", 0), seconds)
    return Throttling()


def killed_for_memory(directories: Sequence[str]) -> int:
    """How many processes of a group were killed as its memory limit was reached."""
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
    """For each controller of version 1, and "" for version 2, where it is mounted and which part of it that is."""
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
    """The group this process is in, for each controller of version 1, and "" for version 2."""
    rows = (line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2)
    return {name: path for _, names, path in rows for name in names.split(",")}


def _below(place: Path, root: str, own: str) -> Path:
    """The directory of a group: ``place`` shows the hierarchy from ``root`` on."""
    if root != "/" and (own == root or own.startswith(root + "/")):
        own = own[len(root) :]
    directory = place / own.lstrip("/")
    return directory if directory.is_dir() else place


def _delegated(top: Path, own: Path) -> Path | None:
    """The outermost group of version 2 between ``top`` and ``own`` where groups can get CPU and memory limits.

    A group that holds processes cannot give controllers to groups in it, unless it is the root of all; so the groups
    of a lab lie beside ours, in a group that was delegated to this user.
    """
    inside = own.relative_to(top).parts if own.is_relative_to(top) else ()
    for count in range(len(inside) + 1):
        place = top.joinpath(*inside[:count])
        if os.access(place, os.W_OK) and os.access(place / "cgroup.procs", os.W_OK) and _enable(place):
            return place
    return None


def _enable(place: Path) -> bool:
    """Let the groups in ``place`` have limits of CPU and memory; False where that is not permitted."""
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
