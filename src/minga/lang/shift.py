"""Expressions as seen from another cell."""

from __future__ import annotations

from collections.abc import Sequence

from minga.lang.expr import Node
from minga.lang.graph import topological

__all__ = ["shifted", "shifted_leaf"]

Offset = tuple[int, ...]


def shifted(root: Node, by: Offset, axes: Sequence[tuple[int, ...]]) -> Node:
    """Shift an expression to the cell that lies `by` further along the iteration axes.

    `axes` are the iteration axes of each parameter.
    """
    if not any(by):
        return root
    made: dict[int, Node] = {}
    for node in topological([root]):
        args = tuple(made[id(arg)] for arg in node.args)
        of = node.of and (
            node.of[0],
            *(made[id(part)] if id(part) in made else shifted(part, by, axes) for part in node.of[1:]),
        )
        again = Node(node.op, node.dtype, args, node.data, node.weak, of)
        made[id(node)] = again if args else shifted_leaf(node, by, axes)
    return made[id(root)]


def shifted_leaf(node: Node, by: Offset, axes: Sequence[tuple[int, ...]]) -> Node:
    """Shift a node without arguments; see `shifted`."""
    if node.op == "read":
        param, strides, offsets = node.data
        steps = (s * by[axis] for s, axis in zip(strides, axes[param], strict=True))
        return Node("read", node.dtype, data=(param, strides, tuple(map(sum, zip(offsets, steps, strict=True)))))
    if node.op == "local":
        number, offsets = node.data
        return Node("local", node.dtype, data=(number, tuple(map(sum, zip(offsets, by, strict=True)))))
    if node.op == "index" and by[node.data]:
        return Node("add", node.dtype, (node, Node("const", node.dtype, data=by[node.data])))
    return node
