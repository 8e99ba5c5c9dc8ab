"""The last vector of a row in kernels that update fields in place, for rows whose length is no multiple of a vector.

It overlaps the vector before it. Where a cell's old value is read and replaced, no cell may be computed after it was
stored. So the loop over a row begins with the last vector, keeps its results in a buffer, and goes on with the row's
first vector; the buffer is stored at the end. The loop's body is printed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from minga.compile.line import Access, Line
from minga.compile.text import Text
from minga.lang.graph import Store
from minga.lang.types import itemsize


class Held:
    """Buffers for the results of one vector of `width` cells, one for each store of a kernel."""

    def __init__(self, text: Text, stores: Sequence[Store], width: int) -> None:
        self._text, self._width = text, width
        self._stores = stores
        self._buffers = [text.slot(f"[{width * itemsize(store.value.dtype)} x i8]") for store in stores]
        self._first = ""

    @contextmanager
    def loop(self, line: Line, begin: str, count: str, done: str) -> Iterator[None]:
        """Print a loop over the vectors of cells number `done` to `count` of a line, if they fill one vector.

        Inside, `line.cell` is the first cell of the current vector, and `place` the address of its results.
        """
        text, width = self._text, self._width
        last = text.sub(count, width)
        some = text.let(f"icmp sle i64 {done}, {last}", "c")
        start = text.let(f"select i1 {some}, i64 {text.sub(done, width)}, i64 {count}")
        with text.loop(start, last, width) as turn:
            self._first = text.let(f"icmp slt i64 {turn}, {done}", "c")
            number = text.let(f"select i1 {self._first}, i64 {last}, i64 {turn}")
            line.cell = text.add(begin, number)
            yield
        with text.when(some):
            line.cell = text.add(begin, last)
            for store, buffer in zip(self._stores, self._buffers, strict=True):
                size = itemsize(store.value.dtype)
                self._text.emit(
                    f"call void @llvm.memcpy.inline.p0.p0.i64(ptr align {size} {line.address(access(store))}, "
                    f"ptr align 64 {buffer}, i64 {width * size}, i1 false)"
                )

    def place(self, line: Line, number: int) -> str:
        """Return the address at which the current vector of store number `number` belongs."""
        own = line.address(access(self._stores[number]))
        return self._text.let(f"select i1 {self._first}, ptr {self._buffers[number]}, ptr {own}", "p")


def access(store: Store) -> Access:
    """Return the place that a store accesses."""
    return store.param, store.strides, store.offsets
