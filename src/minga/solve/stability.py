"""Stable steps of explicit methods, found from the derivatives of the rates by each cell that they read.

By Gershgorin's theorem no eigenvalue of the linearised rates exceeds the sum of a row's absolute entries. The entries
are expressions of the kernel language (`minga.derivative`), so that the sum is one more kernel and a reduction.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import KernelError
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, author_error, extreme
from minga.lang.functions import max as largest
from minga.lang.graph import topological
from minga.solve.integrators import Rates, rates_kernel
from minga.space.field import TIME, Field, Register
from minga.space.layout import Layout

__all__ = ["largest_rate"]


def largest_rate(rates: Rates, fields: Sequence[Field], values: Mapping[str, Any]) -> float | None:
    """Return a bound of the eigenvalues of the rates, linearised at given values of the fields.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields.
    values
        Values of the fields and of the constants of the rates by name, as `minga.Model` takes them.

    Returns
    -------
    float or None
        The bound, in one over the unit of time; None if a rate has no derivative.
    """

    def compute(state: list[Any], constants: list[Any], **scalars: Any) -> Any:
        rows = [_row(as_node(value), len(state)) for value in rates.function(state, constants, TIME, **scalars)]
        return largest(rows[0] if len(rows) == 1 else extreme("max", tuple(rows)))

    program = Program("limit")
    kernel = rates_kernel(compute, "limit", rates, step=False)
    try:
        found = program.apply(kernel, list(fields), rates.constants, **rates.scalars)
    except KernelError:
        return None
    assert isinstance(found, Register)
    grid = fields[0].grid
    with Engine(Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for item in (*fields, *rates.constants):
            engine.set(item, values.get(item.name, 0.0))
        outcome = engine.run(program)
        return float(engine.read(found)) if outcome.ok else None


def _row(value: Node, count: int) -> Node:
    """Return the sum of the absolute derivatives of a rate by all cells of the fields that it reads."""
    reads: dict[tuple[object, ...], Node] = {}
    for node in topological([value]):
        if node.op == "local":
            raise author_error("the derivative by a local", "write the expression out")
        if node.op == "read" and node.data[0] < count:
            reads.setdefault(node.data, node)
    terms = [abs(derivative(value, node)) for node in reads.values()]
    return functools.reduce(operator.add, terms) if terms else as_node(0.0) * value
