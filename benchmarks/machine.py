"""The machine that was measured, in the words that matter for speed; nothing that names it or its owner."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from benchmarks import timing
from benchmarks.peers import address, compiler, peer
from benchmarks.timing import Effort
from minga.compile.target import host_target

ROOT = Path(__file__).parent.parent
SOURCES = f"{ROOT}:{ROOT / 'src'}"
"""For PYTHONPATH of the processes of a lab: these files, whatever is installed in the environment."""

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
VECTOR = ("sse2", "sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "neon", "asimd", "sve")


def describe(effort: Effort) -> dict[str, object]:
    """Processor, caches, bandwidth, load, and versions of what makes code."""
    return {
        "processor": _processor("model name") or platform.processor() or platform.machine(),
        "llvm_name": host_target().cpu,
        "vector_instructions": [word for word in VECTOR if word in (_processor("flags") or "").split()],
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "caches": _caches(),
        "bandwidth": bandwidth(effort),
        "load": load(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "gcc": compiler(),
    }


def measured(measure: Callable[[], Mapping[str, Any]], quick: bool, effort: Effort) -> dict[str, Any]:
    """What `measure` finds, with when, where and for how long it did so."""
    began = time.perf_counter()
    about = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "quick": quick, "machine": describe(effort)}
    found = measure()
    return {**about, **found, "seconds": round(time.perf_counter() - began, 1), "load_at_the_end": load()}


def by_name(items: Mapping[str, Callable[[bool], Any]], names: Iterable[str], quick: bool) -> dict[str, Any]:
    """What these items find, telling which one it is at."""
    results = {}
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = items[name](quick)
    return results


def measured_in_labs(
    items: Mapping[str, Callable[[bool], Any]], names: Iterable[str], quick: bool, **about: Any
) -> dict[str, Any]:
    """The same of these items, which measure clusters in a box. `about` is stored too."""
    return measured(lambda: {"emulated": True, **about, "results": by_name(items, names, quick)}, quick, Effort())


def in_a_line(content: Mapping[str, Any]) -> str:
    """When and where stored numbers were measured, for the head of a table."""
    machine = content["machine"]
    processor = f"{machine['processor']} ({machine['llvm_name']})"
    return f"{content['date'][:10]}, {processor}, {machine['usable_cores']} cores, load {machine['load']}"


def load() -> float | None:
    """Processes that wanted a core during the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def bandwidth(effort: Effort) -> dict[str, float]:
    """GB/s between one core and memory. A copy loop moves three bytes a byte copied (its target is read before it is
    written); memcpy writes past the caches and moves two. Without gcc NumPy's copy stands for memcpy."""
    size = (8 if effort.quick else 128) << 20
    source, target = np.ones(size // 8), np.zeros(size // 8)
    rows = size // 8 // 1024
    ways = {
        **peer("peer_memcpy", [address(target, 0), address(source, 0), size], way="memcpy"),
        **peer("copy_f8", [address(source, 0), address(target, 0), rows, 1024, 1024], way="copy"),
    }
    moved = {"memcpy": 2, "copy": 3}
    if not ways:
        ways = {"memcpy": lambda times: [np.copyto(target, source) for _ in range(times)]}
    times = timing.measure(ways, effort)
    found = {f"{way}_GB_per_second": round(moved[way] * size / times.least(way) * 1e-9, 2) for way in ways}
    return {"bytes": size, **found}


def _processor(key: str) -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return None
    line = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
    return line[1] if line else None


def _caches() -> list[str]:
    """Such as "L2 Unified 1024K"."""
    found = []
    for place in sorted(CACHES.glob("index*")):
        level, kind, size = ((place / name).read_text().strip() for name in ("level", "type", "size"))
        found.append(f"L{level} {kind} {size}")
    return found
