"""Elementary functions: errors in ulp against mpmath and long doubles, special values, bits."""

from __future__ import annotations

import itertools
import platform
import re
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from minga.compile.call import run_kernel
from minga.compile.jit import assembly
from minga.compile.llvm import compile_kernel, print_llvm
from minga.compile.numpy import BoundArray, evaluate
from minga.compile.target import baseline_target, v3_target
from minga.lang import math as functions
from minga.lang.expr import Node, const, square_root
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel, ScalarType, Signature, infer_signature
from thinned import thinned

Array = NDArray[np.floating]
NAMES = ("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "cbrt")
DTYPES = ("f4", "f8")
LIMITS = dict.fromkeys(NAMES, 2.0) | {"sqrt": 0.5, "cbrt": 0.9}
"""Errors in ulp that the docstrings promise."""
DIGITS = {"f4": 24, "f8": 53}
SMALLEST_EXPONENT = {"f4": -149, "f8": -1074}
# Multiples of pi/2 that lie closest to a double up to 2**20 (found by trying all).
CLOSE_TO_HALF_PI = (29, 58, 116, 232, 464, 928, 1856, 204551, 1, 3712, 355, 710)

wide = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60,
    reason="long double is no wider than f8 here; x86-64 machines run this",
)


def graph_of(function: Callable[[Node], Node], dtype: str, out: str | None = None) -> KernelGraph:
    def kernel(x, y):
        y[0] = function(x[0])

    return Kernel(kernel).graph(infer_signature(1, [(dtype, (0,)), (out or dtype, (0,))]))


def run(name: str, x: Array) -> Array:
    y = np.empty_like(x)
    graph = graph_of(getattr(functions, name), x.dtype.str[1:])
    evaluate(graph, ((0,), x.shape), [BoundArray(x, (0,)), BoundArray(y, (0,))])
    return y


def grid(dtype: str, *values: float) -> Array:
    """The values and their neighbours in the format."""
    x = np.array(values, dtype)
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([x, np.nextafter(x, np.inf, dtype=dtype), np.nextafter(x, -np.inf, dtype=dtype)])


def hard_points(name: str, dtype: str) -> Array:
    """Where reductions change, results become denormal or arguments nearly cancel."""
    f8 = dtype == "f8"
    tiny = (5e-324, 1e-310, 2.3e-308) if f8 else (1.4e-45, 1e-40, 1.2e-38)
    near_zero = (*tiny, 1e-20, 1e-9, 1e-4, 0.01, 0.1, 0.5)
    halves = [(k + 0.5) * float(np.log(2)) for k in (-1000, -100, -2, -1, 0, 1, 2, 50, 100, 1000)]
    halves = [h for h in halves if abs(h) < (700 if f8 else 85)]
    match name:
        case "exp":
            edges = (709.782712893384, -708.396, -745.1332, -740.0) if f8 else (88.72283, -87.33654, -103.97, -100.0)
            return grid(dtype, *edges, *halves, *near_zero, *(-v for v in near_zero))
        case "expm1":
            edges = (709.782712893384, 37.0, -37.0, -50.0) if f8 else (88.72283, 17.0, -17.0, -30.0)
            return grid(dtype, *edges, *(h for h in halves if h > -40), *near_zero, *(-v for v in near_zero))
        case "log":
            powers = [2.0**k * 2.0**0.5 for k in (-1020, -100, -1, 0, 1, 60, 1000) if f8 or abs(k) < 125]
            return grid(dtype, *powers, *tiny, 1.0, 0.999, 1.001, 3e38, 1e-5, *([1.7e308, 2.3e-308] if f8 else []))
        case "log1p":
            return grid(
                dtype, *near_zero, *(-v for v in near_zero), 2**0.5 - 1, 0.5**0.5 - 1, -0.9999, 1.0, 1e10, 1e16, 3e38
            )
        case "sin" | "cos":
            multiples = [k * np.pi / 2 for k in CLOSE_TO_HALF_PI]
            return grid(dtype, *near_zero, np.pi / 4, 3 * np.pi / 4, *multiples, -2.0, 2.0**20 - 1, -(2.0**20) + 0.5)
        case "cbrt":
            edges = [2.0 ** (k + 0.5) for k in (*range(-7, 8), *((-1074, 1023) if f8 else (-149, 127)))]
            cubes = [float(n**3) for n in (1, 2, 3, 10, 100, 101)]
            # Roots just below 2: a quotient above 2 is rounded in larger steps than they are.
            cubes += [8.0 * (1 - k * 2.0**-24) for k in range(200)]
            most = float(np.finfo(dtype).max)
            return grid(dtype, *near_zero, *(-v for v in near_zero), *edges, *cubes, -27.0, 0.125, most / 2, -most / 3)
    return grid(dtype, *near_zero, *(-v for v in near_zero), 0.55, -0.55, 1.0, 5.0, 9.0, 18.0, 21.9, 50.0)


def random_points(name: str, dtype: str, count: int) -> Array:
    """Points over the whole range of a function, densest where it is interesting."""
    rng = np.random.default_rng(20260801)
    f8 = dtype == "f8"
    n = count // 4
    signs = rng.choice([-1.0, 1.0], n)
    exponents = rng.uniform(-320 if f8 else -44, 308 if f8 else 38, n)
    small = signs * 10.0 ** (-np.abs(exponents))
    match name:
        case "exp" | "expm1":
            low, high = (-745.1, 709.7) if f8 else (-103.9, 88.7)
            parts = [rng.uniform(low, high, n), rng.uniform(-3, 3, n), rng.uniform(-0.6, 0.6, n), small]
        case "log":
            parts = [10.0**exponents, 10.0**exponents, rng.uniform(0.3, 3, n), rng.uniform(0.99, 1.01, n)]
        case "log1p":
            parts = [rng.uniform(-0.9999, 5, n), rng.uniform(-0.5, 0.6, n), 10.0**exponents, np.fmax(small, -0.9)]
        case "sin" | "cos":
            parts = [rng.uniform(-7, 7, n), rng.uniform(-(2**20), 2**20, n), np.fmin(abs(small) * 1e6, 1e6), small]
        case "cbrt":
            parts = [rng.uniform(0.3, 9, n), rng.uniform(-1000, 1000, n), signs * 10.0**exponents, small]
        case _:
            parts = [rng.uniform(-25, 25, n), rng.uniform(-1.5, 1.5, n), rng.uniform(-0.6, 0.6, n), small]
    x = np.concatenate(parts).astype(dtype)
    return x[x > 0] if name == "log" else x


def real_cube_root(x: mpmath.mpf) -> mpmath.mpf:
    """The principal root of mpmath is complex for negative numbers."""
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


def ulp_of(size: NDArray[np.floating], dtype: str) -> NDArray[np.longdouble]:
    exponent = np.maximum(np.frexp(size)[1] - DIGITS[dtype], SMALLEST_EXPONENT[dtype])
    return np.ldexp(np.longdouble(1), exponent)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_error_at_hard_points(name, dtype):
    x = hard_points(name, dtype)
    y = run(name, x)
    reference = real_cube_root if name == "cbrt" else getattr(mpmath, name)
    with mpmath.workprec(400):
        for argument, value in zip(x.tolist(), y.tolist(), strict=True):
            exact = reference(mpmath.mpf(argument))
            size = abs(exact)
            if size >= mpmath.mpf(float(np.finfo(dtype).max)):
                assert value == float(mpmath.sign(exact)) * np.inf, argument
                continue
            exponent = int(mpmath.floor(mpmath.log(size, 2))) + 1 if size else -9999
            ulp = mpmath.mpf(2) ** max(exponent - DIGITS[dtype], SMALLEST_EXPONENT[dtype])
            assert abs(mpmath.mpf(value) - exact) < LIMITS[name] * ulp, (
                f"{name}({argument!r}) = {value!r}, exact {exact}"
            )


@pytest.mark.few(2)
@wide
@pytest.mark.parametrize(
    ("name", "dtype"),
    thinned(itertools.product(NAMES, DTYPES), *((name, "f8") for name in NAMES), ("sin", "f4"), ("tanh", "f4")),
)
def test_error_at_a_million_points(name, dtype):
    worst = 0.0
    for x in np.array_split(random_points(name, dtype, 1_000_000), 16):
        y = run(name, x)
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(x.astype(np.longdouble))
            fits = np.isfinite(exact.astype(dtype))
            np.testing.assert_array_equal(y[~fits], exact[~fits].astype(dtype))
            exact, y = exact[fits], y[fits]
            worst = max(worst, float(np.max(np.abs(y - exact) / ulp_of(exact, dtype))))
    assert worst < LIMITS[name]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "arguments", "results"),
    [
        ("exp", [0.0, -0.0, np.inf, -np.inf, 1e4, -1e4], [1.0, 1.0, np.inf, 0.0, np.inf, 0.0]),
        ("expm1", [0.0, -0.0, np.inf, -np.inf, 1e4, -1e4], [0.0, -0.0, np.inf, -1.0, np.inf, -1.0]),
        ("log", [1.0, 0.0, -0.0, np.inf, -np.inf, -1.0], [0.0, -np.inf, -np.inf, np.inf, np.nan, np.nan]),
        ("log1p", [0.0, -0.0, -1.0, np.inf, -np.inf, -1.5], [0.0, -0.0, -np.inf, np.inf, np.nan, np.nan]),
        ("sin", [0.0, -0.0, np.inf, -np.inf], [0.0, -0.0, np.nan, np.nan]),
        ("cos", [0.0, -0.0, np.inf, -np.inf], [1.0, 1.0, np.nan, np.nan]),
        ("tanh", [0.0, -0.0, np.inf, -np.inf, 1e4, -1e4], [0.0, -0.0, 1.0, -1.0, 1.0, -1.0]),
        ("cbrt", [0.0, -0.0, np.inf, -np.inf, 1e6, -8.0], [0.0, -0.0, np.inf, -np.inf, 100.0, -2.0]),
    ],
)
def test_special_values(name, arguments, results, dtype):
    y = run(name, np.array([*arguments, np.nan], dtype))
    expected = np.array([*results, np.nan], dtype)
    np.testing.assert_array_equal(y, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sine_of_huge_angles_stays_a_sine(dtype):
    x = np.concatenate([2.0 ** np.arange(20, 127), -(3.3 ** np.arange(20, 70))]).astype(dtype)
    for name in ("sin", "cos"):
        assert np.all(np.abs(run(name, x)) <= 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_operation_vectorises_everywhere(name, dtype):
    """No operation that needs a library call or slow conversions on some machine, and no fma."""
    used = {node.op for node in graph_of(getattr(functions, name), dtype).nodes()}
    plain = {"const", "read", "add", "sub", "mul", "div", "neg", "abs", "bitcast", "shl", "shr", "and", "or", "xor"}
    assert used <= plain | {"select", "lt", "gt", "eq", "ne", "cast"}
    casts = [n for n in graph_of(getattr(functions, name), dtype).nodes() if n.op == "cast"]
    assert {(n.args[0].dtype, n.dtype) for n in casts} <= {("f4", "f8"), ("f8", "f4")}


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_compiled_bits_are_those_of_numpy(name, dtype):
    x = np.concatenate([hard_points(name, dtype), random_points(name, dtype, 4000), np.array([np.nan, np.inf], dtype)])
    y = np.empty_like(x)
    compiled = compile_kernel(graph_of(getattr(functions, name), dtype))
    run_kernel(compiled, ((0,), x.shape), [BoundArray(x, (0,)), BoundArray(y, (0,))])
    expected, word = run(name, x), f"u{x.itemsize}"
    same = (y.view(word) == expected.view(word)) | (np.isnan(y) & np.isnan(expected))
    assert same.all(), x[~same]


@pytest.mark.few(4)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64 code; x86-64 machines run this")
@pytest.mark.parametrize("target", [baseline_target(), v3_target()], ids=["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("name", NAMES)
def test_code_is_vector_code_without_calls(name, target):
    text = assembly(print_llvm(graph_of(getattr(functions, name), "f8"), target=target), target)
    assert not re.search(r"^\s+(call|jmp)q?\s+[*]?[A-Za-z_]\w*", text, re.MULTILINE)
    assert re.search(r"\bv?mulpd\b", text)
    assert "vfm" not in text


@pytest.mark.parametrize("name", NAMES)
def test_integers_become_f8_and_python_numbers_stay_weak(name):
    function = getattr(functions, name)
    x, y = np.array([0, 1, 2], "i4"), np.empty(3)
    evaluate(graph_of(function, "i4", "f8"), ((0,), (3,)), [BoundArray(x, (0,)), BoundArray(y, (0,))])
    np.testing.assert_array_equal(y, run(name, x.astype("f8")))

    node = function(const(2))
    assert node.weak
    assert node.dtype == "f8"
    assert not function(const(2.0, "f4")).weak

    def kernel(u, new, *, h):
        new[0] = function(h) * u[0]

    u, new = np.ones(3, "f4"), np.zeros(3, "f4")
    signature = Signature(1, infer_signature(1, [("f4", (0,))] * 2).fields, (("h", ScalarType("f8", True)),))
    evaluate(Kernel(kernel).graph(signature), ((0,), (3,)), [BoundArray(a, (0,)) for a in (u, new)], {"h": 0.7})
    assert set(new.tolist()) == {float(run(name, np.array([0.7]))[0].astype("f4"))}


def test_bits_are_fixed():
    """The bits are a promise to people who compare runs over years: a change of a coefficient is a new version."""
    x = np.arange(-384, 640) / 128
    got = {name: hash_of(run(name, np.abs(x) + 0.01 if name.startswith("log") else x)) for name in NAMES}
    got |= {f"{name}f": hash_of(run(name, np.abs(x.astype("f4")) + np.float32(0.01))) for name in NAMES}
    assert got == BITS


def hash_of(values: Array) -> str:
    value = 0xCBF29CE484222325
    for byte in values.astype(values.dtype.newbyteorder("<")).tobytes():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


BITS = {
    "exp": "8961b5f9b572f39e",
    "expm1": "f753396380b45644",
    "log": "504281186cb3295d",
    "log1p": "62278e23ac9fd399",
    "sin": "48dffc2839dab845",
    "cos": "98a1ab5d524793bd",
    "tanh": "f5ecfdc9b46732e6",
    "cbrt": "6d268c91e2c82df6",
    "expf": "a0d3cab1e97753ba",
    "expm1f": "eca7088230fbea38",
    "logf": "43e7b9262826e36f",
    "log1pf": "05f44f1462374ae5",
    "sinf": "43edfe0872b694ad",
    "cosf": "8f932e2a5d74af5e",
    "tanhf": "77a526cda80d80a1",
    "cbrtf": "38b2b6eef0f57af8",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "sqrt"])
def test_every_f4(name):
    """All 2**32 arguments, compiled, against f8, whose error is small beside an ulp of f4."""
    function = square_root if name == "sqrt" else getattr(functions, name)
    compiled = compile_kernel(graph_of(function, "f4"))
    worst = 0.0
    size = 1 << 21
    for start in range(0, 1 << 32, size):
        x = np.arange(start, start + size, dtype=np.uint32).view(np.float32)
        if name in ("sin", "cos"):
            x = x[~(np.abs(x) > 2**20)]
        y = np.empty_like(x)
        run_kernel(compiled, ((0,), x.shape), [BoundArray(x, (0,)), BoundArray(y, (0,))])
        with np.errstate(all="ignore"):
            exact = getattr(np, name)(x.astype(np.float64))
            nearest = exact.astype(np.float32)
            error = np.abs(y - exact) / np.spacing(np.abs(nearest))
            # Where the result is no number or infinite, error is NaN; the results must then be the same.
            special = ~np.isfinite(error)
            np.testing.assert_array_equal(y[special], nearest[special])
        worst = max(worst, float(np.fmax.reduce(error[~special], initial=0.0)))
    assert worst <= LIMITS[name]
