"""Prefetching of the data that a kernel will read.

Processors prefetch along addresses, but start again at each page and each row. With prefetch instructions, they need
not wait: Jacobi sweeps over boxes larger than the caches became 1.4 times as fast. Kernels with locals and those of
three axes walk through many short rows and wait even for the L3 cache: tilted waves became 1.1 times as fast out of
it, and 1.5 times in it; isotropic ones 1.4 to 1.7 times in both (Zen 4). Kernels of two axes that read a field into
which they store, so that their stores cannot bypass the caches, fetch their next rows, too: with five fields that
exceed an L2 cache of 2 MiB they became 1.2 times as fast (Sapphire Rapids). Others of two axes gained nothing, so they
have no prefetch instructions but where their stores bypass the caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from minga.compile.frame import Frame
from minga.compile.line import Access, Line
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological
from minga.lang.types import itemsize

AHEAD: Final = 8192
"""Prefetch distance along a row in bytes: two pages."""


def fetches_planes(graph: KernelGraph) -> bool:
    """Return True if the next planes of a kernel's fields are fetched ahead (`NextPlanes`)."""
    if graph.ndim != 2:
        return graph.ndim > 2
    read = {cast(Access, node.data)[0] for node in graph.nodes() if node.op == "read"}
    return bool(graph.locals or read & graph.written)


def exceeds(frame: Frame, cache: int) -> str:
    """Return an i1 that is true if the memory accessed in the whole box (all tiles) exceeds `cache` bytes."""
    text, graph, words = frame.text, frame.graph, frame.words
    size = str(sum(itemsize(param.dtype) for param in graph.params if len(param.axes) == graph.ndim))
    for axis in range(graph.ndim):
        size = text.mul(text.sub(frame.argument(words.hi + axis), frame.argument(words.lo + axis)), size)
    return text.let(f"icmp sgt i64 {size}, {cache}")


def leading_reads(frame: Frame, roots: Sequence[Node]) -> list[Access]:
    """Return, for each field with all axes, the read that is the first to touch new memory in ascending loops."""
    found: dict[int, Access] = {}
    for node in topological(roots):
        if node.op == "read":
            access = cast(Access, node.data)
            number, _, offsets = access
            whole = len(offsets) == frame.ndim
            if whole and (number not in found or offsets[:-1] > found[number][2][:-1]):
                found[number] = access
    return list(found.values())


def fetch_ahead(line: Line, reads: Sequence[Access]) -> None:
    """Prefetch the data that the same line will read AHEAD bytes later."""
    for access in reads:
        pointer = line.text.let(f"getelementptr i8, ptr {line.address(access)}, i64 {AHEAD}", "p")
        _fetch(line, pointer)


def edge_reads(frame: Frame, roots: Sequence[Node]) -> list[Access]:
    """Return, for each field with all axes, the first and last row read in the plane that is new in ascending loops."""
    found: dict[int, list[Access]] = {}
    for node in topological(roots):
        if node.op == "read":
            access = cast(Access, node.data)
            if len(access[2]) == frame.ndim:
                found.setdefault(access[0], []).append(access)
    edges: list[Access] = []
    for accesses in found.values():
        last = max(offsets[0] for _, _, offsets in accesses)
        rows = {access[2][1:-1]: access for access in accesses if access[2][0] == last}
        edges += [rows[row] for row in sorted({min(rows), max(rows)})]
    return edges


class NextPlanes:
    """Prefetching for the same line some planes later, while the cells of a line are computed.

    The prefetched data is what that line will be the first to read. If nothing else is done between the planes of a
    march, this is early enough for memory, and late enough for the first two caches to keep the data. `condition` is an
    i1, or empty for always.
    """

    def __init__(self, line: Line, reads: Sequence[Access], planes: int, condition: str) -> None:
        self._line, self._reads, self._condition = line, reads, condition
        frame = line.frame
        sizes = [planes * strides[0] * itemsize(frame.graph.params[number].dtype) for number, strides, _ in reads]
        strides = [frame.stride[number][0] for number, _, _ in reads]
        self._steps = [line.text.mul(stride, size) for stride, size in zip(strides, sizes, strict=True)]

    def fetch(self) -> None:
        """Prefetch the data that belongs to the line's current cell, if the condition holds."""
        if self._reads and self._condition:
            with self._line.text.when(self._condition):
                self._fetch()
        else:
            self._fetch()

    def _fetch(self) -> None:
        for access, step in zip(self._reads, self._steps, strict=True):
            pointer = self._line.address(access)
            _fetch(self._line, self._line.text.let(f"getelementptr i8, ptr {pointer}, i64 {step}", "p"), near=True)


def _fetch(line: Line, pointer: str, *, near: bool = False) -> None:
    """Prefetch into the L2 cache or, if `near`, into the L1 cache; invalid addresses do no harm."""
    line.text.emit(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {3 if near else 2}, i32 1)")
