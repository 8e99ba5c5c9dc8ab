"""Narrower lanes: integer arithmetic in the narrowest type that intervals prove sufficient.

A sum of eight bools written in i4 has values 0 to 8, so bytes give the same result, with four times as many lanes. Only
expressions of narrow values (narrow fields, bools, constants) are narrowed: shortening wide values that come from
memory would cost as much as it gains. No result changes: all operands and results of a narrowed operation fit its new
type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from minga.lang.expr import COMPARISONS, Node
from minga.lang.graph import Interner, KernelGraph, topological
from minga.lang.operations import Interval, operation
from minga.lang.types import BITS, DType, integer_range, is_float, is_integer, is_signed

_CANDIDATES: Final[tuple[DType, ...]] = ("u1", "i2", "i4", "u4")


def intervals(graph: KernelGraph) -> dict[int, Interval]:
    """Return the interval of values that each integer or bool node can have, by `id(node)`."""
    found: dict[int, Interval] = {}
    locals_: list[Interval | None] = []
    done: set[int] = set()
    for number, root in enumerate(graph.roots):  # locals come first, in the order in which they may use each other
        nodes = list(topological([root], done))
        add_intervals(nodes, found, locals_, _anything)
        done.update(map(id, nodes))
        if number < len(graph.locals):
            locals_.append(found.get(id(root)))
    return found


def add_intervals(
    nodes: Iterable[Node],
    found: dict[int, Interval],
    locals_: Sequence[Interval | None],
    reads: Callable[[Node], Interval],
) -> None:
    """Add the intervals of these nodes (arguments first) to `found`; `reads` gives the values a cell can hold."""
    for node in nodes:
        if id(node) not in found and not is_float(node.dtype):
            found[id(node)] = _interval(node, found, locals_, reads)


def _anything(read: Node) -> Interval:
    return integer_range(read.dtype)


def narrow(graph: KernelGraph) -> KernelGraph:
    """Return the same kernel in narrower lanes; stores, reductions and their types stay as they are."""
    rewriting = _Narrowing(graph)
    share = Interner()
    local_nodes = tuple(share(rewriting.node(root)) for root in graph.locals)
    return replace(
        graph,
        stores=tuple(replace(s, value=share(rewriting.as_before(s.value))) for s in graph.stores),
        reductions=tuple(replace(r, value=share(rewriting.as_before(r.value))) for r in graph.reductions),
        locals=local_nodes,
    )


class _Narrowing:
    """Rewritten nodes by the id of the original; a rewritten node has the same value, perhaps in a narrower type."""

    def __init__(self, graph: KernelGraph) -> None:
        self._graph = graph
        self._intervals = intervals(graph)
        self._new: dict[int, Node] = {}

    def node(self, root: Node) -> Node:
        """Return the equivalent of `root`, in its own type or a narrower one."""
        for node in topological([root], self._new):
            self._new[id(node)] = self._rewrite(node)
        return self._new[id(root)]

    def as_before(self, root: Node) -> Node:
        """Return the equivalent of `root` in its own type."""
        return _in_type(self.node(root), root.dtype)

    def _rewrite(self, node: Node) -> Node:
        if node.op == "local":
            number: int = node.data[0]
            return Node("local", self.node(self._graph.locals[number]).dtype, (), node.data)
        if not node.args:
            return node
        if node.op == "cast" and self._keeps_value(node):
            return self._new[id(node.args[0])]
        if node.op == "cast":
            return Node("cast", node.dtype, (self._new[id(node.args[0])],))
        if node.op == "lookup":
            return Node("lookup", node.dtype, (self._new[id(node.args[0])],), node.data)
        if node.op == "iterate":
            own_types = tuple(_in_type(self._new[id(arg)], arg.dtype) for arg in node.args)
            return Node(node.op, node.dtype, own_types, node.data)
        if (same := self._same_as(node)) is not None:
            return self._new[id(same)]
        operands = node.args[1:] if node.op == "select" else node.args
        dtype = operands[0].dtype
        result = node.dtype
        if operation(node.op).narrows and is_integer(dtype):
            dtype = self._type_for(node, operands)
            result = result if node.op in COMPARISONS else dtype
        new = tuple(_in_type(self._new[id(arg)], dtype) for arg in operands)
        if node.op == "abs" and not is_signed(dtype) and not is_float(dtype):
            return new[0]
        if node.op == "select":
            new = (self._new[id(node.args[0])], *new)
        return Node(node.op, result, new, node.data)

    def _same_as(self, node: Node) -> Node | None:
        """Return the operand that an integer minimum or maximum is always equal to, or None."""
        if node.op not in ("min", "max") or is_float(node.dtype):
            return None
        (low, high), (other_low, other_high) = (self._intervals[id(arg)] for arg in node.args)
        smaller, larger = node.args if node.op == "min" else reversed(node.args)
        return smaller if high <= other_low else larger if other_high <= low else None

    def _keeps_value(self, cast: Node) -> bool:
        """Return True if a cast is between integers (or from bool) and its type holds all values."""
        value = cast.args[0]
        if is_float(value.dtype) or not is_integer(cast.dtype):
            return False
        return _fits(self._intervals[id(value)], cast.dtype)

    def _type_for(self, node: Node, operands: Sequence[Node]) -> DType:
        """Return the narrowest type that holds operands and result and is at least as wide as the new operands."""
        before = operands[0].dtype
        values = [self._intervals[id(item)] for item in (*operands, node)]
        whole = (min(low for low, _ in values), max(high for _, high in values))
        width = max((BITS[new.dtype] for new in (self._new[id(o)] for o in operands) if new.op != "const"), default=0)
        for dtype in _CANDIDATES:
            if width <= BITS[dtype] < BITS[before] and _fits(whole, dtype):
                return dtype
        return before


def _in_type(node: Node, dtype: DType) -> Node:
    if node.dtype == dtype:
        return node
    if node.op == "const":
        return Node("const", dtype, data=int(node.data))
    return Node("cast", dtype, (node,))


def _fits(interval: Interval, dtype: DType) -> bool:
    low, high = integer_range(dtype)
    return low <= interval[0] and interval[1] <= high


# Intervals -----------------------------------------------------------------------------------------------------------
def _interval(
    node: Node,
    known: Mapping[int, Interval],
    locals_: Sequence[Interval | None],
    reads: Callable[[Node], Interval],
) -> Interval:
    full = integer_range(node.dtype)
    data: Any = node.data
    if node.op == "const":
        return (int(data), int(data))
    if node.op == "read":
        return reads(node)
    if node.op == "local":
        return locals_[data[0]] or full
    rule = operation(node.op).interval
    if rule is None or any(is_float(arg.dtype) for arg in node.args):
        return full
    exact = rule(node, *(known[id(arg)] for arg in node.args))
    # A result outside the type's range wraps around, possibly to any value.
    return exact if exact is not None and _fits(exact, node.dtype) else full
