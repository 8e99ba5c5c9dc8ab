"""The work of a recorded step, derived from its operations and their inferred exchanges."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from minga.engine.engine import TIMES
from minga.engine.infer import infer
from minga.engine.model import Model
from minga.engine.program import Apply, Call, Let, Move, Operation, Refresh, Repeat, Rotate, When, flat
from minga.engine.regions import sums_floats
from minga.engine.schedule import Begin, Branch, Item, Loop, Stage
from minga.engine.schedule import HaloExchange as Scheduled
from minga.lang.analysis import bytes_per_cell, flops
from minga.lang.graph import RUN, KernelGraph
from minga.lang.types import itemsize
from minga.plan.work.weights import weights_of
from minga.plan.work.work import Deep, Extent, HaloRound, Work
from minga.space.box import Box
from minga.space.field import Slot
from minga.space.grid import Grid
from minga.space.region import Region

__all__ = [
    "MOST_PLANNED",
    "applies_of",
    "enlarged",
    "kernel_digest",
    "planned_rounds",
    "planned_work",
    "step_totals",
    "work_of",
]

MOST_PLANNED = 8
"""Maximum halo depth that a plan chooses, in steps."""

UNKNOWN_ROUNDS = 16
"""Number of iterations assumed for a loop with a condition, unless its limit is lower."""


def work_of(model: Model) -> Work:
    """Return the work of a model's step, which does not depend on the layout.

    Loops that end by a condition are assumed to do 16 iterations (or their limit, if lower), and branches to be taken.
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
        # Twice the halo, so that a block's shells, which are sent from both its sides, do not overlap.
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


def planned_work(model: Model) -> Work:
    """Return the work of a model's step, on the finer grid that the model stands for, if it stands for one."""
    work = work_of(model)
    return work if model.stands_for is None else enlarged(work, model.stands_for)


def enlarged(work: Work, shape: Sequence[int]) -> Work:
    """Return the work of the same step on a finer grid of the same extent, with costs of cells that vary alike."""
    factors = tuple(-(-fine // coarse) for fine, coarse in zip(shape, work.domain.shape, strict=True))
    domain = Box((0,) * len(factors), tuple(shape))
    widths = [max(e.low[a] + e.high[a] for e in work.exchanges) if work.exchanges else 1 for a in range(domain.ndim)]
    least = tuple(min(max(1, width), length) for width, length in zip(widths, shape, strict=True))
    weights = None if work.weights is None else work.weights.enlarged(domain, factors)
    return replace(work, domain=domain, least=tuple(map(max, least, work.least)), weights=weights)


def _granules(model: Model, grid: Grid, run: int) -> tuple[int, ...]:
    """Return each axis' granule of cuts: whole cells of all coarser grids, and whole runs along the innermost axis."""
    steps = [1] * (grid.ndim - 1) + [run]
    for other in model.cut_grids:
        if other.ndim == grid.ndim:
            for axis, (fine, coarse) in enumerate(zip(grid.shape, other.shape, strict=True)):
                steps[axis] = math.lcm(steps[axis], fine // coarse if coarse < fine and fine % coarse == 0 else 1)
    return tuple(steps)


def kernel_digest(model: Model) -> str:
    """Return a digest of the step's computation: equal for equal kernels in equal order, on grids of any size."""
    text = "\n".join(_spelled(model.step.operations))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def step_totals(
    operations: Sequence[Operation], guess: int | None = None, counted: Callable[[KernelGraph], int] = flops
) -> tuple[int, int] | None:
    """Return the bytes moved and the `counted` operations of all kernels if each passes once over its fields.

    Return None if loops or conditions are decided while the step runs; with a ``guess``, such loops count as at most
    that many passes, and conditions are assumed to hold.
    """
    moved = computed = 0
    for operation in operations:
        if isinstance(operation, When | Repeat):
            inner = step_totals(operation.body, guess, counted)
            passes = _passes(operation, guess)
            if inner is None or passes is None:
                return None
            moved, computed = moved + passes * inner[0], computed + passes * inner[1]
        if isinstance(operation, Apply):
            cells = _cells(operation.cells, operation)
            moved += cells * bytes_per_cell(operation.graph, write_allocate=False)
            computed += cells * counted(operation.graph)
    return moved, computed


def _passes(operation: When | Repeat, guess: int | None) -> int | None:
    if isinstance(operation, When):
        return None if guess is None else 1
    limit = operation.limit if isinstance(operation.limit, int) else None
    if operation.until is None and limit is not None:
        return limit
    return None if guess is None else planned_rounds(operation)


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
    """Return the repeated step with its exchanges, and whether it leaves out tiles that cannot change."""
    schedule = infer([Repeat(list(operations), TIMES, None)], depth=depth, overlap=False)
    loop = next(item for item in schedule.items if isinstance(item, Loop))
    return loop, bool(schedule.active)


def _exchanges(rounds: Sequence[Sequence[Item]], grid: Grid) -> tuple[HaloRound, ...]:
    """Return the exchanges of a step, with equal ones merged."""
    times: dict[HaloRound, int] = {}
    for items in rounds:
        for scheduled, count in _begun(items):
            exchange = _message(scheduled, grid)
            if exchange is not None:
                times[exchange] = times.get(exchange, 0) + count
    return tuple(replace(exchange, times=count) for exchange, count in times.items())


def _begun(items: Sequence[Item]) -> Iterator[tuple[Scheduled, int]]:
    """Yield every exchange with its number of executions."""
    for item in items:
        match item:
            case Begin():
                yield item.exchange, 1
            case Loop():
                passes = -(-planned_rounds(item) // len(item.rounds))
                for body in item.rounds:
                    yield from ((exchange, passes * count) for exchange, count in _begun(body))
            case Branch():
                yield from _begun(item.body)


def planned_rounds(loop: Repeat | Loop) -> int:
    """Return the number of iterations of a loop that work is planned with."""
    limit = loop.limit
    if loop.until is None and isinstance(limit, int):
        return limit
    guess = UNKNOWN_ROUNDS if loop.expected is None else loop.expected
    return min(limit, guess) if isinstance(limit, int) else guess


def _message(exchange: Scheduled, grid: Grid) -> HaloRound | None:
    """Return one round of messages in cells of ``grid``; None if nothing is sent.

    Slots of different types, widths and grids are sent in one message; their bytes refer to the widest halo.
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
    return HaloRound(low, high, math.ceil(total), corners=any(not reach.star for reach in reaches))


def _face(slot: Slot, grid: Grid) -> float:
    """Return the number of cells in a face of a slot's grid per cell in a face of ``grid``."""
    ratio = slot.field.grid.size / grid.size
    return float(ratio ** ((grid.ndim - 1) / grid.ndim)) if slot.field.grid != grid else 1.0


def _deepest(operations: Sequence[Operation]) -> int:
    loop, _ = _looped(operations, 2)
    return MOST_PLANNED if len(loop.rounds) == 2 else 1


def _deeper(operations: Sequence[Operation], grid: Grid) -> Iterator[Deep]:
    """Yield the work of two and more steps with one exchange, if the step allows this."""
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
    """Return all kernels that operations apply, including those in loops and branches."""
    return (operation for operation in flat(operations) if isinstance(operation, Apply))


def _reductions(operations: Sequence[Operation]) -> int:
    """Return the number of times per step that all ranks wait for a reduction over all ranks."""
    count = 0
    for operation in operations:
        match operation:
            case Apply():
                count += bool(operation.results) and operation.done and not operation.replicated
            case Repeat():
                count += planned_rounds(operation) * _reductions(operation.body)
            case When():
                count += _reductions(operation.body)
    return count


def _swept(operations: Sequence[Operation]) -> tuple[int, ...]:
    """Return the axes along which a sweep passes from block to block with the bits of a single process."""
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
