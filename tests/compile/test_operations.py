"""Single operations as machine code: scalars, casts, shifts, divisions, roundings, on several processors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga import kernel
from minga.compile.call import run_kernel
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray
from minga.compile.target import baseline_target, host_target
from minga.errors import KernelError
from minga.lang.expr import cast, flushed
from minga.lang.types import DTYPES
from thinned import thinned

from .helpers import assert_equal_bits, make_case, oracle, traced

ROWS = [(4, 1), (3, 15), (5, 16), (2, 65), (1, 1100)]


def test_scalars_of_every_type() -> None:
    for dtype in DTYPES:

        @kernel
        def add(u: Any, new: Any, *, s: Any) -> None:
            new[0] = cast(u[0], "f8") + cast(s, "f8")

        for seed in range(4):
            assert_equal_bits(make_case(traced(add, 1, ["f8", "f8"], {"s": dtype}), (9,), seed=seed))


@pytest.mark.few(2)
@pytest.mark.parametrize("operation", ["floordiv", "mod", "shl", "shr"])
@pytest.mark.parametrize("dtype", thinned(["u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"], "u1", "i4", "i8", "f8"))
def test_operations_that_are_spelled_out(dtype: str, operation: str) -> None:
    if dtype[0] == "f" and operation in ("shl", "shr"):
        return
    from minga.lang.expr import binary, shift

    @kernel
    def apply(a: Any, b: Any, new: Any) -> None:
        new[0] = (shift if operation in ("shl", "shr") else binary)(operation, a[0], b[0])

    graph = traced(apply, 1, [dtype] * 3)
    case = make_case(graph, (2000,))
    random = np.random.default_rng(5)
    if operation in ("shl", "shr"):
        case.arrays[1].array[:1000] = random.integers(0, 70, 1000).astype(dtype)
    else:
        case.arrays[1].array[:200] = np.resize(np.array([0, 1, 2, 3]).astype(dtype), 200)
        if dtype[0] == "i":
            case.arrays[1].array[200:400] = -1
    assert_equal_bits(case)


@pytest.mark.few(3)
@pytest.mark.parametrize("source", ["f4", "f8"])
@pytest.mark.parametrize("target", thinned(DTYPES, "bool", "u1", "i4", "i8", "u8"))
def test_casts_of_floats(source: str, target: str) -> None:
    @kernel
    def convert(u: Any, new: Any) -> None:
        new[0] = cast(u[0], target)

    case = make_case(traced(convert, 1, [source, target]), (3000,))
    array = case.arrays[0].array
    powers = [sign * 2**k for k in (0, 7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1)]
    edges = [float(power + d) for power in powers for d in (-1, -0.5, 0, 0.5, 1)]
    array[: len(edges)] = np.array(edges).astype(source)
    array[len(edges) : 2 * len(edges)] = np.nextafter(np.array(edges).astype(source), np.array(0).astype(source))
    assert_equal_bits(case)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "u4", "u8"])
def test_bits_in_reverse_order(dtype: str) -> None:
    """Those of the value's own type, also where the value would fit into a narrower one."""

    @kernel
    def reverse(u: Any, new: Any, small: Any) -> None:
        new[0] = mg.bitreverse(u[0])
        small[0] = mg.bitreverse(cast(u[0] == 1, dtype))

    case = make_case(traced(reverse, 1, [dtype] * 3), (500,))
    assert_equal_bits(case)
    (values, found, small), _ = oracle(case)
    width = np.dtype(dtype).itemsize * 8
    inside = slice(case.lo[0] - values.origin[0], case.hi[0] - values.origin[0])
    for value, reversed_ in zip(values.array[inside].tolist(), found.array[inside].tolist(), strict=True):
        assert f"{reversed_ % 2**width:0{width}b}" == f"{value % 2**width:0{width}b}"[::-1]
    ones = small.array[inside][values.array[inside] == 1]
    assert len(ones)
    assert set(ones.view(f"u{width // 8}").tolist()) == {1 << (width - 1)}


def test_bits_of_floats_have_no_order() -> None:
    @kernel
    def reverse(u: Any, new: Any) -> None:
        new[0] = mg.bitreverse(u[0])

    with pytest.raises(KernelError, match=r"mg\.bitreverse needs an integer, found f8"):
        traced(reverse, 1, ["f8", "f8"])


@pytest.mark.slow
def test_roundings_where_the_processor_has_none() -> None:
    from minga.lang.expr import unary_float

    for dtype in ("f4", "f8"):

        @kernel
        def round_all(u: Any, a: Any, b: Any, c: Any, d: Any) -> None:
            for out, op in zip((a, b, c, d), ("floor", "ceil", "trunc", "rint"), strict=True):
                out[0] = unary_float(op, u[0])

        case = make_case(traced(round_all, 1, [dtype] * 5), (4000,))
        array = case.arrays[0].array
        array[:1000] = (np.arange(1000) - 500) / 4
        array[1000:2000] = (np.float64(2.0) ** (23 if dtype == "f4" else 52) + np.arange(1000) - 500) / 2
        assert_equal_bits(case)


def test_the_size_of_a_number_that_cannot_be_negative() -> None:
    """Narrowing proves that these are u4, where |x| is x, also for the upper half of its values."""

    @kernel
    def size(a, out):
        out[0] = cast(-abs(cast(a[0], "i8") >> 1), "u1") + cast(abs(cast(a[0], "i8")), "u1")

    graph = traced(size, 1, ["u4", "u1"])
    values = np.array([0, 1, 2, 3, 2**31 - 1, 2**31, 2**31 + 2, 2**32 - 2, 2**32 - 1] * 9, "u4")
    wide = values.astype("i8")
    expected = (-(wide >> 1)).astype("u1") + wide.astype("u1")
    for target in (baseline_target(), host_target()):
        found = np.zeros(len(values), "u1")
        arrays = [BoundArray(values, (0,)), BoundArray(found, (0,))]
        run_kernel(compile_kernel(graph, target=target), ((0,), (len(values),)), arrays)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "least"), [("f4", 2.0**-100), ("f8", 2.0**-960)])
def test_small_floats_are_flushed_to_zero(dtype: str, least: float) -> None:
    """Negative and denormal ones, too; infinities and NaN stay."""

    @kernel
    def small(u: Any, new: Any) -> None:
        new[0] = flushed(u[0])

    values = [0.99 * least, -0.99 * least, -0.0, np.finfo(dtype).smallest_subnormal, least, -least, 1.0, np.inf, np.nan]
    case = make_case(traced(small, 1, [dtype, dtype]), (len(values),))
    first = case.lo[0] - case.arrays[0].origin[0]
    case.arrays[0].array[first : first + len(values)] = np.array(values, dtype)
    assert_equal_bits(case)
    (_, new), _ = oracle(case)
    expected = np.array([0.0] * 4 + values[4:], dtype)
    first = case.lo[0] - new.origin[0]
    assert np.array_equal(new.array[first : first + len(values)], expected, equal_nan=True)
    assert not np.signbit(new.array[first : first + 4]).any()
