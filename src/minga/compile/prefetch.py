"""Fetching early what a kernel will read.

Processors fetch ahead along addresses, but start anew at each page and each row. Told in time, they need not wait:
Jacobi sweeps over boxes larger than the caches became 1.4 times as fast. Kernels with locals walk through many short
rows, and wait even for the third cache: waves became 1.1 times as fast out of it, 1.5 times in it. Others gained
nothing, so they are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from minga.compile.frame import Frame
from minga.compile.line import Access, Line
from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.types import itemsize

AHEAD: Final = 8192
"""Bytes ahead along a row: two pages."""


def exceeds(frame: Frame, cache: int) -> str:
    """Whether (an i1) all that the kernel touches in its box, tiles together, is more than `cache` bytes."""
    text, graph, words = frame.text, frame.graph, frame.words
    size = str(sum(itemsize(param.dtype) for param in graph.params if len(param.axes) == graph.ndim))
    for axis in range(graph.ndim):
        size = text.mul(text.sub(frame.argument(words.hi + axis), frame.argument(words.lo + axis)), size)
    return text.let(f"icmp sgt i64 {size}, {cache}")


def leading_reads(frame: Frame, roots: Sequence[Node]) -> list[Access]:
    """Of each field with all axes, the read that is the first to touch new memory as loops go up."""
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
    """Fetch what cells of the same line will read AHEAD bytes later."""
    for access in reads:
        pointer = line.text.let(f"getelementptr i8, ptr {line.address(access)}, i64 {AHEAD}", "p")
        _fetch(line, pointer)


def edge_reads(frame: Frame, roots: Sequence[Node]) -> list[Access]:
    """Of each field with all axes, the first and the last row read in the plane that is new as loops go up."""
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
    """Fetching, while the cells of a line are computed, what the same line some planes later will be the first to read.

    Where nothing else is between the planes of a march, this is early enough for memory, and late enough for the first
    two caches to keep it.
    """

    def __init__(self, line: Line, reads: Sequence[Access], planes: int) -> None:
        self._line, self._reads = line, reads
        frame = line.frame
        sizes = [planes * strides[0] * itemsize(frame.graph.params[number].dtype) for number, strides, _ in reads]
        strides = [frame.stride[number][0] for number, _, _ in reads]
        self._steps = [line.text.mul(stride, size) for stride, size in zip(strides, sizes, strict=True)]

    def fetch(self) -> None:
        """What belongs to the line's current cell."""
        for access, step in zip(self._reads, self._steps, strict=True):
            pointer = self._line.address(access)
            _fetch(self._line, self._line.text.let(f"getelementptr i8, ptr {pointer}, i64 {step}", "p"), near=True)


def _fetch(line: Line, pointer: str, *, near: bool = False) -> None:
    """Into the second cache, or (near) into the first; addresses outside of memory do no harm."""
    line.text.emit(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {3 if near else 2}, i32 1)")
