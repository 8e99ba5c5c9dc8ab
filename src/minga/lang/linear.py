"""The part of a cell's expression that is linear in some values, and the rest, as two expressions.

Sums are taken apart, and factors that do not depend on the values are distributed over them; a product of two factors
that both depend on the values is nonlinear, whatever it simplifies to. Neither part is a difference with the other, so
that nothing is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from minga.lang.expr import Node, const
from minga.lang.graph import topological
from minga.lang.trace import Trace, current_trace
from minga.lang.types import is_float

__all__ = ["linear_parts"]

Parts = tuple[Node | None, Node | None]
"""The linear part and the rest; None is 0."""


def linear_parts(expressions: Sequence[Node], variable: Callable[[Node], bool]) -> list[Parts]:
    """Split expressions of a kernel into the parts that are linear in some values, and the rest.

    Parameters
    ----------
    expressions
        Floats.
    variable
        True for reads of the values in which a part has to be linear.

    Returns
    -------
    list of pairs
        For each expression the linear part, which is 0 where all values are 0, and the rest; None where a part is 0.
        Their sum is the expression up to rounding.
    """
    splitting = _Splitting(current_trace("the linear part"), variable)
    return [splitting(each) for each in expressions]


class _Splitting:
    """Parts of nodes, each computed once."""

    def __init__(self, trace: Trace, variable: Callable[[Node], bool]) -> None:
        self._trace = trace
        self._variable = variable
        self._made: dict[int, tuple[Node, Parts]] = {}
        self._free: dict[int, tuple[Node, bool]] = {}
        self._locals: dict[int, Parts] = {}

    def __call__(self, root: Node) -> Parts:
        """Return the parts of `root`, without recursion, since the graphs of unrolled kernels are deep."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            needed = [] if id(node) in self._made else [one for one in self._parts(node) if id(one) not in self._made]
            if needed:
                waiting += needed
                continue
            waiting.pop()
            if id(node) not in self._made:
                self._made[id(node)] = (node, self._split(node))
        return self._made[id(root)][1]

    def _parts(self, node: Node) -> Iterator[Node]:
        """Yield the nodes whose parts those of `node` consist of."""
        if self._is_free(node) or node.of is not None or not is_float(node.dtype):
            return
        if node.op in ("add", "sub", "neg", "cast"):
            yield from (arg for arg in node.args if is_float(arg.dtype))
        elif node.op == "mul":
            yield from (arg for arg in node.args if not self._is_free(arg))
        elif node.op == "div":
            yield node.args[0]
        elif node.op == "select":
            yield from node.args[1:]

    def _split(self, node: Node) -> Parts:
        if self._is_free(node):
            return None, None if node.op == "const" and node.data == 0 else node
        if node.op == "local":
            return self._of_local(node)
        if self._variable(node):
            return node, None
        if node.of is not None or not is_float(node.dtype):
            return None, node
        of = [self._made[id(arg)][1] if id(arg) in self._made else (None, arg) for arg in node.args]
        match node.op:
            case "add" | "sub":
                return _sum(node, of[0][0], of[1][0]), _sum(node, of[0][1], of[1][1])
            case "neg" | "cast":
                return _with(node, (of[0][0],)), _with(node, (of[0][1],))
            case "mul" if self._is_free(node.args[0]):
                return _with(node, (node.args[0], of[1][0])), _with(node, (node.args[0], of[1][1]))
            case "mul" if self._is_free(node.args[1]):
                return _with(node, (of[0][0], node.args[1])), _with(node, (of[0][1], node.args[1]))
            case "div" if self._is_free(node.args[1]):
                return _with(node, (of[0][0], node.args[1])), _with(node, (of[0][1], node.args[1]))
            case "select" if self._is_free(node.args[0]):
                return _chosen(node, of[1][0], of[2][0]), _chosen(node, of[1][1], of[2][1])
        return None, node

    def _of_local(self, node: Node) -> Parts:
        """Return the parts of a local that is read at an offset: new locals, read at the same offset."""
        number, offsets = node.data
        if number not in self._locals:
            linear, rest = self(self._trace.locals[number])
            self._locals[number] = self._named(linear), self._named(rest)
        linear, rest = self._locals[number]
        return _at(linear, offsets), _at(rest, offsets)

    def _named(self, part: Node | None) -> Node | None:
        """Return a part of a local's definition as a new local."""
        if part is None:
            return None
        self._trace.locals.append(part)
        return Node("local", part.dtype, data=(len(self._trace.locals) - 1, (0,) * self._trace.ndim))

    def _is_free(self, root: Node) -> bool:
        """Return True if a node does not depend on the values."""
        if id(root) not in self._free:
            for node in topological([root]):
                if id(node) in self._free:
                    continue
                if node.op == "local":
                    free = self._is_free(self._trace.locals[node.data[0]])
                else:
                    free = not self._variable(node) and all(self._free[id(arg)][1] for arg in node.args)
                self._free[id(node)] = (node, free)
        return self._free[id(root)][1]


def _with(node: Node, args: Sequence[Node | None]) -> Node | None:
    """Return the same operation of other operands; None if one of them is 0."""
    known = tuple(arg for arg in args if arg is not None)
    return Node(node.op, node.dtype, known, node.data, node.weak) if len(known) == len(args) else None


def _sum(node: Node, left: Node | None, right: Node | None) -> Node | None:
    """Return the sum or difference of two parts."""
    if right is None:
        return left
    if left is None:
        return Node("neg", node.dtype, (right,), weak=node.weak) if node.op == "sub" else right
    return _with(node, (left, right))


def _chosen(node: Node, then: Node | None, otherwise: Node | None) -> Node | None:
    """Return the part that a condition chooses."""
    if then is None and otherwise is None:
        return None
    zero = const(0.0, node.dtype)
    return _with(node, (node.args[0], zero if then is None else then, zero if otherwise is None else otherwise))


def _at(local: Node | None, offsets: tuple[int, ...]) -> Node | None:
    return None if local is None else Node("local", local.dtype, data=(local.data[0], offsets))
