"""The last vector of a row in kernels that update fields in place, for rows whose length is no multiple of a vector.

It overlaps the vector before it. Where a cell's old value is read and replaced, no cell may be computed after it was
stored. So the last vector is computed first and stored last. In small kernels, its results stay in registers meanwhile.
In others, printing the code of a vector twice would take time and registers: there, the loop over a row begins with the
last vector, keeps its results in a buffer, and goes on with the row's first vector.
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
        self._text, self._width, self._stores = text, width, stores
        self._buffers = [text.slot(f"[{width * itemsize(store.value.dtype)} x i8]") for store in stores]
        self._held = ""

    @contextmanager
    def loop(self, line: Line, begin: str, done: str, count: str) -> Iterator[None]:
        """Print a loop over the vectors of cells number `done` to `count` of a line; they fill at least one vector.

        Inside, `line.cell` is the first cell of the current vector, and `place` the address of its results.
        """
        text, width = self._text, self._width
        last = text.sub(count, width)
        overlaps = text.let(f"icmp ne i64 {text.let(f'and i64 {text.sub(count, done)}, {width - 1}')}, 0", "c")
        start = text.let(f"select i1 {overlaps}, i64 {text.sub(done, width)}, i64 {done}")
        stop = text.let(f"select i1 {overlaps}, i64 {last}, i64 {count}")
        with text.loop(start, stop, width) as turn:
            self._held = text.let(f"icmp slt i64 {turn}, {done}", "c")
            number = text.let(f"select i1 {self._held}, i64 {last}, i64 {turn}")
            line.cell = text.add(begin, number)
            yield
        with text.when(overlaps):
            line.cell = text.add(begin, last)
            for store, buffer in zip(self._stores, self._buffers, strict=True):
                size = itemsize(store.value.dtype)
                text.emit(
                    f"call void @llvm.memcpy.inline.p0.p0.i64(ptr align {size} {line.address(access_of(store))}, "
                    f"ptr align 64 {buffer}, i64 {width * size}, i1 false)"
                )

    def place(self, line: Line, number: int) -> str:
        """Return the address at which the current vector of store number `number` belongs."""
        own = line.address(access_of(self._stores[number]))
        return self._text.let(f"select i1 {self._held}, ptr {self._buffers[number]}, ptr {own}", "p")


def access_of(store: Store) -> Access:
    """Return the place that a store accesses."""
    return store.param, store.strides, store.offsets
