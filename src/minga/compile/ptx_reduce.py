"""Reductions on a GPU: threads gather cells, blocks gather threads, and blocks are combined by integer atomics.

Threads combine only integers (see compile/abi.py), so that no order of threads changes a bit. The floating-point sums
of 64-cell runs are finished before that, in the oracle's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from minga.compile.abi import (
    ACCUMULATOR_WORDS,
    KEY_EMPTY,
    KEY_NAN,
    SUM_BIAS,
    SUM_NAN,
    SUM_NEGATIVE_INFINITY,
    SUM_POSITIVE_INFINITY,
)
from minga.compile.ir import Body
from minga.compile.ptx_frame import BLOCK, WARP, Cell, Frame, barrier, variable
from minga.compile.text import Text
from minga.lang.expr import Node, bitcast, cast, compare, const, where
from minga.lang.graph import Reduction
from minga.lang.types import is_float

_NO_INDEX: Final = (1 << 63) - 1
_LOCK: Final = 2
"""Word of an argmax accumulator that is a lock: 1 while a block changes the other two words, otherwise 0."""
_DEVICE: Final = 'syncscope("device")'


def is_float_sum(reduction: Reduction) -> bool:
    """Return True for sums of floats."""
    return reduction.kind == "sum" and is_float(reduction.value.dtype)


# Terms of a cell -----------------------------------------------------------------------------------------------------
def term(reduction: Reduction) -> Node:
    """Return one cell's term of a reduction: a sortable key, an integer to add, or the f8 value of a float sum."""
    value = reduction.value
    if reduction.kind in ("max", "min", "argmax", "argmin"):
        return sort_key(value, minimum=reduction.kind.endswith("min"))
    return value if is_float_sum(reduction) else cast(value, "i8")


def sort_key(value: Node, *, minimum: bool) -> Node:
    """Return the i8 that orders like `value`, or in reverse for `minimum`; a NaN has the largest key in both cases."""
    if not is_float(value.dtype):
        key = cast(value ^ const(1 << 63, "u8"), "i8") if value.dtype == "u8" else cast(value, "i8")
        return ~key if minimum else key
    bits = bitcast(cast(value, "f8"), "i8")
    key = where(compare("ge", bits, const(0, "i8")), bits, bits ^ const(_NO_INDEX, "i8"))
    return where(compare("ne", value, value), const(KEY_NAN, "i8"), ~key if minimum else key)


def limb_parts(value: Node) -> tuple[Node, Node, Node, Node]:
    """Return the first limb of an f8, and the three i8 that it adds to this limb and the two following ones.

    NaN and infinities add 1 to the word that counts them.
    """
    bits = bitcast(value, "u8")
    exponent = _right(bits, 52) & const(0x7FF, "u8")
    fraction = bits & const((1 << 52) - 1, "u8")
    normal = compare("ne", exponent, const(0, "u8"))
    mantissa = fraction | where(normal, const(1 << 52, "u8"), const(0, "u8"))
    # |value| = mantissa * 2**(place - SUM_BIAS); a denormal has the exponent of the smallest normal number.
    place = where(normal, exponent, const(1, "u8")) + const(SUM_BIAS - 1075, "u8")
    shift = place & const(31, "u8")
    low = Node("shift_left", "u8", (mantissa & const(0xFFFFFFFF, "u8"), shift))
    high = Node("shift_left", "u8", (_right(mantissa, 32), shift)) + _right(low, 32)
    word = const(0xFFFFFFFF, "u8")
    parts = [cast(part, "i8") for part in (low & word, high & word, _right(high, 32))]
    negative = compare("lt", bitcast(value, "i8"), const(0, "i8"))
    signed = [where(negative, -part, part) for part in parts]
    infinity = where(negative, const(SUM_NEGATIVE_INFINITY, "i8"), const(SUM_POSITIVE_INFINITY, "i8"))
    counter = where(compare("ne", value, value), const(SUM_NAN, "i8"), infinity)
    finite = compare("ne", exponent, const(0x7FF, "u8"))
    zero, one = const(0, "i8"), const(1, "i8")
    return (
        where(finite, cast(_right(place, 5), "i8"), counter),
        where(finite, signed[0], one),
        where(finite, signed[1], zero),
        where(finite, signed[2], zero),
    )


def _right(value: Node, count: int) -> Node:
    return Node("shift_right", "u8", (value, const(count, "u8")))


# Gathering -----------------------------------------------------------------------------------------------------------
class Gathered:
    """A reduction of integers: each thread's part is in registers and is combined over the block at the end."""

    def __init__(self, frame: Frame, reduction: Reduction) -> None:
        self.frame = frame
        self.text = frame.text
        self.kind = reduction.kind
        self.indexed = reduction.kind in ("argmax", "argmin")
        self.sums = reduction.kind in ("count", "sum")
        empty = [0] if self.sums else [KEY_EMPTY, _NO_INDEX] if self.indexed else [KEY_EMPTY]
        self._own = [variable(self.text, "i64", str(word)) for word in empty]

    @property
    def words(self) -> int:
        """Number of words of the thread's part."""
        return len(self._own)

    def add(self, term: str, linear: str) -> None:
        """Add one cell; `linear` is its linear index, which only argmax and argmin use."""
        combined = self._combine(self._values(), [term, linear] if self.indexed else [term])
        for value, place in zip(combined, self._own, strict=True):
            self.text.emit(f"store i64 {value}, ptr {place}")

    def _values(self) -> list[str]:
        return [self.text.let(f"load i64, ptr {place}") for place in self._own]

    def _combine(self, a: Sequence[str], b: Sequence[str]) -> list[str]:
        text = self.text
        if self.sums:
            return [text.let(f"add i64 {a[0]}, {b[0]}")]
        if not self.indexed:
            return [text.larger(a[0], b[0])]
        larger, equal = text.let(f"icmp sgt i64 {a[0]}, {b[0]}"), text.let(f"icmp eq i64 {a[0]}, {b[0]}")
        index = text.let(f"select i1 {larger}, i64 {a[1]}, i64 {b[1]}")
        return [text.larger(a[0], b[0]), text.let(f"select i1 {equal}, i64 {text.smaller(a[1], b[1])}, i64 {index}")]

    def gather_warp(self, shared: str) -> None:
        """Combine the parts of a warp's threads into the warp's words of shared memory."""
        text, values, distance = self.text, self._values(), WARP // 2
        while distance:
            values = self._combine(values, [shuffle_down(text, value, distance) for value in values])
            distance //= 2
        lane, warp = text.let(f"and i64 {self.frame.thread}, {WARP - 1}"), text.let(f"lshr i64 {self.frame.thread}, 5")
        with text.when(text.let(f"icmp eq i64 {lane}, 0")):
            for k, value in enumerate(values):
                text.emit(f"store i64 {value}, ptr {text.word(shared, text.add(text.mul(warp, self.words), k))}")

    def gather_block(self, shared: str, accumulator: str) -> None:
        """Combine all warps' parts into the accumulator; run by one thread of the block, after a barrier."""
        text = self.text
        for k, place in enumerate(self._own):
            text.emit(f"store i64 {text.load_word(shared, k)}, ptr {place}")
        with text.loop("1", text.let(f"lshr i64 {self.frame.threads}, 5")) as warp:
            first = text.word(shared, text.mul(warp, self.words))
            values = self._combine(self._values(), [text.load_word(first, k) for k in range(self.words)])
            for value, place in zip(values, self._own, strict=True):
                text.emit(f"store i64 {value}, ptr {place}")
        values = self._values()
        if self.indexed:
            self._exchange(accumulator, values)
        else:
            atomic(text, "add" if self.sums else "max", accumulator, values[0])

    def _exchange(self, accumulator: str, values: list[str]) -> None:
        """Update key and index together, under a lock that keeps other blocks out."""
        text, lock = self.text, self.text.word(accumulator, _LOCK)
        spin, locked = text.fresh("spin"), text.fresh("locked")
        text.emit(f"br label %{spin}")
        text.start(spin)
        pair = text.let(f"cmpxchg ptr {lock}, i64 0, i64 1 {_DEVICE} acquire monotonic")
        text.emit(f"br i1 {text.let(f'extractvalue {{ i64, i1 }} {pair}, 1')}, label %{locked}, label %{spin}")
        text.start(locked)
        places = [text.word(accumulator, k) for k in range(2)]
        old = [text.let(f"load atomic i64, ptr {place} {_DEVICE} monotonic, align 8") for place in places]
        for value, place in zip(self._combine(old, values), places, strict=True):
            text.emit(f"store atomic i64 {value}, ptr {place} {_DEVICE} monotonic, align 8")
        text.emit(f"store atomic i64 0, ptr {lock} {_DEVICE} release, align 8")


class Limbs:
    """A float sum: run sums are added exactly to limbs in shared memory, which each block adds to the accumulator."""

    words = ACCUMULATOR_WORDS

    def __init__(self, frame: Frame, shared: str) -> None:
        self.frame = frame
        self.text = frame.text
        self._shared = shared
        with self._each_word() as word:
            self.text.emit(f"store i64 0, ptr {self.text.word(shared, word)}")

    def _each_word(self) -> AbstractContextManager[str]:
        return self.text.loop(self.frame.thread, str(self.words), self.frame.threads)

    def add(self, total: str) -> None:
        """Add the f8 sum of one run."""
        text, run = self.text, Node("scalar", "f8", data="run")
        limb, *parts = Body(text, lambda _: total).all(limb_parts(run))
        first = text.word(self._shared, limb)
        for k, part in enumerate(parts):
            with text.when(text.let(f"icmp ne i64 {part}, 0")):
                atomic(text, "add", text.word(first, k), part)

    def gather_block(self, accumulator: str) -> None:
        """Add the block's limbs to the accumulator; run by all threads of the block, after a barrier."""
        text = self.text
        with self._each_word() as word:
            value = text.let(f"load i64, ptr {text.word(self._shared, word)}")
            with text.when(text.let(f"icmp ne i64 {value}, 0")):
                atomic(text, "add", text.word(accumulator, word), value)


class Reducer:
    """All reductions of a kernel: prints their code before, within and after its loops.

    All threads of a warp run this code together: the launch's width along x is a multiple of 32.
    """

    def __init__(self, frame: Frame, reductions: Sequence[Reduction]) -> None:
        self.frame = frame
        self.text = frame.text
        self.reductions = tuple(reductions)
        self.shared_words = 0
        self._parts: list[tuple[Gathered | Limbs, str, str]] = []
        for number, item in enumerate(self.reductions):
            accumulator, shared = frame.accumulators(number), self._shared()
            part = Limbs(frame, shared) if is_float_sum(item) else Gathered(frame, item)
            self._parts.append((part, shared, accumulator))
            self.shared_words += part.words * (1 if isinstance(part, Limbs) else BLOCK // WARP)
        self.limbs = [part for part, _, _ in self._parts if isinstance(part, Limbs)]
        if self.limbs:
            barrier(self.text)

    def _shared(self) -> str:
        pointer = self.text.let("addrspacecast ptr addrspace(3) @shared to ptr", "p")
        return self.text.word(pointer, self.shared_words)

    @property
    def roots(self) -> list[Node]:
        """The nodes that must be computed for each cell, one per reduction."""
        return [term(item) for item in self.reductions]

    def add(self, cell: Cell, terms: Sequence[str]) -> list[str]:
        """Add a cell's terms; return those of float sums, which are summed by runs."""
        linear = self._linear(cell) if any(item.kind in ("argmax", "argmin") for item in self.reductions) else "0"
        values = []
        for (part, _, _), value in zip(self._parts, terms, strict=True):
            if isinstance(part, Gathered):
                part.add(value, linear)
            else:
                values.append(value)
        return values

    def _linear(self, cell: Cell) -> str:
        linear = "0"
        for axis in range(self.frame.graph.ndim):
            scaled = self.text.mul(linear, self.frame.extent[axis])
            linear = cell.true(axis) if scaled == "0" else self.text.add(scaled, cell.true(axis))
        return linear

    def finish(self) -> None:
        """Combine all threads' parts into the accumulators."""
        if not self._parts:
            return
        for part, shared, _ in self._parts:
            if isinstance(part, Gathered):
                part.gather_warp(shared)
        barrier(self.text)
        for part, _, accumulator in self._parts:
            if isinstance(part, Limbs):
                part.gather_block(accumulator)
        if len(self.limbs) == len(self._parts):
            return
        with self.text.when(self.text.let(f"icmp eq i64 {self.frame.thread}, 0")):
            for part, shared, accumulator in self._parts:
                if isinstance(part, Gathered):
                    part.gather_block(shared, accumulator)


# Instructions --------------------------------------------------------------------------------------------------------
def atomic(text: Text, operation: str, pointer: str, value: str) -> None:
    """Change a word atomically, which other threads may change too, in any order."""
    text.let(f"atomicrmw {operation} ptr {pointer}, i64 {value} {_DEVICE} monotonic")


def shuffle_down(text: Text, value: str, distance: int) -> str:
    """Return the i64 of the thread `distance` further on in the warp (beyond the end, the thread's own value)."""
    halves = []
    for half in (value, text.let(f"lshr i64 {value}, 32")):
        word = text.let(f"trunc i64 {half} to i32")
        word = text.let(f"call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 {word}, i32 {distance}, i32 {WARP - 1})")
        halves.append(text.let(f"zext i32 {word} to i64"))
    return text.let(f"or i64 {halves[0]}, {text.let(f'shl i64 {halves[1]}, 32')}")
