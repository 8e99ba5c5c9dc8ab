"""Environment of a run: versions and machine, which give a reader the context of its numbers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from typing import Any

from minga.plan.machine.resources import processor_name

__all__ = ["environment"]

_PACKAGES = ("minga", "numpy", "llvmlite", "mpi4py")


def environment() -> dict[str, Any]:
    """Return versions of the packages that affect a result, and this machine, as plain data for files."""
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
