"""Bytes and operations per cell of a model's step, derived from its kernels: the reference for a run's speed."""

from __future__ import annotations

from typing import Any, Final

from minga.engine.model import Model
from minga.engine.operations import Call, flat
from minga.lang.analysis import flops
from minga.lang.graph import KernelGraph
from minga.lang.types import itemsize
from minga.plan.work.recorded import UNKNOWN_ROUNDS, step_totals

__all__ = ["expected_seconds", "is_short", "step_costs"]

_BYTES_A_SECOND, _OPERATIONS_A_SECOND = 8e9, 4e9
"""Typical rates of one present-day core, correct within a factor of a few."""
_SHORT: Final = 1.0
"""Seconds that the start of ranks takes: twice what two of them save in a run of as many seconds on one core."""


def step_costs(model: Model) -> dict[str, Any]:
    """Return the costs of one step, as plain data for files.

    Returns
    -------
    dict
        - bytes_per_cell: bytes that a step reads and writes per cell of the grid if every kernel passes once over its
          fields, without what caches fetch in addition; None if the number of passes is not known in advance
        - flops_per_cell: arithmetic operations per cell, or None likewise
        - field_bytes: bytes of all fields with all their slots
    """
    totals = step_totals(model.step.operations)
    cells = max(1, model.grid.size)
    return {
        "bytes_per_cell": totals[0] / cells if totals else None,
        "flops_per_cell": totals[1] / cells if totals else None,
        "field_bytes": sum(item.slots * item.bounds.size * itemsize(item.dtype) for item in model.fields),
    }


def expected_seconds(model: Model, steps: int, workers: int) -> float:
    """Estimate the seconds of a run on so many cores without any measurement, within a factor of a few."""
    totals = step_totals(model.step.operations, UNKNOWN_ROUNDS)
    assert totals is not None, "with a guess for loops there is always a total"
    return steps * _seconds(totals) / max(1, workers)


def is_short(model: Model, steps: int) -> bool:
    """Return whether a run is over on one core before others would have started.

    A run whose step has loops of unknown length, or calls Python functions, is not short: its cost is unknown. All
    operations of kernels count, also the logic of cells in bits.
    """
    operations = model.step.operations
    totals = step_totals(operations, counted=_all_operations)
    if totals is None or any(isinstance(item, Call) for item in flat(operations)):
        return False
    return steps > 0 and steps * _seconds(totals) < _SHORT


def _seconds(totals: tuple[int, int]) -> float:
    """Return the seconds of one core for bytes and operations."""
    return max(totals[0] / _BYTES_A_SECOND, totals[1] / _OPERATIONS_A_SECOND)


def _all_operations(graph: KernelGraph) -> int:
    return max(flops(graph), len(graph.nodes()))
