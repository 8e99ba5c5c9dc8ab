"""Reductions of a row of values into an accumulator: small functions in LLVM IR, one for each kind and type.

The kernel's loop stores the values to reduce in a row of worker scratch; then a function of this module folds the row,
with its own vectors, into the accumulator words of compile/abi.py:

    void fold(T *row, i64 first, i64 count, i64 *words, i64 linear, i64 stride)

`first` is 0 except for float sums, whose row begins at its place among the 64-cell runs. `linear` and `stride` give the
linear true index of the row's cells (argmax, argmin). After its end, each row has MARGIN spare bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from minga.compile.abi import (
    KEY_NAN,
    SUM_BIAS,
    SUM_NAN,
    SUM_NEGATIVE_INFINITY,
    SUM_POSITIVE_INFINITY,
)
from minga.compile.literal import constant, memory_type
from minga.compile.text import Text
from minga.lang.graph import RUN, Reduction
from minga.lang.types import BITS, DType, integer_range, is_float, is_signed, itemsize

CHUNK: Final = 1024
"""Number of cells of a row that are stored before they are folded: a multiple of RUN, and few enough to stay in L1."""
MARGIN: Final = RUN * 8
SIGNATURE: Final = "ptr %row, i64 %first, i64 %count, ptr %words, i64 %linear, i64 %stride"
_VECTOR_BYTES: Final = 128
_LANES: Final = 8
_INFINITY: Final = float("inf")
Fold = tuple[str, str, Callable[[str, str], str]]


def row_bytes(reduction: Reduction) -> int:
    """Return the bytes of scratch of one reduction's row."""
    return CHUNK * itemsize(reduction.value.dtype) + MARGIN


def fold_name(reduction: Reduction) -> str:
    """Return the name of the function that folds rows of this reduction."""
    return f"fold_{_kind(reduction)}_{reduction.value.dtype}"


def fold_function(reduction: Reduction) -> list[str]:
    """Return the lines of the function that folds rows of this reduction."""
    text, dtype, kind = Text(), reduction.value.dtype, _kind(reduction)
    if kind == "sum":
        _sum_float(text) if is_float(dtype) else _sum_integer(text, dtype)
    elif kind == "count":
        _count(text)
    else:
        _extreme(text, dtype, minimum=kind.endswith("min"), place=kind.startswith("arg"))
    text.emit("ret void")
    return [f"define internal void @{fold_name(reduction)}({SIGNATURE}) noinline #0 {{", *text.lines, "}"]


def _kind(reduction: Reduction) -> str:
    return "count" if reduction.kind == "sum" and reduction.value.dtype == "bool" else reduction.kind


# Extremes ------------------------------------------------------------------------------------------------------------
def _extreme(text: Text, dtype: DType, *, minimum: bool, place: bool) -> None:
    found = text.slot("i64")
    key = _float_extreme(text, dtype, minimum) if is_float(dtype) else _integer_extreme(text, dtype, minimum)
    if place:
        _first_place(text, dtype, key, minimum, found)
        return
    old = text.load_word("%words", 0)
    text.emit(f"store i64 {text.larger(old, key)}, ptr %words")


def _integer_extreme(text: Text, dtype: DType, minimum: bool) -> str:
    """Return the key of a row's extreme."""
    of, lanes = memory_type(dtype), _VECTOR_BYTES // itemsize(dtype)
    name, vector = f"{'s' if is_signed(dtype) else 'u'}{'min' if minimum else 'max'}", f"<{lanes} x {of}>"
    low, high = integer_range("u1" if dtype == "bool" else dtype)
    neutral = f"splat ({of} {high if minimum else low})"

    def fold(best: str, value: str) -> str:
        return text.let(f"call {vector} @llvm.{name}.v{lanes}{of}({vector} {best}, {vector} {value})")

    text.emit(f"store {vector} {neutral}, ptr {_at(text, of, '%row', '%count')}, align 1")
    (best,) = _folded(text, dtype, vector, [(vector, neutral, fold)])
    extreme = text.let(f"call {of} @llvm.vector.reduce.{name}.v{lanes}{of}({vector} {best})")
    return _key(text, dtype, extreme, minimum)


def _float_extreme(text: Text, dtype: DType, minimum: bool) -> str:
    """Return the key of a row's extreme, using the plain maxpd or minpd of the processor.

    This is correct except for NaN, which is detected separately, and for zeros of both signs, which are searched for
    if 0 wins.
    """
    of, lanes, bits = memory_type(dtype), _VECTOR_BYTES // itemsize(dtype), BITS[dtype]
    vector, masks, before = f"<{lanes} x {of}>", f"<{lanes} x i{bits}>", "olt" if minimum else "ogt"
    neutral = f"splat ({of} {constant(_INFINITY if minimum else -_INFINITY, dtype)})"

    def better(best: str, value: str) -> str:
        wins = text.let(f"fcmp {before} {vector} {value}, {best}")
        return text.let(f"select <{lanes} x i1> {wins}, {vector} {value}, {vector} {best}")

    def unordered(mask: str, value: str) -> str:
        here = text.let(f"sext <{lanes} x i1> {text.let(f'fcmp uno {vector} {value}, {value}')} to {masks}")
        return text.let(f"or {masks} {mask}, {here}")

    def wanted_zero(mask: str, value: str) -> str:
        zero = -(1 << (bits - 1)) if minimum else 0
        same = text.let(f"icmp eq {masks} {text.let(f'bitcast {vector} {value} to {masks}')}, splat (i{bits} {zero})")
        return text.let(f"or {masks} {mask}, {text.let(f'sext <{lanes} x i1> {same} to {masks}')}")

    text.emit(f"store {vector} {neutral}, ptr {_at(text, of, '%row', '%count')}, align 1")
    result = text.slot(of)
    best, mask = _folded(text, dtype, vector, [(vector, neutral, better), (masks, "zeroinitializer", unordered)])
    for width in _halvings(lanes):
        low, high = _halves(text, of, width, best)
        wins = text.let(f"fcmp {before} <{width // 2} x {of}> {high}, {low}")
        kind = f"<{width // 2} x {of}>"
        best = text.let(f"select <{width // 2} x i1> {wins}, {kind} {high}, {kind} {low}")
    extreme = text.let(f"extractelement <1 x {of}> {best}, i64 0")
    text.emit(f"store {of} {extreme}, ptr {result}")
    with text.when(text.let(f"fcmp oeq {of} {extreme}, {constant(0.0, dtype)}")):
        (zeros,) = _folded(text, dtype, vector, [(masks, "zeroinitializer", wanted_zero)])
        wanted, other = (-0.0, 0.0) if minimum else (0.0, -0.0)
        zero = text.let(
            f"select i1 {_any(text, zeros, lanes, bits)}, {of} {constant(wanted, dtype)}, {of} {constant(other, dtype)}"
        )
        text.emit(f"store {of} {zero}, ptr {result}")
    key = _key(text, dtype, text.let(f"load {of}, ptr {result}"), minimum)
    return text.let(f"select i1 {_any(text, mask, lanes, bits)}, i64 {KEY_NAN}, i64 {key}")


def _folded(text: Text, dtype: DType, vector: str, folds: Sequence[Fold]) -> list[str]:
    """Return the lanes of several folds after one pass over the row.

    A fold consists of its type, its initial value, and a step (lanes, value).
    """
    of, lanes = memory_type(dtype), _VECTOR_BYTES // itemsize(dtype)
    state = [text.slot(kind) for kind, _, _ in folds]
    for pointer, (kind, start, _) in zip(state, folds, strict=True):
        text.emit(f"store {kind} {start}, ptr {pointer}")
    with text.loop("0", "%count", lanes) as index:
        value = text.let(f"load {vector}, ptr {_at(text, of, '%row', index)}, align {itemsize(dtype)}")
        for pointer, (kind, _, step) in zip(state, folds, strict=True):
            after = step(text.let(f"load {kind}, ptr {pointer}"), value)
            text.emit(f"store {kind} {after}, ptr {pointer}")
    return [text.let(f"load {kind}, ptr {pointer}") for pointer, (kind, _, _) in zip(state, folds, strict=True)]


def _halvings(lanes: int) -> Iterator[int]:
    """Yield lanes, lanes / 2, ..., 2."""
    while lanes > 1:
        yield lanes
        lanes //= 2


def _halves(text: Text, of: str, lanes: int, vector: str) -> tuple[str, str]:
    """Return the first and the second half of a vector's lanes."""
    kind, half = f"<{lanes} x {of}>", lanes // 2
    masks = (", ".join(f"i32 {begin + k}" for k in range(half)) for begin in (0, half))
    low, high = (text.let(f"shufflevector {kind} {vector}, {kind} poison, <{half} x i32> <{mask}>") for mask in masks)
    return low, high


def _any(text: Text, masks: str, lanes: int, bits: int) -> str:
    """Return an i1 that is true if any lane is not zero."""
    total = text.let(f"call i{bits} @llvm.vector.reduce.or.v{lanes}i{bits}(<{lanes} x i{bits}> {masks})")
    return text.let(f"icmp ne i{bits} {total}, 0")


def _first_place(text: Text, dtype: DType, key: str, minimum: bool, found: str) -> None:
    """Find the first cell of the row's extreme if it exceeds or equals the best so far.

    `found` is a word on the stack for the cell's number.
    """
    of = memory_type(dtype)
    old, old_place = text.load_word("%words", 0), text.load_word("%words", 1)
    better = text.let(f"icmp sgt i64 {key}, {old}")
    equal = text.let(f"icmp eq i64 {key}, {old}")
    before = text.let(f"icmp slt i64 %linear, {old_place}")
    tie = text.let(f"and i1 {equal}, {before}")
    with text.when(text.let(f"or i1 {better}, {tie}")):
        text.emit(f"store i64 0, ptr {found}")
        # The loop runs backwards, so that the first cell remains.
        with text.loop("0", "%count", down=True) as index:
            value = text.let(f"load {of}, ptr {_at(text, of, '%row', index)}")
            same = text.let(f"icmp eq i64 {_key(text, dtype, value, minimum)}, {key}")
            last = text.let(f"load i64, ptr {found}")
            text.emit(f"store i64 {text.let(f'select i1 {same}, i64 {index}, i64 {last}')}, ptr {found}")
        here = text.add("%linear", text.mul(text.let(f"load i64, ptr {found}"), "%stride"))
        least = text.smaller(here, old_place)
        text.emit(f"store i64 {key}, ptr %words")
        text.emit(f"store i64 {text.let(f'select i1 {better}, i64 {here}, i64 {least}')}, ptr {text.word('%words', 1)}")


def _key(text: Text, dtype: DType, value: str, minimum: bool) -> str:
    """Return the value's sortable key (see compile/abi.py)."""
    if not is_float(dtype):
        key = value
        if BITS[dtype] < 64:
            key = text.let(f"{'sext' if is_signed(dtype) else 'zext'} {memory_type(dtype)} {value} to i64")
        elif dtype == "u8":
            key = text.let(f"xor i64 {value}, {-(1 << 63)}")
        return text.let(f"xor i64 {key}, -1") if minimum else key
    if dtype == "f4":
        value = text.let(f"fpext float {value} to double")
    bits = text.let(f"bitcast double {value} to i64")
    flip = text.let(f"and i64 {text.let(f'ashr i64 {bits}, 63')}, {KEY_NAN}")
    key = text.let(f"xor i64 {bits}, {flip}")
    key = text.let(f"xor i64 {key}, -1") if minimum else key
    unordered = text.let(f"fcmp uno double {value}, {value}")
    return text.let(f"select i1 {unordered}, i64 {KEY_NAN}, i64 {key}")


# Sums ----------------------------------------------------------------------------------------------------------------
def _sum_integer(text: Text, dtype: DType) -> None:
    of = memory_type(dtype)
    total = text.slot("i64")
    text.emit(f"store i64 0, ptr {total}")
    with text.loop("0", "%count") as index:
        value = text.let(f"load {of}, ptr {_at(text, of, '%row', index)}")
        if BITS[dtype] < 64:
            value = text.let(f"{'sext' if is_signed(dtype) else 'zext'} {of} {value} to i64")
        before = text.let(f"load i64, ptr {total}")
        text.emit(f"store i64 {text.let(f'add i64 {before}, {value}')}, ptr {total}")
    _add_word(text, "0", text.let(f"load i64, ptr {total}"))


def _count(text: Text) -> None:
    """Add bytes 0 or 1 as bytes: a row has at most CHUNK / 64 of them in a lane."""
    vector = "<64 x i8>"
    text.emit(f"store {vector} zeroinitializer, ptr {_at(text, 'i8', '%row', '%count')}, align 1")
    lanes = text.slot(vector)
    text.emit(f"store {vector} zeroinitializer, ptr {lanes}")
    with text.loop("0", "%count", 64) as index:
        value = text.let(f"load {vector}, ptr {_at(text, 'i8', '%row', index)}, align 1")
        before = text.let(f"load {vector}, ptr {lanes}")
        text.emit(f"store {vector} {text.let(f'add {vector} {before}, {value}')}, ptr {lanes}")
    wide = text.let(f"zext {vector} {text.let(f'load {vector}, ptr {lanes}')} to <64 x i16>")
    total = text.let(f"call i16 @llvm.vector.reduce.add.v64i16(<64 x i16> {wide})")
    _add_word(text, "0", text.let(f"zext i16 {total} to i64"))


def _sum_float(text: Text) -> None:
    """Sum run after run and add the sums exactly to limbs.

    Lane j adds cells j, j + 8, ...; then the lanes are added as ((0+4)+(2+6)) + ((1+5)+(3+7)).
    """
    vector, zeros = f"<{_LANES} x double>", "zeroinitializer"
    stop = text.add("%first", "%count")
    text.emit(f"store <{RUN} x double> {zeros}, ptr {_at(text, 'double', '%row', stop)}, align 8")
    start = text.let(f"and i64 %first, {-RUN}")
    with text.loop(start, stop, RUN) as run:
        lanes = zeros
        for turn in range(0, RUN, _LANES):
            place = _at(text, "double", "%row", text.add(run, turn))
            value = text.let(f"load {vector}, ptr {place}, align 8")
            lanes = text.let(f"fadd {vector} {lanes}, {value}")
        for width in _halvings(_LANES):
            low, high = _halves(text, "double", width, lanes)
            lanes = text.let(f"fadd <{width // 2} x double> {low}, {high}")
        _add_exactly(text, text.let(f"extractelement <1 x double> {lanes}, i64 0"))


def _add_exactly(text: Text, value: str) -> None:
    """Add an f8 to the three limbs of 32 bits that its mantissa covers, or count a NaN or infinity."""
    bits = text.let(f"bitcast double {value} to i64")
    exponent = text.let(f"and i64 {text.let(f'lshr i64 {bits}, 52')}, 2047")
    finite = text.let(f"icmp ne i64 {exponent}, 2047")
    with text.when(finite):
        fraction = text.let(f"and i64 {bits}, {(1 << 52) - 1}")
        normal = text.let(f"icmp ne i64 {exponent}, 0")
        hidden = text.let(f"select i1 {normal}, i64 {1 << 52}, i64 0")
        mantissa = text.let(f"or i64 {fraction}, {hidden}")
        # |x| = mantissa * 2**(place - SUM_BIAS); a denormal has the exponent of the smallest normal number.
        place = text.add(text.larger(exponent, "1"), SUM_BIAS - 1075)
        limb, shift = text.let(f"lshr i64 {place}, 5"), text.let(f"and i64 {place}, 31")
        low = text.let(f"shl i64 {text.let(f'and i64 {mantissa}, 4294967295')}, {shift}")
        high = text.let(f"shl i64 {text.let(f'lshr i64 {mantissa}, 32')}, {shift}")
        high = text.let(f"add i64 {high}, {text.let(f'lshr i64 {low}, 32')}")
        parts = (
            text.let(f"and i64 {low}, 4294967295"),
            text.let(f"and i64 {high}, 4294967295"),
            text.let(f"lshr i64 {high}, 32"),
        )
        sign = text.let(f"ashr i64 {bits}, 63")
        for k, part in enumerate(parts):
            signed = text.let(f"sub i64 {text.let(f'xor i64 {part}, {sign}')}, {sign}")
            _add_word(text, text.add(limb, k), signed)
    with text.when(text.let(f"xor i1 {finite}, true")):
        unordered = text.let(f"fcmp uno double {value}, {value}")
        positive = text.let(f"icmp sgt i64 {bits}, 0")
        infinity = text.let(f"select i1 {positive}, i64 {SUM_POSITIVE_INFINITY}, i64 {SUM_NEGATIVE_INFINITY}")
        _add_word(text, text.let(f"select i1 {unordered}, i64 {SUM_NAN}, i64 {infinity}"), "1")


def _add_word(text: Text, word: str, value: str) -> None:
    pointer = text.let(f"getelementptr i64, ptr %words, i64 {word}", "p")
    before = text.let(f"load i64, ptr {pointer}")
    text.emit(f"store i64 {text.let(f'add i64 {before}, {value}')}, ptr {pointer}")


def _at(text: Text, of: str, pointer: str, index: str) -> str:
    return text.let(f"getelementptr {of}, ptr {pointer}, i64 {index}", "p")
