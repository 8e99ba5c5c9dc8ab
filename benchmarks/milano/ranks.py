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

__all__ = ["ROOT", "compile_kernels", "order"]

ROOT: Final = Path(__file__).parent.parent.parent


def order(cluster: Cluster, program: str, content: Mapping[str, Any], ranks: int, mpi: str = "mpich") -> Any:
    """Have so many nodes carry out an order; what rank 0 printed."""
    done = cluster.run(_words(program, content), ranks=ranks, mpi=mpi, environment={"PYTHONPATH": SOURCES})
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"the ranks ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def compile_kernels(program: str, content: Mapping[str, Any]) -> None:
    """One rank outside of the lab: nodes find its kernels in the cache, which would take them a minute each."""
    done = subprocess.run(_words(program, content), cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)


def _words(program: str, content: Mapping[str, Any]) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.milano.{program}", json.dumps(content)]
