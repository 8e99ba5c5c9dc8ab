"""The cells of one innermost loop: the addresses at which their values are read and stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from minga.compile.frame import Frame
from minga.compile.repeats import LOOPS, PLACES, groups_of_fields
from minga.compile.scratch import Scratch
from minga.lang.expr import Node

Offsets = tuple[int, ...]
Access = tuple[int, Offsets, Offsets]
"""Parameter number, strides and offsets of a read or store."""


class Line:
    """Rows of fields and locals as pointers, computed before the loop, and the values of the loop's current cell.

    outer  registers of the iteration indices of all axes but `inner`
    cell   register of the current iteration index along `inner`
    note   metadata of the loop's memory accesses
    """

    def __init__(self, frame: Frame, inner: int, outer: dict[int, str], scratch: Scratch) -> None:
        self.frame = frame
        self.text = frame.text
        self.inner = inner
        self.outer = outer
        self.scratch = scratch
        self.cell = ""
        self.note = ""
        self._rows: dict[Access, str] = {}
        self._local_rows: dict[tuple[int, Offsets], str] = {}
        self._invariant: dict[int, str] = {}
        self._lists: dict[tuple[int, ...], str] = {}

    def prepare(self, nodes: Iterable[Node], stores: Iterable[Access]) -> None:
        """Print everything that the cells of the line share."""
        for node in nodes:
            if node.op == "read":
                access = cast(Access, node.data)
                row = self._row(access)
                if self.inner not in self.frame.graph.params[access[0]].axes:
                    self._invariant[id(node)] = self.frame.load(row, node.dtype)
            elif node.op == "local":
                self.local_row(*cast(tuple[int, Offsets], node.data))
            elif node.op in LOOPS:
                self._prepare_places(node)
        for access in stores:
            self._row(access)

    def _prepare_places(self, node: Node) -> None:
        for fields in groups_of_fields(node):
            if len(fields) > 1:
                self._list(fields)
            for number in fields:
                self._row((number, (1,) * self.frame.ndim, (0,) * self.frame.ndim))

    def _row(self, access: Access) -> str:
        """Return the address of the field's element on this line with inner index 0 and inner offset 0."""
        number, strides, offsets = access
        param = self.frame.graph.params[number]
        key = (number, strides, tuple(0 if a == self.inner else o for a, o in zip(param.axes, offsets, strict=True)))
        if key not in self._rows:
            text, index = self.text, "0"
            for axis, stride, offset in zip(param.axes, strides, offsets, strict=True):
                if axis != self.inner:
                    place = text.add(text.mul(self.outer[axis], stride), offset)
                    index = text.add(text.mul(place, self.frame.stride[number][axis]), index)
            self._rows[key] = self._opaque(self.frame.element(self.frame.base[number], param.dtype, index))
        return self._rows[key]

    def _opaque(self, pointer: str) -> str:
        """Hide the computation of a pointer from loop strength reduction.

        That pass would try all ways of sharing parts of the rows' addresses, which takes seconds if there are many
        rows, and would find worse code. The intrinsic costs no instruction.
        """
        return self.text.let(f"call ptr @llvm.strip.invariant.group.p0(ptr {pointer})", "r")

    def address(self, access: Access) -> str:
        """Return the address of the element that the current cell accesses."""
        number, strides, offsets = access
        param, text = self.frame.graph.params[number], self.text
        k = param.axes.index(self.inner)
        place = text.add(text.mul(self.cell, strides[k]), offsets[k])
        index = text.mul(place, self.frame.stride[number][self.inner])
        return self.frame.element(self._row(access), param.dtype, index)

    def _list(self, fields: tuple[int, ...]) -> str:
        """Return the address of a list of where the rows of fields begin, each with the field's strides."""
        if fields not in self._lists:
            text, ndim = self.text, self.frame.ndim
            rows = [self._row((number, (1,) * ndim, (0,) * ndim)) for number in fields]
            self._lists[fields] = text.slot(f"[{len(rows) * (ndim + 1)} x i64]")
            for k, (number, row) in enumerate(zip(fields, rows, strict=True)):
                text.emit(f"store ptr {row}, ptr {text.word(self._lists[fields], k * (ndim + 1))}, align 8")
                for axis, stride in self.frame.stride[number].items():
                    word = text.word(self._lists[fields], k * (ndim + 1) + 1 + axis)
                    text.emit(f"store i64 {stride}, ptr {word}, align 8")
        return self._lists[fields]

    def place(self, node: Node) -> str:
        """Return the address of a cell in a loop over repeated parts (see repeats.py)."""
        fields, which, offsets = cast(tuple[tuple[int, ...], str, tuple[str, ...]], node.data)
        text, ndim = self.text, self.frame.ndim
        if len(fields) == 1:
            row, strides = self._row((fields[0], (1,) * ndim, (0,) * ndim)), self.frame.stride[fields[0]]
        else:
            entry = text.word(self._list(fields), text.mul(which, ndim + 1))
            row = text.load_pointer(entry, 0)
            strides = {axis: text.load_word(entry, 1 + axis) for axis in range(ndim)}
        index = "0"
        for axis, offset in enumerate(offsets):
            place = text.sum(self.cell, offset) if axis == self.inner else offset
            index = text.sum(index, text.mul(strides[axis], place))
        return self.frame.element(row, node.dtype, index)

    def local_row(self, number: int, offsets: Offsets) -> str:
        """Return the address of the local's value on this line with inner index 0."""
        key = (number, offsets[:-1])
        if key not in self._local_rows:
            place = [self.text.add(self.outer[axis], offset) for axis, offset in enumerate(offsets[:-1])]
            self._local_rows[key] = self._opaque(self.scratch.row(number, place))
        return self._local_rows[key]

    def local_address(self, number: int, offsets: Offsets) -> str:
        """Return the address of the local's value that the current cell accesses."""
        row, place = self.local_row(number, offsets), self.text.add(self.cell, offsets[-1])
        return self.frame.element(row, self.frame.graph.locals[number].dtype, place)

    def is_invariant(self, node: Node) -> bool:
        """Return True if a read has the same value for all cells of the line."""
        return id(node) in self._invariant

    def leaf(self, node: Node) -> str:
        """Return the value of a read, local, index or scalar for the current cell."""
        if node.op == "scalar":
            return self.frame.scalars[str(node.data)]
        if node.op == "index":
            axis = cast(int, node.data)
            return self.text.add(self.cell if axis == self.inner else self.outer[axis], self.frame.shift[axis])
        if node.op in PLACES:
            return self.frame.load(self.place(node), node.dtype, self.note)
        if node.op == "local":
            return self.frame.load(self.local_address(*cast(tuple[int, Offsets], node.data)), node.dtype, self.note)
        if id(node) in self._invariant:
            return self._invariant[id(node)]
        return self.frame.load(self.address(cast(Access, node.data)), node.dtype, self.note)
