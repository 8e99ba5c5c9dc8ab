"""The oracle against plain Python loops and exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.compile.abi import ACCUMULATOR_WORDS
from minga.compile.exact import add_exactly, combine, empty_accumulator, finish
from minga.compile.numpy import BoundArray, evaluate, run_sums
from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.expr import bitcast, cast, fused_multiply_add
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel, ScalarType, Signature, infer_signature


def graph_of(function, *fields, ndim=1, scalars=(), **options) -> KernelGraph:
    signature = infer_signature(ndim, [(f, range(ndim)) if isinstance(f, str) else f for f in fields])
    return Kernel(function, **options).graph(Signature(ndim, signature.fields, tuple(scalars)))


def bind(*arrays: np.ndarray, origin: int = 0) -> list[BoundArray]:
    return [BoundArray(a, (origin,) * a.ndim) for a in arrays]


def apply_once(expression, *inputs: np.ndarray, out: str = "f8") -> np.ndarray:
    """One expression of 1-D arrays, through a traced kernel."""

    def one(a, new):
        new[0] = expression(a[0])

    def two(a, b, new):
        new[0] = expression(a[0], b[0])

    graph = graph_of(one if len(inputs) == 1 else two, *(i.dtype.str[1:] for i in inputs), out)
    new = np.zeros(inputs[0].shape, out)
    evaluate(graph, ((0,), inputs[0].shape), bind(*inputs, new))
    return new


# Reads, stores, orders -----------------------------------------------------------------------------------------------
def test_relaxation_reads_old_values():
    def relax(u, new):
        new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
        u[0, 0] = u[0, 1]

    graph = graph_of(relax, "f8", "f8", ndim=2)
    u = np.random.default_rng(1).random((6, 7))
    old, new = u.copy(), np.zeros_like(u)
    evaluate(graph, ((3, 3), (7, 8)), [BoundArray(u, (2, 2)), BoundArray(new, (2, 2))])
    expected = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    np.testing.assert_array_equal(new[1:-1, 1:-1], expected)
    np.testing.assert_array_equal(u[1:-1, 1:-1], old[1:-1, 2:])
    np.testing.assert_array_equal(u[0], old[0])


def test_stores_take_values_from_before_any_store():
    def swap(u, v):
        before = u[0]
        u[0] = v[0]
        v[0] = before

    u, v = np.arange(4), np.arange(4) + 10
    evaluate(graph_of(swap, "i8", "i8"), ((0,), (4,)), bind(u, v))
    assert (u.tolist(), v.tolist()) == ([10, 11, 12, 13], [0, 1, 2, 3])


def test_reading_outside_the_array_is_an_error():
    def left(u, new):
        new[0] = u[-1]

    def right(u, new):
        new[0] = u[1]

    with pytest.raises(IndexError, match=r"indices 1\.\.4 outside the array's 0\.\.3"):
        evaluate(graph_of(right, "f8", "f8"), ((0,), (4,)), bind(np.zeros(4), np.zeros(4)))

    graph = graph_of(left, "f8", "f8")
    with pytest.raises(IndexError, match=r"indices -1\.\.2 outside the array's 0\.\.3"):
        evaluate(graph, ((0,), (4,)), bind(np.zeros(4), np.zeros(4)))


def test_box_object_and_empty_box():
    class Box:
        lo, hi = (2,), (2,)

    def total(u):
        return mg.sum(u[0])

    words = evaluate(graph_of(total, "f8"), Box(), bind(np.ones(4)))["value"]
    assert finish("sum", "f8", words) == 0


def test_strided_reads_and_stores():
    def restrict(fine, coarse):
        f = fine.strided(2)
        coarse[0] = f[0] + 10 * f[1]

    def prolong(coarse, fine):
        f = fine.strided(2)
        f[0] = coarse[0]
        f[1] = coarse[0] + coarse[1]

    fine, coarse = np.arange(8, dtype="i4"), np.zeros(4, "i4")
    evaluate(graph_of(restrict, "i4", "i4"), ((0,), (4,)), bind(fine, coarse))
    assert coarse.tolist() == [10, 32, 54, 76]
    evaluate(graph_of(prolong, "i4", "i4"), ((1,), (3,)), bind(coarse, fine))
    assert fine.tolist() == [0, 1, 32, 86, 54, 130, 6, 7]


def test_fields_with_fewer_axes_and_index_with_shift():
    def rule(row, column, new):
        new[0, 0] = row[0] * 100 + column[1] + 1000 * mg.index(0) + 10000 * mg.index("x")

    graph = graph_of(rule, ("i8", (0,)), ("i8", (1,)), ("i8", (0, 1)), ndim=2)
    new = np.zeros((2, 3), "i8")
    evaluate(graph, ((0, 0), (2, 3)), bind(np.arange(2), np.arange(4), new), shift=(5, -1))
    expected = [[i * 100 + j + 1 + 1000 * (i + 5) + 10000 * (j - 1) for j in range(3)] for i in range(2)]
    assert new.tolist() == expected


def test_locals_at_offsets():
    def twice(u, new):
        g = local(u[1] - u[-1])
        h = local(g[1] * g[-1])
        new[0] = h[1] + h[0] + mg.index(0)

    u, new = np.random.default_rng(2).random(12), np.zeros(12)
    evaluate(graph_of(twice, "f8", "f8"), ((3,), (8,)), bind(u, new))
    g = {i: u[i + 1] - u[i - 1] for i in range(1, 11)}
    h = {i: g[i + 1] * g[i - 1] for i in range(2, 10)}
    assert new[3:8].tolist() == [h[i + 1] + h[i] + i for i in range(3, 8)]


@pytest.mark.parametrize("direction", [1, -1])
def test_sweep_along_one_axis_sees_current_memory(direction):
    def sweep(u):
        u[0, 0] = u[0, -direction] * 2 + u[0, 0]

    u = np.random.default_rng(3).integers(0, 5, (4, 6))
    expected = u.copy()
    for j in range(1, 5)[::direction]:
        expected[:, j] += 2 * expected[:, j - direction]
    evaluate(graph_of(sweep, "i8", ndim=2, order={"x": direction}), ((0, 1), (4, 5)), bind(u))
    np.testing.assert_array_equal(u, expected)


def test_lexicographic_gauss_seidel():
    def relax(u):
        u[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
        return mg.sum(u[0, 0])

    u = np.random.default_rng(4).random((6, 7))
    expected = u.copy()
    for i in range(1, 5):
        for j in range(1, 6):
            expected[i, j] = 0.25 * (expected[i - 1, j] + expected[i + 1, j] + expected[i, j - 1] + expected[i, j + 1])
    graph = graph_of(relax, "f8", ndim=2, order="lexicographic")
    words = evaluate(graph, ((1, 1), (5, 6)), bind(u))
    np.testing.assert_array_equal(u, expected)
    assert finish("sum", "f8", words["value"]) == pytest.approx(expected[1:5, 1:6].sum())


def test_red_black_selects_by_true_index():
    def mark(u):
        u[0, 0] = u[0, 1] + 1
        return {"count": mg.count(u[0, 0] > 0), "sum": mg.sum(cast(u[0, 0], "f8")), "max": mg.max(-u[0, 0])}

    graph = graph_of(mark, "i4", ndim=2, order="red-black")
    u = np.zeros((3, 4), "i4")
    words = evaluate(graph, ((0, 0), (3, 3)), bind(u), shift=(1, 0), colour=0)
    assert u.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]]
    assert finish("count", "i8", words["count"]) == 4
    assert finish("sum", "f8", words["sum"]) == 4
    assert finish("max", "i4", words["max"]) == -1


def test_scalars():
    def scale(u, new, *, c):
        new[0] = u[0] * c

    new = np.zeros(2, "f4")
    graph = graph_of(scale, "f4", "f4", scalars=[("c", ScalarType("f4", False))])
    evaluate(graph, ((0,), (2,)), bind(np.array([1, 2], "f4"), new), {"c": 0.1})
    assert new.tolist() == [np.float32(0.1), 2 * np.float32(0.1)]


# Operations ----------------------------------------------------------------------------------------------------------
def test_float_to_integer_saturates():
    x = np.array([np.nan, np.inf, -np.inf, 1.9, -1.9, 3e9, -3e9, 255.5, 2.0**63, -(2.0**63), 1e30])
    for dtype in ("u1", "i2", "i4", "i8", "u4", "u8"):
        info = np.iinfo(dtype)
        expected = [0 if math.isnan(v) else
                    info.max if v > info.max else info.min if v < info.min else int(v) for v in x.tolist()]  # fmt: skip
        assert apply_once(lambda a, d=dtype: cast(a, d), x, out=dtype).tolist() == expected


def test_casts_to_bool_and_between_integers():
    assert apply_once(lambda a: cast(a, "bool"), np.array([0.0, -0.0, np.nan, 2.0]), out="bool").tolist() == [
        0,
        0,
        1,
        1,
    ]
    assert apply_once(lambda a: cast(a, "u1"), np.array([-1, 256, 300], "i4"), out="u1").tolist() == [255, 0, 44]
    big = np.array([2**64 - 1, 2**63 + 2**39 + 1], "u8")
    assert apply_once(lambda a: cast(a, "f4"), big, out="f4").tolist() == [2.0**64, 2.0**63 + 2.0**40]


def test_min_and_max_order_zeros_and_keep_nan():
    a = np.array([0.0, -0.0, np.nan, 1.0, -0.0, 0.0])
    b = np.array([-0.0, 0.0, 1.0, np.nan, -0.0, 0.0])
    low, high = apply_once(lambda x, y: mg.min(x, y), a, b), apply_once(lambda x, y: mg.max(x, y), a, b)
    assert np.signbit(low[[0, 1, 4, 5]]).tolist() == [True, True, True, False]
    assert np.signbit(high[[0, 1, 4, 5]]).tolist() == [False, False, True, False]
    assert np.isnan(low[2:4]).all()
    assert np.isnan(high[2:4]).all()


def test_integer_division_is_defined_everywhere():
    a = np.array([7, -7, -(2**31), 5, -(2**31)], "i4")
    b = np.array([-2, 2, -1, 0, 0], "i4")
    assert apply_once(lambda x, y: x // y, a, b, out="i4").tolist() == [-4, -4, -(2**31), 0, 0]
    assert apply_once(lambda x, y: x % y, a, b, out="i4").tolist() == [-1, 1, 0, 0, 0]


def test_shifts_beyond_the_width():
    a, n = np.array([-8, -8, -8, 8, 8], "i4"), np.array([1, 32, -1, 40, 31], "i4")
    assert apply_once(lambda x, y: x >> y, a, n, out="i4").tolist() == [-4, -1, -1, 0, 0]
    assert apply_once(lambda x, y: x << y, a, n, out="i4").tolist() == [-16, 0, 0, 0, 0]
    assert apply_once(lambda x, y: x << y, np.array([3, 255], "u1"), np.array([8, 7], "u1"), out="u1").tolist() == [
        0,
        128,
    ]


def test_fma_rounds_once_and_bitcast_keeps_bits():
    a = np.array([1 + 2.0**-30, 1.5], "f8")
    got = apply_once(lambda x: fused_multiply_add(x, x, -1.0), a)
    assert got.tolist() == [float(Fraction(v) ** 2 - 1) for v in a.tolist()]
    a4 = np.array([1 + 2.0**-20, 3.0], "f4")
    got = apply_once(lambda x: fused_multiply_add(x, x, -1.0), a4, out="f4")
    assert got.tolist() == [np.float32(float(Fraction(float(v)) ** 2 - 1)) for v in a4]
    # The exact result lies just above the middle of two f4: rounding it to f8 first would lose that.
    almost = np.full(1, 1 + 2.0**-12, "f4")
    assert apply_once(lambda x: fused_multiply_add(x, x, 2.0**-60), almost, out="f4") == 1 + 2.0**-11 + 2.0**-23
    assert apply_once(lambda x: bitcast(x, "u8"), np.array([-0.0]), out="u8").tolist() == [1 << 63]


# Reductions ----------------------------------------------------------------------------------------------------------
def reduce_of(kind, values: np.ndarray, **options):
    dtype = "bool" if values.dtype == bool else values.dtype.str[1:]
    graph = graph_of(lambda u: getattr(mg, kind)(u[0]), dtype)
    words = evaluate(graph, ((0,), values.shape), bind(values), **options)["value"]
    return finish(kind, graph.reductions[0].dtype, words)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"])
def test_extremes_of_every_type(dtype):
    values = np.random.default_rng(5).integers(-1000, 1000, 50).astype(dtype)
    values[[7, 13]] = np.finfo(dtype).max if dtype[0] == "f" else np.iinfo(dtype).max
    values[[3, 40]] = np.finfo(dtype).min if dtype[0] == "f" else np.iinfo(dtype).min
    assert reduce_of("max", values) == values.max()
    assert reduce_of("max", values).dtype == np.dtype(dtype)
    assert reduce_of("min", values) == values.min()
    assert reduce_of("argmax", values) == 7
    assert reduce_of("argmin", values) == 3
    assert reduce_of("argmin", values, shift=(100,)) == 103


def test_extremes_of_floats_order_zeros_and_let_nan_win():
    assert not np.signbit(reduce_of("max", np.array([-0.0, 0.0, -0.0])))
    assert np.signbit(reduce_of("min", np.array([0.0, -0.0, 0.0])))
    assert reduce_of("argmax", np.array([-0.0, 0.0, 0.0])) == 1
    for nan in (np.nan, -np.nan):
        values = np.array([1.0, nan, np.inf, -np.inf])
        assert np.isnan(reduce_of("max", values))
        assert np.isnan(reduce_of("min", values))
        assert reduce_of("argmin", values) == 1


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [("max", "f8", -math.inf), ("min", "f4", math.inf), ("max", "u1", 0), ("min", "i4", 2**31 - 1),
     ("min", "u8", 2**64 - 1), ("max", "i8", -(2**63)), ("argmax", "i8", -1), ("count", "i8", 0), ("sum", "u8", 0)],
)  # fmt: skip
def test_reductions_over_no_cell(kind, dtype, expected):
    assert finish(kind, dtype, empty_accumulator(kind)) == expected


def test_integer_sums_and_counts():
    assert reduce_of("count", np.array([True, False, True])) == 2
    assert reduce_of("sum", np.array([True, False, True])) == 2
    assert reduce_of("sum", np.array([2**63, 2**63 - 1], "u8")) == 2**64 - 1
    assert reduce_of("sum", np.array([-3, 2], "i2")) == -1


def plain_run_sums(values: list[float], first: int) -> list[float]:
    runs: dict[int, list[float]] = {}
    for k, v in enumerate(values):
        run, cell = divmod(first + k, 64)
        lanes = runs.setdefault(run, [0.0] * 8)
        lanes[cell % 8] += v
    return [((a + e) + (c + g)) + ((b + f) + (d + h)) for a, b, c, d, e, f, g, h in runs.values()]


@pytest.mark.slow
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=150), st.integers(-200, 200))
def test_runs_are_aligned_to_the_true_index(values, first):
    assert run_sums(np.array(values), first).tolist() == plain_run_sums(values, first)


def test_runs_of_a_box_start_at_its_true_index():
    values = np.random.default_rng(8).standard_normal(150)
    graph = graph_of(lambda u: mg.sum(u[0]), "f8")
    words = evaluate(graph, ((3,), (150,)), bind(values), shift=(50,))["value"]
    expected = empty_accumulator("sum")
    add_exactly(expected, plain_run_sums(values[3:].tolist(), 53))
    np.testing.assert_array_equal(words, expected)


@pytest.mark.slow
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_sums_are_exact_and_rounded_once(values):
    words = empty_accumulator("sum")
    half = len(values) // 2
    add_exactly(words, values[:half])
    other = empty_accumulator("sum")
    add_exactly(other, values[half:])
    total = sum(map(Fraction, values))
    try:
        expected = float(total)
    except OverflowError:
        expected = math.inf if total > 0 else -math.inf
    got = finish("sum", "f8", combine("sum", words, other))
    assert got == expected
    assert not (got == 0 and np.signbit(got))


@pytest.mark.parametrize(
    ("values", "expected"),
    [([np.inf, 1.0], np.inf), ([-np.inf, 1e308], -np.inf), ([np.inf, -np.inf], np.nan), ([np.nan, np.inf], np.nan),
     ([5e-324, 5e-324], 1e-323), ([2.0**-1022, 2.0**-1021, 5e-324], 3 * 2.0**-1022 + 5e-324),
     ([-0.0, -0.0], 0.0), ([1e308, 1e308, -1e308], 1e308)],
)  # fmt: skip
def test_sums_of_special_values(values, expected):
    words = empty_accumulator("sum")
    add_exactly(words, np.array(values))
    np.testing.assert_array_equal(finish("sum", "f8", words), expected)


def test_float_sum_does_not_depend_on_the_cut():
    values = np.random.default_rng(6).standard_normal((3, 200)) * 10.0 ** np.arange(-100, 100)
    graph = graph_of(lambda u: mg.sum(u[0, 0]), "f8", ndim=2)
    whole = evaluate(graph, ((0, 0), (3, 200)), bind(values))["value"]
    parts = empty_accumulator("sum")
    for lo, hi in [((0, 0), (1, 200)), ((1, 0), (3, 64)), ((1, 64), (3, 128)), ((1, 128), (3, 200))]:
        parts = combine("sum", parts, evaluate(graph, (lo, hi), bind(values))["value"])
    np.testing.assert_array_equal(whole, parts)
    assert whole.shape == (ACCUMULATOR_WORDS,)
    moved = evaluate(graph, ((0, 0), (3, 200)), bind(values), shift=(0, 64))["value"]
    np.testing.assert_array_equal(whole, moved)


@pytest.mark.parametrize("kind", ["max", "argmax", "argmin", "count"])
def test_combination_equals_one_evaluation(kind):
    values = np.random.default_rng(7).integers(0, 4, 30).astype("i4")
    graph = graph_of(lambda u: getattr(mg, kind)(u[0]), "i4")
    whole = evaluate(graph, ((0,), (30,)), bind(values))["value"]
    halves = [evaluate(graph, ((a,), (b,)), bind(values), extent=(30,))["value"] for a, b in [(11, 30), (0, 11)]]
    np.testing.assert_array_equal(combine(kind, *halves), whole)
