"""Loops inside cells: the oracle's bits as machine code, for every kind of kernel; rounds, limits, mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.compile.call import run_kernel
from minga.compile.jit import assembly
from minga.compile.llvm import compile_kernel, print_llvm
from minga.compile.numpy import BoundArray, evaluate
from minga.compile.target import host_target
from minga.errors import KernelError
from minga.lang.analysis import flops, radius
from minga.lang.graph import KernelGraph
from minga.lang.kernel import infer_signature

from .helpers import assert_equal_bits, make_case, traced

ROWS = [(1,), (3,), (17,), (100,), (1100,)]


def root(a: Any, digits: float = 1e-12) -> Any:
    """The square root by Newton's method, and the rounds it took."""
    a = abs(a)
    return mg.iterate(0.5 * (a + 1.0), lambda x: abs(x * x - a) > digits * a, lambda x: x - (x * x - a) * (0.5 / x), 40)


@mg.kernel
def roots(u: Any, new: Any, rounds: Any) -> None:
    new[0], rounds[0] = root(u[0])


def evaluated(graph: KernelGraph, *values: Any, compiled: bool = False) -> list[np.ndarray]:
    arrays = [np.array(value, param.dtype) for value, param in zip(values, graph.params, strict=False)]
    arrays += [np.zeros(len(arrays[0]), param.dtype) for param in graph.params[len(arrays) :]]
    bound, box = [BoundArray(array, (0,)) for array in arrays], ((0,), (len(arrays[0]),))
    if compiled:
        run_kernel(compile_kernel(graph), box, bound)
    else:
        evaluate(graph, box, bound)
    return arrays


# Meaning -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("compiled", [False, True])
def test_each_cell_does_its_own_number_of_rounds(compiled: bool) -> None:
    """Collatz' sequences: known lengths, very different ones beside each other."""

    def collatz(n: Any, steps: Any, last: Any) -> None:
        end, rounds = mg.iterate(n[0], lambda x: x > 1, lambda x: mg.where(x % 2 == 0, x // 2, 3 * x + 1), 1000)
        steps[0], last[0] = rounds, end

    starts = [1, 2, 3, 7, 27, 97, 0, 871, 6171, *range(1, 60)]
    graph = mg.Kernel(collatz).graph(infer_signature(1, [("i8", (0,)), ("i4", (0,)), ("i8", (0,))]))
    _, steps, last = evaluated(graph, starts, compiled=compiled)
    assert steps[:9].tolist() == [0, 1, 7, 16, 111, 118, 0, 178, 261]
    assert last.tolist() == [min(1, start) for start in starts]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_limit_stops_a_cell_where_it_is(compiled: bool) -> None:
    def count(n: Any, end: Any, rounds: Any, unfinished: Any) -> None:
        left, done = mg.iterate(n[0], lambda x: x > 0, lambda x: x - 1, 5)
        end[0], rounds[0], unfinished[0] = left, done, left > 0

    graph = mg.Kernel(count).graph(infer_signature(1, [(kind, (0,)) for kind in ("i4", "i4", "i4", "bool")]))
    _, end, rounds, unfinished = evaluated(graph, [0, 3, 5, 6, 9, -4] * 9, compiled=compiled)
    assert end[:6].tolist() == [0, 0, 0, 1, 4, -4]
    assert rounds[:6].tolist() == [0, 3, 5, 5, 5, 0]
    assert unfinished[:6].tolist() == [False, False, False, True, True, False]


@pytest.mark.parametrize("arrange", [tuple, list, lambda values: dict(zip("abc", values, strict=True))])
def test_a_state_of_several_values_changes_at_once(arrange: Callable[[Any], Any]) -> None:
    def fibonacci(n: Any, new: Any) -> None:
        def values(state: Any) -> Any:
            return list(state.values()) if isinstance(state, dict) else state

        def body(state: Any) -> Any:
            a, b, left = values(state)
            return arrange((b, a + b, left - 1))

        start = arrange((mg.cast(0, "i8"), 1, n[0]))
        end, _ = mg.iterate(start, lambda state: values(state)[2] > 0, body, 90)
        assert type(end) is type(start)
        new[0] = values(end)[0]

    graph = mg.Kernel(fibonacci).graph(infer_signature(1, [("u1", (0,)), ("i8", (0,))]))
    for compiled in (False, True):
        assert evaluated(graph, [0, 1, 2, 10, 50, 90], compiled=compiled)[1].tolist() == [
            0, 1, 1, 55, 12586269025, 2880067194370816120,
        ]  # fmt: skip


def test_what_does_not_change_is_computed_before_the_loop() -> None:
    def kernel(u: Any, new: Any) -> None:
        new[0] = mg.iterate(u[0], lambda x: x < u[1], lambda x: x + mg.exp(u[-1]) * 0.5, 30).state

    graph = mg.Kernel(kernel).graph(infer_signature(1, [("f8", (0,)), ("f8", (0,))]))
    (loop,) = (node for node in graph.nodes() if node.op == "iterate")
    assert [node.op for node in loop.data.nodes() if node.args] == ["lt", "add"]
    assert {node.data[2] for node in loop.args if node.op == "read"} == {(0,), (1,)}
    assert radius(graph)[0].low == radius(graph)[0].high == (1,)


def test_loops_in_loops() -> None:
    """The outer loop's state is what the inner one starts with, stops at and takes from outside."""

    def kernel(n: Any, new: Any, inner_rounds: Any) -> None:
        def outer(state: Any) -> Any:
            x, total = state
            end, rounds = mg.iterate(x, lambda y: y > 1, lambda y: y // 2 + x * 0, 60)
            return x - end, total + rounds

        (new[0], inner_rounds[0]), _ = mg.iterate((n[0], mg.cast(0, "i4")), lambda s: s[0] > 0, outer, 50)

    graph = mg.Kernel(kernel).graph(infer_signature(1, [("i8", (0,)), ("i8", (0,)), ("i4", (0,))]))
    for compiled in (False, True):
        _, new, rounds = evaluated(graph, range(40), compiled=compiled)
        assert not new.any()
        assert rounds.tolist() == [sum(k.bit_length() - 1 for k in range(1, n + 1)) for n in range(40)]


def test_equal_loops_are_one_and_others_are_not() -> None:
    def kernel(u: Any, a: Any, b: Any, c: Any) -> None:
        a[0], b[0] = root(u[0]).state, root(u[0]).rounds + root(u[0]).state
        c[0] = root(u[0], 1e-6).state

    graph = mg.Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 4))
    assert sum(node.op == "iterate" for node in graph.nodes()) == 2


# Machine code --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_vectors_and_what_remains_of_a_row(dtype: str) -> None:
    graph = traced(roots, 1, [dtype, dtype, "i4"])
    for shape in ROWS:
        assert_equal_bits(make_case(graph, shape))  # infinities and NaN among the values


@pytest.mark.slow
def test_in_locals_and_reductions() -> None:
    @mg.kernel
    def kernel(u: Any, new: Any) -> dict[str, Any]:
        depth = mg.local(root(u[0, 0] + u[0, 1]).rounds)
        end, rounds = root(u[0, 0] * 0.5)
        new[0, 0] = end - 0.25 * depth[1, -1]
        return {"most": mg.max(rounds), "all": mg.sum(end), "where": mg.argmax(depth[0, 1])}

    assert_equal_bits(make_case(traced(kernel, 2, ["f8", "f8"]), (5, 70)), tile=(2, 70))


@pytest.mark.few(2)
@pytest.mark.parametrize("order", [{"x": 1}, {"y": 1}, {"y": -1, "x": 1}, "lexicographic", "red-black"])
def test_in_every_order(order: Any) -> None:
    @mg.kernel(order=order)
    def kernel(u: Any, f: Any) -> dict[str, Any]:
        around = u[-1, 0] + f[1, 0] if order == {"y": 1} or order == {"y": -1, "x": 1} else u[0, -1] + f[0, 1]
        end, rounds = root(around)
        u[0, 0] = end + f[0, 0]
        return {"most": mg.max(rounds)}

    for colour in (0, 1):
        assert_equal_bits(make_case(traced(kernel, 2, ["f8", "f8"]), (6, 41), colour=colour))


@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="the patterns name x86 instructions")
def test_a_round_is_done_by_vectors() -> None:
    code = assembly(print_llvm(traced(roots, 1, ["f8", "f8", "i4"])), host_target())
    assert len(re.findall(r"\bv?divpd\b", code)) >= 4


# Estimates and mistakes ----------------------------------------------------------------------------------------------
def test_costs_count_expected_rounds() -> None:
    def work(limit: int, expected: int | None) -> int:
        def kernel(u: Any, new: Any) -> None:
            new[0] = mg.iterate(u[0], lambda x: x < 1.0, lambda x: x * 2.0 + 1.0, limit, expected=expected).state

        return flops(mg.Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 2)))

    assert [work(*pair) for pair in ((3, None), (50, None), (50, 20), (5, 20))] == [6, 16, 40, 10]
    assert "counted as 8 of at most 40 iterations" in roots.explain()


def kernel_of(function: Callable[[Any], Any]) -> None:
    def kernel(u: Any, new: Any) -> None:
        result = function(u)
        new[0] = result.state if isinstance(result, tuple) else result

    mg.Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 2))


MISTAKES = {
    "the state starts as f8, and the body returns i4": lambda u: mg.iterate(
        u[0], lambda x: x > 0, lambda x: mg.cast(x, "i4"), 5
    ),
    "state['b'] starts as i8, and the body returns f8": lambda u: mg.iterate(
        {"a": u[0], "b": 1}, lambda s: s["a"] > 0, lambda s: {"b": s["b"] * 0.5, "a": s["a"]}, 5
    ),
    "the result of the body is a tuple of 1; expected a tuple of 2 values": lambda u: mg.iterate(
        (u[0], 1.0), lambda s: s[0] > 0, lambda s: (s[0],), 5
    ),
    "the result of the body is a dict with the keys 'x'": lambda u: mg.iterate(
        {"y": u[0]}, lambda s: s["y"] > 0, lambda s: {"x": s["y"]}, 5
    ),
    "the result of the body is nothing": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: None, 5),
    "the state is empty": lambda u: mg.iterate((), lambda s: True, lambda s: s, 5),
    "the condition is f8": lambda u: mg.iterate(u[0], lambda x: x, lambda x: x - 1, 5),
    "limit is 0": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: x - 1, 0),
    "limit is a value of a cell": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: x - 1, u[0]),
    "expected is 2.5": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: x - 1, 5, expected=2.5),
    "draws a random number": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: x - mg.random(), 5),
    "names a value that changes": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: mg.local(x - 1)[0], 5),
    "Python cannot decide on it": lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: x if x > 1 else -x, 5),
    "depends on the variable through mg.iterate": lambda u: mg.derivative(
        mg.iterate(u[0], lambda x: x > 1, lambda x: x * 0.5, 5).state, u[0]
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_say_what_to_write(message: str) -> None:
    with pytest.raises(KernelError, match=re.escape(message)) as error:
        kernel_of(MISTAKES[message])
    assert error.value.remedy
    assert "test_iterate.py" in str(error.value)


def test_a_store_in_the_body_is_refused() -> None:
    def kernel(u: Any, new: Any) -> None:
        def body(x: Any) -> Any:
            new[0] = x
            return x - 1

        mg.iterate(u[0], lambda x: x > 0, body, 5)

    with pytest.raises(KernelError, match="the body stores into a field"):
        mg.Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 2))


def test_a_value_of_the_body_does_not_leave_it() -> None:
    seen: list[Any] = []
    with pytest.raises(KernelError, match=r"a value inside mg\.iterate is used outside of it"):
        kernel_of(lambda u: mg.iterate(u[0], lambda x: x > 0, lambda x: seen.append(x) or x - 1, 5).state + seen[-1])


def test_derivatives_in_the_body_make_newtons_method() -> None:
    def kernel(f: Any, new: Any, rounds: Any) -> None:
        def residual(x: Any) -> Any:
            return mg.exp(x) + x - f[0]

        end, rounds[0] = mg.iterate(
            0.0, lambda x: abs(residual(x)) > 1e-13 * abs(f[0]),
            lambda x: x - residual(x) / mg.derivative(residual(x), x), 50,
        )  # fmt: skip
        new[0] = end

    graph = mg.Kernel(kernel).graph(infer_signature(1, [("f8", (0,)), ("f8", (0,)), ("i4", (0,))]))
    f = np.linspace(1.5, 9.0, 40)
    _, x, rounds = evaluated(graph, f)
    np.testing.assert_allclose(np.exp(x) + x, f, rtol=2e-13)
    assert rounds.max() < 10
    assert x.tobytes() == evaluated(graph, f, compiled=True)[1].tobytes()
