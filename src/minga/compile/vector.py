"""The cells of a line printed as vectors.

LLVM's own vectoriser gives only what is left: red-black kernels and stores with a stride. It splits reads with a stride
(from finer grids) into scalar loads, does not vectorise loops inside cells, and computes the remainder of a row, which
may be most of it, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

from minga.compile.ir import Body
from minga.compile.line import Access, Line, Offsets
from minga.compile.literal import memory_type
from minga.compile.operations import REGISTER
from minga.compile.repeats import PLACES, kept_bytes
from minga.compile.schedule import Schedule, is_number, is_small, iterates
from minga.compile.target import Target
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological
from minga.lang.loop import with_bodies
from minga.lang.types import DType, itemsize

LEAST: Final = 16
"""Bytes of the narrowest vectors."""
KEPT: Final = 24 << 10
"""Bytes that loops over repeated parts may keep, if they process several vectors together."""

ARITHMETIC: Final = 8
"""Operations for each read from which on a kernel has much arithmetic."""


def may_be_vectors(graph: KernelGraph, plan: Schedule) -> bool:
    """Return True if the cells of a line may be printed as vectors."""
    rows = plan.parallel and plan.step == 1 and plan.axes[-1] == graph.ndim - 1
    return rows and not is_number(graph) and not _strided(graph) & graph.written


def widths(graph: KernelGraph, plan: Schedule, lanes: int, repeated: Sequence[Node] | None = None) -> list[int]:
    """Return the numbers of cells to print as one vector, largest first; empty if LLVM vectorises the kernel.

    `lanes` is the width of the vectors in bytes. `repeated` are nodes with loops over repeated parts. Kernels without
    locals also have vectors for rows that are shorter; large kernels are spared the longer compilation.
    """
    if not may_be_vectors(graph, plan):
        return []
    inner = graph.ndim - 1
    accesses = [access for access in _accesses(graph) if inner in graph.params[access[0]].axes]
    if repeated is not None:
        return _widths_of_repeats(graph, lanes, kept_bytes(topological(repeated)))
    if iterates(graph):
        return _widths_of_loops(graph, lanes)
    types = {graph.params[number].dtype for number, _, _ in accesses} or {"f8"}
    size = max(map(itemsize, types))
    if not is_small(graph):
        return [max(2, lanes // size)]
    if types <= {"bool", "u1"}:
        return [width for width in (64, 32, 16) if width <= lanes]
    return [*dict.fromkeys((lanes // size, LEAST // size))]


def usual_lanes(graph: KernelGraph, target: Target) -> int:
    """Return the width in bytes of the vectors that are usually best for a kernel.

    Loads of neighbours are not aligned, and most of those of the widest vectors cross cache lines. Where such vectors
    are computed in halves, they are worth that only if there is much arithmetic besides: with locals, or with
    functions such as `exp`, which are half as fast again in the widest vectors (Zen 4).
    """
    few = len(graph.nodes()) < ARITHMETIC * sum(node.op == "read" for node in graph.nodes())
    plain = not graph.locals and not iterates(graph)
    return max(LEAST, target.lanes // 2) if target.halves and plain and few else target.lanes


def _widths_of_loops(graph: KernelGraph, lanes: int) -> list[int]:
    """Return widths of several vectors together for loops inside cells.

    The operations of one iteration wait for one another; those of other vectors are independent.
    """
    one = max(2, lanes // max(itemsize(node.dtype) for node in with_bodies(graph.nodes())))
    return [4 * one, one]


def _widths_of_repeats(graph: KernelGraph, lanes: int, kept: int) -> list[int]:
    """Return widths for loops over repeated parts: as many vectors together as leave what they keep in the L1 cache."""
    one = max(2, lanes // max(itemsize(node.dtype) for node in graph.nodes() if node.op != "index"))
    several = next((count for count in (8, 4, 2) if count * one * kept <= KEPT), 1)
    return [several * one, one] if several > 1 else [one]


def _strided(graph: KernelGraph) -> set[int]:
    """Return the numbers of the parameters that are accessed with a stride along the innermost axis."""
    inner = graph.ndim - 1
    accesses = [access for access in _accesses(graph) if inner in graph.params[access[0]].axes]
    return {number for number, strides, _ in accesses if strides[-1] > 1}


def _accesses(graph: KernelGraph) -> Iterator[Access]:
    for node in graph.nodes():
        if node.op == "read":
            yield cast(Access, node.data)
    for store in graph.stores:
        yield store.param, store.strides, store.offsets


class Lanes:
    """The `width` cells of a line that begin at its current cell, as vectors. The innermost axis is contiguous."""

    def __init__(self, line: Line, width: int) -> None:
        self.line = line
        self.text = line.text
        self.width = width

    def values(self, roots: Sequence[Node]) -> list[str]:
        """Return the vectors of several nodes."""
        return Body(self.text, self._leaf, self.width).all(roots)

    def _leaf(self, node: Node) -> str:
        line, register = self.line, REGISTER[node.dtype]
        if node.op == "index" and node.data == line.inner:
            counted = ", ".join(f"i64 {lane}" for lane in range(self.width))
            return self.text.let(f"add <{self.width} x i64> {self._splat('i64', line.leaf(node))}, <{counted}>")
        if node.op in ("scalar", "index") or line.is_invariant(node):
            return self._splat(register, line.leaf(node))
        if node.op in PLACES:
            return self.load(line.place(node), node.dtype)
        if node.op == "local":
            return self.load(line.local_address(*cast(tuple[int, Offsets], node.data)), node.dtype)
        access = cast(Access, node.data)
        return self._strided(line.address(access), node.dtype, access[1][-1])

    def _splat(self, kind: str, value: str) -> str:
        """Return a vector with the same value in all lanes."""
        return self.text.splat(kind, value, self.width)

    # Memory --------------------------------------------------------------------------------------------------------
    def load(self, pointer: str, dtype: DType) -> str:
        """Load neighbouring elements."""
        kind = f"<{self.width} x {memory_type(dtype)}>"
        return self._value(self.text.let(f"load {kind}, ptr {pointer}, align {itemsize(dtype)}", "l"), dtype)

    def _value(self, loaded: str, dtype: DType) -> str:
        if dtype != "bool":
            return loaded
        return self.text.let(f"trunc nuw <{self.width} x i8> {loaded} to <{self.width} x i1>", "b")

    def _strided(self, pointer: str, dtype: DType, stride: int) -> str:
        """Load every stride-th element, the first at `pointer`; no byte after the last element is touched."""
        if stride == 1:
            return self.load(pointer, dtype)
        of, width, align = memory_type(dtype), self.width, itemsize(dtype)
        kind = f"<{width} x {of}>"
        if stride == 2:
            # Two vectors are loaded: elements 0 .. width - 1, and width - 1 .. 2 width - 2.
            first = self.text.let(f"load {kind}, ptr {pointer}, align {align}", "l")
            behind = self.line.frame.element(pointer, dtype, str(width - 1))
            second = self.text.let(f"load {kind}, ptr {behind}, align {align}", "l")
            mask = ", ".join(f"i32 {place}" for place in (*range(0, width, 2), *range(width + 1, 2 * width, 2)))
            both = self.text.let(f"shufflevector {kind} {first}, {kind} {second}, <{width} x i32> <{mask}>")
            return self._value(both, dtype)
        result = "poison"
        for lane in range(width):
            place = self.line.frame.element(pointer, dtype, str(lane * stride))
            one = self.text.let(f"load {of}, ptr {place}, align {align}", "l")
            result = self.text.let(f"insertelement {kind} {result}, {of} {one}, i64 {lane}")
        return self._value(result, dtype)

    def store(self, pointer: str, value: str, dtype: DType, align: int, note: str = "") -> None:
        """Store neighbouring elements; `note` is metadata of the store."""
        if dtype == "bool":
            value = self.text.let(f"zext <{self.width} x i1> {value} to <{self.width} x i8>", "b")
        kind = f"<{self.width} x {memory_type(dtype)}>"
        self.text.emit(f"store {kind} {value}, ptr {pointer}, align {align}{note}")

    def _bytes(self, value: str, dtype: DType) -> str:
        if dtype != "bool":
            return value
        return self.text.let(f"zext <{self.width} x i1> {value} to <{self.width} x i8>", "b")
