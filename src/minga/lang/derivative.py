"""`mg.derivative`: the derivative of a cell's expression with respect to one of its values, as another expression.

This is forward-mode differentiation from graph to graph: every node that depends on the value gets a tangent by the
chain rule. The tangents of a kernel are kept, so that several expressions share their common parts; the factor of an
operation (1 / b of a quotient, the exponential itself, ...) is the same node for all variables. Zeros are not added,
ones are not multiplied, and a sign is carried along instead of being multiplied: none of this changes a bit of the
remaining terms.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from minga.lang.elementary import cosh, pow, sinh
from minga.lang.expr import Node, as_node, author_error, cast, const, square_root, strong, where
from minga.lang.graph import Interner, topological
from minga.lang.math import cos, exp, log, sin
from minga.lang.operations import operation
from minga.lang.shift import shifted
from minga.lang.tangent import Tangent, chosen, is_one, negated, plus, times
from minga.lang.trace import Trace, maybe_trace
from minga.lang.types import is_float

__all__ = ["FUNCTIONS", "derivative", "directional_derivatives"]


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


def directional_derivatives(expressions: Sequence[Node], direction: Callable[[Node], Node | None]) -> list[Node]:
    """Differentiate expressions of a kernel for a change of all cells that they read: products with the Jacobian.

    One sweep over the expressions gives the sum of all derivatives by a read times the change of that read, exactly,
    including reads within locals. The rules for functions without a derivative are those of `derivative`.

    Parameters
    ----------
    expressions
        Floats.
    direction
        The change of a read as a read of the same cell of another field; None where it does not change.

    Returns
    -------
    list of Node
        The derivative of each expression, in its type.

    Raises
    ------
    KernelError
        If an expression is not a float, or depends on a read through the bits of a float or through `mg.iterate`.
    """
    found: list[Node] = []

    def seed(node: Node) -> Tangent | None:
        change = direction(node) if node.op == "read" else None
        return None if change is None else Tangent(change)

    tangents = _Tangents(maybe_trace(), Interner(), seed, lambda offsets: tangents)
    for each in expressions:
        if not is_float(each.dtype):
            raise author_error(
                f"the derivative of a value of type {each.dtype}",
                'differentiate floats; cast(x, "f8") has the derivative 0',
            )
        tangent = tangents(each)
        found.append(const(0.0, each.dtype) if tangent is None else cast(strong(tangent.node), each.dtype))
    return found


# The chain rule ------------------------------------------------------------------------------------------------------
FUNCTIONS: Final[dict[str, Callable[..., Tangent | None]]] = {
    "exp": lambda d, x, value: d.times(value),
    "expm1": lambda d, x, value: d.times(exp(x)),
    "log": lambda d, x, value: d.times(1.0 / x),
    "log1p": lambda d, x, value: d.times(1.0 / (1.0 + x)),
    "sin": lambda d, x, value: d.times(cos(x)),
    "cos": lambda d, x, value: -d.times(sin(x)),
    "tanh": lambda d, x, value: d.times((1.0 - value) * (1.0 + value)),
    "tan": lambda d, x, value: d.times(1.0 + value * value),
    "asin": lambda d, x, value: d.times(1.0 / square_root((1.0 - x) * (1.0 + x))),
    "acos": lambda d, x, value: -d.times(1.0 / square_root((1.0 - x) * (1.0 + x))),
    "atan": lambda d, x, value: d.times(1.0 / (1.0 + x * x)),
    "atan2": lambda d, e, y, x, value: plus(
        times(d, lambda: x / (x * x + y * y)), negated(times(e, lambda: y / (x * x + y * y)))
    ),
    "sinh": lambda d, x, value: d.times(cosh(x)),
    "cosh": lambda d, x, value: d.times(sinh(x)),
    "asinh": lambda d, x, value: d.times(1.0 / square_root(x * x + 1.0)),
    "acosh": lambda d, x, value: d.times(1.0 / square_root((x - 1.0) * (x + 1.0))),
    "atanh": lambda d, x, value: d.times(1.0 / ((1.0 - x) * (1.0 + x))),
    "log2": lambda d, x, value: d.times(1.0 / (x * 0.6931471805599453)),
    "log10": lambda d, x, value: d.times(1.0 / (x * 2.302585092994046)),
    "pow": lambda d, e, x, y, value: plus(
        times(d, lambda: y * pow(x, y - 1.0)), times(e, lambda: where(value == 0.0, 0.0, value * log(x)))
    ),
    "erf": lambda d, x, value: d.times((2.0 / math.sqrt(math.pi)) * exp(-(x * x))),
    "hypot": lambda d, e, x, y, value: plus(times(d, lambda: x / value), times(e, lambda: y / value)),
    "heaviside": lambda d, e, x, middle, value: None if e is None else chosen(x == 0.0, e, None),
    "whole": lambda d, x, value: None,
    "cbrt": lambda d, x, value: d.times(1.0 / (3.0 * value * value)),
}
"""Tangents of elementary functions: from the tangents of the arguments (None is 0), these, and the function's value."""


class _Tangents:
    """Tangents of nodes for a change of some values, each computed once.

    `seed` gives the tangents of the values that change, and None for all other nodes; `seen_from` returns the tangents
    for the same change as seen from the cell that lies so far back.
    """

    def __init__(
        self,
        trace: Trace | None,
        share: Interner,
        seed: Callable[[Node], Tangent | None],
        seen_from: Callable[[tuple[int, ...]], _Tangents],
    ) -> None:
        self._trace = trace
        self._share = share
        self._seed = seed
        self._seen_from = seen_from
        self._made: dict[int, Tangent | None] = {}
        self._locals: dict[int, Tangent | None] = {}

    def __call__(self, root: Node) -> Tangent | None:
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
        return self._seed(node) is not None

    def _parts(self, node: Node) -> Iterator[Node]:
        """Yield the nodes whose tangents the tangent of `node` depends on."""
        if self._is_variable(node) or not is_float(node.dtype):
            return
        if node.of is not None:
            yield from node.of[1:]
        elif not operation(node.op).step:
            yield from node.args

    def _tangent(self, node: Node) -> Tangent | None:
        change = self._seed(node)
        if change is not None:
            return change
        if not is_float(node.dtype):
            return None
        if node.op == "local":
            return self._local(node)
        known = operation(node.op)
        if known.step or known.arity == 0:
            return None
        if node.of is not None:
            name, *arguments = node.of
            inner = [self._made[self._key(argument)] for argument in arguments]
            if all(tangent is None for tangent in inner):
                return None
            return FUNCTIONS[name](*inner, *arguments, node)
        if known.derivative is None:
            self._refuse_if_it_depends(node)
            return None
        parts = [self._made[self._key(arg)] for arg in node.args]
        return None if all(part is None for part in parts) else known.derivative(node, *parts)

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

    # Locals --------------------------------------------------------------------------------------------------------
    def _local(self, node: Node) -> Tangent | None:
        """Return the tangent of a local that is read at an offset.

        It is the tangent of the local's definition with respect to the variable as seen from that cell.
        """
        trace, number, there = self._at_local(node)
        tangent = there._of_local(trace, number)
        if tangent is None or is_one(tangent.size):
            return tangent
        return tangent.apply(lambda size: Node("local", size.dtype, data=(size.data[0], node.data[1])))

    def _at_local(self, node: Node) -> tuple[Trace, int, _Tangents]:
        """Return the trace, the local's number, and the tangents for the variable as seen from the local's cell."""
        trace = self._trace
        assert trace is not None
        number, offsets = node.data
        return trace, number, self._seen_from(tuple(-offset for offset in offsets))

    def _of_local(self, trace: Trace, number: int) -> Tangent | None:
        """Return the tangent of a local's definition, as a new local that is read at the cell itself."""
        if number not in self._locals:
            tangent = self(trace.locals[number])
            if tangent is not None and not is_one(tangent.size):
                own = strong(tangent.size)
                trace.locals.append(own)
                here = Node("local", own.dtype, data=(len(trace.locals) - 1, (0,) * trace.ndim))
                tangent = Tangent(here, tangent.negative)
            self._locals[number] = tangent
        return self._locals[number]


def _tangents(trace: Trace | None, variable: Node) -> _Tangents:
    """Return the tangents for a variable; within a kernel, those that were computed before."""
    if trace is None:
        return _of_one(None, Interner(), variable)
    known = trace.tangents
    share = known.setdefault("share", Interner())
    assert isinstance(share, Interner)
    key = (id(share(variable)), variable.weak)
    if key not in known:
        known[key] = _of_one(trace, share, variable)
    found = known[key]
    assert isinstance(found, _Tangents)
    return found


def _of_one(trace: Trace | None, share: Interner, variable: Node) -> _Tangents:
    """Return the tangents for a unit change of one value."""
    place = share(variable)
    one = Tangent(const(1.0) if variable.weak else const(1.0, variable.dtype))

    def seen_from(back: tuple[int, ...]) -> _Tangents:
        assert trace is not None
        return _tangents(trace, shifted(variable, back, [param.axes for param in trace.params]))

    return _Tangents(trace, share, lambda node: one if share(node) is place else None, seen_from)
