"""Kernels of every kind that a GPU must run, with data to run them on, and the words that bind data to a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from minga.compile.abi import WORKER_WORDS, offsets
from minga.compile.exact import Words, empty_accumulator
from minga.compile.numpy import BoundArray, evaluate
from minga.lang import functions as mg
from minga.lang import math
from minga.lang.cell import local
from minga.lang.expr import bitcast, cast, fused_multiply_add
from minga.lang.graph import KernelGraph
from minga.lang.iterate import iterate
from minga.lang.kernel import Kernel, ScalarType, Signature, infer_signature
from minga.lang.random import random, random_bits
from minga.lang.types import DTYPES, integer_range, is_float

Index = tuple[int, ...]
MARGIN = {1: 9, 2: 9, 3: 9, 4: 2}
"""Cells around the box (more than any kernel here reads), by axes."""


@dataclass(frozen=True)
class Case:
    """A kernel and where it is applied; its arrays are filled at random."""

    name: str
    graph: KernelGraph
    lo: Index
    hi: Index
    shift: Index
    scalars: Mapping[str, object] = field(default_factory=dict)
    colour: int = 0

    @property
    def extent(self) -> Index:
        return tuple(b + 70 for b in self.hi)

    def arrays(self, seed: int = 1) -> list[BoundArray]:
        """New arrays with the same random values each time; rows are padded."""
        numbers = np.random.default_rng(seed)
        return [self._array(number, numbers) for number in range(len(self.graph.params))]

    def _array(self, number: int, numbers: np.random.Generator) -> BoundArray:
        param = self.graph.params[number]
        stride = 3 if "coarse" in self.name else 1
        margin = MARGIN[self.graph.ndim]
        lo = tuple(stride * self.lo[a] - margin for a in param.axes)
        shape = tuple(stride * (self.hi[a] - self.lo[a]) + 2 * margin for a in param.axes)
        padded = (*shape[:-1], shape[-1] + 5)
        return BoundArray(some_values(param.dtype, padded, numbers)[..., : shape[-1]], lo)

    def expected(self, graph: KernelGraph | None = None) -> tuple[list[BoundArray], dict[str, Words]]:
        """What the oracle makes of it."""
        arrays = self.arrays()
        words = evaluate(
            graph or self.graph, (self.lo, self.hi), arrays, self.scalars,
            shift=self.shift, extent=self.extent, colour=self.colour,
        )  # fmt: skip
        return arrays, words


def some_values(dtype: str, shape: Index, numbers: np.random.Generator) -> np.ndarray:
    """Ordinary values, and some extreme ones."""
    if dtype == "bool":
        return numbers.random(shape) < 0.4
    if is_float(dtype):
        values = (numbers.standard_normal(shape) * 2.0 ** numbers.integers(-8, 8, shape)).astype(dtype)
        info = np.finfo(dtype)
        special = [0.0, -0.0, 1.0, info.max, -info.max, info.tiny, -info.smallest_subnormal, np.inf, -np.inf, np.nan]
    else:
        low, high = integer_range(dtype)
        values = numbers.integers(max(low, -99), min(high, 99), shape, dtype=dtype, endpoint=True)
        special = [low, high, 0, 1, high - 1, low + 1]
    chosen = numbers.random(shape) < 0.03
    values[chosen] = numbers.choice(np.array(special, dtype), shape)[chosen]
    return values


# Binding -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Bound:
    """Addresses on a device: the kernel's two parameters, and where results come to lie."""

    args: int
    worker: int
    arrays: list[int]
    accumulators: dict[str, int]


def bind(case: Case, arrays: list[BoundArray], graph: KernelGraph, put: Callable[[np.ndarray], int]) -> Bound:
    """The words of compile/abi.py in the memory of a device; `put` copies an array there and gives its address."""
    words, n = offsets(graph), graph.ndim
    args = np.zeros(words.words, np.int64)
    boxes = {words.lo: case.lo, words.hi: case.hi, words.shift: case.shift, words.extent: case.extent}
    for word, values in boxes.items():
        args[word : word + n] = values
    args[words.colour] = case.colour
    addresses = []
    for word, bound in zip(words.fields, arrays, strict=True):
        assert bound.array.base is not None
        strides = [s // bound.array.itemsize for s in bound.array.strides]
        addresses.append(put(bound.array.base))
        args[word] = put(np.array([addresses[-1]], np.int64))
        args[word + 1] = -sum(o * s for o, s in zip(bound.origin, strides, strict=True))
        args[word + 2 : word + 2 + len(strides)] = strides
    for word, scalar in zip(words.scalars, graph.scalars, strict=True):
        memory = np.full(8, 0xEE, np.uint8)
        value = np.asarray(case.scalars[scalar.name]).astype(scalar.dtype)
        memory[: value.itemsize] = np.frombuffer(value.tobytes(), np.uint8)
        args[word] = put(memory)
    # Worker 1 is used, so that a kernel that forgets the worker's number hits the canary before it.
    accumulators = {}
    for word, item in zip(words.reductions, graph.reductions, strict=True):
        empty = empty_accumulator(item.kind)
        args[word] = put(np.concatenate([np.full_like(empty, 7), empty]))
        accumulators[item.name] = int(args[word])
    worker = np.zeros(WORKER_WORDS, np.int64)
    worker[0] = 1
    return Bound(put(args), put(worker), addresses, accumulators)


def check(case: Case, bound: Bound, arrays: list[BoundArray], get: Callable[[int, np.ndarray], np.ndarray]) -> None:
    """What a device left is what the oracle makes, to the bit (any NaN is equal to any other)."""
    expected, words = case.expected()
    for address, before, after in zip(bound.arrays, arrays, expected, strict=True):
        assert before.array.base is not None
        got = get(address, before.array.base)[..., : before.array.shape[-1]]
        np.testing.assert_array_equal(canonical(got), canonical(after.array), err_msg=case.name)
    for item in case.graph.reductions:
        two = get(bound.accumulators[item.name], np.zeros((2, words[item.name].size), np.int64))
        assert (two[0] == 7).all()
        np.testing.assert_array_equal(limbs(item.kind, two[1]), limbs(item.kind, words[item.name]), err_msg=case.name)


def canonical(values: np.ndarray) -> np.ndarray:
    """The bits, with one kind of NaN only."""
    if values.dtype.kind != "f":
        return values
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"u{values.itemsize}")


def limbs(kind: str, words: Words) -> list[int]:
    """Words that may be compared: of limbs only the number that they spell is fixed."""
    if kind != "sum" or not words[1:].any():
        return words.tolist()
    return [sum(int(w) << (32 * k) for k, w in enumerate(words[:68].tolist())), *words[68:].tolist()]


# Kernels -------------------------------------------------------------------------------------------------------------
def graph_of(
    function: Callable[..., object], *fields: object, ndim: int, scalars: object = (), **options: object
) -> KernelGraph:
    kinds = [(f, range(ndim)) if isinstance(f, str) else f for f in fields]
    signature = Signature(ndim, infer_signature(ndim, kinds).fields, tuple(scalars))  # type: ignore[arg-type]
    return Kernel(function, **options).graph(signature)  # type: ignore[arg-type]


_BOXES = {1: ((-5,), (190,)), 2: ((3, -7), (8, 140)), 3: ((2, -3, 5), (5, 3, 76)), 4: ((0, 2, 1, -3), (2, 4, 4, 67))}
_SHIFTS = (0, 5, -2, 3)


def case(name: str, function: Callable[..., object], *fields: object, ndim: int, colour: int = 0,
         scalars: Mapping[str, object] | None = None, **options: object) -> Case:  # fmt: skip
    scalars = dict(scalars or {})
    kinds = [(key, ScalarType(np.asarray(value).dtype.str[1:], False)) for key, value in scalars.items()]  # type: ignore[arg-type]
    graph = graph_of(function, *fields, ndim=ndim, scalars=kinds, **options)
    lo, hi = _BOXES[ndim]
    engine = {"@seed": np.uint64(0x0123456789ABCDEF), "@step": np.uint64((1 << 33) + 5)}
    engine |= {f"@extent{axis}": np.uint32(b + 70) for axis, b in enumerate(hi)}
    scalars |= {item.name: engine[item.name] for item in graph.scalars if item.name in engine}
    return Case(name, graph, lo, hi, _SHIFTS[:ndim][::-1], scalars, colour)


def jacobi(u, f, new, *, h2):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - h2 * f[0, 0])


def heat(u, new):
    new[0, 0, 0] = u[0, 0, 0] + 0.1 * (
        u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1] - 6.0 * u[0, 0, 0]
    )


def life(cell, new):
    around = sum(cast(cell[i, j], "u1") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = (around == 3) | ((around == 2) & cell[0, 0])


def four_axes(u, v, new):
    new[0, 0, 0, 0] = u[1, 0, -1, 0] - v[0] * u[0, 0, 0, 1] + mg.index(0)


def axes_missing(row, column, new):
    new[0, 0] = row[0] * 100 + column[1] + 1000 * mg.index(0) + mg.index(1)


def random_numbers(a, b, c):
    a[0, 0] = random()
    b[0, 0] = random("f4") + random("f4")
    c[0, 0] = random_bits()


def elementary(u, a):
    x = u[0]
    a[0] = (
        math.exp(x)
        + math.log(x) * math.sin(x)
        - math.cos(x)
        + math.tanh(x)
        + math.expm1(x)
        - math.log1p(x) * math.cbrt(x)
    )


FIRST = (0.8, -0.2, 0.038095238, -0.0035714286)
SECOND = (-2.8472223, 1.6, -0.2, 0.025396826, -0.0017857143)


def tti(p, q, old_p, old_q, coefficients, vpx2, vpz2, vsz2, vpn2, *, dt2):
    """A step of the Fletcher model (eighth order, tilted anisotropy), mixed derivatives factorised through locals."""

    def along(axis, k):
        return tuple(k if d == axis else 0 for d in range(3))

    def first(u, axis):
        return sum(w * (u[along(axis, k)] - u[along(axis, -k)]) for k, w in enumerate(FIRST, 1))

    def second(u, axis):
        far = sum(w * (u[along(axis, k)] + u[along(axis, -k)]) for k, w in enumerate(SECOND[1:], 1))
        return far + SECOND[0] * u[0, 0, 0]

    def tilted(u):
        by_x, by_y = local(first(u, 2)), local(first(u, 1))
        straight = [second(u, axis) for axis in (2, 1, 0)]
        mixed = [first(by_y, 2), first(by_y, 0), first(by_x, 0)]
        h1 = sum(c[0, 0, 0] * d for c, d in zip(coefficients, straight + mixed, strict=True))
        return h1, sum(straight) - h1

    here = (0, 0, 0)
    (h1p, h2p), (h1q, h2q) = tilted(p), tilted(q)
    new_p = vpx2[here] * h2p + vpz2[here] * h1q + vsz2[here] * (h1p - h1q)
    new_q = vpn2[here] * h2p + vpz2[here] * h1q - vsz2[here] * (h2p - h2q)
    old_p[here] = 2.0 * p[here] - old_p[here] + dt2 * new_p
    old_q[here] = 2.0 * q[here] - old_q[here] + dt2 * new_q


def diffusion(u, k, new):
    """A local of a local: fluxes of a gradient that is limited."""
    slope = local(u[0, 1] - u[0, -1])
    flux = local(k[0, 0] * slope[0, 0] * mg.min(1.0, abs(slope[0, 1])))
    new[0, 0] = u[0, 0] + flux[0, 1] - flux[0, -1]


def local_chain(u, new):
    g = local(u[1, 0] - u[-1, 0] + 3)
    h = local(g[0, 1] * g[0, -1])
    new[0, 0] = h[1, -1] + h[0, 0] + mg.index(0)
    return {"sum": mg.sum(h[0, 0]), "largest": mg.max(g[0, 0])}


def restrict(fine, coarse):
    f = fine.strided(2)
    coarse[0, 0] = f[0, 0] + f[0, 1] * 2 - f[1, 0] + f[1, 1] * f[-1, -1]


def prolong(coarse, fine):
    f = fine.strided(2)
    for i, j in itertools.product((0, 1), (0, 1)):
        f[i, j] = coarse[0, 0] + i * coarse[1, 0] + j * coarse[0, 1]


def relax(u, f):
    new = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - f[0, 0])
    change = abs(new - u[0, 0])
    u[0, 0] = new
    return {"largest": mg.max(change), "total": mg.sum(change), "where": mg.argmax(change)}


def relax4(u):
    u[0, 0, 0, 0] = 0.5 * (u[-1, 0, 0, 0] + u[0, 0, 0, 1])


def sweep_y(u, f):
    u[0, 0] = f[0, 0] - 0.5 * u[-1, 0]
    return {"total": mg.sum(u[0, 0]), "where": mg.argmin(u[0, 0])}


def sweep_x_down(u, f):
    u[0, 0] = f[0, 0] - 0.5 * u[0, 1]
    return {"total": mg.sum(u[0, 0]), "least": mg.min(u[0, 0])}


def sweep_crossed(u):
    u[0, 0, 0] = u[0, 0, 0] + u[-1, 0, 1] - 0.25 * u[-1, 0, -1]


def sweep_two(u):
    u[0, 0, 0] = u[0, 0, 0] - 0.5 * u[0, 1, 0] + 0.25 * u[-1, 0, 0]
    return mg.sum(u[0, 0, 0])


def integers(a, b, out, more):
    x, y = a[0], b[0]
    out[0] = (x // y) ^ (x % y) + (x << y) - (x >> y) * mg.min(x, y)
    more[0] = ~mg.max(x, y) | (abs(x) & -y) + mg.where(x < y, x, y)


def floats(a, b, out, more):
    x, y = a[0], b[0]
    out[0] = mg.min(x, y) + mg.max(-x, y) / mg.sqrt(abs(y)) - fused_multiply_add(x, y, x) * mg.flush(x)
    more[0] = x // y + x % y


def extremes(a, b, low, high):
    low[0] = mg.min(a[0], b[0])
    high[0] = mg.max(a[0], b[0])


def bit_patterns(a, out):
    out[0] = bitcast(bitcast(a[0], "u8") ^ (1 << 40), "f8")


def tti_case() -> Case:
    """The seismic kernel, alone."""
    kinds = infer_signature(3, [("f4", range(3))] * 14).fields
    signature = Signature(3, (*kinds[:4], kinds[4:10], *kinds[10:]), (("dt2", ScalarType("f4", False)),))  # type: ignore[arg-type]
    return Case("tti", Kernel(tti).graph(signature), *_BOXES[3], (0, 0, 0), {"dt2": np.float32(0.01)})


def _casts(source: str) -> Case:
    targets = [t for t in DTYPES if t != source]

    def function(a, fields):
        for target, new in zip(targets, fields, strict=True):
            new[0] = cast(a[0], target)

    signature = infer_signature(1, [(source, (0,)), *((t, (0,)) for t in targets)])
    first, *others = signature.fields
    graph = Kernel(function, name=f"casts_{source}").graph(Signature(1, (first, tuple(others))))  # type: ignore[arg-type]
    return Case(f"casts of {source}", graph, *_BOXES[1], (0,))


def _reductions(dtype: str, ndim: int) -> Case:
    def reduce(u):
        x = u[(0,) * ndim]
        result = {"max": mg.max(x), "min": mg.min(x), "argmax": mg.argmax(x), "argmin": mg.argmin(x)}
        return {**result, "count": mg.count(x), "sum": mg.sum(x)}

    return case(f"reductions of {dtype} over {ndim} axes", reduce, dtype, ndim=ndim)


def tables(u, v, new, wide) -> None:  # type: ignore[no-untyped-def]
    """Entries of tables of several types, by indices inside and beyond; bits counted and reversed."""
    bytes_ = mg.lookup([3, 1, 4, 1, 5, 9, 2, 6], u[0, 0])
    floats = mg.lookup(np.array([0.5, -2.25, 1e30, -0.0]), v[0, -1])
    chosen = mg.lookup([True, False, True], bytes_ - 2)
    new[0, 0] = bytes_ + cast(chosen, "u1") + mg.popcount(u[1, 0]) + mg.bitreverse(u[0, 0])
    wide[0, 0] = floats + mg.popcount(v[0, 1]) + mg.bitreverse(v[0, 0]) + mg.lookup([-7, 70000, 2**40], v[0, 0])


def loops(u, new, rounds) -> None:  # type: ignore[no-untyped-def]
    """Newton's method in each cell, and in a local a loop whose body has another one."""

    def halves(state):
        x, n = state
        return iterate(x, lambda y: y > 100.0, lambda y: y * 0.125, 2).state - 3.0, n + 1

    slow = local(iterate((abs(u[0, 1]), cast(0, "i4")), lambda s: s[0] > 2.0, halves, 3).state[1])
    a, before = abs(u[0, 0]) + 0.25, new[0, 0]
    new[0, 0], done = iterate(
        0.5 * (a + u[1, 0] * u[1, 0]), lambda x: abs(x * x - a) > 1e-6 * a, lambda x: x - (x * x - a) / (x + x), 5
    )
    rounds[0, 0] = done + 10 * slow[1, 0] + 100 * slow[0, -1]
    return {"most": mg.max(done), "sum": mg.sum(before)}


def cases() -> list[Case]:
    """The whole suite."""
    f4, f8, quarter = "f4", "f8", {"h2": np.float64(0.0625)}
    found = [
        case("jacobi f8", jacobi, f8, f8, f8, ndim=2, scalars=quarter),
        case("jacobi f4", jacobi, f4, f4, f4, ndim=2, scalars={"h2": np.float32(0.0625)}),
        case("heat", heat, f8, f8, ndim=3),
        case("life", life, "bool", "bool", ndim=2),
        case("four axes", four_axes, "i4", ("i4", (2,)), "i8", ndim=4),
        case("axes missing", axes_missing, ("i8", (0,)), ("i4", (1,)), "i8", ndim=2),
        case("random", random_numbers, f8, f4, "u4", ndim=2),
        case("elementary f8", elementary, f8, f8, ndim=1),
        case("elementary f4", elementary, f4, f4, ndim=1),
        tti_case(),
        case("diffusion", diffusion, f4, f4, f4, ndim=2),
        case("local chain", local_chain, f8, f8, ndim=2),
        case("restrict coarse", restrict, f8, f8, ndim=2),
        case("prolong coarse", prolong, f4, f4, ndim=2),
        case("red", relax, f8, f8, ndim=2, order="red-black", colour=0),
        case("black", relax, f4, f4, ndim=2, order="red-black", colour=1),
        case("black of four axes", relax4, f8, ndim=4, order="red-black", colour=1),
        case("sweep over y", sweep_y, f8, f8, ndim=2, order={"y": 1}),
        case("sweep over x, downwards", sweep_x_down, f8, f8, ndim=2, order={"x": -1}),
        case("sweep that is crossed", sweep_crossed, f8, ndim=3, order={"z": 1}),
        case("sweep over two axes", sweep_two, f8, ndim=3, order={"z": 1, "y": -1}),
        case("sweep over y and x", sweep_x_down, f8, f8, ndim=2, order={"y": 1, "x": -1}),
        case("tables", tables, "u1", "i4", "u1", f8, ndim=2),
        case("loops f8", loops, f8, f8, "i4", ndim=2),
        case("bit patterns", bit_patterns, f8, f8, ndim=1),
    ]
    found += [case(f"integers {t}", integers, t, t, t, t, ndim=1) for t in DTYPES if t != "bool" and not is_float(t)]
    found += [case(f"floats {t}", floats, t, t, t, t, ndim=1) for t in (f4, f8)]
    found += [case(f"extremes of {t}", extremes, t, t, t, t, ndim=1) for t in DTYPES if t != "bool"]
    found += [_casts(t) for t in DTYPES]
    found += [_reductions(t, 2) for t in DTYPES] + [_reductions(f8, 1), _reductions("i4", 3), _reductions(f8, 4)]
    return found
