"""On what a run was computed: versions and machine, so that a reader can tell what a number stands for."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["environment"]

_PACKAGES = ("minga", "numpy", "llvmlite", "mpi4py")


def environment() -> dict[str, Any]:
    """Versions of what matters for a result, and this machine, as plain data for files."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": processor_name(),
        "logical_cores": os.cpu_count() or 1,
    }


def processor_name() -> str:
    """What the maker calls this processor; the architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model") and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine()
