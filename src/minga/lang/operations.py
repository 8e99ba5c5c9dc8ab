"""The table of operations: all that the language knows about each of them, except how it is computed.

An operation of kernels is one entry here and one in :mod:`minga.compile.operations`, which says what it means in NumPy
and how it is printed. What an author writes (`a + b`, `mg.sqrt(x)`) makes nodes of these operations in
:mod:`minga.lang.expr` and :mod:`minga.lang.functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Final

from minga.errors import KernelError, suggest
from minga.lang.expr import Node, cast, flushed, fused_multiply_add, where
from minga.lang.table import extremes
from minga.lang.tangent import Tangent, chosen, is_one, negated, plus, times
from minga.lang.types import BITS

__all__ = ["OPERATIONS", "Interval", "Operation", "operation"]

Interval = tuple[int, int]
"""Smallest and largest value that an integer or bool can have, both inclusive."""
IntervalRule = Callable[..., Interval | None]
"""Returns the exact interval of a node from the intervals of its arguments; None if nothing is known."""
DerivativeRule = Callable[..., Tangent | None]
"""Returns the tangent of a node from the tangents of its arguments, at least one of which is not None."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of kernels.

    Parameters
    ----------
    arity
        Number of arguments; None for any number.
    flops
        Arithmetic operations that it counts for. Casts, comparisons, choices, logic and shifts count for none.
    interval
        Rule for its values as an integer or bool, of integer or bool arguments, before they wrap around.
    narrows
        True if, as an integer, it may be done in the narrowest type that holds all values it takes and gives.
    derivative
        Chain rule; None if it has none, so that a value by which one derives must not enter.
    step
        True if it is constant between its steps: its derivative is 0 wherever it exists.
    """

    arity: int | None
    flops: int = 0
    interval: IntervalRule | None = None
    narrows: bool = False
    derivative: DerivativeRule | None = None
    step: bool = False


def operation(name: str) -> Operation:
    """Return the entry of an operation. Raises KernelError for an unknown one."""
    found = OPERATIONS.get(name)
    if found is None:
        near = suggest(name, OPERATIONS)
        raise KernelError(
            f"there is no operation {name!r} of kernels" + (f"; did you mean {near!r}?" if near else ""),
            remedy="add it to the tables in minga/lang/operations.py and minga/compile/operations.py",
        )
    return found


# Intervals -----------------------------------------------------------------------------------------------------------
def _corners(operation: Callable[[int, int], int]) -> IntervalRule:
    """Return the rule of an operation that takes its extremes at the ends of its arguments."""

    def rule(_: Node, a: Interval, b: Interval) -> Interval:
        values = [operation(x, y) for x, y in product(a, b)]
        return min(values), max(values)

    return rule


def _select(_: Node, condition: Interval, then: Interval, otherwise: Interval) -> Interval:
    if condition[0] == condition[1]:
        return then if condition[0] else otherwise
    return min(then[0], otherwise[0]), max(then[1], otherwise[1])


def _equal(_: Node, a: Interval, b: Interval) -> Interval:
    return int(a[0] == a[1] == b[0] == b[1]), int(a[0] <= b[1] and b[0] <= a[1])


def _less(_: Node, a: Interval, b: Interval) -> Interval:
    return int(a[1] < b[0]), int(a[0] < b[1])


def _greater(node: Node, a: Interval, b: Interval) -> Interval:
    return _less(node, b, a)


def _opposite(rule: Callable[[Node, Interval, Interval], Interval]) -> IntervalRule:
    def opposite(node: Node, a: Interval, b: Interval) -> Interval:
        low, high = rule(node, a, b)
        return 1 - high, 1 - low

    return opposite


def _not(node: Node, a: Interval) -> Interval | None:
    return (1 - a[1], 1 - a[0]) if node.dtype == "bool" else None


def _absolute(_: Node, a: Interval) -> Interval:
    low, high = sorted((abs(a[0]), abs(a[1])))
    return (0 if a[0] <= 0 <= a[1] else low), high


def _and(node: Node, a: Interval, b: Interval) -> Interval | None:
    if node.dtype == "bool":
        return a[0] & b[0], a[1] & b[1]
    if a[0] < 0 and b[0] < 0:
        return None
    return 0, min(high for low, high in (a, b) if low >= 0)


def _or(node: Node, a: Interval, b: Interval) -> Interval | None:
    return (a[0] | b[0], a[1] | b[1]) if node.dtype == "bool" else _bits_of_either(a, b)


def _xor(node: Node, a: Interval, b: Interval) -> Interval | None:
    return None if node.dtype == "bool" else _bits_of_either(a, b)


def _bits_of_either(a: Interval, b: Interval) -> Interval | None:
    return None if a[0] < 0 or b[0] < 0 else (0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1)


def _floor_division(node: Node, a: Interval, b: Interval) -> Interval | None:
    if b[0] > 0:
        return _corners(lambda x, y: x // y)(node, a, b)
    # Integer division by zero gives zero.
    return (0, a[1]) if a[0] >= 0 and b[0] >= 0 else None


def _modulo(_: Node, a: Interval, b: Interval) -> Interval | None:
    if a[0] >= 0 and b[0] > a[1]:
        return a
    return (0, max(0, b[1] - 1)) if b[0] >= 0 else None


def _shift(operation: Callable[[int, int], int]) -> IntervalRule:
    exact = _corners(operation)
    return lambda node, a, n: exact(node, a, n) if n[0] >= 0 and n[1] < 64 else None


# Derivatives ---------------------------------------------------------------------------------------------------------
def _product(node: Node, a: Tangent | None, b: Tangent | None) -> Tangent | None:
    x, y = node.args
    return plus(times(a, lambda: y), times(b, lambda: x))


def _quotient(node: Node, a: Tangent | None, b: Tangent | None) -> Tangent | None:
    reciprocal = 1.0 / node.args[1]
    return plus(times(a, lambda: reciprocal), negated(times(b, lambda: node * reciprocal)))


def _remainder(node: Node, a: Tangent | None, b: Tangent | None) -> Tangent | None:
    x, y = node.args
    return plus(a, negated(times(b, lambda: x // y)))


def _fused(node: Node, a: Tangent | None, b: Tangent | None, c: Tangent | None) -> Tangent | None:
    x, y, _ = node.args
    for tangent, factor in ((b, x), (a, y)):
        if tangent is None:
            continue
        if c is None:
            c = tangent.times(factor)
        else:
            other = c.size if c.negative == tangent.negative else -c.size
            c = Tangent(fused_multiply_add(tangent.size, factor, other), tangent.negative)
    return c


def _magnitude(node: Node, a: Tangent) -> Tangent:
    return a.apply(lambda size: where(node.args[0] < 0.0, -size, size))


# The table -----------------------------------------------------------------------------------------------------------
OPERATIONS: Final[dict[str, Operation]] = {
    # Values that a cell is given.
    **dict.fromkeys(("const", "scalar", "read", "local", "index"), Operation(0)),
    # In loops inside cells (mg.iterate): the state, what is brought from outside; the rounds, and the final state.
    **dict.fromkeys(("state", "captured"), Operation(0)),
    "iterate": Operation(None),
    "iterated": Operation(1),
    # Arithmetic.
    "add": Operation(
        2, 1, lambda _, a, b: (a[0] + b[0], a[1] + b[1]), narrows=True, derivative=lambda _, a, b: plus(a, b)
    ),
    "sub": Operation(
        2, 1, lambda _, a, b: (a[0] - b[1], a[1] - b[0]), narrows=True, derivative=lambda _, a, b: plus(a, negated(b))
    ),
    "mul": Operation(2, 1, _corners(lambda x, y: x * y), narrows=True, derivative=_product),
    "div": Operation(2, 1, derivative=_quotient),
    "floordiv": Operation(2, 1, _floor_division, narrows=True, step=True),
    "mod": Operation(2, 1, _modulo, narrows=True, derivative=_remainder),
    "neg": Operation(1, 1, lambda _, a: (-a[1], -a[0]), narrows=True, derivative=lambda _, a: -a),
    "abs": Operation(1, 1, _absolute, narrows=True, derivative=_magnitude),
    "sqrt": Operation(1, 1, derivative=lambda node, a: a.times(0.5 / node)),
    "fma": Operation(3, 2, derivative=_fused),
    "min": Operation(
        2, 1, lambda _, a, b: (min(a[0], b[0]), min(a[1], b[1])), narrows=True,
        derivative=lambda node, a, b: chosen(node.args[0] < node.args[1], a, b),
    ),
    "max": Operation(
        2, 1, lambda _, a, b: (max(a[0], b[0]), max(a[1], b[1])), narrows=True,
        derivative=lambda node, a, b: chosen(node.args[0] > node.args[1], a, b),
    ),
    **dict.fromkeys(("floor", "ceil", "trunc", "rint"), Operation(1, 1, step=True)),
    "flush": Operation(1, derivative=lambda _, a: a if is_one(a.size) else a.apply(flushed)),
    # Comparisons and choice.
    "eq": Operation(2, 0, _equal, narrows=True),
    "ne": Operation(2, 0, _opposite(_equal), narrows=True),
    "lt": Operation(2, 0, _less, narrows=True),
    "ge": Operation(2, 0, _opposite(_less), narrows=True),
    "gt": Operation(2, 0, _greater, narrows=True),
    "le": Operation(2, 0, _opposite(_greater), narrows=True),
    "select": Operation(
        3, 0, _select, narrows=True, derivative=lambda node, _, a, b: chosen(node.args[0], a, b)
    ),
    # Bits.
    "and": Operation(2, 0, _and, narrows=True),
    "or": Operation(2, 0, _or, narrows=True),
    "xor": Operation(2, 0, _xor, narrows=True),
    "not": Operation(1, 0, _not),
    "shl": Operation(2, 0, _shift(lambda x, y: x << y), narrows=True),
    "shr": Operation(2, 0, _shift(lambda x, y: x >> y), narrows=True),
    "popcount": Operation(1, 0, lambda node, _: (0, BITS[node.dtype])),
    "bitreverse": Operation(1),
    # Other types, and tables.
    "cast": Operation(
        1, 0, lambda _, a: a, derivative=lambda node, a: a.apply(lambda size: cast(size, node.dtype))
    ),
    "bitcast": Operation(1),
    "lookup": Operation(1, 0, lambda node, a: extremes(node.data, *a), step=True),
}  # fmt: skip
"""All operations of kernels, by name."""
