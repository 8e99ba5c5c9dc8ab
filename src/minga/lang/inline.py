"""Inlining of named intermediates: every read of a local is replaced by its definition, shifted to the cell read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph
from minga.lang.shift import shifted_leaf

__all__ = ["without_locals"]

Offset = tuple[int, ...]


def without_locals(graph: KernelGraph) -> KernelGraph:
    """Return the same kernel with the definitions of its locals inserted where they are read."""
    if not graph.locals:
        return graph
    share, moved = Interner(), _Moved(graph)
    return replace(
        graph,
        stores=tuple(replace(store, value=share(moved(store.value))) for store in graph.stores),
        reductions=tuple(replace(item, value=share(moved(item.value))) for item in graph.reductions),
        locals=(),
    )


class _Moved:
    """Nodes as seen from another cell, each made once."""

    def __init__(self, graph: KernelGraph) -> None:
        self._locals: Sequence[Node] = graph.locals
        self._axes = [param.axes for param in graph.params]
        self._here = (0,) * graph.ndim
        self._made: dict[tuple[int, Offset], Node] = {}

    def __call__(self, root: Node) -> Node:
        """Return `root` as seen from its own cell, without recursion, since sums of many cells are deep."""
        waiting: list[tuple[Node, Offset]] = [(root, self._here)]
        while waiting:
            node, offset = waiting[-1]
            needed = [part for part in self._parts(node, offset) if (id(part[0]), part[1]) not in self._made]
            if needed:
                waiting += needed
                continue
            waiting.pop()
            if (id(node), offset) not in self._made:
                self._made[id(node), offset] = self._move(node, offset)
        return self._made[id(root), self._here]

    def _parts(self, node: Node, offset: Offset) -> list[tuple[Node, Offset]]:
        if node.op == "local":
            number, further = node.data
            return [(self._locals[number], tuple(a + b for a, b in zip(offset, further, strict=True)))]
        return [(arg, offset) for arg in node.args]

    def _move(self, node: Node, offset: Offset) -> Node:
        parts = [self._made[id(part), place] for part, place in self._parts(node, offset)]
        if node.op == "local":
            return parts[0]
        if not parts:
            return shifted_leaf(node, offset, self._axes)
        return Node(node.op, node.dtype, tuple(parts), node.data, node.weak)
