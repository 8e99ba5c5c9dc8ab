"""The terms of equations, and which of them a method treats implicitly."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from minga.engine.program import Program
from minga.lang.expr import as_node
from minga.lang.functions import max as largest
from minga.lang.linear import linear_parts
from minga.models.pde.source import Source
from minga.models.pde.system import System
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field

__all__ = ["sides", "terms"]


def terms(source: Source) -> list[Source]:
    """Return the terms whose sum an equation is, each as an equation of its own.

    Parameters
    ----------
    source
        The equation.

    Returns
    -------
    list of Source
        The terms in the order of the text, with their signs.
    """
    found: list[ast.expr] = []
    waiting: list[tuple[ast.expr, bool]] = [(source.tree, False)]
    while waiting:
        node, negative = waiting.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            waiting += [(node.right, negative != isinstance(node.op, ast.Sub)), (node.left, negative)]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            waiting.append((node.operand, not negative))
        else:
            found.append(ast.copy_location(ast.UnaryOp(ast.USub(), node), node) if negative else node)
    return [Source(source.label, source.text, source.python, source.places, each) for each in found]


def sides(system: System, rates: Rates, fields: Sequence[Field]) -> tuple[str, str]:
    """Return texts of the terms that are implicit where the linear part is, and of those that are explicit.

    Parameters
    ----------
    system
        The equations.
    rates
        Their rates of change.
    fields
        The fields.

    Returns
    -------
    tuple of two str
        The terms of each equation that has any, such as ``"u: 0.1*laplace(u)"``; "part of" a term that belongs to both.
    """
    implicit: dict[str, list[str]] = {}
    explicit: dict[str, list[str]] = {}

    def look(state: list[Any], constants: list[Any], **scalars: Any) -> Any:
        own = {item.parameter for item in state}
        for name, text, values in system.terms(state, constants, TIME, terms, **scalars):
            parts = linear_parts([as_node(value) for value in values], lambda n: n.op == "read" and n.data[0] in own)
            linear, rest = (any(part[side] is not None for part in parts) for side in (0, 1))
            said = f"part of {text}" if linear and rest else text
            for there, group in ((linear, implicit), (rest, explicit)):
                if there:
                    group.setdefault(name, []).append(said)
        return largest(state[0][(0,) * len(state[0].axes)])

    kernel = rates_kernel(look, "terms", rates, step=False)
    Program("terms").apply(kernel, list(fields), rates.constants, **rates.scalars)
    return _joined(implicit), _joined(explicit)


def _joined(group: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(found)}" for name, found in group.items()) or "nothing"
