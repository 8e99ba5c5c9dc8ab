"""Equations whose shortest waves grow fastest, found from entries that are numbers, without running a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from minga.compile.elementwise import evaluated
from minga.engine.program import Program
from minga.errors import KernelError
from minga.lang.expr import Node, as_node
from minga.lang.functions import max as largest
from minga.lang.graph import topological
from minga.solve.rates import Rates, rates_kernel
from minga.solve.row_entries import row_entries
from minga.solve.symbols_of_rates import alternating
from minga.space.field import TIME, Field
from minga.space.metric import supplied_scalar

__all__ = ["backward_rate"]

_MOST: Final = 2000
"""Most operations of a rate that is derived."""


def backward_rate(rates: Rates, fields: Sequence[Field]) -> float:
    """Return how fast the shortest waves of linear equations with constant coefficients grow, if these grow fastest.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields.

    Returns
    -------
    float
        The largest rate; 0 if no waves do, or the coefficients are not numbers.
    """
    found = [0.0]

    def look(state: list[Any], constants: list[Any], **scalars: Any) -> Any:
        values = rates.function(state, constants, TIME, **scalars)
        for number, value in enumerate(values):
            rate = alternating(row_entries(as_node(value), range(len(state)), _MOST), number)
            found.append(_number(rate, rates, fields[0]))
        return largest(state[0][(0,) * len(state[0].axes)])

    kernel = rates_kernel(look, "ill-posed", rates, step=False)
    try:
        Program("ill-posed").apply(kernel, list(fields), rates.constants, **rates.scalars)
    except KernelError:
        return 0.0
    return max(found)


def _number(rate: Node, rates: Rates, item: Field) -> float:
    """Return the value of an expression of numbers, 0 if it is none."""
    known: dict[str, Any] = {}
    for node in topological([rate]):
        if node.op == "scalar":
            value = rates.scalars.get(str(node.data))
            if not isinstance(value, float | int):
                value = supplied_scalar(item.grid, range(item.grid.ndim), str(node.data))
            if value is None:
                return 0.0
            known[str(node.data)] = np.asarray(value, node.dtype)
        elif not node.args and node.op != "const":
            return 0.0
    value = float(evaluated(rate, known))
    return value if math.isfinite(value) else 0.0
