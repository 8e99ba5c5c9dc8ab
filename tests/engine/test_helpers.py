"""The engine's own kernels against NumPy and against compile/exact.py."""

from __future__ import annotations

import ctypes
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from minga.compile import exact
from minga.compile.abi import ACCUMULATOR_WORDS, SUM_LIMBS, SUM_NAN, WORKER_WORDS
from minga.engine.helpers import (
    BoxAddress,
    Combine,
    Copy,
    Finish,
    candidate_args,
    combine_args,
    copy_args,
    finish_args,
    helper_addresses,
    reduction_words,
)
from minga.lang.graph import ReductionKind
from minga.lang.types import DTYPES, DType, is_float

KINDS: tuple[ReductionKind, ...] = get_args(ReductionKind)


def call(function: int, args: np.ndarray, tiles: int = 1) -> None:
    worker = np.zeros(WORKER_WORDS, np.int64)
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(function)
    for tile in range(tiles):
        native(args.ctypes.data, tile, worker.ctypes.data)


# copy_boxes ----------------------------------------------------------------------------------------------------------
@st.composite
def boxes(draw: st.DrawFn) -> tuple[np.dtype, tuple[int, ...], tuple[slice, ...], tuple[slice, ...], tuple[int, ...]]:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    box = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    before = tuple(draw(st.integers(0, 2)) for _ in box)
    after = tuple(draw(st.integers(0, 2)) for _ in box)
    source = tuple(slice(a, a + n) for a, n in zip(before, box))
    packed = draw(st.booleans())
    target = tuple(slice(0, n) if packed else slice(b, b + n) for b, n in zip(after, box))
    shape = tuple(a + n + b for a, n, b in zip(before, box, after))
    return dtype, shape, source, target, box if packed else tuple(b + n for b, n in zip(after, box))


def place(array: np.ndarray, box: tuple[slice, ...], slot: np.ndarray) -> BoxAddress:
    slot[0] = array.ctypes.data
    return BoxAddress(slot.ctypes.data, sum(s.start * d for s, d in zip(box, array.strides)), array.strides)


@pytest.mark.slow
@given(st.lists(boxes(), min_size=1, max_size=4))
def test_copies_boxes_and_nothing_else(cases: list) -> None:
    keep, copies, expected, found = [], [], [], []
    for dtype, source_shape, source_box, target_box, target_shape in cases:
        source = _noise(source_shape, dtype)
        target = _noise(target_shape, dtype)
        wanted = target.copy()
        wanted[target_box] = source[source_box]
        slots = np.zeros(1, np.int64), np.zeros(1, np.int64)
        keep.append((slots, source))
        shape = tuple(s.stop - s.start for s in source_box)
        copies.append(
            Copy(place(source, source_box, slots[0]), place(target, target_box, slots[1]), shape, dtype.itemsize)
        )
        expected.append(wanted)
        found.append(target)
    call(helper_addresses().copy_boxes, copy_args(copies), tiles=len(copies))
    for wanted, got in zip(expected, found):
        assert wanted.tobytes() == got.tobytes()


def _noise(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    count = math.prod(shape) * dtype.itemsize
    return np.random.default_rng(count).integers(0, 256, count, np.uint8).view(dtype).reshape(shape)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 17])
def test_narrow_columns_are_copied(itemsize: int, width: int) -> None:
    source = _noise((33, 40), np.dtype(f"u{itemsize}"))
    target = np.zeros((33, width), source.dtype)
    slots = np.array([source.ctypes.data, target.ctypes.data])
    copy = Copy(
        BoxAddress(slots.ctypes.data, 5 * itemsize, source.strides),
        BoxAddress(slots.ctypes.data + 8, 0, target.strides),
        target.shape,
        itemsize,
    )
    call(helper_addresses().copy_boxes, copy_args([copy]))
    np.testing.assert_array_equal(target, source[:, 5 : 5 + width])


def test_contiguous_axes_are_one_row() -> None:
    dense = BoxAddress(8, 0, (160, 40, 8))
    args = copy_args([Copy(dense, dense, (3, 4, 5), 8)])
    assert args[2 + 12 : 2 + 16].tolist() == [1, 1, 1, 3 * 4 * 5 * 8]


def test_too_many_axes_are_refused() -> None:
    odd = BoxAddress(8, 0, (1000, 300, 90, 20, 2))
    with pytest.raises(ValueError, match="more than 3 axes"):
        copy_args([Copy(odd, odd, (2, 2, 2, 2, 2), 1)])


# reductions ----------------------------------------------------------------------------------------------------------
def test_workers_are_combined_and_left_empty() -> None:
    workers, random = 3, np.random.default_rng(1)
    items, keep = [], []
    for kind in KINDS:
        parts = np.array([exact.empty_accumulator(kind) for _ in range(workers)])
        words = reduction_words(kind, "f8")
        parts[:, :words] = random.integers(-5, 5, (workers, words))
        expected = parts[0]
        for part in parts[1:]:
            expected = exact.combine(kind, expected, part)
        target = np.full(ACCUMULATOR_WORDS, 77, np.int64)
        items.append(Combine(kind, "f8", parts.ctypes.data, target.ctypes.data))
        keep.append((kind, words, parts, expected, target))
    call(helper_addresses().combine_workers, combine_args(items, workers))
    for kind, words, parts, expected, target in keep:
        np.testing.assert_array_equal(target[:words], expected[:words], err_msg=kind)
        assert (target[words:] == 77).all()
        np.testing.assert_array_equal(parts, [exact.empty_accumulator(kind)] * workers, err_msg=kind)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=5))
def test_the_smallest_index_of_the_largest_key_wins(pairs: list[tuple[int, int]]) -> None:
    parts = np.zeros((len(pairs), ACCUMULATOR_WORDS), np.int64)
    parts[:, :2] = pairs
    target = np.zeros(2, np.int64)
    item = Combine("argmax", "i8", parts.ctypes.data, target.ctypes.data)
    call(helper_addresses().combine_workers, combine_args([item], len(pairs)))
    best = max(key for key, _ in pairs)
    assert target.tolist() == [best, min(index for key, index in pairs if key == best)]


def test_ranks_without_the_winning_key_are_no_candidates() -> None:
    own, winner, index = np.array([3, 9]), np.array([5, 9]), np.array([10, 20])
    items = [
        (a.ctypes.data, b.ctypes.data, c.ctypes.data)
        for a, b, c in zip(*(np.split(x, 2) for x in (own, winner, index)))
    ]
    call(helper_addresses().arg_candidates, candidate_args(items))
    assert index.tolist() == [np.iinfo(np.int64).max, 20]


def finish(kind: ReductionKind, dtype: DType, words: np.ndarray) -> tuple[bytes, bool]:
    """Bytes of the register's value, and whether it was reported as not finite."""
    register, flag = np.zeros(1, np.int64), np.zeros(2, np.uint8)
    item = Finish(kind, dtype, words.ctypes.data, register.ctypes.data)
    call(helper_addresses().finish_reductions, finish_args([item], flag.ctypes.data))
    assert flag[1] == 0
    return register.tobytes()[: np.dtype(dtype).itemsize], bool(flag[0])


@given(st.data())
def test_extremes_equal_the_oracle(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["max", "min"]))
    dtype = data.draw(st.sampled_from(DTYPES))
    values = data.draw(hnp.arrays(np.dtype(dtype), st.integers(0, 4)))
    words = exact.empty_accumulator(kind)
    for key in exact.sort_keys(values, minimum=kind == "min"):
        words[0] = max(words[0], key)
    expected = exact.finish(kind, dtype, words)
    bits, not_finite = finish(kind, dtype, words)
    assert bits == np.array(expected, dtype).tobytes()
    assert not_finite == (is_float(dtype) and len(values) > 0 and not np.isfinite(expected))


@pytest.mark.parametrize("kind", ["argmax", "argmin", "count"])
@pytest.mark.parametrize("index", [0, 5, 2**40, np.iinfo(np.int64).max])
def test_indices_and_counts(kind: ReductionKind, index: int) -> None:
    words = exact.empty_accumulator(kind)
    words[:2] = index
    assert finish(kind, "i8", words) == (np.array(exact.finish(kind, "i8", words), "i8").tobytes(), False)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["i8", "u8"]))
def test_integer_sums(total: int, dtype: DType) -> None:
    words = exact.empty_accumulator("sum")
    words[0] = total
    assert finish("sum", dtype, words) == (np.array(exact.finish("sum", dtype, words), dtype).tobytes(), False)


def check_sum(words: np.ndarray) -> None:
    for dtype in ("f8", "f4"):
        with np.errstate(over="ignore"):
            expected = exact.finish("sum", dtype, words)
        bits, not_finite = finish("sum", dtype, words)
        assert bits == np.array(expected, dtype).tobytes(), (expected, words[:SUM_LIMBS].nonzero())
        wide = exact.finish("sum", "f8", words)
        assert not_finite == (not np.isfinite(wide))


@given(hnp.arrays(np.float64, st.integers(0, 8)))
@example(np.array([-0.0]))
@example(np.array([np.inf, -np.inf]))
@example(np.array([2.0**1023, 2.0**1023]))
@example(np.array([np.finfo(float).max, 2.0**970]))
@example(np.array([np.finfo(float).max, 2.0**970, -5e-324]))
@example(np.array([1.0, 2.0**-53]))
@example(np.array([1.0, 2.0**-53, 5e-324]))
@example(np.array([1.0, 2.0**-52, 2.0**-53]))
@example(np.array([5e-324] * 3))
@example(np.array([2.0**-1022, -5e-324]))
def test_sums_of_floats_are_rounded_once(values: np.ndarray) -> None:
    words = exact.empty_accumulator("sum")
    exact.add_exactly(words, values)
    check_sum(words)


@given(st.dictionaries(st.integers(0, SUM_LIMBS - 1), st.integers(-(2**62), 2**62), max_size=6), st.integers(0, 7))
def test_any_limbs_are_rounded_once(limbs: dict[int, int], specials: int) -> None:
    words = exact.empty_accumulator("sum")
    for limb, value in limbs.items():
        words[limb] = value
    if specials < 3:
        words[SUM_NAN + specials] = 1
    check_sum(words)


@given(st.integers(-1088, 1030), st.integers(0, 2**54), st.booleans(), st.sampled_from([-1, 0, 1]))
def test_ties_go_to_even_at_every_exponent(exponent: int, mantissa: int, negative: bool, beside: int) -> None:
    total = ((mantissa | 1 << 53) << (exponent + 1088)) + beside
    total = -total if negative else total
    words = exact.empty_accumulator("sum")
    for limb in range(SUM_LIMBS):
        words[limb] = total & 0xFFFFFFFF if limb < SUM_LIMBS - 1 else total
        total >>= 32
    check_sum(words)


def test_the_kernels_are_compiled_once() -> None:
    assert helper_addresses() is helper_addresses()
