"""Further elementary functions: errors in ulp against mpmath, special values, bits of the compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from minga.compile.call import run_kernel
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray, evaluate
from minga.lang import elementary as functions
from minga.lang.kernel import Kernel, infer_signature

Array = NDArray[np.floating]
LIMITS = {
    "tan": 3.0, "atan": 2.0, "asin": 2.0, "acos": 3.0, "sinh": 4.0, "cosh": 4.0, "asinh": 4.0, "acosh": 4.0,
    "atanh": 4.0, "erf": 2.0, "log2": 3.0, "log10": 3.0, "atan2": 3.0, "hypot": 2.0, "pow": 4.0,
}  # fmt: skip
"""Errors in ulp that the docstrings promise."""
RNG = np.random.default_rng(20261125)
EXACT: dict[str, Callable[..., Any]] = {"log2": lambda x: mpmath.log(x, 2), "pow": mpmath.power}


def graph_of(name: str, dtype: str, arguments: int) -> Any:
    function = getattr(functions, name)

    def one(x, y):  # type: ignore[no-untyped-def]
        y[0] = function(x[0])

    def two(x, w, y):  # type: ignore[no-untyped-def]
        y[0] = function(x[0], w[0])

    kernel = one if arguments == 1 else two
    return Kernel(kernel).graph(infer_signature(1, [(dtype, (0,))] * (arguments + 1)))


def run(name: str, *x: Array) -> Array:
    """The values by NumPy, after comparing them bit by bit with those of machine code."""
    graph = graph_of(name, x[0].dtype.str[1:], len(x))
    y, compiled = np.empty_like(x[0]), np.empty_like(x[0])
    with np.errstate(all="ignore"):
        evaluate(graph, ((0,), y.shape), [*(BoundArray(each, (0,)) for each in x), BoundArray(y, (0,))])
    run_kernel(
        compile_kernel(graph), ((0,), y.shape), [*(BoundArray(each, (0,)) for each in x), BoundArray(compiled, (0,))]
    )
    np.testing.assert_array_equal(compiled, y)
    same = np.isnan(y) | (np.signbit(compiled) == np.signbit(y))
    assert same.all()
    return y


def points(name: str, count: int) -> tuple[Array, ...]:
    uniform, small = RNG.uniform, 10.0 ** RNG.uniform(-300, 0, count // 4) * RNG.choice([-1, 1], count // 4)
    wide = 10.0 ** RNG.uniform(-300, 300, count // 4) * RNG.choice([-1, 1], count // 4)
    match name:
        case "tan":
            return (np.concatenate([uniform(-(2**20), 2**20, count), uniform(-2, 2, count), small]),)
        case "asin" | "acos" | "atanh":
            near = 1 - 10.0 ** uniform(-16, -1, count // 4)
            return (np.concatenate([uniform(-1, 1, count), near, -near, small * 0.999]),)
        case "sinh" | "cosh":
            return (np.concatenate([uniform(-710, 710, count), uniform(-2, 2, count), uniform(-25, 25, count), small]),)
        case "acosh":
            return (np.concatenate([1 + 10.0 ** uniform(-15, 15, count), uniform(1, 4, count), 1 + abs(wide)]),)
        case "log2" | "log10":
            return (np.concatenate([uniform(0.5, 2, count), 10.0 ** uniform(-307, 308, count)]),)
        case "atan2" | "hypot":
            angle, size = uniform(-np.pi, np.pi, 2 * count), 10.0 ** uniform(-150, 150, 2 * count)
            return size * np.sin(angle), size * np.cos(angle)
        case "pow":
            base = np.concatenate([10.0 ** uniform(-5, 5, count), uniform(0.9, 1.1, count)])
            exponent = np.concatenate([uniform(-50, 50, count), uniform(-3000, 3000, count)])
            return base, exponent
    return (np.concatenate([uniform(-6.5, 6.5, count), uniform(-1.5, 1.5, count), small, wide]),)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LIMITS)
def test_errors_stay_below_what_is_promised(name: str) -> None:
    arguments = points(name, 1500)
    found = run(name, *arguments)
    exact = EXACT.get(name) or getattr(mpmath, name)
    worst, at = 0.0, None
    with mpmath.workprec(250):
        for values, value in zip(zip(*map(np.ndarray.tolist, arguments), strict=True), found.tolist(), strict=True):
            truth = exact(*map(mpmath.mpf, values))
            size = abs(truth)
            if not size or size > mpmath.mpf(float(np.finfo(float).max)) or size < mpmath.mpf(2) ** -1022:
                continue
            ulp = mpmath.mpf(2) ** (int(mpmath.floor(mpmath.log(size, 2))) - 52)
            error = float(abs(mpmath.mpf(value) - truth) / ulp) if math.isfinite(value) else math.inf
            worst, at = max((worst, at), (error, values), key=lambda pair: pair[0])
    print(f"{name}: {worst:.2f} ulp at {at}")
    assert worst < LIMITS[name]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", LIMITS)
def test_single_precision_is_the_double_rounded_once(name: str) -> None:
    with np.errstate(over="ignore", under="ignore"):
        arguments = tuple(each.astype("f4") for each in points(name, 200))
    single = run(name, *arguments)
    double = run(name, *(each.astype("f8") for each in arguments))
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(single, double.astype("f4"))


INF, NAN = math.inf, math.nan
SPECIAL = [
    ("tan", (0.0, -0.0, NAN), (0.0, -0.0, NAN)),
    ("atan", (0.0, -0.0, INF, -INF, NAN), (0.0, -0.0, math.pi / 2, -math.pi / 2, NAN)),
    ("asin", (0.0, -0.0, 1.0, -1.0, 1.1, NAN), (0.0, -0.0, math.pi / 2, -math.pi / 2, NAN, NAN)),
    ("acos", (1.0, -1.0, 0.0, 1.1, NAN), (0.0, math.pi, math.pi / 2, NAN, NAN)),
    ("sinh", (0.0, -0.0, INF, -INF, 711.0, NAN), (0.0, -0.0, INF, -INF, INF, NAN)),
    ("cosh", (0.0, INF, -INF, -711.0, NAN), (1.0, INF, INF, INF, NAN)),
    ("asinh", (0.0, -0.0, INF, -INF, NAN), (0.0, -0.0, INF, -INF, NAN)),
    ("acosh", (1.0, INF, 0.5, NAN), (0.0, INF, NAN, NAN)),
    ("atanh", (0.0, -0.0, 1.0, -1.0, 2.0, NAN), (0.0, -0.0, INF, -INF, NAN, NAN)),
    ("erf", (0.0, -0.0, INF, -INF, 10.0, NAN), (0.0, -0.0, 1.0, -1.0, 1.0, NAN)),
    ("log2", (0.0, INF, -1.0, 8.0, 2.0**-1070, NAN), (-INF, INF, NAN, 3.0, -1070.0, NAN)),
    ("log10", (0.0, INF, -1.0, 1.0, 1000.0, NAN), (-INF, INF, NAN, 0.0, 3.0, NAN)),
    ("floor", (1.5, -1.5, -0.5, 0.0, -0.0, 2.0**52 + 1, INF, NAN), (1, -2, -1, 0.0, -0.0, 2.0**52 + 1, INF, NAN)),
    ("ceil", (1.5, -1.5, -0.5, 0.0, -0.0, -INF), (2, -1, -0.0, 0.0, -0.0, -INF)),
    ("trunc", (1.5, -1.5, -0.5, 1e300), (1, -1, -0.0, 1e300)),
    ("round", (0.5, 1.5, 2.5, -0.5, -1.5, 1e17), (0.0, 2.0, 2.0, -0.0, -2.0, 1e17)),
    ("sign", (3.0, -3.0, 0.0, NAN), (1.0, -1.0, 0.0, NAN)),
    ("heaviside", (3.0, -3.0, 0.0, NAN), (1.0, 0.0, 0.5, NAN)),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "arguments", "expected"), SPECIAL, ids=[name for name, _, _ in SPECIAL])
def test_special_values(name: str, arguments: tuple[float, ...], expected: tuple[float, ...]) -> None:
    found = run(name, np.array(arguments))
    np.testing.assert_array_equal(found, np.array(expected, float))
    known = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(np.array(expected, float)[known]))


@pytest.mark.parametrize("name", ["atan2", "hypot", "pow"])
def test_special_pairs_are_those_of_numpy(name: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e300, -1e300, 1e-300, INF, -INF, NAN]
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    reference = {"atan2": np.arctan2, "hypot": np.hypot, "pow": np.power}[name]
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    found = run(name, x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    known = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def test_powers_with_constant_exponents() -> None:
    x = RNG.uniform(0.1, 5.0, 100)

    def kernel(u, a, b, c):  # type: ignore[no-untyped-def]
        a[0], b[0], c[0] = functions.pow(u[0], 3), functions.pow(u[0], 0.5), functions.pow(u[0], 1.5)

    graph = Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 4))
    outs = [np.empty_like(x) for _ in range(3)]
    evaluate(graph, ((0,), x.shape), [BoundArray(each, (0,)) for each in (x, *outs)])
    np.testing.assert_array_equal(outs[0], x * (x * x))
    np.testing.assert_array_equal(outs[1], np.sqrt(x))
    np.testing.assert_allclose(outs[2], x**1.5, rtol=1e-14)


def test_integers_become_doubles_or_stay() -> None:
    def kernel(u, a, b):  # type: ignore[no-untyped-def]
        a[0] = functions.sinh(u[0])
        b[0] = functions.floor(u[0]) + functions.sign(u[0])

    graph = Kernel(kernel).graph(infer_signature(1, [("i4", (0,)), ("f8", (0,)), ("i4", (0,))]))
    x, a, b = np.array([-3, 0, 2], "i4"), np.empty(3), np.empty(3, "i4")
    evaluate(graph, ((0,), x.shape), [BoundArray(each, (0,)) for each in (x, a, b)])
    np.testing.assert_allclose(a, np.sinh(x), rtol=1e-15)
    np.testing.assert_array_equal(b, [-4, 0, 3])


def test_powers_by_the_operator() -> None:
    """Constant whole exponents stay trees of multiplications; others, and cells', are mg.pow."""

    def body(x, y):  # type: ignore[no-untyped-def]
        y[0] = x[0] ** 3 + x[0] ** 0.5 + x[0] ** 1.5 + 2.0 ** x[0] + x[0] ** x[1]

    def spelled(x, y):  # type: ignore[no-untyped-def]
        cube = x[0] * (x[0] * x[0])
        total = cube + functions.square_root(x[0]) + functions.pow(x[0], 1.5) + functions.pow(2.0, x[0])
        y[0] = total + functions.pow(x[0], x[1])

    x = np.linspace(0.1, 9.0, 50)
    found = []
    for kernel in (body, spelled):
        graph = Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 2))
        y = np.empty(49)
        evaluate(graph, ((0,), (49,)), [BoundArray(x, (0,)), BoundArray(y, (0,))])
        found.append(y)
    np.testing.assert_array_equal(*found)
    expected = x[:-1] ** 3 + x[:-1] ** 0.5 + x[:-1] ** 1.5 + 2.0 ** x[:-1] + x[:-1] ** x[1:]
    np.testing.assert_allclose(found[0], expected, rtol=1e-14)
