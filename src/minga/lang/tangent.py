"""Tangents: derivatives by one value as expressions, which know their sign and vanish where they are zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minga.lang.expr import Node, const, where

__all__ = ["Tangent", "chosen", "is_one", "negated", "plus", "times"]


@dataclass(frozen=True, slots=True, eq=False)
class Tangent:
    """A derivative: `size`, or its negative. A tangent that is zero is None."""

    size: Node
    negative: bool = False

    @property
    def node(self) -> Node:
        """The tangent as an expression."""
        return -self.size if self.negative else self.size

    def __neg__(self) -> Tangent:
        return Tangent(self.size, not self.negative)

    def apply(self, function: Callable[[Node], Node]) -> Tangent:
        """Return the tangent of an odd function's value."""
        return Tangent(function(self.size), self.negative)

    def times(self, factor: Node) -> Tangent:
        """Return the tangent scaled by the derivative of an operation."""
        if is_one(self.size):
            return Tangent(factor, self.negative)
        return self if is_one(factor) else self.apply(lambda size: size * factor)


def plus(a: Tangent | None, b: Tangent | None) -> Tangent | None:
    """Return the sum of two tangents."""
    if a is None or b is None:
        return b if a is None else a
    if a.negative == b.negative:
        return Tangent(a.size + b.size, a.negative)
    return Tangent(a.size - b.size, a.negative)


def times(tangent: Tangent | None, factor: Callable[[], Node]) -> Tangent | None:
    """Return a tangent scaled by a factor, which is made only if the tangent is not zero."""
    return None if tangent is None else tangent.times(factor())


def negated(tangent: Tangent | None) -> Tangent | None:
    """Return the negative of a tangent."""
    return None if tangent is None else -tangent


def is_one(node: Node) -> bool:
    """Return True for the constant 1."""
    return node.op == "const" and node.data == 1


def chosen(condition: Node, a: Tangent | None, b: Tangent | None) -> Tangent | None:
    """Return the tangent of the value that `condition` chooses."""
    if a is None and b is None:
        return None
    if a is None or b is None:
        present = b if a is None else a
        assert present is not None
        zero = const(0.0, None if present.size.weak else present.size.dtype)
        pair = (zero, present.size) if a is None else (present.size, zero)
        return Tangent(where(condition, *pair), present.negative)
    if a.size is b.size and a.negative == b.negative:
        return a
    return Tangent(where(condition, a.size, b.size if a.negative == b.negative else -b.size), a.negative)
