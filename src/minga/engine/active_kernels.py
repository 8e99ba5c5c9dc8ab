"""Native code for active tiles: kernels that skip tiles in which nothing can change.

Every tile of a block has two bytes for each of two slots: `changed`, set if the slot holds values there that differ
from those before it was last written, and `wake`, set if anything changed that influences the tile's next values. A
ring of bytes that are never read surrounds the block's tiles, and rows are padded, so that eight bytes can be read as
one word.

All functions are called as `void f(int64 *args, int64 unit, int64 *worker)`, like traced kernels.

begin_step, one unit: args[0] address of the state, [1] of the counters, [2] workers, [3] blocks, then for each block
    [0] address of the word that holds the flags of `next`  [1] words of flags
    Clears the flags of `next`. If much was computed in the step before, checking costs more than it saves: then all
    tiles are computed for a while, and counted as changed.
active_tiles_N, N axes, unit = some rows of at most args[SEGMENT_TILES] tiles along the innermost axis: calls a kernel
    for the tiles that are awake in slot `now`, and sets the flags of slot `next`. The words are described below.
copy_noted, unit = number of the copy: the records of copy_boxes, and in words 16-19 of each
    [16] address of the word that holds the flags of the source, or 0  [17] byte offset of the source's `changed`
    [18] address of the word that holds the flags of the target  [19] address of a list: its length, offsets of `wake`
    Skipped if the source did not change. Wakes the tiles of the list if a cell that is overwritten changes.
"""

from __future__ import annotations

import functools
import itertools
from contextlib import ExitStack
from typing import Final

from llvmlite import ir

from minga.engine.emit import Code, Word
from minga.engine.helper_kernels import COPY_WORDS, HEADER_WORDS

FUNCTION, CALLS, CALL_BYTES, NOW, NEXT, COUNTERS, SAVED, SAVED_BYTES, STORED, SEGMENTS, SEGMENT_TILES, STATE = range(12)
"""Words of active_tiles: the kernel; its argument words, one copy per worker, and the bytes of one copy; addresses of
the words that hold the flags; counters (one cache line per worker); buffer for old values, and the bytes of one
worker's part; number of stored arrays; segments of a row and tiles of one segment; the state."""
WAKE, ROWS = 12, 13
"""Words of active_tiles: bytes from a tile's `changed` to its `wake`; rows of tiles in a unit, along the axis before
the innermost."""
TILES_HEADER: Final = 16
AXIS_FIRST, AXIS_TILES, AXIS_SIZE, AXIS_ORIGIN, AXIS_COUNT, AXIS_END, AXIS_LO, AXIS_HI, AXIS_STRIDE, AXIS_REACH = range(
    10
)
"""Words for each axis, which follow: first tile and number of tiles to examine; size of a tile; the block's low end,
number of tiles (the last one extends to the end) and high end; ends of the box to be computed; bytes between flags;
distance from a cell within which other cells influence it."""
AXIS_WORDS: Final = 10
ARRAY_SLOT, ARRAY_OFFSET, ARRAY_STRIDES = range(3)
"""Words for each stored array, which follow: address of its slot, byte offset of index 0, strides in bytes."""

COUNTER_LOOKED, COUNTER_COMPUTED = 0, 1
"""Words of the counters: cells of the tiles examined, and of those computed."""
COUNTER_WORDS: Final = 8

STEP_HEADER: Final = 4
STEP_WORDS: Final = 2
STATE_ALL, STATE_LEFT, STATE_WAIT, STATE_LOOKED, STATE_COMPUTED, STATE_PATIENCE, STATE_WORTHWHILE = range(7)
"""Words of the state: 1 if this step computes all tiles; number of further steps that do; steps until the amount
computed is examined; the counters' sums at the last step; number of steps that compute all tiles once the amount was
large; the threshold for that, more than one cell in WORTHWHILE."""
STATE_WORDS: Final = 8

Bounds = list[tuple[Word, Word]]
"""Low and high end along each axis."""
_EIGHT_BYTES: Final = 0x0101010101010101


def array_words(ndim: int) -> int:
    """Return the number of words of a stored array's record."""
    return ARRAY_STRIDES + ndim


def begin_step(module: ir.Module) -> Code:
    """Build the function that begins a step."""
    code = Code(module, "begin_step", 3)
    args = code.arguments[0]
    state, counters, workers, blocks = (code.load(args + 8 * word) for word in range(4))
    totals = [code.variable(0) for _ in (COUNTER_LOOKED, COUNTER_COMPUTED)]
    with code.loop(workers) as worker:
        for number, total in enumerate(totals):
            total.set(total.get() + code.load(counters + (worker * COUNTER_WORDS + number) * 8))
    places = [state + 8 * number for number in (STATE_LOOKED, STATE_COMPUTED)]
    looked, computed = (total.get() - code.load(place) for total, place in zip(totals, places, strict=True))
    for total, place in zip(totals, places, strict=True):
        code.store(total.get(), place)
    wait = code.variable(code.intrinsic("llvm.smax.i64", code.load(state + 8 * STATE_WAIT) - 1, 0))
    left = code.variable(code.load(state + 8 * STATE_LEFT))
    much = computed * code.load(state + 8 * STATE_WORTHWHILE) > looked
    with code.when(wait.get().equals(0) & left.get().equals(0) & much):
        left.set(code.load(state + 8 * STATE_PATIENCE))
        # After those steps all tiles are compared, and in the next step the awake ones; only then are the changes
        # known.
        wait.set(left.get() + 2)
    everything = left.get() > 0
    code.store(everything, state + 8 * STATE_ALL)
    code.store(left.get() - everything, state + 8 * STATE_LEFT)
    code.store(wait.get(), state + 8 * STATE_WAIT)
    with code.loop(blocks) as block:
        record = args + 8 * STEP_HEADER + block * (8 * STEP_WORDS)
        flags = code.load(code.load(record))
        with code.loop(code.load(record + 8)) as word:
            code.store(everything * _EIGHT_BYTES, flags + word * 8)
    code.finish()
    return code


def copy_noted(module: ir.Module) -> Code:
    """Build the kernel that copies boxes and wakes the tiles that the copies influence."""
    code = Code(module, "copy_noted", 3)
    args, unit, _ = code.arguments
    record = args + 8 * HEADER_WORDS + unit * (8 * COPY_WORDS)

    def field(number: int) -> Word:
        return code.load(record + 8 * number)

    wanted = code.variable(1)
    with code.when(field(16)):
        wanted.set(code.load(code.load(field(16)) + field(17), bits=8))
    with code.when(wanted.get()):
        shape = [field(12 + axis) for axis in range(4)]
        source = [code.load(field(0)) + field(1), *(field(2 + axis) for axis in range(3))]
        target = [code.load(field(6)) + field(7), *(field(8 + axis) for axis in range(3))]
        changed = code.variable(0)
        with code.loop(shape[0]) as i, code.loop(shape[1]) as j:
            whence = source[0] + i * source[1] + j * source[2]
            whither = target[0] + i * target[1] + j * target[2]
            other = code.variable(1)
            with code.switch(shape[3]) as case:
                for size in (1, 8):  # columns of bytes or words
                    with case(size):
                        other.set(0)
                        with code.loop(shape[2]) as k:
                            one, two = whence + k * source[3], whither + k * target[3]
                            load = code.load_unaligned if size == 8 else functools.partial(code.load, bits=8)
                            changed.set(changed.get() | (load(one) ^ load(two)))
                            code.copy_item(one, two, size)
            with code.when(other.get()), code.loop(shape[2]) as k:
                one, two = whence + k * source[3], whither + k * target[3]
                changed.set(changed.get() | _difference(code, one, two, shape[3]))
                _copy(code, one, two, shape[3])
        with code.when(changed.get()):
            flags, tiles = code.load(field(18)), field(19)
            with code.loop(code.load(tiles)) as number:
                code.store(1, flags + code.load(tiles + (number + 1) * 8), bits=8)
    code.finish()
    return code


def active_tiles(module: ir.Module, ndim: int) -> Code:
    """Build the function that runs a kernel on active tiles of grids with `ndim` axes."""
    return _ActiveTiles(module, ndim).build()


class _ActiveTiles:
    """Builder of the code of `active_tiles_N`; values computed once per call are attributes."""

    def __init__(self, module: ir.Module, ndim: int) -> None:
        self.code = Code(module, f"active_tiles_{ndim}", 3)
        self.ndim = ndim
        self.args, self.unit, self.worker = self.code.arguments
        number = self.code.load(self.worker)
        self.call = self.word(CALLS) + number * self.word(CALL_BYTES)
        self.counters = self.word(COUNTERS) + number * (8 * COUNTER_WORDS)
        self.saved = self.word(SAVED) + number * self.word(SAVED_BYTES)

    def word(self, number: int) -> Word:
        """Return argument word `number`."""
        return self.code.load(self.args + 8 * number)

    def axis(self, axis: int, number: int) -> Word:
        """Return word `number` of an axis."""
        return self.word(TILES_HEADER + axis * AXIS_WORDS + number)

    def build(self) -> Code:
        """Emit the function."""
        code, last = self.code, self.ndim - 1
        tiles = [*self.outer_tiles(), self.segment()]
        whole = [self.bounds(axis, first, stop) for axis, (first, stop) in enumerate(tiles)]
        self.count(COUNTER_LOOKED, whole)
        with code.either(code.load(self.word(STATE) + 8 * STATE_ALL)) as (everything, some):
            with everything:
                self.compute(whole)
            with some:
                if last == 0:
                    self.row([], *tiles[-1])
                else:
                    first, stop = tiles[last - 1]
                    with code.loop(stop - first) as k:
                        self.row([*(tile for tile, _ in tiles[: last - 1]), first + k], *tiles[-1])
        code.finish()
        return code

    def segment(self) -> tuple[Word, Word]:
        """Return this unit's tiles along the innermost axis."""
        axis = self.ndim - 1
        first = self.axis(axis, AXIS_FIRST)
        start = first + self.unit.remainder(self.word(SEGMENTS)) * self.word(SEGMENT_TILES)
        behind = first + self.axis(axis, AXIS_TILES)
        return start, self.code.intrinsic("llvm.smin.i64", start + self.word(SEGMENT_TILES), behind)

    def outer_tiles(self) -> list[tuple[Word, Word]]:
        """Return this unit's tiles along the other axes: one tile, except several rows along the last of these axes."""
        rest = self.unit.quotient(self.word(SEGMENTS))
        tiles: list[tuple[Word, Word]] = []
        for axis in reversed(range(self.ndim - 1)):
            each = self.word(ROWS) if axis == self.ndim - 2 else self.code.word(1)
            first, count = self.axis(axis, AXIS_FIRST), self.axis(axis, AXIS_TILES)
            chunks = (count + each - 1).quotient(each)
            start = first + rest.remainder(chunks) * each
            tiles.insert(0, (start, self.code.intrinsic("llvm.smin.i64", start + each, first + count)))
            rest = rest.quotient(chunks)
        return tiles

    def row(self, outer: list[Word], first: Word, stop: Word) -> None:
        """Find and compute the runs of awake tiles in a row."""
        code = self.code
        bounds = [self.bounds(axis, tile, tile + 1) for axis, tile in enumerate(outer)]
        own = code.word(1)
        for axis, tile in enumerate(outer):
            own = own + (tile + 1) * self.axis(axis, AXIS_STRIDE)
        after = code.load(self.word(NEXT)) + own
        awake = code.load(self.word(NOW)) + self.word(WAKE) + own
        at, end = code.variable(first), code.variable(first)

        def running() -> Word:
            return (end.get() < stop) & code.load(awake + end.get(), bits=8).differs(0)

        with code.repeat(lambda: at.get() < stop):
            quiet = code.trailing_zeros(code.load_unaligned(awake + at.get())) >> 3
            with code.either(quiet > 0) as (yes, no):
                with yes:
                    at.set(at.get() + quiet)
                with no:
                    end.set(at.get() + 1)
                    with code.repeat(running):
                        end.set(end.get() + 1)
                    self.run(outer, at.get(), end.get(), after, bounds)
                    at.set(end.get())

    def ends(self, axis: int, first: Word, stop: Word) -> tuple[Word, Word]:
        """Return the indices at which tiles first .. stop - 1 begin and end along an axis."""
        origin, size, count = (self.axis(axis, number) for number in (AXIS_ORIGIN, AXIS_SIZE, AXIS_COUNT))
        high = self.code.select(stop.equals(count), self.axis(axis, AXIS_END), origin + stop * size)
        return origin + first * size, high

    def bounds(self, axis: int, first: Word, stop: Word) -> tuple[Word, Word]:
        """Return the part of these tiles that must be computed along an axis."""
        low, high = self.ends(axis, first, stop)
        begin = self.code.intrinsic("llvm.smax.i64", low, self.axis(axis, AXIS_LO))
        return begin, self.code.intrinsic("llvm.smin.i64", high, self.axis(axis, AXIS_HI))

    def count(self, number: int, box: Bounds) -> None:
        """Add the cells of a box to a counter."""
        cells = self.code.word(1)
        for low, high in box:
            cells = cells * (high - low)
        place = self.counters + 8 * number
        self.code.store(self.code.load(place) + cells, place)

    def run(self, outer: list[Word], first: Word, stop: Word, after: Word, bounds: Bounds) -> None:
        """Compute a run of tiles in one call, find the tiles that changed, and wake the tiles they influence."""
        code, last = self.code, self.ndim - 1
        box = [*bounds, self.bounds(last, first, stop)]
        self.old_values(box, box, save=True)
        self.compute(box)
        with code.loop(stop - first) as k:
            tile = first + k
            part = [*bounds, self.bounds(last, tile, tile + 1)]
            with code.when(self.old_values(box, part, save=False)):
                place = after + tile
                code.store(1, place, bits=8)
                code.store(1, place + self.word(WAKE), bits=8)
                self.wake([*outer, tile], box, part, place + self.word(WAKE))

    def wake(self, tiles: list[Word], box: Bounds, part: Bounds, place: Word) -> None:
        """Wake the tiles around a tile that changed, if it changed within reach of them."""
        code = self.code
        sides: list[dict[int, Word]] = []
        for axis, tile in enumerate(tiles):
            low, high = self.ends(axis, tile, tile + 1)
            reach, (begin, end) = self.axis(axis, AXIS_REACH), part[axis]
            below = begin, code.intrinsic("llvm.smin.i64", end, low + reach)
            above = code.intrinsic("llvm.smax.i64", begin, high - reach), end
            found = [
                self.old_values(box, [*part[:axis], side, *part[axis + 1 :]], save=False) for side in (below, above)
            ]
            sides.append({-1: found[0], 0: code.word(1), 1: found[1]})
        for direction in itertools.product((-1, 0, 1), repeat=self.ndim):
            if any(direction):
                near, other = code.word(1), place
                for axis, step in enumerate(direction):
                    near = near & sides[axis][step]
                    other = other + self.axis(axis, AXIS_STRIDE) * step
                with code.when(near):
                    code.store(1, other, bits=8)

    def compute(self, box: Bounds) -> None:
        """Call the kernel for a box."""
        for axis, (low, high) in enumerate(box):
            self.code.store(low, self.call + 8 * axis)
            self.code.store(high, self.call + 8 * (self.ndim + axis))
        self.code.call(self.word(FUNCTION), self.call, 0, self.worker)
        self.count(COUNTER_COMPUTED, box)

    def old_values(self, box: Bounds, part: Bounds, save: bool) -> Word:
        """Save the cells of a box, or compare a part of them with the saved ones: 1 if a bit differs."""
        code, ndim = self.code, self.ndim
        aside, different = code.variable(self.saved), code.variable(0)
        record = code.variable(self.args + 8 * (TILES_HEADER + ndim * AXIS_WORDS))
        with code.loop(self.word(STORED)):
            at = record.get()
            strides = [code.load(at + 8 * (ARRAY_STRIDES + axis)) for axis in range(ndim)]
            dense = [strides[-1]]
            for low, high in reversed(box[1:]):
                dense.insert(0, dense[0] * (high - low))
            row = code.load(code.load(at + 8 * ARRAY_SLOT)) + code.load(at + 8 * ARRAY_OFFSET)
            old = aside.get()
            for (low, _), (begin, _), stride, close in zip(part, box, strides, dense, strict=True):
                row, old = row + low * stride, old + (low - begin) * close
            size = (part[-1][1] - part[-1][0]) * strides[-1]
            with ExitStack() as loops:
                for (low, high), stride, close in zip(part[:-1], strides[:-1], dense[:-1], strict=True):
                    k = loops.enter_context(code.loop(high - low))
                    row, old = row + k * stride, old + k * close
                if save:
                    _copy(code, row, old, size)
                else:
                    with code.when(different.get().equals(0) & (size > 0)):
                        different.set(_difference(code, row, old, size).differs(0))
            aside.set(aside.get() + dense[0] * (box[0][1] - box[0][0]))
            record.set(at + 8 * array_words(ndim))
        return different.get()


def _copy(code: Code, source: Word, target: Word, size: Word) -> None:
    """Copy a short row."""
    lines = size >> 6
    with code.loop(lines) as k:
        code.copy_item(source + (k << 6), target + (k << 6), 64)
    with code.loop((size & 63) >> 3) as k:
        place = (lines << 6) + (k << 3)
        code.copy_item(source + place, target + place, 8)
    with code.loop(size & 7) as k:
        place = ((size >> 3) << 3) + k
        code.copy_item(source + place, target + place, 1)


def _difference(code: Code, one: Word, other: Word, size: Word) -> Word:
    """Return 0 if two memory areas hold the same `size` bytes."""
    found, lines = code.variable(0), size >> 6
    with code.loop(lines) as k:
        found.set(found.get() | code.lines_differ(one + (k << 6), other + (k << 6)))
    with code.loop((size & 63) >> 3) as k:
        place = (lines << 6) + (k << 3)
        found.set(found.get() | (code.load_unaligned(one + place) ^ code.load_unaligned(other + place)))
    with code.loop(size & 7) as k:
        place = ((size >> 3) << 3) + k
        found.set(found.get() | (code.load(one + place, bits=8) ^ code.load(other + place, bits=8)))
    return found.get()
