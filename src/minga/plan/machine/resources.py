"""Resources of this host: processor, memory, caches, and the limits set by a container or batch system."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from minga.engine.quotas import cgroup_folders, read_text

__all__ = ["available_memory", "cache_bytes", "processor_name", "total_memory"]

_ROOT: Final = Path("/")


def processor_name(root: Path = _ROOT) -> str:
    """Return the vendor's name of this processor, or the architecture if the system does not report the name."""
    for line in read_text(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model") and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine()


def available_memory(root: Path = _ROOT) -> int | None:
    """Return the bytes that processes may still fill, including limits of cgroups; None if unknown."""
    free = [_meminfo("MemAvailable", root), *_cgroup_memory(root)]
    known = [amount for amount in free if amount is not None]
    return max(0, min(known)) if known else None


def total_memory(root: Path = _ROOT) -> int | None:
    """Return the bytes of this host's memory, or the limit of a cgroup; None if unknown."""
    limits = [_whole(folder / name) for folder, names in _memory_folders(root) for name in names[:1]]
    known = [amount for amount in (_meminfo("MemTotal", root), *limits) if amount is not None]
    return min(known) if known else None


def cache_bytes(level: int, root: Path = _ROOT) -> int | None:
    """Return the bytes of the data cache of a given level of this process's first processor; None if there is none."""
    cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    for folder in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index[0-9]*")):
        if read_text(folder / "level") == str(level) and read_text(folder / "type") in ("Unified", "Data"):
            size = re.fullmatch(r"(\d+)([KMG]?)", read_text(folder / "size"))
            if size:
                return int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]
    return None


def _cgroup_memory(root: Path) -> Iterator[int]:
    for folder, (limit, used) in _memory_folders(root):
        most, now = _whole(folder / limit), _whole(folder / used)
        if most is not None and now is not None:
            yield most - now


def _memory_folders(root: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    for folder in cgroup_folders("memory", root):
        for names in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            if (folder / names[0]).exists():
                yield folder, names


def _meminfo(name: str, root: Path) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB", read_text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) << 10 if found else None


def _whole(file: Path) -> int | None:
    text = read_text(file)
    return int(text) if text.isdigit() and int(text) < 1 << 60 else None
