"""Ghost cells of constant values: they are filled once, not in each step.

A condition that reads no cells and no registers stores the same values whenever it is applied. Nothing else stores into
these cells, except kernels that store several cells for each one that they visit (on odd grids, past the end). Programs
therefore leave such ghost cells alone: the engine fills them, in all slots of a field, before the first Program that
reads them, and again after their arrays were moved or a Program may have overwritten them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from minga.engine.reach import Ghosts
from minga.engine.schedule import Branch, Item, Loop, Stage
from minga.space.boundary import Fill
from minga.space.field import Field

__all__ = ["SteadyGhosts", "covers_all", "is_steady", "require_ghosts", "spoiled_fields"]

SteadyGhosts = dict[Field, list[Ghosts]]
"""Ghost cells of constant values, by field."""


def is_steady(fill: Fill) -> bool:
    """Return True if a condition stores the same values at any time."""
    reads = any(node.op == "read" and fill.operands[node.data[0]] in _fields(fill) for node in fill.graph.nodes())
    return not reads and not fill.graph.scalars


def require_ghosts(required: SteadyGhosts, item: Field, ghosts: Ghosts) -> None:
    """Add ghost cells of a field to those that are required."""
    known = required.setdefault(item, [])
    if not any(other.covers(ghosts) for other in known):
        known.append(ghosts)


def covers_all(filled: SteadyGhosts, required: SteadyGhosts) -> bool:
    """Return True if all required ghost cells have been filled."""
    return all(
        any(other is ghosts or other.covers(ghosts) for other in filled.get(item, ()))
        for item, wanted in required.items()
        for ghosts in wanted
    )


def spoiled_fields(items: Iterable[Item]) -> frozenset[Field]:
    """Return the fields of which kernels store several cells for each one that they visit, perhaps past the end."""
    return frozenset(
        stage.apply.slot(store.param).field
        for stage in _stages(items)
        for store in stage.apply.graph.stores
        if any(stride > 1 for stride in store.strides)
    )


def _fields(fill: Fill) -> tuple[Field, ...]:
    return tuple(operand for operand in fill.operands if isinstance(operand, Field))


def _stages(items: Iterable[Item]) -> Iterator[Stage]:
    for item in items:
        match item:
            case Stage():
                yield item
            case Loop():
                for inner in (*item.rounds, item.restore):
                    yield from _stages(inner)
            case Branch():
                yield from _stages(item.body)
