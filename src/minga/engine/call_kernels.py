"""Native code of calls: it reads and changes fields at points, copies past the caches, and moves counters.

All functions are called as `void f(int64 *args, int64 tile, int64 *worker)`, with one tile except for `stream_boxes`.

stream_boxes: copies with the arguments of `copy_boxes` (:mod:`minga.engine.helper_kernels`), to rows that begin with
    lines of the cache; whole lines are stored past the caches, since they are not read again soon
move_words: args[0] number of words, then address and increment of each
sample_f4, sample_f8: values of a field at points, into a row of a table of f8
    args[0..3] lowest cells along axes 0 and 1, ends of the cells  [4] number of points  [5], [6] cells of the points
    along these axes  [7] taps of each point  [8] address of the word that holds the array's base address  [9] byte
    offsets of the taps, tap by tap  [10] f8 weights, tap by tap  [11] columns of the points  [12] the table
    [13] columns of the table  [14] address of the position  [15] added to it  [16] positions from one row to the next
    [17] rows
add_f4, add_f8: values of a row of a table, added to the cells that represent points
    args[0..3] as above  [4] number of cells  [5], [6] their places along these axes  [7] first tap of each, and their
    end  [8] address of the word that holds the base address  [9] byte offsets of the cells  [10] f8 weights of the taps
    [11] columns of their points  [12] to [17] as above
mean_points: values of points, each the sum of some terms divided by a number, into words
    args[0] number of points  [1] number of terms  [2] table of the addresses of the f8 terms of all points
    [3] address of the f8 divisor  [4] table of the addresses of the values
keep_words: words into the row of a table at a position, which is advanced
    args[0] number of words  [1] table of their addresses  [2] the table  [3] address of the position

Points and cells outside the given ones are left out. Nothing happens at positions between rows. The terms of a value
are added in the order of its taps, in f8.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from minga.engine.emit import Code, Word, load
from minga.engine.helper_kernels import copying
from minga.engine.storage import LINE
from minga.lang.types import DType

__all__ = ["SAMPLE_WORDS", "CallFunctions", "call_functions"]

AHEAD: Final = 2048
"""Bytes ahead of a copy that are fetched."""
SAMPLE_WORDS: Final = 18
"""Number of argument words of the functions of points."""
_DOUBLE: Final = ir.DoubleType()
_FIRST = threading.Lock()


@dataclass(frozen=True, slots=True)
class CallFunctions:
    """Addresses of the native functions."""

    stream_boxes: int
    fetch_boxes: int
    move_words: int
    sample_f4: int
    sample_f8: int
    add_f4: int
    add_f8: int
    mean_points: int
    keep_words: int

    def sample(self, dtype: DType) -> int:
        """Return the address of the function that samples fields of a type."""
        return self.sample_f4 if dtype == "f4" else self.sample_f8

    def add(self, dtype: DType) -> int:
        """Return the address of the function that adds to fields of a type."""
        return self.add_f4 if dtype == "f4" else self.add_f8


def call_functions() -> CallFunctions:
    """Return the functions, compiled for this machine once per process."""
    with _FIRST:
        return _compiled()[0]


@functools.cache
def _compiled() -> tuple[CallFunctions, object]:
    module = ir.Module("minga_calls")
    codes = [
        copying(module, "stream_boxes", _stream_row, past_caches=True),
        copying(module, "fetch_boxes", _fetch_row),
        _move_words(module),
        *(_sample(module, name, kind) for name, kind in (("sample_f4", ir.FloatType()), ("sample_f8", _DOUBLE))),
        *(_add(module, name, kind) for name, kind in (("add_f4", ir.FloatType()), ("add_f8", _DOUBLE))),
        _mean_points(module),
        _keep_words(module),
    ]
    addresses, owner = load(module, codes)
    return CallFunctions(**addresses), owner


def _stream_row(code: Code, source: Word, target: Word, size: Word) -> None:
    """Copy a row, whole lines of it past the caches."""
    past = code.function.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
    with _lines(code, source, target, size) as (value, place, _):
        code.store_value(value, place, align=LINE).set_metadata("nontemporal", past)


def _fetch_row(code: Code, source: Word, target: Word, size: Word) -> None:
    """Copy a row, and fetch the memory that follows it ahead."""
    with _lines(code, source, target, size) as (value, place, origin):
        code.prefetch(origin + AHEAD)
        code.store_value(value, place, align=1)


@contextmanager
def _lines(code: Code, source: Word, target: Word, size: Word) -> Iterator[tuple[ir.Value, Word, Word]]:
    """Give the lines of a row, loaded, with their targets and sources; what is left over is copied."""
    whole = size & -LINE
    kind = ir.VectorType(ir.IntType(32), LINE // 4)
    with code.loop(whole >> 6) as line:
        origin = source + (line << 6)
        yield code.load_as(origin, kind, align=1), target + (line << 6), origin
    code.copy(source + whole, target + whole, size - whole)


def _move_words(module: ir.Module) -> Code:
    code = Code(module, "move_words", 3)
    args = code.arguments[0]
    with code.loop(code.load(args)) as number:
        record = args + 8 + number * 16
        word = code.load(record)
        code.store(code.load(word) + code.load(record + 8), word)
    code.finish()
    return code


def _mean_points(module: ir.Module) -> Code:
    code = Code(module, "mean_points", 3)
    points, terms, values, divisor, targets = (code.load(code.arguments[0] + 8 * number) for number in range(5))
    number = _load(code, divisor, _DOUBLE)
    with code.loop(points) as point:
        total = code.local(_DOUBLE)
        code.builder.store(_load(code, code.load(values) + point * 8, _DOUBLE), total)
        with code.loop(terms - 1) as term:
            more = _load(code, code.load(values + (term + 1) * 8) + point * 8, _DOUBLE)
            code.builder.store(code.builder.fadd(code.builder.load(total, typ=_DOUBLE), more), total)
        mean = code.builder.fdiv(code.builder.load(total, typ=_DOUBLE), number)
        code.store_value(mean, code.load(targets + point * 8))
    code.finish()
    return code


def _keep_words(module: ir.Module) -> Code:
    code = Code(module, "keep_words", 3)
    count, sources, table, position = (code.load(code.arguments[0] + 8 * number) for number in range(4))
    row = code.load(position)
    with code.loop(count) as number:
        code.store(code.load(code.load(sources + number * 8)), table + (row * count + number) * 8)
    code.store(row + 1, position)
    code.finish()
    return code


def _with_row(module: ir.Module, name: str, body: Callable[[Code, list[Word], Word], None]) -> Code:
    """Build a function with a body of its argument words and the address of the row that is due, if one is."""
    code = Code(module, name, 3)
    words = [code.load(code.arguments[0] + 8 * number) for number in range(SAMPLE_WORDS)]
    table, columns, position, later, every, rows = words[12:]
    at = code.load(position) + later
    row = at.quotient(every)
    with code.when(at.remainder(every).equals(0) & rows.above(row)):
        body(code, words, table + row * columns * 8)
    code.finish()
    return code


def _inside(code: Code, words: list[Word], number: Word) -> Word:
    """Return 1 if a point lies in the given cells."""
    one, other = (code.load(words[axis] + number * 8) for axis in (5, 6))
    return (words[0] <= one) & (one < words[2]) & (words[1] <= other) & (other < words[3])


def _sample(module: ir.Module, name: str, kind: ir.Type) -> Code:
    def body(code: Code, words: list[Word], row: Word) -> None:
        points, taps, base, offsets, weights, columns = words[4], *words[7:12]
        first = code.load(base)

        def term(place: Word) -> ir.Value:
            value = _load(code, first + code.load(offsets + place), kind)
            return code.builder.fmul(_load(code, weights + place, _DOUBLE), value)

        with code.loop(points) as point, code.when(_inside(code, words, point)):
            total = code.local(_DOUBLE)
            code.builder.store(term(point * 8), total)
            with code.loop(taps - 1) as tap:
                more = term(((tap + 1) * points + point) * 8)
                code.builder.store(code.builder.fadd(code.builder.load(total, typ=_DOUBLE), more), total)
            code.store_value(code.builder.load(total, typ=_DOUBLE), row + code.load(columns + point * 8) * 8)

    return _with_row(module, name, body)


def _add(module: ir.Module, name: str, kind: ir.Type) -> Code:
    def body(code: Code, words: list[Word], row: Word) -> None:
        cells, starts, base, offsets, weights, columns, _, width = words[4], *words[7:14]
        any_bits = code.variable(0)
        with code.loop(width) as column:
            any_bits.set(any_bits.get() | (code.load(row + column * 8) << 1))  # the sign of 0 does not count
        with code.when(any_bits.get().differs(0)), code.loop(cells) as cell, code.when(_inside(code, words, cell)):
            total = code.local(_DOUBLE)
            code.builder.store(ir.Constant(_DOUBLE, 0.0), total)
            begin = code.load(starts + cell * 8)
            with code.loop(code.load(starts + cell * 8 + 8) - begin) as number:
                tap = (begin + number) * 8
                amount = _load(code, row + code.load(columns + tap) * 8, _DOUBLE)
                more = code.builder.fmul(_load(code, weights + tap, _DOUBLE), amount)
                code.builder.store(code.builder.fadd(code.builder.load(total, typ=_DOUBLE), more), total)
            place = code.load(base) + code.load(offsets + cell * 8)
            added = code.builder.load(total, typ=_DOUBLE)
            if kind != _DOUBLE:
                added = code.builder.fptrunc(added, kind)
            code.store_value(code.builder.fadd(code.load_as(place, kind), added), place)

    return _with_row(module, name, body)


def _load(code: Code, address: Word, kind: ir.Type) -> ir.Value:
    """Return a number as f8."""
    value = code.load_as(address, kind)
    return value if kind == _DOUBLE else code.builder.fpext(value, _DOUBLE)
