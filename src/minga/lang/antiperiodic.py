"""Reads of fields that change their sign where an axis closes."""

from __future__ import annotations

from collections.abc import Callable

from minga.lang.expr import Node, where
from minga.lang.graph import topological
from minga.lang.trace import Trace

__all__ = ["sign_changes"]


def sign_changes(trace: Trace) -> Callable[[Node], Node]:
    """Return the function that gives a traced value its changes of sign.

    Halos of antiperiodic axes hold the values of the other end as they are, so that they may be of any depth. The sign
    follows from the true index of the cell that reads: it changes where the read crosses an end of the axis.
    """
    if not any(trace.antiperiodic.values()):
        return lambda root: root
    made: dict[int, Node] = {}
    kept: list[Node] = []

    def signed(node: Node) -> Node:
        param, strides, offsets = node.data
        for axis in trace.antiperiodic.get(param, ()):
            number = trace.params[param].axes.index(axis)
            stride, offset = strides[number], offsets[number]
            if 0 <= offset < stride:
                continue
            position = Node("index", "i8", data=axis) * stride + offset
            extent = trace.scalar(f"@extent{axis}", "i8") * stride
            node = where(position < 0 if offset < 0 else position >= extent, -node, node)
        return node

    def with_signs(root: Node) -> Node:
        for node in topological([root], made):
            kept.append(node)
            args = tuple(made[id(arg)] for arg in node.args)
            again = Node(node.op, node.dtype, args, node.data, node.weak) if args else node
            made[id(node)] = signed(node) if node.op == "read" else again
        return made[id(root)]

    return with_signs
