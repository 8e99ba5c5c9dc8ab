"""What the engine adds to an iteration of 13 commands on two MPI ranks: benchmarks/tiny_iteration.py in this run."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import tiny_iteration
from benchmarks.results import Found, Target
from benchmarks.timing import Effort

LIMIT = 3.0
"""Microseconds over the raw MPI and kernel time."""


def measure_overhead(effort: Effort) -> Iterator[Found]:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "tiny.json"
        counts = (
            {"--repetitions": 5, "--iterations": 10} if effort.quick else {"--repetitions": 300, "--iterations": 50}
        )
        status = tiny_iteration.launch(
            ["--out", str(out), *(str(word) for pair in counts.items() for word in pair)], subprocess.DEVNULL
        )
        if status:
            raise RuntimeError(f"the ranks of the tiny iteration ended with status {status}")
        found = json.loads(out.read_text())
    times = found["microseconds"]
    values = {way: {"best": time} for way, time in times.items() if way != "engine_overhead"}
    target = Target("engine over raw MPI and kernels", times["engine_overhead"], "at most", LIMIT, "us")
    details = {key: found[key] for key in ("ranks", "commands", "kernels", "library")}
    yield Found("tiny-iteration", "iteration of 13 commands on 2 ranks", "us", values, {}, (target,), details)
