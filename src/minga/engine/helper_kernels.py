"""The engine's own kernels: copying boxes, combining accumulators, and converting totals to register values.

All are called as `void f(int64 *args, int64 tile, int64 *worker)`, like traced kernels. `minga.engine.helpers` builds
their arguments.

copy_boxes, tile = number of the copy: args[0] number of copies, [1] unused, then COPY_WORDS words per copy
    [0] source slot (address of a word that holds the base address)  [1] source byte offset  [2..5] source byte strides
    [6] target slot  [7] target byte offset  [8..11] target byte strides  [12..15] shape
    Axes run from slowest to fastest; the fastest is contiguous bytes on both sides.
combine_workers: args[0] number of reductions, [1] number of workers, then COMBINE_WORDS words per reduction
    [0] kind (COMBINE_*)  [1] address of the workers' accumulators  [2] words of one  [3] address of the result
    The workers' accumulators are left empty, ready for the next kernel.
arg_candidates: args[0] number of items, [1] unused, then CANDIDATE_WORDS words per item
    [0] address of this rank's key  [1] of the winning key  [2] of this rank's index, which becomes INT64_MAX for losers
finish_reductions: args[0] number of reductions, [1] address of a byte set to 1 when a float result is NaN or infinite,
    then FINISH_WORDS words per reduction
    [0] kind (FINISH_*)  [1] address of the accumulator  [2] address of the register's 8 bytes  [3] mask that a key is
    xored with to give the value  [4] the result over no cells, as bits  [5] 1 if the register is an f4
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from llvmlite import ir

from minga.compile.abi import (
    ACCUMULATOR_WORDS,
    KEY_EMPTY,
    KEY_NAN,
    SUM_BIAS,
    SUM_LIMBS,
    SUM_NAN,
    SUM_NEGATIVE_INFINITY,
    SUM_POSITIVE_INFINITY,
)
from minga.engine.emit import Code, Variable, Word

HEADER_WORDS: Final = 2
COPY_WORDS: Final = 20
COMBINE_WORDS: Final = 4
CANDIDATE_WORDS: Final = 4
FINISH_WORDS: Final = 8

COMBINE_ADD, COMBINE_MAXIMUM, COMBINE_ARG = 0, 1, 2
FINISH_WORD, FINISH_INDEX, FINISH_KEY, FINISH_FLOAT_KEY, FINISH_FLOAT_SUM = 0, 1, 2, 3, 4

NO_INDEX: Final = (1 << 63) - 1
DIGITS: Final = SUM_LIMBS + 2
"""Number of words used as workspace by the rounding of a float sum."""
_INFINITY: Final = 0x7FF0000000000000
_NAN: Final = 0x7FF8000000000000
_ITEM_SIZES: Final = (1, 2, 4, 8, 16)
"""Row sizes in bytes copied by strided loops of one item (columns of a field); longer rows are copied by memcpy."""


def copy_boxes(module: ir.Module) -> Code:
    """Build the kernel that copies boxes."""
    return copying(module, "copy_boxes", _copy_row)


def copying(
    module: ir.Module, name: str, copy_row: Callable[[Code, Word, Word, Word], None], *, past_caches: bool = False
) -> Code:
    """Build a kernel that copies boxes, whose rows `copy_row(code, source, target, bytes)` copies."""
    code = Code(module, name, 3)
    args, tile, _ = code.arguments
    record = args + 8 * HEADER_WORDS + tile * (8 * COPY_WORDS)

    def field(number: int) -> Word:
        return code.load(record + 8 * number)

    shape = [field(12 + axis) for axis in range(4)]
    source = [code.load(field(0)) + field(1), *(field(2 + axis) for axis in range(3))]
    target = [code.load(field(6)) + field(7), *(field(8 + axis) for axis in range(3))]
    with code.loop(shape[0]) as i, code.loop(shape[1]) as j:
        row_source = source[0] + i * source[1] + j * source[2]
        row_target = target[0] + i * target[1] + j * target[2]
        other = code.variable(1)
        with code.switch(shape[3]) as case:
            for size in _ITEM_SIZES:
                with case(size):
                    other.set(0)
                    with code.loop(shape[2]) as k:
                        code.copy_item(row_source + k * source[3], row_target + k * target[3], size)
        with code.when(other.get()), code.loop(shape[2]) as k:
            copy_row(code, row_source + k * source[3], row_target + k * target[3], shape[3])
    if past_caches:
        code.builder.fence("seq_cst")
    code.finish()
    return code


def _copy_row(code: Code, source: Word, target: Word, size: Word) -> None:
    code.copy(source, target, size)


def combine_workers(module: ir.Module) -> Code:
    """Build the kernel that combines the workers' accumulators."""
    code = Code(module, "combine_workers", 3)
    args = code.arguments[0]
    workers = code.load(args + 8)
    with code.loop(code.load(args)) as number:
        record = args + 8 * HEADER_WORDS + number * (8 * COMBINE_WORDS)
        kind, source, words, target = (code.load(record + 8 * k) for k in range(4))
        with code.switch(kind) as case:
            with case(COMBINE_ADD), code.loop(words) as word:
                total = code.variable(0)
                with code.loop(workers) as worker:
                    place = source + (worker * ACCUMULATOR_WORDS + word) * 8
                    total.set(total.get() + code.load(place))
                    code.store(0, place)
                code.store(total.get(), target + word * 8)
            with case(COMBINE_MAXIMUM):
                best = code.variable(KEY_EMPTY)
                with code.loop(workers) as worker:
                    place = source + worker * (ACCUMULATOR_WORDS * 8)
                    best.set(code.intrinsic("llvm.smax.i64", best.get(), code.load(place)))
                    code.store(KEY_EMPTY, place)
                code.store(best.get(), target)
            with case(COMBINE_ARG):
                _combine_arg(code, workers, source, target)
    code.finish()
    return code


def _combine_arg(code: Code, workers: Word, source: Word, target: Word) -> None:
    """Store the largest key, and the smallest index that has it."""
    best, index = code.variable(KEY_EMPTY), code.variable(NO_INDEX)
    with code.loop(workers) as worker:
        place = source + worker * (ACCUMULATOR_WORDS * 8)
        key, own = code.load(place), code.load(place + 8)
        smaller = code.intrinsic("llvm.smin.i64", index.get(), own)
        index.set(code.select(key > best.get(), own, code.select(key.equals(best.get()), smaller, index.get())))
        best.set(code.intrinsic("llvm.smax.i64", best.get(), key))
        code.store(KEY_EMPTY, place)
        code.store(NO_INDEX, place + 8)
    code.store(best.get(), target)
    code.store(index.get(), target + 8)


def arg_candidates(module: ir.Module) -> Code:
    """Build the kernel that drops the indices of ranks whose key is not the winning one."""
    code = Code(module, "arg_candidates", 3)
    args = code.arguments[0]
    with code.loop(code.load(args)) as number:
        record = args + 8 * HEADER_WORDS + number * (8 * CANDIDATE_WORDS)
        own, winner, index = (code.load(record + 8 * k) for k in range(3))
        with code.when(code.load(own).differs(code.load(winner))):
            code.store(NO_INDEX, index)
    code.finish()
    return code


def finish_reductions(module: ir.Module) -> Code:
    """Build the kernel that converts accumulators to register values."""
    code = Code(module, "finish_reductions", 3)
    args = code.arguments[0]
    flag = code.load(args + 8)
    digits = code.memory(DIGITS)
    with code.loop(code.load(args)) as number:
        record = args + 8 * HEADER_WORDS + number * (8 * FINISH_WORDS)
        finish_reduction(code, record, code.load(record + 8), flag, digits)
    code.finish()
    return code


def finish_reduction(code: Code, record: Word, source: Word, flag: Word, digits: Word) -> None:
    """Emit one record of `finish_reductions` with its accumulator at `source`; `digits` is a buffer of DIGITS words."""
    how, _, target, mask, empty, single = (code.load(record + 8 * k) for k in range(6))
    key = code.load(source)
    missing = key.equals(KEY_EMPTY)
    result, is_float = code.variable(key), code.variable(0)
    with code.switch(how) as case:
        with case(FINISH_INDEX):
            index = code.load(source + 8)
            result.set(code.select(index.equals(NO_INDEX), -1, index))
        with case(FINISH_KEY):
            result.set(code.select(missing, empty, key ^ mask))
        with case(FINISH_FLOAT_KEY):
            bits = key ^ mask
            bits = code.select(bits < 0, bits ^ NO_INDEX, bits)
            bits = code.select(key.equals(KEY_NAN), _NAN, bits)
            result.set(code.select(missing, empty, bits))
            is_float.set(missing ^ 1)  # the infinity of a reduction over no cells does not count as divergence
        with case(FINISH_FLOAT_SUM):
            result.set(_rounded_sum(code, source, digits))
            is_float.set(1)
    with code.when(is_float.get() & ((result.get() & _INFINITY).equals(_INFINITY))):
        code.store(1, flag, bits=8)
    result.set(code.select(single, _as_single(code, result.get()), result.get()))
    code.store(result.get(), target)


def _as_single(code: Code, bits: Word) -> Word:
    """Return the f4 nearest to the f8 with these bits, as bits in the low half of a word."""
    builder = code.builder
    single = builder.fptrunc(builder.bitcast(bits.value, ir.DoubleType()), ir.FloatType())
    return Word(code, builder.zext(builder.bitcast(single, ir.IntType(32)), ir.IntType(64)))


def _rounded_sum(code: Code, limbs: Word, digits: Word) -> Word:
    """Return the bits of the f8 nearest to the value in the limbs of a float sum, rounding ties to even."""
    negative = _magnitude(code, limbs, digits)
    # The highest non-zero digit, and a flag for anything below the three digits that can matter.
    top = code.variable(SUM_LIMBS + 1)
    with code.repeat(lambda: (top.get() > 2) & code.load(digits + top.get() * 8).equals(0)):
        top.set(top.get() - 1)
    below = code.variable(0)
    with code.loop(top.get() - 2) as k:
        below.set(below.get() | code.load(digits + k * 8))
    high, middle, low = (code.load(digits + (top.get() - k) * 8) for k in range(3))
    result = code.variable(0)
    with code.when((high | middle | low).differs(0)):
        result.set(_rounded_digits(code, top, high, middle, low, below.get().differs(0)))
    result.set(result.get() | (negative.get() << 63))

    nan = code.load(limbs + 8 * SUM_NAN) > 0
    above = code.load(limbs + 8 * SUM_POSITIVE_INFINITY) > 0
    beneath = code.load(limbs + 8 * SUM_NEGATIVE_INFINITY) > 0
    special = code.select(nan | (above & beneath), _NAN, code.select(above, _INFINITY, _INFINITY | (1 << 63)))
    return code.select(nan | above | beneath, special, result.get())


def _magnitude(code: Code, limbs: Word, digits: Word) -> Variable:
    """Store the sum's absolute value as 32-bit digits, lowest first; return 1 if the sum is negative."""
    carry = code.variable(0)
    with code.loop(SUM_LIMBS) as k:
        part = code.load(limbs + k * 8) + carry.get()
        code.store(part & 0xFFFFFFFF, digits + k * 8)
        carry.set(part >> 32)
    code.store(carry.get() & 0xFFFFFFFF, digits + 8 * SUM_LIMBS)
    code.store((carry.get() >> 32) & 0xFFFFFFFF, digits + 8 * (SUM_LIMBS + 1))
    negative = code.variable(carry.get() < 0)
    with code.when(negative.get()):
        carry.set(1)
        with code.loop(SUM_LIMBS + 2) as k:
            part = (code.load(digits + k * 8) ^ 0xFFFFFFFF) + carry.get()
            code.store(part & 0xFFFFFFFF, digits + k * 8)
            carry.set(part >> 32)
    return negative


def _rounded_digits(code: Code, top: Variable, high: Word, middle: Word, low: Word, below: Word) -> Word:
    """Return the bits of the f8 nearest to `high middle low` (32-bit digits, `high` is number `top`).

    `below` is 1 if a non-zero remainder lies below these digits.
    """
    # 128 bits: the three digits from bit 125 downwards, and bit 0 for the remainder.
    wide = ir.IntType(128)
    builder = code.builder

    def widen(word: Word) -> ir.Value:
        return builder.zext(word.value, wide)

    def constant(value: int) -> ir.Constant:
        return ir.Constant(wide, value)

    leading = (high << 32) | middle
    zeros = code.leading_zeros(leading | 1)
    x = builder.or_(builder.shl(widen(leading), constant(64)), builder.shl(widen(low), constant(32)))
    x = builder.lshr(builder.shl(x, widen(zeros)), constant(2))
    x = builder.or_(x, widen(below))
    exponent = top.get() * 32 + (31 - SUM_BIAS) - zeros
    # A denormal has fewer bits; at a shift of 65 nothing is left of it.
    missing = code.intrinsic("llvm.smax.i64", code.word(-1022) - exponent, 0)
    cut = widen(code.intrinsic("llvm.smin.i64", missing + (62 + 11), 127))
    quotient = builder.lshr(x, cut)
    rest = builder.sub(x, builder.shl(quotient, cut))
    half = builder.shl(constant(1), builder.sub(cut, constant(1)))
    more = builder.icmp_unsigned(">", rest, half)
    tie = builder.icmp_unsigned("==", rest, half)
    odd = builder.trunc(quotient, ir.IntType(1))
    up = builder.zext(builder.or_(more, builder.and_(tie, odd)), wide)
    mantissa = Word(code, builder.trunc(builder.add(quotient, up), ir.IntType(64)))
    # The mantissa's leading bit adds 1 to the exponent, and so does a carry out of rounding.
    biased = code.intrinsic("llvm.smax.i64", exponent + 1022, 0)
    return code.intrinsic("llvm.umin.i64", (biased << 52) + mantissa, _INFINITY)
