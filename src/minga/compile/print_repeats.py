"""Loops over the repeated parts of a kernel (see `minga.compile.repeats`) as LLVM IR, for one cell or a vector."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.compile.literal import constant, memory_type
from minga.compile.repeats import Fold, Index, Kept, Outside, Place, Spread, Table, Term, fields_of
from minga.lang.expr import Node
from minga.lang.types import DType, itemsize

if TYPE_CHECKING:
    from minga.compile.ir import Body

__all__ = ["print_loop"]

_INDEX: Final[tuple[tuple[str, int], ...]] = (("i8", 1 << 7), ("i16", 1 << 15), ("i32", 1 << 31))
"""Types of the entries of tables of offsets, with the limits of their values."""
LINE: Final = 64
"""Alignment of values kept in memory, in bytes."""


def print_loop(body: Body, node: Node, args: Sequence[str]) -> str:
    """Print a fold, a spread, a gather or an element; return the register of its value, or the address of an array."""
    loops = _Loops(body, node, args)
    match node.op:
        case "fold":
            return loops.value(node.data, ())
        case "element":
            return loops.load(args[0], node.dtype, str(node.data))
        case "gather":
            array = loops.array(node.dtype, len(args))
            for number, value in enumerate(args):
                loops.store(array, value, node.dtype, str(number))
            return array
    spread: Spread = node.data
    array = loops.array(node.dtype, spread.turns)
    with body.text.loop("0", str(spread.turns)) as turn:
        loops.store(array, loops.value(spread.term, (turn,)), node.dtype, turn)
    return array


class _Loops:
    """Printer of the terms of one node. `args` are the registers of the node's arguments."""

    def __init__(self, body: Body, node: Node, args: Sequence[str]) -> None:
        self._body, self._text, self._node, self._args = body, body.text, node, args

    def value(self, term: Term, turns: tuple[str, ...]) -> str:
        """Return the register of a term in the given turns of the loops around it."""
        match term:
            case Outside():
                return self._args[term.number]
            case Table():
                return self._entry(term, turns)
            case Kept():
                return self.load(self._args[term.number], term.node.dtype, self._index(term.entries, turns))
            case Place():
                return self._read(term, turns)
            case Fold():
                return self._fold(term, turns)
        return self._body.operation(term.node, [self.value(arg, turns) for arg in term.args])

    def _read(self, place: Place, turns: tuple[str, ...]) -> str:
        fields = fields_of(place)
        which = Index(np.searchsorted(fields, place.fields.values), place.fields.loops)
        number, *offsets = (self._index(each, turns) for each in (which, *place.offsets))
        return self._body.leaf(Node("place", place.node.dtype, data=(fields, number, tuple(offsets))))

    def _fold(self, fold: Fold, turns: tuple[str, ...]) -> str:
        text, kind = self._text, self._body.type(fold.node.dtype)
        start = self.value(fold.start, turns)
        turn, next_turn, result, next_result = (f"%{text.fresh(stem)}" for stem in "tnxy")
        head, latch, done = (text.fresh(stem) for stem in ("fold", "folded", "done"))
        before = text.block
        text.emit(f"br label %{head}")
        text.start(head)
        text.emit(f"{turn} = phi i64 [ 0, %{before} ], [ {next_turn}, %{latch} ]")
        text.emit(f"{result} = phi {kind} [ {start}, %{before} ], [ {next_result}, %{latch} ]")
        args = [self.value(fold.term, (*turns, turn))]
        args.insert(fold.place, result)
        value, end = self._body.operation(fold.node, args), text.block
        text.emit(f"br label %{latch}")
        text.start(latch)
        text.emit(f"{next_result} = phi {kind} [ {value}, %{end} ]")
        text.emit(f"{next_turn} = add nuw nsw i64 {turn}, 1")
        again = text.let(f"icmp ult i64 {next_turn}, {fold.turns}", "c")
        text.emit(f"br i1 {again}, label %{head}, label %{done}")
        text.start(done)
        return next_result

    # Constants -----------------------------------------------------------------------------------------------------
    def _entry(self, table: Table, turns: tuple[str, ...]) -> str:
        body, text, dtype = self._body, self._text, table.node.dtype
        values = table.entries.values
        if not table.entries.loops:
            return body.literal(values.item(), dtype)
        spelt = [str(int(value)) if dtype == "bool" else constant(value, dtype) for value in values.ravel().tolist()]
        one = self._table_entry(memory_type(dtype), spelt, self._place(values.shape, table.entries.loops, turns))
        if dtype == "bool":
            one = text.let(f"trunc nuw i8 {one} to i1", "b")
        return body.splat(one, dtype)

    def _index(self, index: Index, turns: tuple[str, ...]) -> str:
        """Return an integer (an i64) of this turn: by arithmetic if possible, or else from a table."""
        text, values = self._text, index.values
        affine = _affine(values)
        if affine is not None:
            result, steps = str(affine[0]), affine[1]
            for loop, step in zip(index.loops, steps, strict=True):
                result = text.sum(text.mul(turns[loop], step), result)
            return result
        largest = int(np.abs(values).max())
        kind = next((kind for kind, limit in _INDEX if largest < limit), "i64")
        one = self._table_entry(
            kind, [*map(str, values.ravel().tolist())], self._place(values.shape, index.loops, turns)
        )
        return one if kind == "i64" else text.let(f"sext {kind} {one} to i64", "i")

    def _place(self, shape: tuple[int, ...], loops: tuple[int, ...], turns: tuple[str, ...]) -> str:
        """Return the number of the entry of this turn in a table of this shape."""
        place = "0"
        for axis, loop in enumerate(loops):
            place = self._text.add(self._text.mul(turns[loop], prod(shape[axis + 1 :])), place)
        return place

    def _table_entry(self, kind: str, entries: Sequence[str], place: str) -> str:
        content = "[" + ", ".join(f"{kind} {entry}" for entry in entries) + "]"
        name = self._text.constant(content, f"[{len(entries)} x {kind}]", content)
        pointer = self._text.let(f"getelementptr inbounds {kind}, ptr {name}, i64 {place}", "p")
        return self._text.let(f"load {kind}, ptr {pointer}")

    # Values kept in memory -----------------------------------------------------------------------------------------
    def array(self, dtype: DType, length: int) -> str:
        """Reserve memory for values of the cells of a vector."""
        return self._text.slot(f"[{length * self._body.width} x {memory_type(dtype)}]")

    def store(self, array: str, value: str, dtype: DType, number: str) -> None:
        """Keep value `number` of an array."""
        if dtype == "bool":
            value = self._text.let(f"zext {self._body.type(dtype)} {value} to {self._vector('i8')}", "b")
        kind = self._vector(memory_type(dtype))
        self._text.emit(f"store {kind} {value}, ptr {self._address(array, dtype, number)}, align {self._align(dtype)}")

    def load(self, array: str, dtype: DType, number: str) -> str:
        """Return value `number` of an array."""
        kind = self._vector(memory_type(dtype))
        found = self._text.let(f"load {kind}, ptr {self._address(array, dtype, number)}, align {self._align(dtype)}")
        if dtype != "bool":
            return found
        return self._text.let(f"trunc nuw {kind} {found} to {self._body.type(dtype)}", "b")

    def _address(self, array: str, dtype: DType, number: str) -> str:
        place = self._text.mul(number, self._body.width)
        return self._text.let(f"getelementptr inbounds {memory_type(dtype)}, ptr {array}, i64 {place}", "p")

    def _vector(self, kind: str) -> str:
        return kind if self._body.width == 1 else f"<{self._body.width} x {kind}>"

    def _align(self, dtype: DType) -> int:
        return min(LINE, self._body.width * itemsize(dtype))


def _affine(values: Any) -> tuple[int, list[int]] | None:
    """Return base and steps if integers are base + sum of steps times turns, or else None."""
    base, steps = int(values.flat[0]), []
    expected = np.full(values.shape, base)
    for axis, length in enumerate(values.shape):
        step = int(values.take(1, axis=axis).flat[0]) - base if length > 1 else 0
        steps.append(step)
        expected += step * np.arange(length).reshape([-1 if other == axis else 1 for other in range(values.ndim)])
    return (base, steps) if (expected == values).all() else None
