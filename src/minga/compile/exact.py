"""Arithmetic of reduction accumulators: integers only, so that any order of combination gives the same bits.

The words are described in :mod:`minga.compile.abi`. Compiled kernels fill them, the engine combines those of threads,
blocks and ranks, and `finish` converts the total to the number that a register holds.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from minga.lang.graph import ReductionKind
from minga.lang.types import DType, integer_range, is_float

Words = NDArray[np.int64]
"""An accumulator: ACCUMULATOR_WORDS 64-bit words, as one worker fills them."""

_NO_INDEX: Final = (1 << 63) - 1
_LIMB: Final = np.uint64(0xFFFFFFFF)


def empty_accumulator(kind: ReductionKind) -> Words:
    """Return the accumulator of a reduction over no cell."""
    words = np.zeros(ACCUMULATOR_WORDS, np.int64)
    if kind in ("max", "min", "argmax", "argmin"):
        words[0] = KEY_EMPTY
    if kind in ("argmax", "argmin"):
        words[1] = _NO_INDEX
    return words


def combine(kind: ReductionKind, a: Words, b: Words) -> Words:
    """Combine two accumulators; the operation is associative and commutative."""
    if kind in ("max", "min"):
        return np.maximum(a, b)
    if kind in ("count", "sum"):
        return a + b
    if a[0] != b[0]:
        return (a if a[0] > b[0] else b).copy()
    result = a.copy()
    result[1] = min(a[1], b[1])
    return result


def finish(kind: ReductionKind, dtype: DType, words: Words) -> Any:
    """Return the value of a reduction as a scalar of its register's type.

    A float sum is the exact sum of its runs, rounded once to nearest even: it is never -0.0, infinite if it does not
    fit, and NaN if a term was NaN or there were infinities of both signs.
    """
    scalar: type[Any] = np.dtype(dtype).type
    if kind in ("argmax", "argmin"):
        return scalar(-1 if words[1] == _NO_INDEX else words[1])
    if kind in ("max", "min"):
        return _from_key(int(words[0]), dtype, minimum=kind == "min")
    if is_float(dtype):
        return scalar(_round_limbs(words))
    return words[:1].view(dtype)[0]


def sort_keys(values: NDArray[Any], *, minimum: bool) -> NDArray[np.int64]:
    """Return keys that order like `values` (in reverse for `minimum`): -0 < +0, and a NaN wins in both cases."""
    dtype = values.dtype
    if dtype.kind == "f":
        bits = values.astype(np.float64).view(np.int64)
        keys = np.where(bits >= 0, bits, bits ^ np.int64(_NO_INDEX))
        return np.where(np.isnan(values), np.int64(KEY_NAN), ~keys if minimum else keys)
    keys = values.view(np.int64) ^ np.int64(KEY_EMPTY) if dtype == np.uint64 else values.astype(np.int64)
    return ~keys if minimum else keys


def add_exactly(words: Words, values: ArrayLike) -> None:
    """Add f8 values to the accumulator of a float sum, in place and without rounding."""
    x = np.asarray(values, np.float64).ravel()
    words[SUM_NAN] += np.count_nonzero(np.isnan(x))
    words[SUM_POSITIVE_INFINITY] += np.count_nonzero(x == np.inf)
    words[SUM_NEGATIVE_INFINITY] += np.count_nonzero(x == -np.inf)
    x = x[np.isfinite(x) & (x != 0)]
    bits = x.view(np.uint64)
    exponent = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    fraction = bits & np.uint64((1 << 52) - 1)
    mantissa = np.where(exponent > 0, fraction | np.uint64(1 << 52), fraction)
    # |x| = mantissa * 2**(place - SUM_BIAS); a denormal has the exponent of the smallest normal number.
    place = np.maximum(exponent, 1) - 1075 + SUM_BIAS
    limb, shift = place >> 5, (place & 31).astype(np.uint64)
    low = (mantissa & _LIMB) << shift
    high = ((mantissa >> np.uint64(32)) << shift) + (low >> np.uint64(32))
    sign = np.where(np.signbit(x), np.int64(-1), np.int64(1))
    for k, part in enumerate((low & _LIMB, high & _LIMB, high >> np.uint64(32))):
        np.add.at(words, limb + k, sign * part.astype(np.int64))


def _round_limbs(words: Words) -> float:
    above, below = words[SUM_POSITIVE_INFINITY] > 0, words[SUM_NEGATIVE_INFINITY] > 0
    if words[SUM_NAN] > 0 or (above and below):
        return math.nan
    if above or below:
        return math.inf if above else -math.inf
    total = sum(int(limb) << (32 * k) for k, limb in enumerate(words[:SUM_LIMBS]))
    try:
        return total / (1 << SUM_BIAS)  # Python divides integers with one correct rounding, including denormals
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _from_key(key: int, dtype: DType, *, minimum: bool) -> Any:
    scalar: type[Any] = np.dtype(dtype).type
    if is_float(dtype):
        if key == KEY_EMPTY:
            return scalar(math.inf if minimum else -math.inf)
        if key == KEY_NAN:
            return scalar(math.nan)
        key = ~key if minimum else key
        bits = key if key >= 0 else key ^ _NO_INDEX
        return scalar(np.int64(bits).view(np.float64))
    if key == KEY_EMPTY:
        return scalar(integer_range(dtype)[1 if minimum else 0])
    key = ~key if minimum else key
    return scalar((key + (1 << 63)) if dtype == "u8" else key)
