"""`mg.derivative`: the derivative of a cell's expression with respect to one of its values, as another expression.

This is forward-mode differentiation from graph to graph: every node that depends on the value gets a tangent by the
chain rule. The tangents of a kernel are kept, so that several expressions share their common parts; the factor of an
operation (1 / b of a quotient, the exponential itself, ...) is the same node for all variables. Zeros are not added,
ones are not multiplied, and a sign is carried along instead of being multiplied: none of this changes a bit of the
remaining terms.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from minga.lang.expr import Node, as_node, author_error, cast, const, fused_multiply_add, strong, where
from minga.lang.graph import Interner, topological
from minga.lang.math import cos, exp, sin
from minga.lang.moved import moved
from minga.lang.trace import Trace, maybe_trace
from minga.lang.types import is_float

__all__ = ["derivative"]


def derivative(expression: object, variable: object) -> Node:
    """Differentiate an expression with respect to one of its values, cell by cell.

    Parameters
    ----------
    expression
        A float.
    variable
        A float that the expression depends on: a read (`u[0, 0]`, `u[1, 0]`; other cells count as constants), a scalar,
        or an intermediate. Every equal subexpression is the variable; the operands of the variable itself count as
        constants.

    Returns
    -------
    Node
        The derivative, in the type of `expression`. Weak numbers (scalars given as Python numbers) may become f8.

    Raises
    ------
    KernelError
        If `expression` is not a float; if the variable is an integer or a constant; or if the expression depends on
        the variable through the bits of a float or through `mg.iterate`.

    Notes
    -----
    Where a function has no derivative, a one-sided derivative is taken: for `mg.abs` at 0 the right one, for `mg.min`
    and `mg.max` of equal values that of the last argument. `mg.where` has the derivative of the value it chooses. Step
    functions (`//`, casts to integers, tables) have the derivative 0. The derivative of a quotient is computed with the
    reciprocal of the divisor, which overflows if the divisor is below 2**-1022 (f4: 2**-126).
    """
    of, by = as_node(expression), as_node(variable)
    if not is_float(by.dtype):
        raise author_error(
            f"mg.derivative by a value of type {by.dtype}", "derive by a float; an integer has no neighbourhood"
        )
    if by.op == "const":
        raise author_error(
            f"mg.derivative by the constant {by.data}", "derive by a cell, a scalar, or an expression of them"
        )
    if not is_float(of.dtype):
        raise author_error(
            f"mg.derivative of a value of type {of.dtype}",
            'derive a float; the derivative of mg.cast(x, "f8") of an integer x is 0',
        )
    trace = maybe_trace()
    tangent = _tangents(trace, by)(of)
    weak = of.weak and by.weak
    if tangent is None:
        return const(0.0) if weak else const(0.0, of.dtype)
    return tangent.node if weak else cast(strong(tangent.node), of.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Tangent:
    """A tangent: `size` or its negative. A tangent that is zero is represented by None."""

    size: Node
    negative: bool = False

    @property
    def node(self) -> Node:
        """The tangent as an expression, with its sign."""
        return -self.size if self.negative else self.size

    def __neg__(self) -> _Tangent:
        return _Tangent(self.size, not self.negative)

    def apply(self, function: Callable[[Node], Node]) -> _Tangent:
        """Apply an odd function to the tangent."""
        return _Tangent(function(self.size), self.negative)

    def times(self, factor: Node) -> _Tangent:
        """Multiply the tangent by the derivative of an operation."""
        if _is_one(self.size):
            return _Tangent(factor, self.negative)
        return self if _is_one(factor) else self.apply(lambda size: size * factor)


def _plus(a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
    if a is None or b is None:
        return b if a is None else a
    if a.negative == b.negative:
        return _Tangent(a.size + b.size, a.negative)
    return _Tangent(a.size - b.size, a.negative)


def _times(tangent: _Tangent | None, factor: Callable[[], Node]) -> _Tangent | None:
    return None if tangent is None else tangent.times(factor())


def _negated(tangent: _Tangent | None) -> _Tangent | None:
    return None if tangent is None else -tangent


def _is_one(node: Node) -> bool:
    return node.op == "const" and node.data == 1


def _chosen(condition: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
    """Return the tangent of a value that `condition` chooses."""
    if a is None and b is None:
        return None
    if a is None or b is None:
        present = b if a is None else a
        assert present is not None
        zero = const(0.0, None if present.size.weak else present.size.dtype)
        pair = (zero, present.size) if a is None else (present.size, zero)
        return _Tangent(where(condition, *pair), present.negative)
    if a.size is b.size and a.negative == b.negative:
        return a
    return _Tangent(where(condition, a.size, b.size if a.negative == b.negative else -b.size), a.negative)


# The chain rule ------------------------------------------------------------------------------------------------------
_FUNCTIONS: Final[dict[str, Callable[[_Tangent, Node, Node], _Tangent]]] = {
    "exp": lambda d, x, value: d.times(value),
    "expm1": lambda d, x, value: d.times(exp(x)),
    "log": lambda d, x, value: d.times(1.0 / x),
    "log1p": lambda d, x, value: d.times(1.0 / (1.0 + x)),
    "sin": lambda d, x, value: d.times(cos(x)),
    "cos": lambda d, x, value: -d.times(sin(x)),
    "tanh": lambda d, x, value: d.times((1.0 - value) * (1.0 + value)),
}
"""Tangents of elementary functions, from the tangent of the argument, the argument, and the function's value."""

_LEAVES: Final = frozenset(("const", "scalar", "read", "index", "state"))
_STEPS: Final = frozenset(("floordiv", "floor", "ceil", "trunc", "rint", "lookup"))


class _Tangents:
    """Tangents of nodes for a unit change of one value, each computed once."""

    def __init__(self, trace: Trace | None, share: Interner, variable: Node) -> None:
        self._trace = trace
        self._share = share
        self._variable = variable
        self._place = share(variable)
        self._one = _Tangent(const(1.0) if variable.weak else const(1.0, variable.dtype))
        self._made: dict[int, _Tangent | None] = {}
        self._locals: dict[int, _Tangent | None] = {}

    def __call__(self, root: Node) -> _Tangent | None:
        """Return the tangent of `root`, without recursion, since the graphs of unrolled kernels are deep."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            if self._key(node) in self._made:
                waiting.pop()
                continue
            needed = [part for part in self._parts(node) if self._key(part) not in self._made]
            if needed:
                waiting += reversed(needed)
                continue
            waiting.pop()
            self._made[self._key(node)] = self._tangent(node)
        return self._made[self._key(root)]

    def _key(self, node: Node) -> int:
        return id(self._share(node))

    def _is_variable(self, node: Node) -> bool:
        return self._share(node) is self._place

    def _parts(self, node: Node) -> Iterator[Node]:
        """Yield the nodes whose tangents the tangent of `node` depends on."""
        if self._is_variable(node) or not is_float(node.dtype):
            return
        if node.of is not None:
            yield node.of[1]
        elif node.op not in _STEPS:
            yield from node.args[1:] if node.op == "select" else node.args

    def _tangent(self, node: Node) -> _Tangent | None:
        if self._is_variable(node):
            return self._one
        if not is_float(node.dtype) or node.op in _LEAVES or node.op in _STEPS:
            return None
        if node.op == "local":
            return self._local(node)
        if node.of is not None:
            name, argument = node.of
            inner = self._made[self._key(argument)]
            return None if inner is None else _FUNCTIONS[name](inner, argument, node)
        rule = getattr(self, f"_{node.op}", None)
        if rule is None:
            self._refuse_if_it_depends(node)
            return None
        args = node.args[1:] if node.op == "select" else node.args
        parts = [self._made[self._key(arg)] for arg in args]
        if all(part is None for part in parts):
            return None
        tangent: _Tangent | None = rule(node, *parts)
        return tangent

    def _refuse_if_it_depends(self, node: Node) -> None:
        """Raise KernelError if a node without a derivative depends on the variable."""
        if self._enters(node):
            what = "mg.iterate" if node.op.startswith("iterate") else f"the operation {node.op!r}"
            remedy = "write the value as a function of floats: mg.where, mg.min, mg.exp, ..."
            if node.op.startswith("iterate"):
                remedy = "derive by its result: name that, and apply the chain rule with the implicit function theorem"
            raise author_error(f"mg.derivative: the expression depends on the variable through {what}", remedy)

    def _enters(self, root: Node) -> bool:
        """Return True if `root` depends on the variable in any way."""
        for node in topological([root]):
            if self._is_variable(node):
                return True
            if node.op == "local":
                trace, number, there = self._at_local(node)
                if there._enters(trace.locals[number]):
                    return True
        return False

    # Operations ----------------------------------------------------------------------------------------------------
    def _add(self, _: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        return _plus(a, b)

    def _sub(self, _: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        return _plus(a, _negated(b))

    def _mul(self, node: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        x, y = node.args
        return _plus(_times(a, lambda: y), _times(b, lambda: x))

    def _div(self, node: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        reciprocal = 1.0 / node.args[1]
        return _plus(_times(a, lambda: reciprocal), _negated(_times(b, lambda: node * reciprocal)))

    def _mod(self, node: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        x, y = node.args
        return _plus(a, _negated(_times(b, lambda: x // y)))

    def _fma(self, node: Node, a: _Tangent | None, b: _Tangent | None, c: _Tangent | None) -> _Tangent | None:
        x, y, _ = node.args
        for tangent, factor in ((b, x), (a, y)):
            if tangent is None:
                continue
            if c is None:
                c = tangent.times(factor)
            else:
                other = c.size if c.negative == tangent.negative else -c.size
                c = _Tangent(fused_multiply_add(tangent.size, factor, other), tangent.negative)
        return c

    def _neg(self, _: Node, a: _Tangent) -> _Tangent:
        return -a

    def _abs(self, node: Node, a: _Tangent) -> _Tangent:
        return a.apply(lambda size: where(node.args[0] < 0.0, -size, size))

    def _sqrt(self, node: Node, a: _Tangent) -> _Tangent:
        return a.times(0.5 / node)

    def _min(self, node: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        return _chosen(node.args[0] < node.args[1], a, b)

    def _max(self, node: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        return _chosen(node.args[0] > node.args[1], a, b)

    def _select(self, node: Node, a: _Tangent | None, b: _Tangent | None) -> _Tangent | None:
        return _chosen(node.args[0], a, b)

    def _cast(self, node: Node, a: _Tangent) -> _Tangent:
        return a.apply(lambda size: cast(size, node.dtype))

    # Locals --------------------------------------------------------------------------------------------------------
    def _local(self, node: Node) -> _Tangent | None:
        """Return the tangent of a local that is read at an offset.

        It is the tangent of the local's definition with respect to the variable as seen from that cell.
        """
        trace, number, there = self._at_local(node)
        tangent = there._of_local(trace, number)
        if tangent is None or _is_one(tangent.size):
            return tangent
        return tangent.apply(lambda size: Node("local", size.dtype, data=(size.data[0], node.data[1])))

    def _at_local(self, node: Node) -> tuple[Trace, int, _Tangents]:
        """Return the trace, the local's number, and the tangents for the variable as seen from the local's cell."""
        trace = self._trace
        assert trace is not None
        number, offsets = node.data
        back = tuple(-offset for offset in offsets)
        return trace, number, _tangents(trace, moved(self._variable, back, [param.axes for param in trace.params]))

    def _of_local(self, trace: Trace, number: int) -> _Tangent | None:
        """Return the tangent of a local's definition, as a new local that is read at the cell itself."""
        if number not in self._locals:
            tangent = self(trace.locals[number])
            if tangent is not None and not _is_one(tangent.size):
                own = strong(tangent.size)
                trace.locals.append(own)
                here = Node("local", own.dtype, data=(len(trace.locals) - 1, (0,) * trace.ndim))
                tangent = _Tangent(here, tangent.negative)
            self._locals[number] = tangent
        return self._locals[number]


def _tangents(trace: Trace | None, variable: Node) -> _Tangents:
    """Return the tangents for a variable; within a kernel, those that were computed before."""
    if trace is None:
        return _Tangents(None, Interner(), variable)
    known = trace.tangents
    share = known.setdefault("share", Interner())
    assert isinstance(share, Interner)
    key = (id(share(variable)), variable.weak)
    if key not in known:
        known[key] = _Tangents(trace, share, variable)
    found = known[key]
    assert isinstance(found, _Tangents)
    return found
