"""Kernels of word operations made from a rule's table: 64 cells at a time.

Neighbours along a row are shifts that take bits of the next word in. Neighbours are counted by full adders, and rows
that several sums share are counted once (as `mg.local`). The bits of the next state are a network of gates on the
cell's bits and the counts' bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.cell import CellReader, Local, local
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological
from minga.lang.kernel import FieldType, Kernel, Signature
from minga.lang.logic import ANY, MOST_INPUTS, Network, network
from minga.models.automaton.bits_rule import CellState, Count, Offset, Table, Term, Unsuitable
from minga.space.bit_words import WORD

__all__ = ["bits_of", "cost", "word_kernel"]

MOST_OPERATIONS: Final = 2000
"""Word operations of the largest kernel: larger ones take long to compile, and bytes are faster."""
ROW: Final = 3
"""Operations that take as long as one more row in a loop: processors run out of registers for the rows' addresses."""

Bit = Any
Number = list[Bit]
"""Bits of a count, lowest first."""
Finish = Callable[[list[Node], Sequence[CellReader]], list[Node]]
Shifts = Callable[[Sequence[CellReader]], "tuple[Node, Node]"]


def bits_of(states: int) -> int:
    """Return the number of bits of a state."""
    return max(1, (states - 1).bit_length())


@dataclass(frozen=True, slots=True)
class Edges:
    """Extra operations of a kernel whose rows end within a word.

    Both functions take `row`, the fields along the rows.

    Attributes
    ----------
    finish
        Returns the new words with the bits beyond the end corrected.
    shifts
        Returns the numbers of bits in this word and in the one before; None if all words have WORD bits.
    """

    finish: Finish | None = None
    shifts: Shifts | None = None


PLAIN: Final = Edges()


def word_kernel(tables: Sequence[Table], ndim: int, name: str, edges: Edges = PLAIN) -> Kernel:
    """Return the cheapest kernel for these tables of one rule; it takes lists of fields: now, new, row.

    Raises
    ------
    Unsuitable
        If even the cheapest kernel is too long.
    """
    found = []
    for table in [*tables, *(table for one in tables if (table := with_centre(one)) is not None)]:
        if 1 <= inputs_of(table) <= MOST_INPUTS:
            logic = _logic(table)
            found.append(Kernel(_body(table, logic, edges), name=name))
    kernels = [(_weight(_graph(kernel, tables[0], ndim)), number) for number, kernel in enumerate(found)]
    if not kernels or min(kernels)[0] > MOST_OPERATIONS:  # rows hardly matter at this size
        raise Unsuitable("it needs too many word operations")
    return found[min(kernels)[1]]


def inputs_of(table: Table) -> int:
    """Return the number of bits of all variables of a table."""
    return sum(_bits(variable, table) for variable in table.variables)


def with_centre(table: Table) -> Table | None:
    """Return the same rule in terms of the count of all cells including the centre, or None if it has another form.

    The rows above, at and below the cell are then alike.
    """
    looks = [axis for axis, v in enumerate(table.variables) if isinstance(v, CellState) and not any(v.offset)]
    counts = [axis for axis, v in enumerate(table.variables) if isinstance(v, Count)]
    if len(looks) != 1 or len(counts) != 1 or len(table.variables) != 2:
        return None
    count = table.variables[counts[0]]
    assert isinstance(count, Count)
    holds = {(term.weight, term.holds) for term in count.terms}
    if len(holds) != 1 or any(not any(term.offset) for term in count.terms):
        return None
    ((weight, adds),) = holds
    if weight != 1:
        return None
    here = (0,) * len(count.terms[0].offset)
    before = np.moveaxis(table.states, looks[0], 0)
    after = np.full((table.number_of_states, count.most + 2), -1, np.int64)
    for state in range(table.number_of_states):
        after[state, adds[state] : adds[state] + count.most + 1] = before[state]
    terms = tuple(sorted([*count.terms, Term(here, 1, adds)], key=lambda term: term.offset))
    return Table(table.number_of_states, (CellState(here), Count(terms)), after)


def cost(graph: KernelGraph) -> int:
    """Count the word operations of a kernel: those of its locals, which have loops of their own, and of its stores."""
    return sum(bool(node.args) for roots in _loops(graph) for node in topological(roots))


def _weight(graph: KernelGraph) -> int:
    """Return the figure by which kernels of one rule are compared: operations, and rows that their loops walk along."""
    rows = sum(len({_row(node) for node in topological(roots)} - {None}) for roots in _loops(graph))
    return cost(graph) + ROW * rows


def _loops(graph: KernelGraph) -> tuple[Sequence[Node], Sequence[Node]]:
    return graph.locals, [store.value for store in graph.stores]


def _row(node: Node) -> object:
    """Return a key of the row that a node reads; None if the node is not a read."""
    if node.op == "local":
        number, offsets = node.data
        return "local", number, offsets[:-1]
    return (node.data[0], node.data[2][:-1]) if node.op == "read" else None


def _graph(kernel: Kernel, table: Table, ndim: int) -> KernelGraph:
    """Return the graph of the kernel for words, for analysis only."""
    words = (FieldType("u8", tuple(range(ndim))),) * bits_of(table.number_of_states)
    row = (FieldType("u8", (ndim - 1,)),) * 3
    return kernel.graph(Signature(ndim, (words, words, row)))


# The next state as logic ---------------------------------------------------------------------------------------------
def _bits(variable: CellState | Count, table: Table) -> int:
    return bits_of(table.number_of_states) if isinstance(variable, CellState) else variable.most.bit_length()


def _logic(table: Table) -> Network:
    """Return gates from the bits of the variables, in order, to the bits of the next state."""
    inputs = inputs_of(table)
    rows = np.arange(1 << inputs)
    index: list[NDArray[Any]] = []
    exists = np.ones(rows.shape, bool)
    for variable, size in zip(table.variables, table.sizes, strict=True):
        width = _bits(variable, table)
        value = rows & ((1 << width) - 1)
        rows = rows >> width
        exists &= value < size
        index.append(np.minimum(value, size - 1))
    states = table.states[tuple(index)]
    exists &= states >= 0
    planes = range(bits_of(table.number_of_states))
    return network([np.where(exists, states >> plane & 1, ANY) for plane in planes], inputs)


# Words ---------------------------------------------------------------------------------------------------------------
def _body(table: Table, logic: Network, edges: Edges) -> Callable[..., None]:
    def step(now: Sequence[CellReader], new: Sequence[CellReader], row: Sequence[CellReader]) -> None:
        words = _Words(now, table.number_of_states, edges.shifts(row) if edges.shifts else None)
        inputs: list[Bit] = []
        for variable in table.variables:
            inputs += words.state(variable.offset) if isinstance(variable, CellState) else words.count(variable)
        values = logic(inputs)
        if edges.finish is not None:
            values = edges.finish(values, row)
        for target, value in zip(new, values, strict=True):
            target[(0,) * len(target.axes)] = value

    return step


Read = Callable[[Offset], Node]
"""Function that returns the word of a plane at an offset in words."""


@dataclass(slots=True)
class _Words:
    """Bits that a kernel uses: states of cells, and counts; each is computed once."""

    planes: Sequence[CellReader]
    states: int
    sizes: tuple[Node, Node] | None
    _sources: dict[tuple[int, ...], Read] = field(default_factory=dict)
    _rows: dict[tuple[object, ...], list[Local]] = field(default_factory=dict)

    def state(self, offset: Offset) -> list[Bit]:
        """Return the bits of the state of the cell at an offset."""
        return [self._shifted(plane.__getitem__, offset) for plane in self.planes]

    def count(self, count: Count) -> Number:
        """Return the bits of a count."""
        alike: dict[tuple[int, tuple[int, ...]], list[Offset]] = {}
        for term in count.terms:
            alike.setdefault((term.weight, term.holds), []).append(term.offset)
        numbers = [
            (weight.bit_length() - 1, self._count(holds, frozenset(offsets), ()))
            for (weight, holds), offsets in alike.items()
        ]
        return add(numbers, count.most)

    def _count(self, holds: tuple[int, ...], pattern: frozenset[Offset], place: Offset) -> Number:
        """Count the cells of a pattern whose state has a 1 in `holds`.

        The pattern's offsets cover the axes from number len(place) on; `place` is its position along the axes before.
        """
        if len(next(iter(pattern))) == 1:
            marked = [self._holding(holds, (*place, *offset)) for offset in sorted(pattern)]
            return add([(0, [bit]) for bit in marked], len(pattern))
        planes: dict[int, set[Offset]] = {}
        for first, *rest in pattern:
            planes.setdefault(first, set()).add(tuple(rest))
        shapes = [frozenset(rests) for rests in planes.values()]
        numbers = []
        for first, shape in zip(planes, shapes, strict=True):
            if len(shape) > 1 and shapes.count(shape) > 1:
                numbers.append((0, self._shared(holds, shape, (*place, first))))
            else:
                numbers.append((0, self._count(holds, shape, (*place, first))))
        return add(numbers, len(pattern))

    def _shared(self, holds: tuple[int, ...], pattern: frozenset[Offset], place: Offset) -> Number:
        """Count a pattern that occurs at several places: once for each row, and read there."""
        key = (holds, pattern)
        if key not in self._rows:
            self._rows[key] = [local(bit) for bit in self._count(holds, pattern, (0,) * len(place))]
        beyond = (0,) * len(next(iter(pattern)))
        return [bit[(*place, *beyond)] for bit in self._rows[key]]

    def _holding(self, holds: tuple[int, ...], offset: Offset) -> Bit:
        """Return a bit that is 1 if the state of the cell at an offset is one of those marked.

        The unused bits of a shifted word must be 0, as they are for state 0: if state 0 is marked, the other states are
        tested instead.
        """
        if holds[0] and self.sizes is not None:
            return ~self._shifted(self._source(tuple(1 - marked for marked in holds)), offset)
        return self._shifted(self._source(holds), offset)

    def _source(self, holds: tuple[int, ...]) -> Read:
        """Return words with one bit for each cell: 1 if its state is one of those marked."""
        if holds not in self._sources:
            self._sources[holds] = self._marked(holds)
        return self._sources[holds]

    def _marked(self, holds: tuple[int, ...]) -> Read:
        for number, plane in enumerate(self.planes):
            if all(state >> number & 1 == marked for state, marked in enumerate(holds)):
                return plane.__getitem__
        width = len(self.planes)
        codes = [holds[code] if code < self.states else ANY for code in range(1 << width)]
        here = [plane[(0,) * len(plane.axes)] for plane in self.planes]
        return local(network([codes], width)(here)[0]).__getitem__

    def _shifted(self, read: Read, offset: Offset) -> Bit:
        """Return the word whose bit k is the cell at `offset` from the cell of bit k of the word here."""
        *aside, along = offset
        if self.sizes is not None:
            return self._shifted_unevenly(read, aside, along)
        words, bits = divmod(along, WORD)
        low = read((*aside, words))
        return low if not bits else (low >> bits) | (read((*aside, words + 1)) << (WORD - bits))

    def _shifted_unevenly(self, read: Read, aside: Sequence[int], along: int) -> Bit:
        """Return the shifted word if the last word of a row, which is followed by the first one, has fewer bits."""
        assert self.sizes is not None
        here, before = self.sizes
        word = read((*aside, 0))
        if along > 0:
            return (word >> along) | (read((*aside, 1)) << (here - along))
        back = -along
        return word if not back else (word << back) | (read((*aside, -1)) >> (before - back))


def add(numbers: Sequence[tuple[int, Number]], most: int) -> Number:
    """Add numbers, each multiplied by a power of two, with full and half adders; the sum is at most `most`."""
    width = most.bit_length()
    columns: list[list[Bit]] = [[] for _ in range(width + 1)]
    for shift, bits in numbers:
        for place, bit in enumerate(bits):
            columns[shift + place].append(bit)
    total: Number = []
    for place, column in enumerate(columns[:width]):
        carries = 2 << place <= most
        while len(column) > 1:
            a, b = column.pop(0), column.pop(0)
            differ = a ^ b
            if column:
                c = column.pop(0)
                column.append(differ ^ c)
                carry = a ^ (differ & (a ^ c))  # one instruction on processors with ternary logic
            else:
                column.append(differ)
                carry = a & b
            if carries:
                columns[place + 1].append(carry)
        total += column
    if len(total) < width:
        raise Unsuitable("a sum of its neighbours has gaps")
    return total
