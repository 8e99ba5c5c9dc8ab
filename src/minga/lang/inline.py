"""Inlining of named intermediates: every read of a local is replaced by its definition, shifted to the cell read."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph
from minga.lang.shift import shifted_leaf

__all__ = ["without_locals"]

Offset = tuple[int, ...]


def without_locals(graph: KernelGraph, keep: Container[int] = ()) -> KernelGraph:
    """Return the same kernel with the definitions of its locals inserted where they are read, all but those to keep.

    Locals that are kept may depend on others that are kept only. With some kept, none is removed from the graph.
    """
    if not graph.locals:
        return graph
    share, moved = Interner(), _Moved(graph, keep)
    return replace(
        graph,
        stores=tuple(replace(store, value=share(moved(store.value))) for store in graph.stores),
        reductions=tuple(replace(item, value=share(moved(item.value))) for item in graph.reductions),
        locals=graph.locals if keep else (),
    )


class _Moved:
    """Nodes as seen from another cell, each made once."""

    def __init__(self, graph: KernelGraph, keep: Container[int]) -> None:
        self._keep = keep
        self._locals: Sequence[Node] = graph.locals
        self._axes = [param.axes for param in graph.params]
        self._here = (0,) * graph.ndim
        self._made: dict[tuple[int, Offset], Node] = {}

    def __call__(self, root: Node, seen_from: Offset | None = None) -> Node:
        """Return `root` as seen from a cell, by default its own; without recursion, as sums of many cells are deep."""
        start = self._here if seen_from is None else seen_from
        waiting: list[tuple[Node, Offset]] = [(root, start)]
        while waiting:
            node, offset = waiting[-1]
            needed = [part for part in self._parts(node, offset) if (id(part[0]), part[1]) not in self._made]
            if needed:
                waiting += needed
                continue
            waiting.pop()
            if (id(node), offset) not in self._made:
                self._made[id(node), offset] = self._move(node, offset)
        return self._made[id(root), start]

    def _parts(self, node: Node, offset: Offset) -> list[tuple[Node, Offset]]:
        if node.op == "local" and node.data[0] not in self._keep:
            number, further = node.data
            return [(self._locals[number], tuple(a + b for a, b in zip(offset, further, strict=True)))]
        return [(arg, offset) for arg in node.args]

    def _move(self, node: Node, offset: Offset) -> Node:
        parts = [self._made[id(part), place] for part, place in self._parts(node, offset)]
        if not parts:
            return shifted_leaf(node, offset, self._axes)
        if node.op == "local":
            return parts[0]
        return Node(node.op, node.dtype, tuple(parts), node.data, node.weak, self._function(node, offset))

    def _function(self, node: Node, offset: Offset) -> tuple[object, ...] | None:
        """Return the elementary function that a node is the value of, as seen from another cell."""
        if node.of is None:
            return None
        return (node.of[0], *(self(part, offset) for part in node.of[1:]))
