"""What a step of a model must move and compute for each cell, read off its kernels: the measure of a run's speed."""

from __future__ import annotations

from typing import Any

from minga.engine.model import Model
from minga.lang.types import itemsize
from minga.plan.work.recorded import UNKNOWN_ROUNDS, step_totals

__all__ = ["expected_seconds", "step_costs"]

_BYTES_A_SECOND, _OPERATIONS_A_SECOND = 8e9, 4e9
"""What one core of these years does; good to a factor of a few."""


def step_costs(model: Model) -> dict[str, Any]:
    """Costs of one step, as plain data for files.

    bytes_per_cell  bytes that a step reads and writes for each cell of the grid when every kernel passes once over its
                    fields; what caches fetch beyond is not counted. None where the number of passes is not known ahead
    flops_per_cell  arithmetic operations likewise
    field_bytes     bytes of all fields with all their slots
    """
    totals = step_totals(model.step.operations)
    cells = max(1, model.grid.size)
    return {
        "bytes_per_cell": totals[0] / cells if totals else None,
        "flops_per_cell": totals[1] / cells if totals else None,
        "field_bytes": sum(item.slots * item.bounds.size * itemsize(item.dtype) for item in model.fields),
    }


def expected_seconds(model: Model, steps: int, workers: int) -> float:
    """A guess, good to a factor of a few, of how long a run takes on so many cores, before anything was measured."""
    totals = step_totals(model.step.operations, UNKNOWN_ROUNDS)
    assert totals is not None, "with a guess for loops there is always a total"
    return steps * max(totals[0] / _BYTES_A_SECOND, totals[1] / _OPERATIONS_A_SECOND) / max(1, workers)
