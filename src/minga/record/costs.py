"""What a step of a model must move and compute for each cell, read off its kernels: the measure of a run's speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.engine.model import Model
from minga.engine.program import Apply, Operation, Repeat, When
from minga.lang.analysis import bytes_per_cell, flops
from minga.lang.types import itemsize
from minga.space.region import Region

__all__ = ["step_costs"]


def step_costs(model: Model) -> dict[str, Any]:
    """Costs of one step, as plain data for files.

    bytes_per_cell  bytes that a step reads and writes for each cell of the grid when every kernel passes once over its
                    fields; what caches fetch beyond is not counted. None where the number of passes is not known ahead
    flops_per_cell  arithmetic operations likewise
    field_bytes     bytes of all fields with all their slots
    """
    totals = _totals(model.step.operations)
    cells = max(1, model.grid.size)
    return {
        "bytes_per_cell": totals[0] / cells if totals else None,
        "flops_per_cell": totals[1] / cells if totals else None,
        "field_bytes": sum(item.slots * item.bounds.size * itemsize(item.dtype) for item in model.fields),
    }


def _totals(operations: Sequence[Operation]) -> tuple[int, int] | None:
    """Bytes and operations of all kernels; None where a loop or a condition decides while the step runs."""
    moved = computed = 0
    for operation in operations:
        if isinstance(operation, When):
            return None
        if isinstance(operation, Repeat):
            inner = _totals(operation.body)
            if inner is None or operation.until is not None or not isinstance(operation.limit, int):
                return None
            moved, computed = moved + operation.limit * inner[0], computed + operation.limit * inner[1]
        if isinstance(operation, Apply):
            cells = _cells(operation.cells, operation)
            moved += cells * bytes_per_cell(operation.graph, write_allocate=False)
            computed += cells * flops(operation.graph)
    return moved, computed


def _cells(region: Region, operation: Apply) -> int:
    if region.points is not None:
        return len(region.points)
    size = operation.region.size
    for stride in region.stride or ():
        size //= stride
    ordered = operation.graph.order is not None and operation.graph.order.kind == "red-black"
    return size // 2 if region.colour is not None or ordered else size
