"""Neighbouring rows that are computed together, so that cells that they all read are loaded once.

Sums of integers have the same bits in any order. Their terms are therefore added row by row first: rows that are
computed together share these sums. Sums of floats keep their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, groupby
from operator import is_
from typing import Final

from minga.compile.schedule import Schedule, is_small
from minga.compile.vector import may_be_vectors
from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph, Store, topological
from minga.lang.shift import shifted
from minga.lang.types import is_float

USUAL: Final = 4
"""Number of rows that are usually computed together, if that is worth it."""
WORTH: Final = 0.6
"""Number of reads of a row, relative to those of a single one, up to which that is usually worth it."""
Place = tuple[tuple[int, int, tuple[int, ...]], int, int]
"""Row that a term reads, and its place in the order of the terms of this row."""


def may_be_together(graph: KernelGraph, plan: Schedule) -> bool:
    """Return True if neighbouring rows may be computed together: all their values before anything is stored."""
    plain = graph.order is None and not graph.reductions and graph.ndim > 1
    return plain and is_small(graph) and may_be_vectors(graph, plan)


def usual_rows(graph: KernelGraph) -> int:
    """Return the number of rows that are usually computed together: several where they share sums of integers."""
    values = [store.value for store in graph.stores]
    if not any(node.op == "add" and _may_be_reordered(node) for node in topological(values)):
        return 1
    return USUAL if _reads(together(graph, USUAL)[1]) <= WORTH * USUAL * _reads(values) else 1


def _reads(values: Sequence[Node]) -> int:
    return sum(node.op == "read" for node in topological(values))


def together(graph: KernelGraph, rows: int) -> tuple[tuple[Store, ...], list[Node]]:
    """Return the stores of a row and of those after it, and their values, with equal nodes shared."""
    share, axes = Interner(), [param.axes for param in graph.params]
    values = _by_rows([store.value for store in graph.stores])
    stores: list[Store] = []
    for row in range(rows):
        by = tuple(row if axis == graph.ndim - 2 else 0 for axis in range(graph.ndim))
        for store, value in zip(graph.stores, values, strict=True):
            steps = [stride * by[axis] for stride, axis in zip(store.strides, axes[store.param], strict=True)]
            offsets = tuple(offset + step for offset, step in zip(store.offsets, steps, strict=True))
            stores.append(replace(store, offsets=offsets, value=share(shifted(value, by, axes))))
    return tuple(stores), [store.value for store in stores]


def _by_rows(roots: Sequence[Node]) -> list[Node]:
    """Return the same values, with sums of integers added row by row; sums that are used several times remain terms."""
    nodes = list(topological(roots))
    uses = Counter(id(node) for node in chain(roots, *(node.args for node in nodes)))
    made: dict[int, Node] = {}
    terms: dict[int, list[Node]] = {}
    for node in nodes:
        args = tuple(made[id(arg)] for arg in node.args)
        if node.op == "add" and _may_be_reordered(node):
            parts = (terms.get(id(arg), []) if uses[id(arg)] == 1 else [] for arg in node.args)
            terms[id(node)] = [term for arg, part in zip(args, parts, strict=True) for term in part or [arg]]
            made[id(node)] = _sum(terms[id(node)])
        else:
            same = all(map(is_, args, node.args))
            made[id(node)] = node if same else Node(node.op, node.dtype, args, node.data, node.weak, node.of)
    return [made[id(root)] for root in roots]


def _may_be_reordered(node: Node) -> bool:
    return node.dtype != "bool" and not is_float(node.dtype)


def _sum(terms: Sequence[Node]) -> Node:
    """Return a sum with its terms added row by row; those that are not read from one cell are a row of their own."""
    ordered = sorted(terms, key=_place)
    return _chain([_chain([*row]) for _, row in groupby(ordered, key=lambda term: _place(term)[0])])


def _chain(terms: Sequence[Node]) -> Node:
    return reduce(lambda one, other: Node("add", one.dtype, (one, other)), terms)


def _place(node: Node) -> Place:
    """Return the place of a term: distant cells of a row first, so that rows with and without the middle share sums."""
    reads = [part for part in topological([node]) if part.op == "read"]
    if len(reads) != 1:
        return (1, 0, ()), 0, 0
    number, _, offsets = reads[0].data
    return (0, number, offsets[:-1]), -abs(offsets[-1]), offsets[-1]
