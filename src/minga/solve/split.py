"""Rates of change as a sum: a part that is linear in the fields, which may be treated implicitly, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from minga.errors import ProgramError
from minga.lang.expr import Node, as_node, const
from minga.lang.graph import topological
from minga.lang.linear import Parts, linear_parts
from minga.lang.trace import current_trace
from minga.solve.rates import Rates

__all__ = ["split"]


def split(rates: Rates) -> tuple[Rates, Rates]:
    """Split rates of change into the part that is linear in the fields and the rest.

    Parameters
    ----------
    rates
        The rates of change.

    Returns
    -------
    tuple of two Rates
        The linear part, whose coefficients may depend on place and time, and the rest. Tracing the linear part raises
        ProgramError if no field has a linear term that reads neighbouring cells.
    """
    return replace(rates, function=_part(rates, 0)), replace(rates, function=_part(rates, 1))


def _part(rates: Rates, which: int) -> Callable[..., list[Node]]:
    """Return the function of one part."""

    def function(state: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Node]:
        own = {item.parameter for item in state}
        found = [as_node(value) for value in rates.function(state, constants, t, **scalars)]
        parts = linear_parts(found, lambda node: node.op == "read" and node.data[0] in own)
        if not which:
            _check_stiff(parts)
        return [const(0.0, "f8") if part[which] is None else as_node(part[which]) for part in parts]

    return function


def _check_stiff(parts: Sequence[Parts]) -> None:
    """Raise an error if no linear part reads neighbouring cells."""
    waiting = [linear for linear, _ in parts if linear is not None]
    locals_ = current_trace("the linear part").locals
    while waiting:
        for node in topological([waiting.pop()]):
            if node.op in ("read", "local") and any(node.data[-1]):
                return
            if node.op == "local":
                waiting.append(locals_[node.data[0]])
    raise ProgramError(
        "no term of the rates is linear in the fields and reads neighbouring cells: nothing can be implicit",
        remedy="use a method that solves nonlinear equations, or an explicit one such as bs3",
    )
