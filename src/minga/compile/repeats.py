"""Repeated parts of large kernels as loops: what they are made of. `minga.compile.find_repeats` finds them.

A sum over 6561 neighbours is one multiplication and one addition, repeated with other weights and offsets; the layers
of a neural network are few operations, repeated with other weights. Python unrolls such loops when a kernel is traced.
Printed one by one, thousands of operations take LLVM a minute, and their code does not fit into the caches for
instructions. As loops, they are compiled in a fraction of a second. The operations and their order are the same, and
so are the bits.

Four kinds of nodes represent loops in the graph that is printed:

    fold     the value of a loop that combines one value after another, ((start + a) + b) + c
    spread   values of equal form, computed by a loop and kept in memory
    gather   values of unequal form, computed one after another and kept in memory
    element  value number `data` of a spread or a gather

The data of a fold or spread is a term: what one turn computes, as a tree of `Table`, `Place`, `Outside`, `Kept`,
`Operation` and `Fold`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node
from minga.lang.types import itemsize

__all__ = [
    "LOOPS", "PLACES", "Fold", "Index", "Kept", "Operation", "Outside", "Place", "Spread", "Table", "Term",
    "fields_of", "groups_of_fields", "kept_bytes",
]  # fmt: skip

LOOPS = frozenset({"fold", "spread", "gather", "element"})
"""The kinds of nodes that represent loops."""
PLACES = frozenset({"place"})
"""Leaves within loops: the cell of one turn, as `data` the parameters, the register that tells which of them, and the
registers of the offsets."""


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Numbers of one type by turn: `values` has one axis for each loop in `loops`, the outermost loop being 0."""

    values: NDArray[Any]
    loops: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A constant that differs from turn to turn."""

    entries: Index
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A cell that differs from turn to turn, read with stride 1.

    fields  number of the parameter in each turn
    offsets offset in each turn, along each axis
    """

    fields: Index
    offsets: tuple[Index, ...]
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """A value from outside the loops: argument `number` of the node."""

    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """An element of a spread or gather, which is argument `number` of the node."""

    number: int
    entries: Index
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation; `node` is that of the first turn."""

    node: Node
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A loop that combines `turns` terms, one after another, by the operation of `node`.

    loop   number of this loop
    place  which argument of the operation is the result so far
    """

    node: Node
    loop: int
    turns: int
    place: int
    start: Term
    term: Term


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A loop that computes `turns` values."""

    turns: int
    term: Term


Term = Table | Place | Outside | Kept | Operation | Fold


def fields_of(place: Place) -> tuple[int, ...]:
    """Return the numbers of the parameters that are read at a place, in ascending order."""
    return tuple(np.unique(place.fields.values).tolist())


def groups_of_fields(node: Node) -> Iterator[tuple[int, ...]]:
    """Yield the `fields_of` each place in the loops of a node."""
    if node.op == "fold":
        yield from _groups(node.data)
    elif node.op == "spread":
        yield from _groups(node.data.term)


def _groups(term: Term) -> Iterator[tuple[int, ...]]:
    if isinstance(term, Place):
        yield fields_of(term)
    elif isinstance(term, Operation):
        for arg in term.args:
            yield from _groups(arg)
    elif isinstance(term, Fold):
        yield from _groups(term.start)
        yield from _groups(term.term)


def kept_bytes(nodes: Iterable[Node]) -> int:
    """Return the bytes that loops keep for one cell."""
    found = 0
    for node in nodes:
        if node.op == "spread":
            found += node.data.turns * itemsize(node.dtype)
        elif node.op == "gather":
            found += len(node.args) * itemsize(node.dtype)
    return found
