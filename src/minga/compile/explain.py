"""Inspection of kernels: their reads and costs, their performance bound on this machine, and their generated code."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, overload

import numpy as np

from minga.compile.call import Call
from minga.compile.choices import all_choices
from minga.compile.llvm import compile_kernel, print_llvm
from minga.compile.numpy import BoundArray
from minga.errors import KernelError
from minga.lang import kernel as lang
from minga.lang.analysis import bytes_per_cell, flops, is_star, radius, reads
from minga.lang.cell import CellReader
from minga.lang.graph import KernelGraph, dump
from minga.lang.kernel import FieldType, ScalarType, Signature
from minga.lang.loop import with_bodies
from minga.lang.types import DType, as_dtype

Printer = Literal["llvm", "ptx", "numpy"]


class Kernel(lang.Kernel):
    """A kernel that can be inspected.

    Parameters
    ----------
    function
        A function of fields (positional parameters) and scalars (keyword-only parameters).
    order
        The order in which cells are computed, as for :func:`minga.kernel`.
    across
        ``"exact"`` or ``"block"``, as for :func:`minga.kernel`.
    name
        The name; by default that of the function.
    """

    def explain(self, dtype: object = "f8", ndim: int | None = None) -> str:
        """Describe the kernel's accesses, radius, flops and bytes per cell, and the resulting bound on one core here.

        For loops with this kernel that were tuned on this machine, the ways that were fastest follow.

        Parameters
        ----------
        dtype
            Cell type of the fields, if the kernel has not been applied yet or `ndim` is given.
        ndim
            Number of axes. By default, the kernel is described as it was applied last; if it has not been applied, in
            the smallest number of axes that it can be traced in.

        Returns
        -------
        str
            The description, on several lines.

        Raises
        ------
        KernelError
            If the kernel cannot be traced.
        """
        graph = self._typed(dtype, ndim)
        lines = [f"kernel {graph.name} in {graph.ndim} axes ({graph.where})"]
        width = max(len(p.name) for p in graph.params)
        for number, param in enumerate(graph.params):
            lines.append(f"  {param.name:<{width}}  {param.dtype}  {_access(graph, number)}")
        lines += [f"  {s.name:<{width}}  {s.dtype}  scalar" for s in graph.scalars]
        lines += [f"  {r.kind} -> {r.name}  {r.dtype}" for r in graph.reductions]
        if graph.locals:
            lines.append(f"  {len(graph.locals)} locals, kept in scratch a tile at a time")
        lines += _loops(graph)
        work, traffic = flops(graph), bytes_per_cell(graph)
        machine = measure_core("f4" if all(p.dtype != "f8" for p in graph.params) else "f8")
        by_memory, by_arithmetic = machine.bytes_per_second / max(1, traffic), machine.flops_per_second / max(1, work)
        limit, what = min((by_memory, "memory"), (by_arithmetic, "arithmetic"))
        lines.append(f"  {work} flops and {traffic} bytes per cell: {work / max(1, traffic):.2f} flops per byte")
        lines.append(
            f"  bound on this core: {limit / 1e6:.0f} Mcells/s, by {what} "
            f"({machine.bytes_per_second / 1e9:.1f} GB/s, {machine.flops_per_second / 1e9:.1f} Gflop/s measured)"
        )
        lines += [f"  tuned: {choice}" for choice in all_choices() if graph.code_digest() in choice.kernels]
        return "\n".join(lines)

    def source(self, printer: Printer = "llvm", dtype: object = "f8", ndim: int | None = None) -> str:
        """Return the kernel as LLVM IR, as PTX, or as the graph that the NumPy evaluator uses, one operation per line.

        Parameters
        ----------
        printer
            "llvm", "ptx" or "numpy".
        dtype, ndim
            Cell type and number of axes, as in `explain`.

        Returns
        -------
        str
            The source text.

        Raises
        ------
        KernelError
            If there is no such printer, or the kernel cannot be traced.
        """
        graph = self._typed(dtype, ndim)
        if printer == "llvm":
            return print_llvm(graph)
        if printer == "ptx":
            from minga.compile.ptx import print_ptx

            return print_ptx(graph)
        if printer == "numpy":
            return dump(graph)
        raise KernelError(
            f"kernel {self.name!r}: no printer {printer!r}", where=self.where, remedy='use "llvm", "ptx" or "numpy"'
        )

    def _typed(self, dtype: object, ndim: int | None) -> KernelGraph:
        if self._graphs and ndim is None:
            return list(self._graphs.values())[-1]
        kind = as_dtype(dtype)
        scalars = tuple((name, ScalarType("f8", True)) for name in self.scalars)
        mistakes = []
        for axes in [ndim] if ndim is not None else [1, 2, 3, 4]:
            fields = tuple(FieldType(kind, tuple(range(axes))) for _ in self.fields)
            try:
                return lang.trace_kernel(self, Signature(axes, fields, scalars))
            except KernelError as error:
                mistakes.append(error)
        wrong_count = [m for m in mistakes if "offsets;" not in m.message and "offset;" not in m.message]
        raise (wrong_count or mistakes)[0]


@overload
def kernel(function: Callable[..., object]) -> Kernel: ...
@overload
def kernel(
    *,
    order: Mapping[str | int, int] | Literal["lexicographic", "boundary-first", "red-black"] | None = None,
    across: Literal["exact", "block"] = "exact",
) -> Callable[[Callable[..., object]], Kernel]: ...
def kernel(
    function: Callable[..., object] | None = None,
    *,
    order: Mapping[str | int, int] | Literal["lexicographic", "boundary-first", "red-black"] | None = None,
    across: Literal["exact", "block"] = "exact",
) -> Kernel | Callable[[Callable[..., object]], Kernel]:
    """Make a kernel from a function of fields (positional parameters) and scalars (keyword-only parameters).

    Parameters
    ----------
    function
        Describes the update of one cell; it is run once with symbols for fields and scalars.
    order
        The order of updates:

        - None: all cells at once; reads see the old values.
        - {"x": +1}: a sweep along x, in place.
        - "lexicographic": every axis ascending, in place.
        - "red-black": even cells, then odd cells, in place.
        - "boundary-first" (with across="block"): first the cells that other blocks read, then the rest, both in
          lexicographic order, in place.
    across
        For ordered kernels: "exact" gives the bits of a single process; "block" lets each block use old halos.

    Returns
    -------
    Kernel or callable
        The kernel or, if `function` is not given, a decorator that makes one.

    Raises
    ------
    KernelError
        If the function has no fields or variadic parameters, or `across` is invalid.
    """
    if function is None:
        return lambda f: Kernel(f, order=order, across=across)
    return Kernel(function, order=order, across=across)


def _loops(graph: KernelGraph) -> list[str]:
    found = [node.data for node in with_bodies(graph.nodes()) if node.op == "iterate"]
    return [
        f"  a loop inside the cell, counted as {loop.expected} of at most {loop.limit} iterations" for loop in found
    ]


def _access(graph: KernelGraph, number: int) -> str:
    parts = []
    if number in reads(graph):
        reach = radius(graph)[number]
        width = " x ".join(f"-{a}..+{b}" for a, b in zip(reach.low, reach.high, strict=True))
        shape = "the cell itself" if reach.zero else f"{'star' if is_star(graph, number) else 'box'} {width}"
        parts.append(f"reads {shape}")
    if number in graph.written:
        parts.append("stores")
    return ", ".join(parts) or "unused"


@dataclass(frozen=True, slots=True)
class Core:
    """Measured limits of one core."""

    bytes_per_second: float
    flops_per_second: float


_CHAIN: Final = 64


@functools.cache
def measure_core(dtype: DType = "f8") -> Core:
    """Measure memory bandwidth (a copy: bytes read, allocated and written) and arithmetic in cache, in about 0.2 s."""
    source, target = np.ones(1 << 22), np.zeros(1 << 22)
    moved = 3 * source.nbytes / _fastest(lambda: np.copyto(target, source))

    def polynomial(u: CellReader, new: CellReader) -> None:
        # Eight independent chains, so that throughput is measured and not latency.
        values = [u[0] + number for number in range(8)]
        for _ in range(_CHAIN // 16):
            values = [value * u[0] + 1.0 for value in values]
        for number, value in enumerate(values[1:]):
            values[0] = values[0] + value if number % 2 else values[0] * value
        new[0] = values[0]

    kind = FieldType(dtype, (0,))
    graph = lang.trace_kernel(lang.Kernel(polynomial), Signature(1, (kind, kind)))
    cells = 1 << 11
    arrays = [BoundArray(np.zeros(cells, dtype), (0,)) for _ in range(2)]
    call = Call(compile_kernel(graph), ((0,), (cells,)), arrays)
    return Core(moved, _CHAIN * cells / _fastest(call.run, 50))


def _fastest(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
