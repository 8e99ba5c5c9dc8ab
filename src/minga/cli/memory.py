"""Checks, before anything is allocated, that a case fits into the memory of this machine."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from minga.errors import CaseError
from minga.launch.launcher import surrounding_job

if TYPE_CHECKING:
    from minga.engine.model import Model

__all__ = ["check_fields", "check_shape", "machine_memory"]

_MOST_CELLS = 2**60
"""Most cells of a grid: cells are numbered in 64 bits, with room for offsets and halos."""


def machine_memory() -> int | None:
    """Return the memory of this machine in bytes, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def check_shape(shape: Sequence[int] | None, here: bool = True, least: int = 1) -> None:
    """Raise CaseError if a grid of this shape cannot fit, at ``least`` bytes per cell.

    Without ``here`` only grids are refused that fit no machine.
    """
    if shape is not None:
        _check(math.prod(shape), least * math.prod(shape), shape, here)


def check_fields(model: Model, here: bool = True) -> None:
    """Raise CaseError if all time levels of a model's fields together do not fit."""
    needed = sum(f.slots * math.prod(f.bounds.shape) * max(1, _itemsize(f.dtype)) for f in model.fields)
    _check(model.grid.size, needed, model.grid.shape, here)


def _check(cells: int, needed: int, shape: Sequence[int], here: bool) -> None:
    job = surrounding_job()
    alone = job is None or job.size == 1  # a job may have many machines
    memory = machine_memory() if here and alone else None
    if cells > _MOST_CELLS:
        found = f"{cells:.2g} cells are more than can be numbered"
    elif memory is not None and needed > memory:
        found = f"{cells:.3g} cells need {needed / 2**30:.4g} GiB, and this machine has {memory / 2**30:.4g} GiB"
    else:
        return
    raise CaseError(
        f"grid.shape: {list(shape)} is too large: {found}",
        key="grid.shape",
        remedy="choose fewer cells, or more machines",
    )


def _itemsize(dtype: str) -> int:
    import numpy as np

    return np.dtype(dtype).itemsize
