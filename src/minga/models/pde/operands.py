"""Operands of operators in equations: vectors, complex values, and expressions that are worth a local."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.lang import operators
from minga.lang.cell import local
from minga.lang.expr import Node, as_node
from minga.lang.operations import operation
from minga.lang.operators import Mean
from minga.lang.trace import current_trace
from minga.models.pde.complex_values import IMAGINARY, Pair, linear, product, sum_of

__all__ = ["Vector", "divergence_of_gradient", "operand"]

_CHEAP: Final = 3
"""Arithmetic operations up to which an operand is computed again at each cell that an operator reads."""
_SLOW: Final = {"div": 5, "sqrt": 5}
"""Operations that take as long as several others."""


def operand(value: Any) -> Node:
    """Return the operand of an operator, as a local where it costs more than to read its value again.

    Parameters
    ----------
    value
        The expression, or a number.

    Returns
    -------
    Node
        The operand: the bits are the same either way.
    """
    node = as_node(value)
    signs = any(current_trace("an operator").antiperiodic.values())  # depend on the cell, which a local must not
    return node if signs or _cost(node) <= _CHEAP else local(node).node


def _cost(node: Node) -> int:
    """Return the number of arithmetic operations in an expression, slow ones counted several times."""
    seen: set[int] = set()
    stack, total = [node], 0
    while stack:
        each = stack.pop()
        if id(each) not in seen:
            seen.add(id(each))
            stack += each.args
            if each.args:
                total += 1 if _is_scaling(each) else _SLOW.get(each.op, operation(each.op).flops)
    return total


def _is_scaling(node: Node) -> bool:
    """Return whether this is a division by a number."""
    return node.op == "div" and node.args[1].op == "const"


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector: a sum of terms k grad u, which `div` turns into the conservative form, and of given components."""

    gradients: tuple[tuple[Any, Any, int], ...] = ()
    components: tuple[Any, ...] | None = None

    def parts(self) -> tuple[Any, ...]:
        """Return the components."""
        total = self.components
        for factor, value, order in self.gradients:
            here = tuple(product(factor, part) for part in _gradient(value, order))
            total = here if total is None else tuple(sum_of(a, b) for a, b in zip(total, here, strict=True))
        assert total is not None
        return total

    def times(self, factor: Any) -> Vector:
        """Return the product with a scalar."""
        components = self.components and tuple(product(factor, part) for part in self.components)
        return Vector(tuple((product(factor, k), value, order) for k, value, order in self.gradients), components)

    def plus(self, other: Vector) -> Vector:
        """Return the sum of two vectors."""
        if self.components is None or other.components is None:
            components = self.components or other.components
        else:
            components = tuple(sum_of(a, b) for a, b in zip(self.components, other.components, strict=True))
        return Vector((*self.gradients, *other.gradients), components)

    def divergence(self, order: int) -> Any:
        """Return the divergence."""
        total: Any = None
        for factor, value, accuracy in self.gradients:
            term = divergence_of_gradient(factor, value, max(order, accuracy))
            total = term if total is None else sum_of(total, term)
        if self.components is not None:
            term = _of_components(lambda parts: operators.div(parts, order), self.components)
            total = term if total is None else sum_of(total, term)
        return total


def _gradient(value: Any, order: int) -> tuple[Any, ...]:
    """Return the components of the gradient of a real or complex value."""
    if not isinstance(value, Pair):
        return operators.grad(value, order)
    parts = (operators.grad(as_node(part), order) for part in (value.re, value.im))
    return tuple(itertools.starmap(Pair, zip(*parts, strict=True)))


def divergence_of_gradient(factor: Any, value: Any, order: int, mean: Mean = "arithmetic") -> Any:
    """Return div(k grad u), of which both the factor and u may be complex.

    Parameters
    ----------
    factor, value
        k and u.
    order
        Accuracy.
    mean
        The mean of k at faces.

    Returns
    -------
    Node or Pair
        The expression.
    """

    def term(real: Any) -> Any:
        if isinstance(real, float) and real == 0.0:
            return 0.0
        return linear(lambda u: operators.div_grad(real, as_node(u), order, mean), value)

    if not isinstance(factor, Pair):
        return term(factor)
    return sum_of(term(factor.re), product(IMAGINARY, term(factor.im)))


def _of_components(function: Callable[[tuple[Node, ...]], Any], components: Sequence[Any]) -> Any:
    """Return a linear function, with one value, of a vector whose components are real or complex."""
    if not any(isinstance(part, Pair) for part in components):
        return function(tuple(map(as_node, components)))
    pairs = tuple(map(Pair.of, components))
    return Pair(
        function(tuple(as_node(pair.re) for pair in pairs)), function(tuple(as_node(pair.im) for pair in pairs))
    )
