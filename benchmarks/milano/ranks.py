"""Ranks that carry out an order: on the nodes of a lab, or one outside of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import SOURCES
from minga.lab.cluster import Cluster
from minga.studies.tinetti import labs

__all__ = ["ROOT", "compile_kernels", "order"]

ROOT: Final = Path(__file__).parent.parent.parent


def order(cluster: Cluster, program: str, content: Mapping[str, Any], ranks: int, mpi: str = "mpich") -> Any:
    """Have so many nodes carry out an order; what rank 0 printed."""
    return labs.order(
        cluster, content, mpi=mpi, ranks=ranks, environment={"PYTHONPATH": SOURCES}, timeout=None,
        program=_module(program),
    )  # fmt: skip


def compile_kernels(program: str, content: Mapping[str, Any]) -> None:
    """One rank outside of the lab: nodes find its kernels in the cache, which would take them a minute each."""
    words = [sys.executable, "-m", _module(program), json.dumps(content)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)


def _module(program: str) -> str:
    return f"benchmarks.milano.{program}"
