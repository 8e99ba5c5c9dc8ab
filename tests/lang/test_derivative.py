"""Derivatives of expressions: against complex steps and differences, their bits as machine code, their size."""

from __future__ import annotations

import cmath
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.compile.call import run_kernel
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray, evaluate
from minga.errors import KernelError
from minga.lang import elementary, replacements
from minga.lang.derivative import FUNCTIONS as rules
from minga.lang.expr import Node, const
from minga.lang.graph import KernelGraph
from minga.lang.kernel import FieldType, Kernel, ScalarType, Signature, infer_signature
from minga.lang.shift import shifted

F8 = "f8"
FUNCTIONS = ("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "cbrt")


def graph_of(function: Callable[..., None], fields: int, dtype: Any = F8, ndim: int = 1) -> KernelGraph:
    """The graph of a kernel of some fields and the weak scalar s, if it has one."""
    kernel = Kernel(function)
    kinds = (FieldType(dtype, tuple(range(ndim))),) * fields
    scalars = tuple((name, ScalarType(F8, True)) for name in kernel.scalars)
    return kernel.graph(Signature(ndim, kinds, scalars))


def run(graph: KernelGraph, *values: Any, compiled: bool = False, **scalars: float) -> list[np.ndarray]:
    """All arrays after the kernel has run over cells 1 .. n - 2 of arrays of n cells; outputs are the last ones."""
    arrays = [np.array(value, dtype=param.dtype) for value, param in zip(values, graph.params, strict=False)]
    n = len(arrays[0])
    arrays += [np.zeros(n, param.dtype) for param in graph.params[len(arrays) :]]
    bound = [BoundArray(array, (0,)) for array in arrays]
    if compiled:
        run_kernel(compile_kernel(graph), ((1,), (n - 1,)), bound, scalars)
    else:
        evaluate(graph, ((1,), (n - 1,)), bound, scalars)
    return arrays


# Values --------------------------------------------------------------------------------------------------------------
@dataclass
class Complex:
    """The functions of `mg` for complex numbers of tiny imaginary parts: an exact derivative to compare with."""

    def where(self, condition: bool, a: complex, b: complex) -> complex:
        return a if condition else b

    def min(self, a: complex, b: complex) -> complex:
        return a if a.real < b.real else b

    def max(self, a: complex, b: complex) -> complex:
        return a if a.real > b.real else b

    def abs(self, a: complex) -> complex:
        return -a if a.real < 0 else a

    def expm1(self, a: complex) -> complex:
        return cmath.exp(a) - 1

    def log1p(self, a: complex) -> complex:
        return cmath.log(1 + a)

    def cbrt(self, a: complex) -> complex:
        return a ** (1 / 3)  # of a positive real part

    def less(self, a: complex, b: complex) -> bool:
        return a.real < b.real

    def __getattr__(self, name: str) -> Any:
        return getattr(cmath, name)


class Traced:
    """The same functions of cells."""

    def less(self, a: Node, b: Node) -> Node:
        return a < b

    def __getattr__(self, name: str) -> Any:
        return getattr(mg, name)


Shape = tuple[Any, ...]
SHAPES = st.recursive(
    st.sampled_from([("leaf", 0), ("leaf", 1), ("leaf", 2), ("number", 0.75), ("number", -2.0)]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "sub", "mul", "div", "min", "max"]), inner, inner),
        st.tuples(st.sampled_from(["neg", "abs", *FUNCTIONS]), inner),
        st.tuples(st.just("where"), inner, inner, inner, inner),
    ),
    max_leaves=8,
)


def value(shape: Shape, leaves: list[Any], of: Any) -> Any:
    """An expression over the leaves, of cells or of complex numbers; kept within the domain of its functions."""
    op = shape[0]
    if op == "leaf":
        return leaves[shape[1]]
    if op == "number":
        return shape[1]
    a, *more = (value(part, leaves, of) for part in shape[1:])
    a = a + 0.0 * leaves[0]  # no operation meets bare numbers only
    if op in FUNCTIONS:
        return getattr(of, op)(a / (1.0 + a * a) + 1.5)
    if op == "neg":
        return -a
    if op == "abs":
        return of.abs(a)
    b = more[0]
    if op in ("min", "max"):
        return getattr(of, op)(a, b + 0.0 * leaves[0])
    if op == "where":
        return of.where(of.less(a, b + 0.0 * leaves[0]), more[1] + 0.0 * leaves[0], more[2] + 0.0 * leaves[0])
    return {"add": a + b, "sub": a - b, "mul": a * b, "div": a / (b * b + 1.0)}[op]


@given(SHAPES, st.lists(st.floats(0.1, 2.0), min_size=3, max_size=3))
@settings(deadline=None, max_examples=60)
def test_random_expressions_against_complex_steps(shape: Shape, at: list[float]) -> None:
    def kernel(u: Any, first: Any, second: Any, third: Any, *, s: Any) -> None:
        leaves = [u[0], u[1], s]
        expression = value(shape, leaves, Traced()) + 0.0 * u[0]
        for new, leaf in zip((first, second, third), leaves, strict=True):
            new[0] = mg.derivative(expression, leaf)

    graph = graph_of(kernel, 4)
    _, *found = run(graph, [0.0, at[0], at[1]], s=at[2])
    for place, derivative in enumerate(found):
        steps = [complex(x, 1e-200 if k == place else 0.0) for k, x in enumerate(at)]
        exact = complex(value(shape, steps, Complex())).imag * 1e200
        assert derivative[1] == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(SHAPES)
@settings(deadline=None, max_examples=10)
def test_random_expressions_have_the_same_bits_as_machine_code(shape: Shape) -> None:
    def kernel(u: Any, new: Any) -> None:
        new[0] = mg.derivative(value(shape, [u[-1], u[0], u[1]], Traced()) + 0.0 * u[0], u[0])

    graph = graph_of(kernel, 2)
    values = np.random.default_rng(1).uniform(-3, 3, 40)
    assert run(graph, values)[1].tobytes() == run(graph, values, compiled=True)[1].tobytes()


def test_every_function_that_is_spelled_out_has_a_derivative() -> None:
    spelled = ("minga.lang.math", "minga.lang.elementary")
    functions = {name: getattr(mg, name) for name in replacements.FUNCTIONS if getattr(mg, name).__module__ in spelled}
    assert len(functions) > 20
    for name, function in functions.items():
        needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        node = function(*[const(0.5, "f8")] * len(needed))
        assert node.of is None or node.of[0] in rules, name


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_mixed_types_are_those_of_the_expression(dtype: Any) -> None:
    def kernel(u: Any, new: Any, wide: Any) -> None:
        expression = mg.cast(u[0] * u[0], "f8") * 3.0
        assert mg.derivative(expression, u[0]).dtype == "f8"
        assert mg.derivative(u[0] * 0.5, u[0]).dtype == dtype
        assert mg.derivative(u[0] * 0.5, u[1]).dtype == dtype
        new[0] = mg.derivative(u[0] ** 3, u[0])
        wide[0] = mg.derivative(expression, u[0])

    _, cube, six = run(graph_of(kernel, 3, dtype), [0.0, 1.5, 0.0])
    assert cube[1] == 3 * 1.5**2
    assert six[1] == 6 * 1.5


def test_by_an_intermediate_all_else_is_constant() -> None:
    def kernel(u: Any, a: Any, b: Any) -> None:
        x = u[0] * u[1]
        a[0] = mg.derivative(x * x + u[0], x)
        b[0] = mg.derivative(mg.exp(u[0] * u[1]) * u[1], mg.exp(x))  # an equal expression is the variable

    _, a, b = run(graph_of(kernel, 3), [0.0, 1.5, 0.25])
    assert a[1] == 2 * 1.5 * 0.25
    assert b[1] == 0.25


def test_by_another_cell_and_by_another_field() -> None:
    def kernel(u: Any, v: Any, a: Any, b: Any) -> None:
        flux = u[1] * v[0] - u[-1] * v[1]
        a[0] = mg.derivative(flux, u[-1])
        b[0] = mg.derivative(flux, v[0]) + mg.derivative(flux, u[0])

    _, _, a, b = run(graph_of(kernel, 4), [3.0, 5.0, 7.0], [11.0, 13.0, 17.0])
    assert a[1] == -17
    assert b[1] == 7


def test_fma_quotients_remainders_and_steps() -> None:
    def kernel(u: Any, a: Any, b: Any, c: Any, d: Any) -> None:
        x = u[0]
        a[0] = mg.derivative(mg.fma(x, -x, x * x * x), x)
        b[0] = mg.derivative(1.0 / x, x)
        c[0] = mg.derivative((3.0 * x) % 2.0 + 7.0 % x, x)
        d[0] = mg.derivative(x // 0.5 + mg.cast(mg.cast(x, "i4"), "f8") + mg.lookup([1.5, 2.5], mg.cast(x, "i4")), x)

    _, a, b, c, d = run(graph_of(kernel, 5), [0.0, 1.25, 0.0])
    assert a[1] == -2 * 1.25 + 3 * 1.25**2
    assert b[1] == pytest.approx(-1 / 1.25**2)
    assert c[1] == 3.0 - 5.0
    assert d[1] == 0


def test_of_one_side_where_there_is_none() -> None:
    def kernel(u: Any, a: Any, b: Any, c: Any) -> None:
        x, same = u[0], u[1]
        a[0] = mg.derivative(abs(x), x)
        b[0] = mg.derivative(mg.max(2.0 * x, same), x)
        c[0] = mg.derivative(mg.min(same, 3.0 * x), x)

    _, a, b, c = run(graph_of(kernel, 4), [0.0, 0.0, 0.0])
    assert (a[1], b[1], c[1]) == (1, 0, 3)


def test_derivatives_of_derivatives() -> None:
    def kernel(u: Any, new: Any) -> None:
        x = u[0]
        new[0] = mg.derivative(mg.derivative(mg.exp(x * x), x), x)

    _, new = run(graph_of(kernel, 2), [0.0, 0.5, 0.0])
    assert new[1] == pytest.approx((2 + 4 * 0.25) * np.exp(0.25), rel=1e-14)


# Orders and locals ---------------------------------------------------------------------------------------------------
def test_in_an_ordered_kernel_a_sweep_solves_each_cell() -> None:
    """A Newton step in place along x for u**2 = f + the solved cell before: the derivative is by the old value."""

    @mg.kernel(order={"x": 1})
    def newton(u: Any, f: Any) -> None:
        old = u[0]
        residual = old * old - (f[0] + u[-1])
        u[0] = old - residual / mg.derivative(residual, old)

    graph = newton.graph(Signature(1, (FieldType(F8, (0,)),) * 2, (), ("x",)))
    start, f = [2.0, 1.0, 1.0, 1.0, 0.0], [0.0, 2.0, 7.0, 1.0, 0.0]
    found, exact = run(graph, start, f, compiled=True)[0], start[:]
    for i in (1, 2, 3):
        exact[i] -= (exact[i] ** 2 - (f[i] + exact[i - 1])) / (2 * exact[i])
    assert found.tolist() == pytest.approx(exact, rel=1e-15)
    assert found.tobytes() == run(graph, start, f)[0].tobytes()


def test_through_locals_read_at_neighbours() -> None:
    def plain(u: Any, left: Any, own: Any, far: Any) -> None:
        def slope(k: int) -> Node:
            return mg.tanh(u[k + 1] * u[k])

        flux = slope(0) - slope(-1) * u[1]
        for new, cell in zip((left, own, far), (u[-1], u[0], u[2]), strict=True):
            new[0] = mg.derivative(flux, cell)

    def named(u: Any, left: Any, own: Any, far: Any) -> None:
        slope = mg.local(mg.tanh(u[1] * u[0]))
        flux = slope[0] - slope[-1] * u[1]
        for new, cell in zip((left, own, far), (u[-1], u[0], u[2]), strict=True):
            new[0] = mg.derivative(flux, cell)

    values = np.random.default_rng(2).uniform(-2, 2, 30)
    graphs = [graph_of(function, 4) for function in (plain, named)]

    def inner(graph: KernelGraph, compiled: bool) -> Iterator[bytes]:
        arrays = [BoundArray(np.array(values), (0,)), *(BoundArray(np.zeros(30), (0,)) for _ in range(3))]
        box = ((3,), (27,))
        if compiled:
            run_kernel(compile_kernel(graph), box, arrays, {})
        else:
            evaluate(graph, box, arrays, {})
        yield from (item.array.tobytes() for item in arrays[1:])

    kinds = list(itertools.product(graphs, (False, True)))
    assert len({tuple(inner(graph, compiled)) for graph, compiled in kinds}) == 1
    assert len(graphs[1].locals) == 3  # the local, and its derivatives by its two cells


# Size ----------------------------------------------------------------------------------------------------------------
def drift_diffusion(u: list[Any], jacobian: list[Any] | None) -> list[Node]:
    """Residuals of a node of a drift-diffusion device: Poisson's equation, and two continuity equations.

    Values of a cell: potential, and the logarithms of the densities of electrons and holes.
    """

    def bernoulli(x: Node) -> Node:
        return mg.where(abs(x) < 1e-3, 1.0 - 0.5 * x, x / mg.expm1(x))

    def flux(density: list[Node], sign: float, k: int) -> Node:
        delta = sign * (u[0][k + 1] - u[0][k])
        ahead = bernoulli(delta)
        return ahead * density[k + 2] - (ahead + delta) * density[k + 1]

    electrons, holes = ([mg.exp(field[k]) for k in (-1, 0, 1)] for field in u[1:])
    product = electrons[1] * holes[1] - 1.0
    recombination = product / (electrons[1] + holes[1] + 2.0)
    residuals = [u[0][1] - 2.0 * u[0][0] + u[0][-1] + holes[1] - electrons[1]]
    residuals += [flux(p, s, 0) - flux(p, s, -1) - recombination for p, s in ((electrons, 1.0), (holes, -1.0))]
    for number, new in enumerate(jacobian or ()):
        equation, cell = divmod(number, 9)
        k, unknown = divmod(cell, 3)
        new[0] = mg.derivative(residuals[equation], u[unknown][k - 1])
    return residuals


def test_a_block_jacobian_is_not_much_larger_than_the_residual() -> None:
    def residual(u: list[Any], r: list[Any]) -> None:
        for new, item in zip(r, drift_diffusion(u, None), strict=True):
            new[0] = item

    def jacobian(u: list[Any], r: list[Any], j: list[Any]) -> None:
        for new, item in zip(r, drift_diffusion(u, j), strict=True):
            new[0] = item

    field = FieldType(F8, (0,))
    alone = Kernel(residual).graph(Signature(1, ((field,) * 3,) * 2))
    signature = Signature(1, ((field,) * 3, (field,) * 3, (field,) * 27))
    both = Kernel(jacobian).graph(signature)
    divisions = [sum(node.op == "div" for node in graph.nodes()) for graph in (alone, both)]
    assert divisions[1] <= 2 * divisions[0]  # each divisor's reciprocal, once for all 27 entries
    exponentials = 4  # of the derivative of expm1, one for each edge and carrier
    assert len(both.nodes()) < 1.5 * len(alone.nodes()) + 45 * exponentials + 27 * 4

    values = np.random.default_rng(3).uniform(-1, 1, (3, 3))
    arrays = [BoundArray(np.array(row), (0,)) for row in values] + [BoundArray(np.zeros(3), (0,)) for _ in range(30)]
    evaluate(both, ((1,), (2,)), arrays)
    found = np.array([item.array[1] for item in arrays[6:]]).reshape(3, 3, 3)
    for k, unknown in itertools.product(range(3), range(3)):
        ends = []
        for step in (1e-6, -1e-6):
            moved = np.array(values)
            moved[unknown, k] += step
            shifted = [replace(item, array=np.array(row)) for item, row in zip(arrays, moved, strict=False)]
            shifted += [BoundArray(np.zeros(3), (0,)) for _ in range(3)]
            evaluate(alone, ((1,), (2,)), shifted)
            ends.append(np.array([item.array[1] for item in shifted[3:]]))
        assert found[:, k, unknown] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_a_deep_chain_is_no_recursion() -> None:
    def kernel(u: Any, new: Any) -> None:
        total = u[0]
        for _ in range(3000):
            total = total + u[1] * u[0]
        new[0] = mg.derivative(total, u[0])

    _, new = run(graph_of(kernel, 2), [0.0, 1.0, 0.5])
    assert new[1] == 1501


# Mistakes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "variable", "message"),
    [
        (lambda u: u[0], lambda u: mg.cast(u[0], "i4"), "by a value of type i4"),
        (lambda u: u[0], lambda u: 2.0, "by the constant 2.0"),
        (lambda u: mg.cast(u[0], "i4"), lambda u: u[0], "of a value of type i4"),
        (lambda u: u[0] * 2, lambda u: u, "is used without an offset"),
    ],
)
def test_mistakes_say_what_to_write(expression: Any, variable: Any, message: str) -> None:
    def kernel(u: Any, new: Any) -> None:
        new[0] = mg.derivative(expression(u), variable(u))

    with pytest.raises(KernelError, match=message) as error:
        graph_of(kernel, 2)
    assert error.value.remedy
    assert "test_derivative.py" in str(error.value)


def test_bits_of_a_float_have_no_derivative() -> None:
    from minga.lang.expr import bitcast

    def odd(u: Any, new: Any) -> None:
        new[0] = mg.derivative(bitcast(bitcast(u[0], "u8") ^ np.uint64(1), "f8") * u[0], u[0])

    with pytest.raises(KernelError, match=r"depends on the variable through .*bitcast"):
        graph_of(odd, 2)

    def fine(u: Any, new: Any) -> None:
        new[0] = mg.derivative(bitcast(bitcast(u[1], "u8") ^ np.uint64(1), "f8") * u[0], u[0])

    assert run(graph_of(fine, 2), [0.0, 1.0, 1.0])[1][1] == np.nextafter(1.0, 2.0)


NEWFUNCTIONS: list[tuple[str, tuple[float, ...]]] = [
    ("tan", (0.4,)), ("asin", (0.3,)), ("acos", (0.3,)), ("atan", (1.7,)), ("atan2", (0.4, -0.7)), ("sinh", (0.8,)),
    ("cosh", (0.8,)), ("asinh", (0.8,)), ("acosh", (1.8,)), ("atanh", (0.3,)), ("pow", (1.3, 2.7)), ("log2", (1.3,)),
    ("log10", (1.3,)), ("erf", (0.6,)), ("hypot", (0.6, 1.1)), ("floor", (1.6,)), ("ceil", (1.6,)), ("trunc", (1.6,)),
    ("round", (1.6,)), ("sign", (1.6,)), ("heaviside", (1.6, 0.5)), ("clip", (0.4, 0.0, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "at"), NEWFUNCTIONS)
def test_derivatives_of_elementary_functions(name: str, at: tuple[float, ...]) -> None:
    """Against central differences, by each argument; also of the function as seen from another cell."""
    function = getattr(elementary, name)

    def values(x, new):  # type: ignore[no-untyped-def]
        new[0] = function(*(x[k] for k in range(len(at))))

    def slopes(number, x, new):  # type: ignore[no-untyped-def]
        moved_there = shifted(function(*(x[k - 1] for k in range(len(at)))), (1,), [(0,), (0,)])
        new[0] = mg.derivative(moved_there, x[number])

    def run(kernel, arguments):  # type: ignore[no-untyped-def]
        graph = Kernel(kernel).graph(infer_signature(1, [("f8", (0,))] * 2))
        result = np.zeros(1)
        evaluate(graph, ((0,), (1,)), [BoundArray(np.array(arguments), (0,)), BoundArray(result, (0,))])
        return float(result[0])

    for number in range(len(at)):
        step = 1e-6
        above, below = (tuple(v + s * (k == number) for k, v in enumerate(at)) for s in (step, -step))
        expected = (run(values, above) - run(values, below)) / (2 * step)

        def slope(x, new):  # type: ignore[no-untyped-def]
            slopes(number, x, new)

        assert run(slope, at) == pytest.approx(expected, rel=1e-8, abs=1e-9)
