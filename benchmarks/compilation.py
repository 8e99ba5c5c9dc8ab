"""How long a fresh process needs for a kernel: compiled anew, and loaded from the object cache."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results import Found, Target
from benchmarks.timing import Effort

ROOT = Path(__file__).parent.parent
CACHED = 0.020
NAMES = {
    "tti_full": ("TTI, 64-point mixed derivatives", 2.0),
    "tti_ten": ("TTI, factorised", 2.0),
    "network": ("a neural automaton, 16 channels, 128 hidden units", 5.0),
    "square_40": ("a weighted sum over a square of radius 40", 5.0),
}
"""Names of kernels, what they are, and the seconds in which they should be compiled."""


def measure_compilation(effort: Effort) -> Iterator[Found]:
    for name in ("tti_ten",) if effort.quick else NAMES:
        yield _measure(name, 1 if effort.quick else 3)


def _measure(name: str, repetitions: int) -> Found:
    (what, cold_limit), cold, cached = NAMES[name], [], []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_fresh_process(name, cache))
            cached += [_fresh_process(name, cache) for _ in range(3)]
    assert not any(found["cached"] for found in cold)
    assert all(found["cached"] for found in cached)
    samples = {
        "trace": [found["trace"] for found in cold + cached],
        "compile": [found["machine_code"] for found in cold],
        "cold": [found["trace"] + found["machine_code"] for found in cold],
        "load": [found["machine_code"] for found in cached],
    }
    values = {way: {"median": statistics.median(times), "best": min(times)} for way, times in samples.items()}
    rounded = {way: {key: round(1000 * time, 2) for key, time in both.items()} for way, both in values.items()}
    targets = (
        Target("trace and compile", round(values["cold"]["median"], 3), "at most", cold_limit, "s"),
        Target("cached load", round(1000 * values["load"]["median"], 2), "at most", 1000 * CACHED, "ms"),
    )
    details = {"operations": cold[0]["operations"], "object_bytes": cold[0]["object_bytes"]}
    return Found(f"compile-{name.replace('_', '-')}", f"compile {what}", "ms", rounded, {}, targets, details)


def _fresh_process(name: str, cache: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.compilation", name]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "MINGA_CACHE": cache}
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(name: str) -> None:
    """In a process of its own: processor time of tracing, and of everything from there to an address to call."""
    from benchmarks.large_kernels import graph_of
    from minga.compile.llvm import compile_kernel

    clock = time.process_time
    start = clock()
    graph = graph_of(name)
    traced = clock()
    compiled = compile_kernel(graph)
    ready = clock()
    objects = [path.stat().st_size for path in Path(os.environ["MINGA_CACHE"]).iterdir()]
    found = {
        "trace": traced - start, "machine_code": ready - traced, "cached": compiled.cached,
        "operations": len(list(graph.nodes())), "object_bytes": sum(objects),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
