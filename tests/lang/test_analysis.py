"""What kernels read and cost, and integer lanes made narrower without changing a result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.compile.exact import finish
from minga.compile.numpy import BoundArray, evaluate
from minga.lang import functions as mg
from minga.lang.analysis import (
    Radius,
    bytes_per_cell,
    flops,
    is_pointwise,
    is_star,
    offsets_of,
    radius,
    reads,
    traffic,
)
from minga.lang.cell import local
from minga.lang.expr import Node, as_node, cast, fused_multiply_add, shift
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel, ScalarType, Signature, infer_signature
from minga.lang.narrow import intervals, narrow


def graph_of(function, *fields, ndim=2, scalars=(), **options) -> KernelGraph:
    signature = infer_signature(ndim, [(f, range(ndim)) if isinstance(f, str) else f for f in fields])
    return Kernel(function, **options).graph(Signature(ndim, signature.fields, tuple(scalars)))


# Reads and radius ----------------------------------------------------------------------------------------------------
def test_a_star_and_its_radius():
    def step(u, c, new):
        new[0, 0] = c[0, 0] * (u[-2, 0] + u[1, 0] + u[0, 3])

    graph = graph_of(step, "f8", "f8", "f8")
    assert offsets_of(graph, 0) == {(-2, 0), (1, 0), (0, 3)}
    assert radius(graph) == {0: Radius((2, 0), (1, 3)), 1: Radius((0, 0), (0, 0)), 2: Radius((0, 0), (0, 0))}
    assert is_star(graph, 0)
    assert not is_pointwise(graph, 0)
    assert is_pointwise(graph, 1)
    assert is_pointwise(graph, 2)
    assert 2 not in reads(graph)


def test_corners_are_no_star():
    def step(u, new):
        new[0, 0] = u[1, 1] + u[0, 0]

    assert not is_star(graph_of(step, "f8", "f8"), 0)


def test_locals_widen_what_is_read():
    def step(u, v, row, new):
        g = local(u[0, 1] - u[0, -1])
        h = local(g[1, 0] * v[0, 0] + row[1])
        local(u[7, 7])  # not used, so not read
        new[0, 0] = h[0, 2] + g[0, 0]

    graph = graph_of(step, "f8", "f8", ("f8", (1,)), "f8")
    assert offsets_of(graph, 0) == {(1, 3), (1, 1), (0, 1), (0, -1)}
    assert offsets_of(graph, 1) == {(0, 2)}
    assert offsets_of(graph, 2) == {(3,)}
    assert radius(graph)[0] == Radius((0, 1), (1, 3))
    assert radius(graph)[2] == Radius((0,), (3,))


def test_many_nested_locals_are_quick():
    def step(u, new):
        g = local(u[0, 0])
        for _ in range(60):
            g = local(g[0, 1] + g[0, -1])
        new[0, 0] = g[0, 0]

    assert radius(graph_of(step, "f8", "f8"))[0] == Radius((0, 60), (0, 60))


def test_strides():
    def restrict(fine, coarse):
        f = fine.strided(2)
        g = local(f[0, 1] + f[-1, 0])
        coarse[0, 0] = g[0, 0] + g[0, 1]

    graph = graph_of(restrict, "f4", "f4")
    assert reads(graph)[0] == {((2, 2), o) for o in [(0, 1), (-1, 0), (0, 3), (-1, 2)]}
    assert radius(graph)[0] == Radius((1, 0), (0, 2))
    assert not is_pointwise(graph, 0)
    assert traffic(graph).read == 4 * 2 * 2


def test_another_resolution_is_not_the_cell_itself():
    def inject(fine, coarse):
        coarse[0, 0] = fine.strided(2)[0, 0]

    graph = graph_of(inject, "f4", "f4")
    assert radius(graph)[0].zero
    assert not is_pointwise(graph, 0)
    assert traffic(graph).read == 4 * 2  # whole cache lines, of every other row


# Costs ---------------------------------------------------------------------------------------------------------------
def test_flops_count_shared_work_once_and_constants_never():
    def step(u, new, *, h):
        g = local(u[0, 0] * u[0, 0])
        difference = g[0, 1] - g[0, -1]
        scale = 1.0 / (h * h)
        new[0, 0] = mg.where(difference > 0, difference, -difference) * scale + mg.sqrt(cast(difference, "f4"))

    graph = graph_of(step, "f8", "f8", scalars=[("h", ScalarType("f8", False))])
    assert flops(graph) == 6  # square, difference, negative, times scale, root, sum


def test_an_fma_is_two():
    def step(u, new):
        new[0, 0] = fused_multiply_add(u[0, 0], u[0, 1], 1.0)

    assert flops(graph_of(step, "f8", "f8")) == 2


def test_traffic_counts_each_field_once():
    def step(u, mask, row, new, old):
        old[0, 0] = old[0, 0] + u[0, 1] + u[0, -1] + row[0]
        new[0, 0] = mg.where(mask[0, 0], u[0, 0], 0.0)

    graph = graph_of(step, "f8", "bool", ("f8", (0,)), "f4", "f8")
    assert traffic(graph).read == 8 + 1 + 8
    assert traffic(graph).written == 4 + 8
    assert traffic(graph).allocated == 4
    assert bytes_per_cell(graph) == 33
    assert bytes_per_cell(graph, write_allocate=False) == 29


def test_a_reduction_only_reads():
    assert bytes_per_cell(graph_of(lambda u: mg.sum(u[0, 0]), "f4")) == 4


# Narrow lanes --------------------------------------------------------------------------------------------------------
def neighbours(u):
    return [u[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


def life_by_cast(u, new):
    n = sum(cast(cell, "i4") for cell in neighbours(u))
    new[0, 0] = (n == 3) | ((n == 2) & u[0, 0])


def life_by_choice(u, new):
    n = sum(mg.where(cell, 1, 0) for cell in neighbours(u))
    new[0, 0] = mg.where(u[0, 0], (n == 2) | (n == 3), n == 3)


def life_of_bytes(u, new):
    n = sum(mg.where(cell != 0, 1, 0) for cell in neighbours(u))
    new[0, 0] = cast((n == 3) | ((n == 2) & (u[0, 0] != 0)), "u1")


@pytest.mark.parametrize(
    ("rule", "dtype"), [(life_by_cast, "bool"), (life_by_choice, "bool"), (life_of_bytes, "u1"), (life_by_choice, "u1")]
)
def test_life_becomes_bytes(rule, dtype):
    graph = graph_of(rule, dtype, dtype)
    narrower = narrow(graph)
    assert {n.dtype for n in graph.nodes()} & {"i4", "i8"}
    assert {n.dtype for n in narrower.nodes()} <= {"bool", "u1"}
    cells = (np.random.default_rng(1).random((12, 70)) < 0.4).astype(np.dtype(dtype))
    results = []
    for each in (graph, narrower):
        new = np.zeros_like(cells)
        evaluate(each, ((1, 1), (11, 69)), [BoundArray(cells, (0, 0)), BoundArray(new, (0, 0))])
        results.append(new)
    np.testing.assert_array_equal(*results)
    assert results[0].any()


def test_wide_values_from_memory_stay_wide():
    def step(u, new):
        new[0, 0] = (u[0, 0] & 7) + (u[0, 1] & 7)

    assert {n.dtype for n in narrow(graph_of(step, "i4", "i4")).nodes()} == {"i4"}


def test_sums_that_may_not_fit_stay_wide():
    def step(u, new):
        new[0, 0] = cast(u[0, 0], "i4") + cast(u[0, 1], "i4") - 1

    graph = narrow(graph_of(step, "u1", "i4"))
    assert {n.dtype for n in graph.nodes() if n.op in ("add", "sub")} == {"i2"}


def test_locals_become_narrow_too():
    def step(u, new):
        pairs = local(cast(u[0, 0], "i8") + cast(u[0, 1], "i8"))
        new[0, 0] = pairs[0, 0] + pairs[1, 0]
        return mg.sum(pairs[0, 0])

    graph = graph_of(step, "bool", "i4")
    narrower = narrow(graph)
    assert narrower.locals[0].dtype == "u1"
    assert {n.dtype for n in narrower.nodes() if n.op == "local"} == {"u1"}
    assert narrower.reductions[0].value.dtype == "i8"
    cells = np.random.default_rng(2).random((4, 9)) < 0.5
    got = []
    for each in (graph, narrower):
        new = np.zeros((4, 9), "i4")
        words = evaluate(each, ((0, 0), (3, 8)), [BoundArray(cells, (0, 0)), BoundArray(new, (0, 0))])
        got.append((new.tolist(), finish("sum", "i8", words["value"])))
    assert got[0] == got[1]


@pytest.mark.parametrize(
    "op", ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "min", "max", "choice", "abs", "neg"]
)
def test_intervals_hold_every_value(op):
    """All pairs of small ranges: an operation's interval holds its results on all pairs of values."""

    def kernel(u, v, new):
        low_a, low_b = as_node(np.int64(a[0])), as_node(np.int64(b[0]))
        x, y = low_a + u[0] % (a[1] - a[0] + 1), low_b + v[0] % (b[1] - b[0] + 1)
        match op:
            case "choice":
                new[0] = mg.where(u[0] < v[0], x, y)
            case "abs":
                new[0] = mg.abs(x)
            case "neg":
                new[0] = -x
            case _:
                new[0] = combine(op, x, y)

    ranges = [(-7, -3), (-4, 0), (-3, 5), (0, 0), (0, 6), (2, 7)]
    u, v = (g.ravel() for g in np.meshgrid(np.arange(10), np.arange(10)))
    for a in ranges:
        for b in ranges:
            graph = graph_of(kernel, "i8", "i8", "i8", ndim=1)
            new = np.zeros(100, "i8")
            evaluate(graph, ((0,), (100,)), [BoundArray(x, (0,)) for x in (u, v, new)])
            low, high = intervals(graph)[id(graph.stores[0].value)]
            assert low <= new.min(), (a, b)
            assert new.max() <= high, (a, b)
            if op in ("+", "-", "*", "min", "max", "choice", "abs", "neg"):
                assert (low, high) == (new.min(), new.max()), (a, b)


INTEGERS = ("bool", "u1", "i2", "i4", "i8", "u4", "u8")
OPERATORS: dict[str, Callable[[Node, Node], Node]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<": operator.lt, "==": operator.eq, ">=": operator.ge,
    "<<": lambda a, b: shift("shl", a, b), ">>": lambda a, b: shift("shr", a, b),
    "min": mg.min, "max": mg.max, "where": lambda a, b: mg.where(a < b, a, b),
}  # fmt: skip
BINARY = tuple(OPERATORS)


def combine(op: str, a: Node, b: Node) -> Node:
    if "bool" in (a.dtype, b.dtype) and op in ("+", "-", "*", "//", "%", "<<", ">>"):
        a, b = (cast(x, "i2") if x.dtype == "bool" else x for x in (a, b))
    if {a.dtype, b.dtype} & {"u8"} and {a.dtype, b.dtype} & {"i2", "i4", "i8"}:
        b = cast(b, a.dtype)  # NumPy's common type would be f8
    return OPERATORS[op](a, b)


step_of_program = st.tuples(
    st.sampled_from((*BINARY, "neg", "abs", "cast", "const", "local")),
    st.integers(0, 30),
    st.integers(0, 30),
    st.sampled_from(INTEGERS),
    st.integers(-5, 300),
)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(("bool", "bool", "u1", "u1", *INTEGERS)), min_size=2, max_size=3),
    st.sampled_from(("i4", "i8", "u4", "i2")),
    st.lists(step_of_program, min_size=1, max_size=12),
    st.integers(0, 2**32 - 1),
)
def test_narrow_lanes_change_no_result(fields, wide, program, seed):
    def kernel(inputs, outputs):
        values = [cast(u[k], wide) for u in inputs for k in range(2)] + [u[2] for u in inputs]
        for op, i, j, dtype, number in program:
            a, b = values[i % len(values)], values[j % len(values)]
            if op == "neg":
                value = -cast(a, "i4") if a.dtype == "bool" else -a
            elif op == "abs":
                value = mg.abs(a)
            elif op == "cast":
                value = cast(a, dtype)
            elif op == "const":
                number = number if a.dtype[0] == "i" else abs(number) % 256
                value = combine(BINARY[j % len(BINARY)], a, cast(as_node(number), a.dtype))
            elif op == "local":
                value = local(a)[0 if a.op == "local" else 1]
            else:
                value = combine(op, a, b)
            values.append(cast(value, value.dtype))
        for out, value in zip(outputs, values[-len(outputs) :], strict=True):
            out[0] = value
        return {"sum": mg.sum(values[-1]), "max": mg.max(values[-1]), "argmin": mg.argmin(values[-2])}

    count = 3
    signature = infer_signature(1, [(f, (0,)) for f in fields] + [("i8", (0,))] * count).fields
    traced = Kernel(kernel).graph(Signature(1, (tuple(signature[: len(fields)]), tuple(signature[len(fields) :]))))
    narrower = narrow(traced)
    rng = np.random.default_rng(seed)
    cells = 40
    bits = [rng.integers(0, 2**64, cells + 8, dtype=np.uint64) >> np.uint64(rng.integers(0, 64)) for _ in fields]
    inputs = [b & np.uint64(1) == 1 if f == "bool" else b.astype(f) for b, f in zip(bits, fields, strict=True)]
    got = []
    for each in (traced, narrower):
        outputs = [np.zeros(cells + 8, "i8") for _ in range(count)]
        words = evaluate(each, ((0,), (cells,)), [BoundArray(x, (0,)) for x in (*inputs, *outputs)])
        got.append(([o.tolist() for o in outputs], {name: w.tolist() for name, w in words.items()}))
    assert got[0] == got[1]
    assert_intervals_hold(traced, inputs, cells)


def assert_intervals_hold(graph: KernelGraph, inputs: list[np.ndarray], cells: int) -> None:
    """Every integer value of every stored expression lies in its interval."""
    found = intervals(graph)
    for store in graph.stores:
        low, high = found[id(store.value)]
        out = np.zeros(cells + 8, "i8")
        arrays = [BoundArray(x, (0,)) for x in inputs]
        arrays += [BoundArray(out, (0,)) for _ in range(len(graph.params) - len(inputs))]
        evaluate(replace(graph, stores=(store,), reductions=()), ((0,), (cells,)), arrays)
        assert low <= int(out[:cells].min())
        assert int(out[:cells].max()) <= high
