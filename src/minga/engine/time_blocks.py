"""Several rounds of a loop computed band by band, so that their data stay in the cache.

A loop whose rounds consist of kernels alone reads and writes all its fields once a round. If they exceed the cache,
memory is the limit, not the processor. Here the kernel calls of several rounds become one call of a wave: bands of
cells, some rows of the next round behind those of the round before (:mod:`minga.engine.skew`). Each round reads and
writes the same arrays as without bands, since slots are named as they are after the rotations before it, and
values of registers that change from round to round are computed first, each in memory of its own. So all results have
the same bits. The loop still ends each round for everything that must see it: the rounds that do not fill a block are
executed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.compile.abi import offsets
from minga.compile.llvm import kept_bytes, scratch_bytes
from minga.compile.scratch import LINE
from minga.engine import command as cmd
from minga.engine import wave_kernel as words
from minga.engine.backend import KernelCall, copies_of
from minga.engine.bands import best_bands, budgets, slots, spreads, touch
from minga.engine.compiled_call import BandedCall, CompiledCall
from minga.engine.helpers import BoxAddress, Copy, copy_args, wave_function
from minga.engine.program import Apply, Call, Let, Repeat, Rotate
from minga.engine.reach import stencil
from minga.engine.schedule import Begin, Boundaries, Finish, Item, Loop, Stage, sets_register
from minga.engine.skew import THIN, Position, Touch, positions
from minga.engine.storage import Storage
from minga.engine.workers import libc_address
from minga.lang.types import itemsize
from minga.space.box import Point
from minga.space.field import Field, Register, Slot

if TYPE_CHECKING:
    from minga.engine.bind import Binder

__all__ = ["Block", "Cut", "Levels", "bind_blocks"]

DEEPEST: Final = 16
"""Largest number of rounds in a block."""
SHORTEST: Final = 4
"""Least number of rounds in a block that is shorter than the best one.

A block begins and ends with bands that are not full, and its stores do not bypass the caches: blocks of two rounds were
0.8 times as fast as two rounds one by one (Life in bytes, Jacobi), those of four 0.95 to 1.6 times.
"""
MOST_KEPT: Final = 0
"""Most bytes of locals for each place along the other axes that a round of a usual block keeps from band to band.

Others are only tried: two rounds of tilted waves were 0.92 to 1.07 times as fast in blocks (L2 cache of 2 MiB), those
of vertical ones, which keep nothing, 1.16 to 1.3 times.
"""
MOST_CALLS: Final = 512
"""Largest number of kernel calls in a block."""
LEAST_REPEATED: Final = 16
"""Least ratio of an axis that is periodic or cut among ranks to the cells that are computed twice at each end."""


@dataclass(slots=True)
class Levels:
    """Names of slots and registers in a round of a block, and the kernel calls recorded so far.

    turns     rotations of each field since the beginning of the block
    versions  memory of registers that the block has set, by key
    counts    how often functions have been called
    """

    turns: dict[Field, int] = field(default_factory=dict)
    versions: dict[str, np.ndarray] = field(default_factory=dict)
    calls: list[tuple[KernelCall | BandedCall, cmd.Kernel]] = field(default_factory=list)
    counts: dict[CompiledCall, int] = field(default_factory=dict)

    def call(self, binder: Binder, call: Call) -> None:
        """Add the native code that takes the place of a function."""
        function = call.function
        assert isinstance(function, CompiledCall)
        assert function.banded is not None
        number = self.counts.get(function, 0)
        self.counts[function] = number + 1
        for each in function.banded(binder, number):
            self.calls.append((each, each.kernel(binder, call.label)))

    def index(self, item: Field, index: int) -> int:
        """Return the slot at the beginning of the block that is slot `index` now."""
        return (index + self.turns.get(item, 0)) % item.slots


@dataclass(frozen=True, slots=True)
class Block:
    """The commands that execute a number of rounds of a loop."""

    rounds: int
    commands: list[cmd.Command]


@dataclass(frozen=True, slots=True)
class Cut:
    """One way to execute a loop in blocks.

    shape   rows of a band, number of columns and number of rounds
    usual   True if it is usually faster than single rounds: its data fit the L2 cache
    blocks  the blocks, the longest first
    """

    shape: tuple[int, int, int]
    usual: bool
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class _Round:
    """State after a round: commands that set registers, numbers of calls and rotations, memory of registers.

    `counts` tells how often functions have been called.
    """

    lets: list[cmd.Command]
    calls: int
    turns: Mapping[Field, int]
    versions: Mapping[str, np.ndarray]
    counts: Mapping[CompiledCall, int]


def bind_blocks(binder: Binder, loop: Loop) -> list[Cut]:
    """Return the ways in which a loop may be worth executing in blocks; none if it cannot be."""
    rounds, tail = _rounds(loop)
    alone = binder.comm.size == 1
    if not alone:  # all ranks bind their messages in the same order, whether or not they execute blocks
        for item in chain(*loop.rounds, loop.restore):
            if isinstance(item, Begin):
                binder.exchange(item.exchange)
    if not _possible(binder, loop, rounds):
        return []
    if alone:
        rounds = rounds[: _deepest(binder, rounds)]
    known, levels = _recorded(binder, rounds)
    touches = [touched for call, _ in levels.calls if (touched := _touch(call)) is not None]
    if len(touches) < len(levels.calls) or not touches or not _separate(_kernels(levels.calls)):
        return []
    places = [positions(touches, axis) for axis in (0, 1)]
    if not alone and len(known) < len(rounds):
        return []
    depths = None if alone else [len(rounds)]
    kernels = [call for call, _ in _kernels(levels.calls)]
    memory = _memory(kernels, touches, len(known))
    in_use = [spreads(touches[: step.calls], places, memory.arrays) for step in known]
    shapes = _shapes(memory, in_use, binder.backend.workers, binder.comm.size, depths)
    cuts = []
    for (rows, columns, depth), usual in shapes.items():
        blocks, length = [], depth
        while length:
            end = known[length - 1]
            wave = _wave(binder, levels.calls[: end.calls], touches, places, (rows, columns))
            lets = [command for step in known[:length] for command in step.lets]
            after = tail if length == len(loop.rounds) else loop.restore
            blocks.append(Block(length, [*lets, wave, *_ending(binder, end), *_bound(binder, after)]))
            # After fewer rounds than between two exchanges, other ranks may not exchange, either.
            length = length // 2 if alone and length >= 2 * SHORTEST else 0
        cuts.append(Cut((rows, columns, depth), usual, blocks))
    return cuts


def _deepest(binder: Binder, rounds: Sequence[Sequence[Item]]) -> int:
    """Return the number of rounds that a block may be worth having, as far as two rounds tell; 0 for no block.

    Binding a round takes milliseconds, and blocks have few rounds where cells are large.
    """
    known, levels = _recorded(binder, rounds[:2])
    touches = [touched for call, _ in levels.calls if (touched := _touch(call)) is not None]
    if len(touches) < len(levels.calls) or not touches or len(known) < 2:
        return 0
    places = [positions(touches, axis) for axis in (0, 1)]
    memory = _memory([call for call, _ in _kernels(levels.calls)], touches, len(known))
    one, two = (spreads(touches[: step.calls], places, memory.arrays) for step in known)
    expected = [[a + number * (b - a) for a, b in zip(one, two, strict=True)] for number in range(len(rounds))]
    shapes = _shapes(memory, expected, binder.backend.workers, 1, None)
    return max((depth for _, _, depth in shapes), default=0)


def _touch(call: KernelCall | BandedCall) -> Touch | None:
    return call.touch if isinstance(call, BandedCall) else touch(call)


def _kernels(calls: Sequence[tuple[KernelCall | BandedCall, cmd.Kernel]]) -> list[tuple[KernelCall, cmd.Kernel]]:
    """Return the calls of kernels."""
    return [(call, kernel) for call, kernel in calls if isinstance(call, KernelCall)]


def _rounds(loop: Loop) -> tuple[list[list[Item]], list[Item]]:
    """Return the items of each round of a block, and those that follow the last of several different rounds."""
    if len(loop.rounds) == 1:
        most = DEEPEST if not isinstance(loop.limit, int) else min(DEEPEST, loop.limit)
        return [loop.rounds[0]] * most, []
    *rounds, last = map(list, loop.rounds)
    number = len(last)
    while number and isinstance(last[number - 1], Begin | Finish):
        number -= 1
    return [*rounds, last[:number]], last[number:]


def _possible(binder: Binder, loop: Loop, rounds: Sequence[Sequence[Item]]) -> bool:
    """Return True if the rounds of a loop can be computed in bands."""
    if not binder.backend.waves or loop.until is not None or len(rounds) < 2:
        return False
    if binder.comm.size > 1 and len(loop.rounds) == 1:
        return False  # messages are due after every round, on other ranks if not on this one
    if isinstance(loop.limit, Register) and sets_register(loop, loop.limit):
        return False
    stages = [item for item in rounds[0] if isinstance(item, Stage)]
    return bool(stages) and all(_banded(binder, item, stages[0]) for items in rounds for item in items)


def _banded(binder: Binder, item: Item, first: Stage) -> bool:
    """Return True if an item of a round can be computed in bands, or needs nothing to be done."""
    match item:
        case Let() | Rotate():
            return True
        case Begin() | Finish():
            bound = binder.exchange(item.exchange)
            return not (bound.remote or bound.local or bound.pack or bound.unpack)
        case Call(function=CompiledCall() as function):
            there = all(slot.field.grid == first.apply.grid for slot in (*item.reads, *item.writes))
            return there and function.banded is not None and binder.comm.size == 1 and not binder.noting
        case Boundaries():
            return item.slot.field.grid == first.apply.grid
        case Stage(apply=apply):
            graph, order = apply.graph, apply.graph.order
            plain = not graph.reductions and (order is None or order.kind == "red-black")
            everywhere = apply.cells.active is None and apply.mask is None and not apply.replicated
            return plain and everywhere and item.part == "all" and apply.grid == first.apply.grid and graph.ndim > 1
        case _:
            return False


def _recorded(binder: Binder, rounds: Sequence[Sequence[Item]]) -> tuple[list[_Round], Levels]:
    """Bind rounds of a block; return what is known after each, and the kernel calls."""
    levels, known = Levels(), []
    binder.levels = levels
    try:
        for items in rounds:
            if len(levels.calls) >= MOST_CALLS:
                break
            lets = []
            for item in items:
                if isinstance(item, Rotate):
                    levels.turns |= {f: levels.turns.get(f, 0) + 1 for f in item.fields}
                elif not isinstance(item, Begin | Finish):
                    lets += _bound(binder, [item])
            known.append(
                _Round(lets, len(levels.calls), dict(levels.turns), dict(levels.versions), dict(levels.counts))
            )
    finally:
        binder.levels = None
    return known, levels


def _bound(binder: Binder, items: Sequence[Item]) -> list[cmd.Command]:
    """Return the commands of items."""
    before, binder.pending = binder.pending, []
    try:
        binder.items(items)
        return [make() for make in binder.pending]
    finally:
        binder.pending = before


def _ending(binder: Binder, end: _Round) -> Iterator[cmd.Command]:
    """Yield the commands that give slots and registers the names and places that they have after a block."""
    for item, turns in end.turns.items():
        tables = tuple(binder.address(b.table) for b in binder.storage.stored(item).blocks.values())
        for _ in range(turns % item.slots if tables else 0):
            yield binder.backend.rotate(tables, item.slots)
    copies = []
    for key, memory in end.versions.items():
        words = [np.array([binder.address(m)], np.int64) for m in (memory, binder.storage.registers[key])]
        source, target = (BoxAddress(binder.address(word), 0, (8,)) for word in words)
        copies.append(Copy(source, target, (1,), 8))
    for function, number in end.counts.items():
        assert function.moved is not None
        yield from function.moved(binder, number)
    if copies:
        yield binder.backend.helper("copy_boxes", copy_args(copies), len(copies), cmd.Category.OTHER, "registers")


# Geometry ------------------------------------------------------------------------------------------------------------
def _separate(calls: Sequence[tuple[KernelCall, cmd.Kernel]]) -> bool:
    """Return True if arrays with fewer axes than the kernels that access them are only read."""
    partial, stored = set(), set()
    for call, _ in calls:
        arrays = slots(call)
        partial |= {arrays[n] for n, p in enumerate(call.graph.params) if len(p.axes) < call.graph.ndim}
        stored |= {arrays[param] for param in call.graph.written}
    return not partial & stored


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory that a round accesses.

    size    cells of all calls along each axis
    arrays  bytes of each array for a cell, by the address of its slot
    kept    bytes of locals that a round keeps from row to row of axis 0, for each cell of such a row
    """

    size: tuple[int, ...]
    arrays: Mapping[int, float]
    kept: float


def _memory(calls: Sequence[KernelCall], touches: Sequence[Touch], rounds: int) -> _Memory:
    """Return the memory that the calls of so many rounds access in each."""
    lo = map(min, zip(*(t.lo for t in touches), strict=True))
    hi = map(max, zip(*(t.hi for t in touches), strict=True))
    size = tuple(b - a for a, b in zip(lo, hi, strict=True))
    covered: dict[int, set[tuple[Point, Point]]] = {}
    widths: dict[int, int] = {}
    for call in calls:
        for slot, param in zip(slots(call), call.graph.params, strict=True):
            if len(param.axes) == call.graph.ndim:
                covered.setdefault(slot, set()).add((call.lo, call.hi))
                widths[slot] = itemsize(param.dtype)
    arrays = {
        slot: widths[slot] * min(1.0, sum(prod(b - a for a, b in zip(*box, strict=True)) for box in boxes) / prod(size))
        for slot, boxes in covered.items()
    }
    return _Memory(size, arrays, sum(kept_bytes(call.graph) for call in calls) / rounds)


def _shapes(
    memory: _Memory, found: Sequence[Sequence[float]], workers: int, ranks: int, depths: Sequence[int] | None
) -> dict[tuple[int, int, int], bool]:
    """Return the best rows of a band, number of columns and rounds for some caches: True for the usual ones, for L2.

    `found` has the rows that are in use at a time for each number of rounds.
    """
    shapes: dict[tuple[int, int, int], bool] = {}
    near, *farther = budgets(workers * ranks)
    cell = sum(memory.arrays.values())
    for usual, slanted, budget in ((True, False, near), (False, True, near), *((False, False, far) for far in farther)):
        best = best_bands(memory.size, cell, memory.kept, found, workers, budget, depths, slanted=slanted)
        if best is not None:
            shapes.setdefault(best, usual and memory.kept <= MOST_KEPT)
    return shapes


def rounds_of_blocks(loop: Repeat, storage: Storage, rank: int, workers: int, *, tried: bool) -> int:
    """Return the number of rounds that one exchange of a loop should last, so that they make a block; 1 for none.

    The block is for the nearest cache that has room for one: the L2 cache, or others if blocks are `tried`.

    Only one block on a rank, with neighbours on other ranks or periodic axes, needs exchanges that last longer than its
    stencil asks for.
    """
    applies = [operation for operation in loop.body if isinstance(operation, Apply)]
    if not applies or loop.until is not None or any(apply.replicated for apply in applies):
        return 1
    grid = applies[0].grid
    if grid.seam is not None:
        return 1
    layout = storage.layout(grid)
    own = layout.blocks_of(rank)
    if len(own) != 1 or grid.ndim < 2:
        return 1
    if any(a.graph.reductions or a.cells.active is not None or a.mask is not None for a in applies):
        return 1
    shape = layout.box(own[0]).shape
    lengths = [n for n, whole, p in zip(shape, grid.shape, grid.periodic, strict=True) if p or n < whole]
    if not lengths:
        return 1
    reach = [sum(_reach(apply, axis) for apply in applies) for axis in (0, 1)]
    sizes = {slot: itemsize(slot.field.dtype) for a in applies for slot in a.operands if isinstance(slot, Slot)}
    rows = [[r * (depth + 1) for r in reach] for depth in range(1, DEEPEST + 1)]
    kept = sum(kept_bytes(apply.graph) for apply in applies)
    near, *farther = budgets(workers * layout.ranks)
    caches = [near, *farther] if tried else [near] if kept <= MOST_KEPT else []
    shapes = (best_bands(shape, sum(sizes.values()), kept, rows, workers, room) for room in caches)
    best = next(filter(None, shapes), None)
    depth = 1 if best is None else best[2]
    farthest = max(sum(_reach(apply, axis) for apply in applies) for axis in range(grid.ndim))
    while depth * farthest * LEAST_REPEATED > min(lengths):
        depth //= 2
    return max(1, min(depth, loop.limit) if isinstance(loop.limit, int) else depth)


def _reach(apply: Apply, axis: int) -> int:
    """Return the rows along an axis that an operation reads beyond its own, on the farther side."""
    return max((max(reach.lo[axis], reach.hi[axis]) for reach in stencil(apply).values()), default=0)


def _wave(
    binder: Binder,
    calls: Sequence[tuple[KernelCall | BandedCall, cmd.Kernel]],
    touches: Sequence[Touch],
    places: Sequence[Sequence[Position]],
    shape: tuple[int, int],
) -> cmd.Kernel:
    """Return the command that executes calls in columns of bands: rows of a band and number of columns."""
    table = np.zeros((len(calls), words.CALL_WORDS), np.int64)
    (first, last), (left, right) = (_ends(touches[: len(calls)], places[axis], axis) for axis in (0, 1))
    width = max(1, -(-(right - left) // shape[1]))
    for number, (call, kernel) in enumerate(calls):
        lo, hi, n, one = _whole(call, width)
        copies = copies_of(one, binder.backend.workers)
        if kernel.site is not None:
            kernel.site.words.append(table[number, words.FUNCTION : words.FUNCTION + 1])
        table[number, : words.RINGS] = kernel.function, binder.address(copies), copies[0].nbytes
        table[number, words.RINGS : words.NDIM] = _rings(binder, call, width)
        table[number, words.NDIM] = n
        along = [axis[number] for axis in places]
        axes = [(lo[axis], hi[axis], p.place, p.at_once) for axis, p in enumerate(along)]
        table[number, words.AXES :] = [*axes[0], *axes[1]]
    columns = max(1, -(-(right - left) // width))
    progress = np.zeros((columns, words.PROGRESS_WORDS), np.int64)
    bands = first, last, shape[0], left, right, width
    args = np.array([len(calls), *map(binder.address, (table, progress)), libc_address("sched_yield"), *bands])
    timed = _kernels(calls)[0][1].block
    category, cells = cmd.Category.COMPUTE, sum(kernel.cells for _, kernel in calls)
    return cmd.Kernel(
        wave_function(),
        binder.address(args),
        columns,
        category,
        _label(calls),
        cells=cells,
        block=timed,
    )


def _ends(touches: Sequence[Touch], places: Sequence[Position], axis: int) -> tuple[int, int]:
    """Return the first place along an axis at which calls have cells, and the end of these places."""
    ranges = [p.range(t.lo[axis], t.hi[axis]) for t, p in zip(touches, places, strict=False)]
    return min(begin for begin, _ in ranges), max(end for _, end in ranges)


def _rings(binder: Binder, call: KernelCall | BandedCall, width: int) -> tuple[int, int]:
    """Return the address and the bytes per worker of memory in which the locals of a call stay from band to band."""
    if isinstance(call, BandedCall) or not call.graph.locals:
        return 0, 0
    size = scratch_bytes(call.graph, _column(call, width), reductions=False)
    size += -size % LINE
    memory = np.empty(size * binder.backend.workers + LINE, np.uint8)
    return -(-binder.address(memory) // LINE) * LINE, size


def _column(call: KernelCall, width: int) -> tuple[int, ...]:
    """Return the most cells of a call along each axis in a column."""
    return tuple(
        min(length, max(width, THIN)) if axis == 1 else max(1, length)
        for axis, length in enumerate(b - a for a, b in zip(call.lo, call.hi, strict=True))
    )


def _whole(call: KernelCall | BandedCall, width: int) -> tuple[Point, Point, int, np.ndarray]:
    """Return the box of a call, the axes of its ends among its arguments, and these for one tile of any size."""
    if isinstance(call, BandedCall):
        return call.touch.lo, call.touch.hi, 2, call.args
    n, where, args = call.graph.ndim, offsets(call.graph), call.args.copy()
    args[where.tile : where.tile + n] = _column(call, width)
    args[where.tiles : where.tiles + n] = 1
    return call.lo, call.hi, n, args


def _label(calls: Sequence[tuple[KernelCall | BandedCall, cmd.Kernel]]) -> str:
    """Return the name of a wave: those of its kernels."""
    return " + ".join(dict.fromkeys(kernel.label for _, kernel in calls if kernel.category is cmd.Category.COMPUTE))
