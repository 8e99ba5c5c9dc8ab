"""Inlining of locals on GPUs: an equivalent graph without `local` nodes, or with fewer of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

from minga.lang.expr import Node, binary, const
from minga.lang.graph import Interner, KernelGraph, Param, topological

Offsets = tuple[int, ...]


def inline_locals(graph: KernelGraph, keep: Collection[int] = ()) -> KernelGraph:
    """Replace every local except those in `keep` by its definition, shifted to the offsets of the read.

    Equal values are still computed once per cell, but neighbours compute them again; in exchange, no memory is needed.
    """
    if not graph.locals:
        return graph
    inline = _Inline(graph, keep)
    share = Interner()
    own = (0,) * graph.ndim
    return replace(
        graph,
        stores=tuple(replace(store, value=share(inline(store.value, own))) for store in graph.stores),
        reductions=tuple(replace(item, value=share(inline(item.value, own))) for item in graph.reductions),
        locals=tuple(share(inline(node, own)) for node in graph.locals) if keep else (),
    )


def read_at_offsets(graph: KernelGraph) -> frozenset[int]:
    """Return the numbers of the locals that are read at neighbours."""
    reads = (cast(tuple[int, Offsets], node.data) for node in graph.nodes() if node.op == "local")
    return frozenset(number for number, offsets in reads if any(offsets))


class _Inline:
    """Nodes without (most) locals, as seen from a neighbour at given offsets."""

    def __init__(self, graph: KernelGraph, keep: Collection[int]) -> None:
        self._graph = graph
        self._keep = keep
        self._moved: dict[tuple[int, Offsets], Node] = {}

    def __call__(self, root: Node, offsets: Offsets) -> Node:
        for node in topological([root]):
            if (id(node), offsets) not in self._moved:
                self._moved[id(node), offsets] = self._move(node, offsets)
        return self._moved[id(root), offsets]

    def _move(self, node: Node, offsets: Offsets) -> Node:
        if node.op == "local":
            number, own = cast(tuple[int, Offsets], node.data)
            place = tuple(a + b for a, b in zip(own, offsets, strict=True))
            kept = number in self._keep
            return Node("local", node.dtype, data=(number, place)) if kept else self(self._graph.locals[number], place)
        if node.op == "read":
            param, strides, own = cast(tuple[int, Offsets, Offsets], node.data)
            place = _read_at(self._graph.params[param], strides, own, offsets)
            return Node("read", node.dtype, data=(param, strides, place))
        if node.op == "index":
            distance = offsets[cast(int, node.data)]
            return binary("add", node, const(distance, "i8")) if distance else node
        args = tuple(self._moved[id(arg), offsets] for arg in node.args)
        return Node(node.op, node.dtype, args, node.data) if args else node


def _read_at(param: Param, strides: Offsets, own: Offsets, offsets: Offsets) -> Offsets:
    """Return the offsets, in elements, of a read as made by the neighbour at `offsets`."""
    return tuple(o + s * offsets[axis] for axis, s, o in zip(param.axes, strides, own, strict=True))
