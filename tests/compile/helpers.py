"""Kernels, arrays and comparisons that the tests of the compile layer share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile.alternative import USUAL, Alternative
from minga.compile.call import run_kernel
from minga.compile.exact import Words
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray, evaluate
from minga.compile.target import Target, baseline_target, host_target, v3_target
from minga.lang.graph import KernelGraph
from minga.lang.kernel import FieldType, Kernel, ScalarType, Signature
from minga.lang.types import DType, as_dtype

Index = tuple[int, ...]


def targets() -> list[Target]:
    """The host, and the named x86 levels that it can run; x86-64-v3 stores past the caches wherever a kernel may."""
    host = host_target()
    found = [host]
    if host.triple.startswith("x86_64"):
        found.append(baseline_target())
        if "+avx2" in host.features and host.fma:
            found.append(dataclasses.replace(v3_target(), cache=0))
    return found


def traced(
    kernel: Kernel,
    ndim: int,
    fields: Sequence[str | tuple[str, Index]],
    scalars: Mapping[str, str] | None = None,
) -> KernelGraph:
    """The kernel's graph for fields given by type, or by (type, axes), and strong scalars given by type."""
    kinds = []
    for item in fields:
        dtype, axes = (item, tuple(range(ndim))) if isinstance(item, str) else item
        kinds.append(FieldType(as_dtype(dtype), axes))
    types = tuple((name, ScalarType(as_dtype(dtype), False)) for name, dtype in (scalars or {}).items())
    return kernel.graph(Signature(ndim, tuple(kinds), types))


def random_array(random: np.random.Generator, dtype: DType, shape: Index) -> NDArray[Any]:
    """Values that meet the corners of a type: extremes, zeros of both signs, infinities, NaN, denormals."""
    kind = np.dtype(dtype)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if kind.kind == "f":
        info = np.finfo(kind)
        plain = (random.standard_normal(shape) * 10.0 ** random.integers(-3, 12, shape)).astype(kind)
        special = np.array(
            [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, 2e9, -1e19],
            kind,
        )
    else:
        limits = np.iinfo(kind)
        plain = random.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
        small = random.integers(0, 9, shape).astype(kind)
        plain = np.where(random.random(shape) < 0.5, small, plain)
        special = np.array([0, 1, limits.max, limits.min, limits.max - 1], kind)
    return np.where(random.random(shape) < 0.2, special[random.integers(0, len(special), shape)], plain).astype(kind)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with a box, arrays that hold all it touches, and the other arguments of a call."""

    graph: KernelGraph
    lo: Index
    hi: Index
    arrays: tuple[BoundArray, ...]
    scalars: Mapping[str, object]
    shift: Index
    extent: Index
    colour: int = 0

    def copies(self) -> list[BoundArray]:
        return [BoundArray(bound.array.copy(), bound.origin) for bound in self.arrays]


def reach(graph: KernelGraph) -> int:
    """More than any offset of the graph, locals included."""
    total = 1
    for node in graph.nodes():
        if node.op in ("read", "local"):
            total += max((abs(o) for o in node.data[-1]), default=0)
    return total


def make_case(graph: KernelGraph, shape: Index, *, seed: int = 0, colour: int = 0, shift: Index | None = None) -> Case:
    """Random arrays around the box lo .. lo + shape; lo and the arrays' origins are not zero."""
    random = np.random.default_rng(seed)
    margin = reach(graph)
    lo = tuple(3 - axis for axis in range(graph.ndim))
    hi = tuple(a + n for a, n in zip(lo, shape))
    strides = {number: (1,) * len(param.axes) for number, param in enumerate(graph.params)}
    for node in graph.nodes():
        if node.op == "read":
            number, given, _ = node.data
            strides[number] = tuple(map(max, strides[number], given))
    for store in graph.stores:
        strides[store.param] = tuple(map(max, strides[store.param], store.strides))
    arrays = []
    for number, param in enumerate(graph.params):
        origin, lengths = [], []
        for axis, stride in zip(param.axes, strides[number]):
            first = min(lo[axis], stride * lo[axis]) - margin * stride
            last = max(hi[axis], stride * hi[axis]) + margin * stride
            origin.append(first)
            lengths.append(last - first)
        arrays.append(BoundArray(random_array(random, param.dtype, tuple(lengths)), tuple(origin)))
    scalars = {s.name: random_array(random, s.dtype, (1,))[0] for s in graph.scalars}
    shift = shift or tuple(5 + 2 * axis for axis in range(graph.ndim))
    extent = tuple(h + s + 3 for h, s in zip(hi, shift))
    return Case(graph, lo, hi, tuple(arrays), scalars, shift, extent, colour)


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Equal to the bit; all NaNs are equal."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    unsigned = f"u{a.dtype.itemsize}"
    return bool(np.all((a.view(unsigned) == b.view(unsigned)) | (np.isnan(a) & np.isnan(b))))


def oracle(case: Case) -> tuple[list[BoundArray], dict[str, Words]]:
    arrays = case.copies()
    sums = evaluate(
        case.graph, (case.lo, case.hi), arrays, case.scalars, shift=case.shift, extent=case.extent, colour=case.colour
    )
    return arrays, sums


def compiled(
    case: Case, target: Target, tile: Index | None = None, way: Alternative = USUAL
) -> tuple[list[BoundArray], dict[str, Words]]:
    arrays = case.copies()
    kernel = compile_kernel(case.graph, target=target, way=way)
    sums = run_kernel(
        kernel, (case.lo, case.hi), arrays, case.scalars,
        shift=case.shift, extent=case.extent, colour=case.colour, tile=tile,
    )  # fmt: skip
    return arrays, sums


def assert_equal_bits(
    case: Case, *, tile: Index | None = None, on: Sequence[Target] | None = None, way: Alternative = USUAL
) -> None:
    """The compiled kernel leaves the arrays and accumulators that the oracle leaves, on each processor."""
    expected, expected_sums = oracle(case)
    for target in on or targets():
        found, sums = compiled(case, target, tile, way)
        for param, a, b in zip(case.graph.params, expected, found, strict=True):
            assert same_bits(a.array, b.array), _difference(param.name, target, a.array, b.array)
        for name, words in expected_sums.items():
            assert np.array_equal(words, sums[name]), f"{name} on {target.cpu}: {words[:3]} {sums[name][:3]}"


def _difference(name: str, target: Target, a: NDArray[Any], b: NDArray[Any]) -> str:
    places = np.argwhere(~((a == b) | ((a != a) & (b != b))))[:3]
    return f"{name} on {target.cpu}: " + "; ".join(f"{tuple(p)}: {a[tuple(p)]!r} != {b[tuple(p)]!r}" for p in places)
