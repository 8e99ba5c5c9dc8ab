"""Expressions in which the definitions of locals stand in place of their reads."""

from __future__ import annotations

from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.shift import shifted
from minga.lang.trace import Trace

__all__ = ["without_locals"]


def without_locals(root: Node, trace: Trace) -> Node:
    """Return an expression of reads only, with the same value.

    Parameters
    ----------
    root
        The expression.
    trace
        The kernel that is being traced, which defines the locals.

    Returns
    -------
    Node
        The expression, in which each local is written out as seen from the cell that reads it.
    """
    axes = [param.axes for param in trace.params]
    definitions: dict[int, Node] = {}

    def definition(number: int) -> Node:
        if number not in definitions:
            definitions[number] = without_locals(trace.locals[number], trace)
        return definitions[number]

    made: dict[int, Node] = {}
    for node in topological([root]):
        if node.op == "local":
            number, offsets = node.data
            made[id(node)] = shifted(definition(number), offsets, axes)
        elif node.args:
            args = tuple(made[id(arg)] for arg in node.args)
            parts = (
                made[id(part)] if id(part) in made else without_locals(part, trace) for part in (node.of or ())[1:]
            )
            of = node.of and (node.of[0], *parts)
            made[id(node)] = Node(node.op, node.dtype, args, node.data, node.weak, of)
        else:
            made[id(node)] = node
    return made[id(root)]
