"""Random kernels give the oracle's bits in machine code, for every type, order and shape, on every processor level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.expr import Node, binary, bitcast, cast, unary_float, where
from minga.lang.graph import KernelGraph
from minga.lang.iterate import iterate
from minga.lang.kernel import FieldType, Kernel, ScalarType, Signature
from minga.lang.types import BITS, DTYPES, DType, is_float, is_integer, is_signed

from .helpers import assert_equal_bits, make_case

ROUNDINGS = ("floor", "ceil", "trunc", "rint")
ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "mod", "min", "max")


class Expressions:
    """Draws expressions over the cells of a kernel; every draw is of a given type, by casts where needed."""

    def __init__(self, draw: st.DrawFn, leaves: list[Any]) -> None:
        self.draw = draw
        self.leaves = leaves

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def expression(self, depth: int) -> Node:
        if depth == 0:
            return self.pick(self.leaves)()
        kinds = ("binary", "binary", "unary", "compare", "select", "cast", "bits", "shift", "bitcast", "table", "loop")
        kind = self.pick(kinds)
        return getattr(self, f"_{kind}")(depth - 1)

    def _binary(self, depth: int) -> Node:
        a, b = self._pair(depth)
        op = self.pick(ARITHMETIC)
        if a.dtype == "bool":
            a, b = cast(a, "i4"), cast(b, "i4")
        if op in ("min", "max"):
            return getattr(mg, op)(a, b)
        return binary(op, a, b)

    def _pair(self, depth: int) -> tuple[Node, Node]:
        a, b = self.expression(depth), self.expression(depth)
        if "u8" in (a.dtype, b.dtype) and a.dtype != b.dtype:
            b = cast(b, "u8") if a.dtype == "u8" else b
            a = cast(a, "u8") if b.dtype == "u8" else a
        return a, b

    def _unary(self, depth: int) -> Node:
        a = self.expression(depth)
        if a.dtype == "bool":
            return ~a
        op = self.pick(("neg", "abs", "sqrt", *ROUNDINGS))
        if op == "neg":
            return -a
        if op == "abs":
            return abs(a)
        return unary_float(op, a)

    def _table(self, depth: int) -> Node:
        index = self.expression(depth)
        if is_float(index.dtype):
            return mg.popcount(cast(index, "i2"))
        return mg.lookup(np.arange(-3, self.pick((1, 5, 300))).astype(self.pick(("i2", "u8", "f4"))), index)

    def _loop(self, depth: int) -> Node:
        """A loop in the cell over two values, of which one is of any type, that goes on by chance."""
        start = (self.expression(depth), cast(self.expression(depth), self.pick(DTYPES)))

        def within(state: tuple[Node, ...]) -> Expressions:
            return Expressions(self.draw, [*self.leaves, *2 * [lambda: state[0], lambda: state[1]]])

        def body(state: tuple[Node, ...]) -> tuple[Node, ...]:
            return tuple(cast(within(state).expression(depth), place.dtype) for place in state)

        end, rounds = iterate(start, lambda state: within(state)._compare(depth), body, self.pick((1, 2, 5)))
        return self.pick((end[0], end[1], rounds))

    def _compare(self, depth: int) -> Node:
        a, b = self._pair(depth)
        return self.pick((a < b, a <= b, a > b, a >= b, a == b, a != b))

    def _select(self, depth: int) -> Node:
        a, b = self._pair(depth)
        return where(self._compare(depth), a, b)

    def _cast(self, depth: int) -> Node:
        return cast(self.expression(depth), self.pick(DTYPES))

    def _integers(self, depth: int) -> tuple[Node, Node]:
        dtype = self.pick([d for d in DTYPES if is_integer(d)])
        return cast(self.expression(depth), dtype), cast(self.expression(depth), dtype)

    def _bits(self, depth: int) -> Node:
        a, b = self._integers(depth)
        return self.pick((a & b, a | b, a ^ b, ~a))

    def _shift(self, depth: int) -> Node:
        a, b = self._integers(depth)
        width = BITS[b.dtype]
        count = self.pick((b, b & (width - 1), 0, 1, width - 1, width, -1 if is_signed(b.dtype) else 3))
        return a << count if self.pick((True, False)) else a >> count

    def _bitcast(self, depth: int) -> Node:
        a = cast(self.expression(depth), self.pick(("f4", "f8", "i4", "u8")))
        if is_float(a.dtype):
            a = where(a == a, a, 0)  # The bits of a NaN are nobody's promise.
        return bitcast(a, {"f4": "u4", "f8": "i8", "i4": "f4", "u8": "f8"}[a.dtype])


def offsets(draw: st.DrawFn, count: int, reach: int = 2) -> tuple[int, ...]:
    return tuple(draw(st.integers(-reach, reach)) for _ in range(count))


@st.composite
def graphs(draw: st.DrawFn) -> KernelGraph:
    """Unordered kernels with one to three dimensions, several fields, stores, locals and reductions."""
    ndim = draw(st.integers(1, 3))
    every = tuple(range(ndim))
    inputs = [FieldType(draw(st.sampled_from(DTYPES)), every) for _ in range(draw(st.integers(1, 3)))]
    if ndim > 1:
        inputs.append(FieldType(draw(st.sampled_from(DTYPES)), (draw(st.integers(0, ndim - 1)),)))
    outputs = [FieldType(draw(st.sampled_from(DTYPES)), every) for _ in range(draw(st.integers(1, 3)))]
    depth = draw(st.integers(1, 3))

    def body(sources: list[Any], targets: list[Any], *, s: Node) -> dict[str, Any]:
        def read(source: Any) -> Any:
            def cell() -> Node:
                stride = draw(st.sampled_from((1, 1, 1, 2)))
                return source.strided(stride)[offsets(draw, len(source.axes))]

            return cell

        leaves: list[Any] = [read(source) for source in sources] * 2
        leaves += [lambda: s]
        numbers = st.sampled_from((0, 1, -1, 3, 0.5, -2.75, 1e30))
        leaves += [lambda: cast(draw(numbers), draw(st.sampled_from(("f4", "f8"))))]
        make = Expressions(draw, leaves)
        for _ in range(draw(st.integers(0, 2))):
            named = local(make.expression(depth - 1))
            leaves.append(lambda named=named: named[offsets(draw, ndim)])
            leaves.append(lambda named=named: named[offsets(draw, ndim)])
        leaves.append(lambda: mg.index(draw(st.integers(0, ndim - 1))))
        for target in targets:
            own = target.strided(draw(st.sampled_from((1, 1, 2))))
            here = (0,) * ndim
            for place in {here, (draw(st.integers(0, own.strides[0] - 1)), *here[1:])}:
                own[place] = cast(make.expression(depth), target.dtype)
        results: dict[str, Any] = {}
        for number in range(draw(st.integers(0, 2))):
            kind = draw(st.sampled_from((mg.max, mg.min, mg.argmax, mg.argmin, mg.count, mg.sum)))
            results[f"r{number}"] = kind(make.expression(depth - 1))
        return results

    scalar = draw(st.sampled_from(DTYPES))
    signature = Signature(ndim, (tuple(inputs), tuple(outputs)), (("s", ScalarType(scalar, False)),))
    return Kernel(body, name="random").graph(signature)


@st.composite
def ordered_graphs(draw: st.DrawFn) -> KernelGraph:
    """In-place kernels: sweeps in all directions, lexicographic, red-black."""
    ndim = draw(st.integers(1, 3))
    every = tuple(range(ndim))
    names = "zyx"[-ndim:]
    swept = draw(st.lists(st.sampled_from(names), min_size=1, max_size=ndim, unique=True))
    sweep = {name: draw(st.sampled_from((1, -1))) for name in swept}
    order = draw(st.sampled_from((sweep, sweep, "lexicographic", "red-black")))
    dtype: DType = draw(st.sampled_from(("f8", "f4", "i4", "u1")))
    other: DType = draw(st.sampled_from(DTYPES))

    def allowed(place: tuple[int, ...]) -> bool:
        if order == "red-black":
            return not any(place) or sum(place) % 2 == 1
        if order == "lexicographic" or not any(place):
            return True
        return any(place[names.index(name)] for name in swept)

    def body(u: Any, f: Any) -> dict[str, Any]:
        leaves: list[Any] = [
            lambda: u[draw(st.tuples(*[st.integers(-1, 1)] * ndim).filter(allowed))],
            lambda: u[draw(st.tuples(*[st.integers(-1, 1)] * ndim).filter(allowed))],
            lambda: f[offsets(draw, ndim)],
            lambda: mg.index(0),
        ]
        make = Expressions(draw, leaves)
        change = make.expression(draw(st.integers(1, 3)))
        u[(0,) * ndim] = cast(change, dtype)
        results = {}
        if draw(st.booleans()):
            results["r"] = draw(st.sampled_from((mg.max, mg.argmin, mg.count)))(change)
        return results

    return Kernel(body, name="ordered", order=order).graph(
        Signature(ndim, (FieldType(dtype, every), FieldType(other, every)), (), tuple(names))
    )


def shapes(draw: st.DrawFn, ndim: int) -> tuple[int, ...]:
    """Awkward boxes: one cell, primes, a little more than a vector, a chunk with a rest."""
    inner = draw(st.sampled_from((1, 2, 3, 7, 16, 33, 67, 130) + ((1100,) if ndim == 1 else ())))
    return (*(draw(st.sampled_from((1, 2, 3, 5))) for _ in range(ndim - 1)), inner)


def check_unordered(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    shape = shapes(data.draw, graph.ndim)
    case = make_case(graph, shape, seed=data.draw(st.integers(0, 9)))
    whole_rows = bool(graph.reductions)
    tile = tuple(max(1, n // 2) if axis < graph.ndim - 1 or not whole_rows else n for axis, n in enumerate(shape))
    assert_equal_bits(case, tile=data.draw(st.sampled_from((None, tile))))


@given(st.data())
@settings(max_examples=6)
def test_unordered_kernels(data: st.DataObject) -> None:
    check_unordered(data)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=5)
def test_ordered_kernels(data: st.DataObject) -> None:
    graph = data.draw(ordered_graphs())
    shape = shapes(data.draw, graph.ndim)
    case = make_case(graph, shape, seed=data.draw(st.integers(0, 9)), colour=data.draw(st.integers(0, 1)))
    assert_equal_bits(case)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=1000)
def test_many_unordered_kernels(data: st.DataObject) -> None:
    check_unordered(data)
