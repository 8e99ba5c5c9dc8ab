"""What a recorded step asks of a machine, read off its operations as inference places their exchanges."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from minga.engine.engine import TIMES
from minga.engine.infer import infer
from minga.engine.model import Model
from minga.engine.program import Apply, Call, Let, Move, Operation, Refresh, Repeat, Rotate, When, flat
from minga.engine.regions import sums_floats
from minga.engine.schedule import Begin, Branch, Item, Loop, Stage
from minga.engine.schedule import Exchange as Scheduled
from minga.lang.analysis import bytes_per_cell, flops
from minga.lang.graph import RUN
from minga.lang.types import itemsize
from minga.plan.work.weights import weights_of
from minga.plan.work.work import Deep, Exchange, Extent, Work
from minga.space.field import Slot
from minga.space.grid import Grid
from minga.space.region import Region

__all__ = ["MOST_PLANNED", "applies_of", "kernel_digest", "step_totals", "work_of"]

MOST_PLANNED = 8
"""The deepest halo a plan chooses, in steps."""

UNKNOWN_ROUNDS = 16
"""Rounds that a loop with a condition is taken to do, where its limit is not lower."""


def work_of(model: Model) -> Work:
    """What a step of a model asks of a machine, whatever the layout.

    Loops that end by a condition are taken to do 16 rounds (or their limit), branches to be taken.
    """
    grid = model.planned_grid
    cells = grid.size
    loop, active = _looped(model.step.operations, 1)
    exchanges = _exchanges(loop.rounds, grid)
    whole = [item for item in model.fields if item.replicated]
    shared = sum(f.slots * f.bounds.size * itemsize(f.dtype) for f in model.fields if not f.replicated)
    programs = [model.step.operations, *([model.observe.operations] if model.observe is not None else [])]
    floats = any(sums_floats(apply.graph) for operations in programs for apply in applies_of(operations))
    totals = step_totals(model.step.operations, UNKNOWN_ROUNDS)
    packed = any(grid == item.words for item in model.packed.values())
    widths = [max((max(e.low[a], e.high[a]) for e in exchanges), default=0) for a in range(grid.ndim)]
    return Work(
        name=model.name,
        kernel=kernel_digest(model),
        domain=grid.box,
        periodic=tuple(grid.periodic),
        granule=_granules(model, grid, RUN if floats and not packed else 1),
        # Twice the halo: a block's shells, which are sent from both its sides, do not meet.
        least=tuple(min(max(1, 2 * width), length) for width, length in zip(widths, grid.shape, strict=True)),
        cell_bytes=max(1, math.ceil(shared / cells)),
        exchanges=exchanges,
        reductions=_reductions(model.step.operations),
        weights=weights_of(model),
        deepest=1 if active or not exchanges else _deepest(model.step.operations),
        points=max(1, round(model.grid.size / cells)) if packed else 1,
        moved=totals[0] / model.grid.size if totals else 0.0,
        rank_bytes=sum(f.slots * f.bounds.size * itemsize(f.dtype) for f in whole),
        deep=() if active or not exchanges else tuple(_deeper(model.step.operations, grid)),
        swept=_swept(model.step.operations),
        cuts=model.places if model.cuts and grid == model.grid else (),
    )


def _granules(model: Model, grid: Grid, run: int) -> tuple[int, ...]:
    """For each axis where cuts may lie: at whole cells of all coarser grids, along the innermost axis at whole runs."""
    steps = [1] * (grid.ndim - 1) + [run]
    for other in model.cut_grids:
        if other.ndim == grid.ndim:
            for axis, (fine, coarse) in enumerate(zip(grid.shape, other.shape, strict=True)):
                steps[axis] = math.lcm(steps[axis], fine // coarse if coarse < fine and fine % coarse == 0 else 1)
    return tuple(steps)


def kernel_digest(model: Model) -> str:
    """A name for what the step computes: equal for equal kernels in an equal order, on grids of any size."""
    text = "\n".join(_spelled(model.step.operations))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def step_totals(operations: Sequence[Operation], guess: int | None = None) -> tuple[int, int] | None:
    """Bytes moved and arithmetic operations of all kernels when each passes once over its fields.

    None where a loop or a condition decides while the step runs; with a ``guess`` such loops count as so many passes,
    at most, and conditions hold.
    """
    moved = computed = 0
    for operation in operations:
        if isinstance(operation, When | Repeat):
            inner = step_totals(operation.body, guess)
            passes = _passes(operation, guess)
            if inner is None or passes is None:
                return None
            moved, computed = moved + passes * inner[0], computed + passes * inner[1]
        if isinstance(operation, Apply):
            cells = _cells(operation.cells, operation)
            moved += cells * bytes_per_cell(operation.graph, write_allocate=False)
            computed += cells * flops(operation.graph)
    return moved, computed


def _passes(operation: When | Repeat, guess: int | None) -> int | None:
    if isinstance(operation, When):
        return None if guess is None else 1
    limit = operation.limit if isinstance(operation.limit, int) else None
    if operation.until is None and limit is not None:
        return limit
    return guess if guess is None or limit is None else min(guess, limit)


def _cells(region: Region, operation: Apply) -> int:
    if region.points is not None:
        return len(region.points)
    size = operation.region.size
    for stride in region.stride or ():
        size //= stride
    ordered = operation.graph.order is not None and operation.graph.order.kind == "red-black"
    return size // 2 if region.colour is not None or ordered else size


# Exchanges -----------------------------------------------------------------------------------------------------------
def _looped(operations: Sequence[Operation], depth: int) -> tuple[Loop, bool]:
    """The step as it is repeated, with its exchanges in place, and whether it leaves out tiles that cannot change."""
    schedule = infer([Repeat(list(operations), TIMES, None)], depth=depth, overlap=False)
    loop = next(item for item in schedule.items if isinstance(item, Loop))
    return loop, bool(schedule.active)


def _exchanges(rounds: Sequence[Sequence[Item]], grid: Grid) -> tuple[Exchange, ...]:
    """The exchanges of a step, equal ones together."""
    times: dict[Exchange, int] = {}
    for items in rounds:
        for scheduled, count in _begun(items):
            exchange = _message(scheduled, grid)
            if exchange is not None:
                times[exchange] = times.get(exchange, 0) + count
    return tuple(replace(exchange, times=count) for exchange, count in times.items())


def _begun(items: Sequence[Item]) -> Iterator[tuple[Scheduled, int]]:
    """Every exchange that is done, and how often."""
    for item in items:
        match item:
            case Begin():
                yield item.exchange, 1
            case Loop():
                passes = -(-_rounds(item.limit, item.until) // len(item.rounds))
                for body in item.rounds:
                    yield from ((exchange, passes * count) for exchange, count in _begun(body))
            case Branch():
                yield from _begun(item.body)


def _rounds(limit: object, until: object) -> int:
    if until is None and isinstance(limit, int):
        return limit
    return min(limit, UNKNOWN_ROUNDS) if isinstance(limit, int) else UNKNOWN_ROUNDS


def _message(exchange: Scheduled, grid: Grid) -> Exchange | None:
    """One round of messages in cells of ``grid``; None where nothing is sent.

    Slots of other types, widths and grids travel in one message: their bytes are those of the widest.
    """
    reaches = [reach for reach in exchange.reaches if len(reach.lo) == grid.ndim and not reach.empty]
    if not reaches:
        return None
    low = tuple(max(reach.lo[a] for reach in reaches) for a in range(grid.ndim))
    high = tuple(max(reach.hi[a] for reach in reaches) for a in range(grid.ndim))
    total = 0.0
    for slot, reach in zip(exchange.finish, exchange.reaches, strict=True):
        if len(reach.lo) == grid.ndim:
            share = sum(reach.lo + reach.hi) / sum(low + high)
            total += itemsize(slot.field.dtype) * share * _face(slot, grid)
    return Exchange(low, high, math.ceil(total), corners=any(not reach.star for reach in reaches))


def _face(slot: Slot, grid: Grid) -> float:
    """Cells in a face of a slot's grid for each cell in one of ``grid``."""
    ratio = slot.field.grid.size / grid.size
    return float(ratio ** ((grid.ndim - 1) / grid.ndim)) if slot.field.grid != grid else 1.0


def _deepest(operations: Sequence[Operation]) -> int:
    loop, _ = _looped(operations, 2)
    return MOST_PLANNED if len(loop.rounds) == 2 else 1


def _deeper(operations: Sequence[Operation], grid: Grid) -> Iterator[Deep]:
    """Two and more steps with one exchange, where the step allows that."""
    if _deepest(operations) == 1:
        return
    for depth in range(2, MOST_PLANNED + 1):
        loop, _ = _looped(operations, depth)
        stages = [item for items in loop.rounds for item in items if isinstance(item, Stage)]
        stages = [stage for stage in stages if len(stage.extent.lo) == grid.ndim and not stage.apply.replicated]
        parts = [bytes_per_cell(stage.apply.graph, write_allocate=False) for stage in stages]
        extents = [
            Extent(part / sum(parts), tuple(stage.extent.lo), tuple(stage.extent.hi))
            for part, stage in zip(parts, stages, strict=True)
            if part
        ]
        own = Extent(1.0, (0,) * grid.ndim, (0,) * grid.ndim)
        yield Deep(depth, _exchanges(loop.rounds, grid), tuple(extents) or (own,))


# Operations ----------------------------------------------------------------------------------------------------------
def applies_of(operations: Sequence[Operation]) -> Iterator[Apply]:
    """All kernels that operations apply, those in loops and branches included."""
    return (operation for operation in flat(operations) if isinstance(operation, Apply))


def _reductions(operations: Sequence[Operation]) -> int:
    """Times a step that all ranks wait for a number of all of them."""
    count = 0
    for operation in operations:
        match operation:
            case Apply():
                count += bool(operation.results) and operation.done and not operation.replicated
            case Repeat():
                count += _rounds(operation.limit, operation.until) * _reductions(operation.body)
            case When():
                count += _reductions(operation.body)
    return count


def _swept(operations: Sequence[Operation]) -> tuple[int, ...]:
    """Axes along which a sweep passes from block to block with the bits of one process."""
    axes: set[int] = set()
    for apply in applies_of(operations):
        order = apply.graph.order
        if order is not None and order.kind != "red-black" and order.across == "exact":
            axes |= {axis for axis, direction in enumerate(order.directions) if direction}
    return tuple(sorted(axes))


def _spelled(operations: Sequence[Operation]) -> Iterator[str]:
    for operation in operations:
        match operation:
            case Apply():
                yield f"apply {operation.graph.digest()} {operation.colour}"
            case Let():
                yield f"let {operation.graph.digest()}"
            case Rotate():
                yield f"rotate {len(operation.fields)}"
            case Repeat() | When():
                yield "repeat" if isinstance(operation, Repeat) else "when"
                yield from _spelled(operation.body)
                yield "end"
            case Move() | Call() | Refresh():
                yield type(operation).__name__.lower()
