"""What this host has: processor, memory, caches, and the limits that a container or batch system sets."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["available_memory", "cache_bytes", "processor_name", "quota", "total_memory"]

_ROOT: Final = Path("/")


def processor_name(root: Path = _ROOT) -> str:
    """What the maker calls this processor; the architecture where the system does not tell."""
    for line in _text(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model") and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine()


def available_memory(root: Path = _ROOT) -> int | None:
    """Bytes that this process and its like may still fill, limits of cgroups included; None where nobody tells."""
    free = [_meminfo("MemAvailable", root), *_cgroup_memory(root)]
    known = [amount for amount in free if amount is not None]
    return max(0, min(known)) if known else None


def total_memory(root: Path = _ROOT) -> int | None:
    """Bytes of this host's memory, or what a cgroup allows of them; None where nobody tells."""
    limits = [_whole(folder / name) for folder, names in _memory_folders(root) for name in names[:1]]
    known = [amount for amount in (_meminfo("MemTotal", root), *limits) if amount is not None]
    return min(known) if known else None


def cache_bytes(level: int, root: Path = _ROOT) -> int | None:
    """Bytes of one data cache of a level of this process's first processor; None where there is none."""
    cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    for folder in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index[0-9]*")):
        if _text(folder / "level") == str(level) and _text(folder / "type") in ("Unified", "Data"):
            size = re.fullmatch(r"(\d+)([KMG]?)", _text(folder / "size"))
            if size:
                return int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]
    return None


def quota(root: Path = _ROOT) -> tuple[float, float] | None:
    """The tightest limit of processor time of this process's cgroups: so many seconds in every so many seconds.

    Reads versions 1 and 2; None without a limit.
    """
    found = []
    for folder in _cgroup_folders("cpu", root):
        limit, _, period = _text(folder / "cpu.max").partition(" ")
        if not limit:
            limit, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if limit.isdigit() and period.isdigit() and int(period):
            found.append((int(limit) * 1e-6, int(period) * 1e-6))
    return min(found, key=lambda pair: pair[0] / pair[1], default=None)


def _cgroup_memory(root: Path) -> Iterator[int]:
    for folder, (limit, used) in _memory_folders(root):
        most, now = _whole(folder / limit), _whole(folder / used)
        if most is not None and now is not None:
            yield most - now


def _memory_folders(root: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    for folder in _cgroup_folders("memory", root):
        for names in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            if (folder / names[0]).exists():
                yield folder, names


def _cgroup_folders(controller: str, root: Path) -> Iterator[Path]:
    """The control groups of this process for a controller, the innermost first, without the root's."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, place = [*line.split(":", 2), "", "", ""][:3]
        if controllers == "":  # version 2: one tree for all
            base = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            base = next((root / "sys/fs/cgroup" / name for name in (controllers, controller)
                         if (root / "sys/fs/cgroup" / name).is_dir()), root / "nowhere")  # fmt: skip
        else:
            continue
        parts = [part for part in place.split("/") if part and part != ".."]
        for length in range(len(parts), -1, -1):
            yield base.joinpath(*parts[:length])


def _meminfo(name: str, root: Path) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) << 10 if found else None


def _whole(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.isdigit() and int(text) < 1 << 60 else None


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip()
    return ""
