"""Native code that computes kernel calls of several rounds band by band.

A wave cuts the places of its calls (:mod:`minga.engine.skew`) into columns along axis 1, and each column into bands
along axis 0. In a band, each call computes those of its cells that lie there, in the order of the calls. A band follows
the one before it in its column and the one at its side in the column before, so each column is one unit, and its worker
waits for the column before where it must. Units begin in the order of their numbers: one that is waited for has begun.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from minga.compile.abi import BANDED, RESUMED, SCRATCH
from minga.engine.emit import Code, Word

CALLS, TABLE, PROGRESS, YIELD, BANDS = range(5)
"""Words of a wave: number of calls; addresses of their table, of the progress of columns and of libc's sched_yield;
from BANDS on, the first place, the end and the width of bands along axis 0, then of columns along axis 1."""

FUNCTION, ARGS, BYTES, RINGS, RING_BYTES, NDIM, AXES = range(7)
"""Words of a call: its kernel; its arguments, one copy per worker, and the bytes of a copy; likewise the memory of its
locals, which a band leaves to the next one of its column, 0 if it has none; number of axes; from AXES on, for axis 0
and then axis 1, the ends of its box, its place, and whether it is computed at once."""
AXIS_WORDS: Final = 4
CALL_WORDS: Final = AXES + 2 * AXIS_WORDS

PROGRESS_WORDS: Final = 8
"""Words between the progress of two columns, the number of bands that are complete: a line of a cache."""
_PATIENCE: Final = 1000
"""Number of checks of another column's progress before the processor is yielded."""


def wave(module: ir.Module) -> Code:
    """Build wave(args, column, worker), which computes all bands of a column."""
    code = Code(module, "wave", 3)
    args, column, worker = code.arguments
    first, last, width, leftmost, _, breadth = (code.load(args + 8 * (BANDS + k)) for k in range(6))
    table, calls = code.load(args + 8 * TABLE), code.load(args + 8 * CALLS)
    own = code.load(args + 8 * PROGRESS) + column * (8 * PROGRESS_WORDS)
    before = own - 8 * PROGRESS_WORDS
    number, side = code.load(worker), leftmost + column * breadth
    scratch = code.load(worker + 8 * SCRATCH)
    code.store(1, worker + 8 * BANDED)
    place, done = code.variable(first), code.variable(0)
    with code.repeat(lambda: place.get() < last):
        with code.when(column):
            _await(code, before, done.get(), code.load(args + 8 * YIELD))
        with code.loop(calls) as which:
            call = table + which * (8 * CALL_WORDS)
            words = code.load(call + 8 * ARGS) + number * code.load(call + 8 * BYTES)
            rows, cells = (place.get(), width), (side, breadth)
            with code.when(_restrict(code, call, words, 0, *rows)), code.when(_restrict(code, call, words, 1, *cells)):
                rings = code.load(call + 8 * RINGS)
                memory = rings + number * code.load(call + 8 * RING_BYTES)
                code.store(code.select(rings.equals(0), scratch, memory), worker + 8 * SCRATCH)
                code.store(code.load(words) > code.load(call + 8 * AXES), worker + 8 * RESUMED)
                code.call(code.load(call + 8 * FUNCTION), words, 0, worker)
        place.set(place.get() + width)
        done.set(done.get() + 1)
        code.atomic_store(done.get(), own, "release")
    code.store(scratch, worker + 8 * SCRATCH)
    for word in (RESUMED, BANDED):
        code.store(0, worker + 8 * word)
    with code.when(column):  # nobody else reads it any more: the next wave finds nothing done
        code.store(0, before)
    code.finish()
    return code


def _await(code: Code, progress: Word, done: Word, give: Word) -> None:
    """Wait until more bands of a column than `done` are complete."""
    patience = code.variable(_PATIENCE)
    with code.repeat(lambda: code.atomic_load(progress, "acquire") <= done):
        code.pause()
        patience.set(patience.get() - 1)
        with code.when(patience.get() < 0):
            code.call(give, returns=32)


def _restrict(code: Code, call: Word, words: Word, axis: int, start: Word, width: Word) -> Word:
    """Restrict a call to a band along an axis; return 0 if it has no cells there."""
    lo, hi, place, at_once = (code.load(call + 8 * (AXES + AXIS_WORDS * axis + k)) for k in range(AXIS_WORDS))
    begin, end = start - place, start + width - place
    inside = (begin <= 0) & (end > 0)
    low = code.select(at_once, lo, code.intrinsic("llvm.smax.i64", lo, begin))
    high = code.select(at_once, code.select(inside, hi, lo), code.intrinsic("llvm.smin.i64", hi, end))
    code.store(low, words + 8 * axis)
    code.store(high, words + (code.load(call + 8 * NDIM) + axis) * 8)
    return low < high
