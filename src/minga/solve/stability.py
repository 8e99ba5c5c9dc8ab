"""Stable steps of explicit methods, found from the derivatives of the rates by each cell that they read.

By Gershgorin's theorem no eigenvalue of the linearised rates exceeds the sum of a row's absolute entries. The entries
are expressions of the kernel language (`minga.derivative`), so that the sum is one more kernel and a reduction. The
part of a row that is even in the offset, such as diffusion, has real eigenvalues where coefficients are constant; the
odd part, such as advection, has imaginary ones.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import KernelError
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, extreme
from minga.lang.functions import max as largest
from minga.lang.graph import topological
from minga.lang.trace import current_trace
from minga.lang.without_locals import without_locals
from minga.solve.integrators import Integrator
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field
from minga.space.layout import Layout

__all__ = ["largest_rates", "stable_step"]


def largest_rates(rates: Rates, fields: Sequence[Field], values: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return bounds of the eigenvalues of the rates, linearised at given values of the fields.

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
    tuple of two floats, or None
        Bounds of the even and the odd part, in one over the unit of time; None if a rate has no derivative.
    """

    def compute(state: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
        found = rates.function(state, constants, TIME, **scalars)
        even, odd = zip(*(_row(as_node(value), len(state)) for value in found), strict=True)
        return {"even": largest(_most(even)), "odd": largest(_most(odd))}

    program = Program("limit")
    kernel = rates_kernel(compute, "limit", rates, step=False)
    try:
        rates.ready(program, [item.now for item in fields])
        found: Any = program.apply(kernel, list(fields), rates.constants, **rates.scalars)
    except KernelError:
        return None
    grid = fields[0].grid
    with Engine(Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for item in (*fields, *rates.constants):
            engine.set(item, values.get(item.name, 0.0))
        outcome = engine.run(program)
        return (float(engine.read(found.even)), float(engine.read(found.odd))) if outcome.ok else None


def stable_step(method: Integrator, even: float, odd: float) -> float | None:
    """Return a step with which an explicit method does not amplify anything.

    Parameters
    ----------
    method
        The method.
    even, odd
        Bounds of the eigenvalues, as `largest_rates` returns them.

    Returns
    -------
    float or None
        The step, infinite if nothing limits it; None if the method amplifies waves with every step.
    """
    if not method.imaginary:
        if odd and not even:
            return None
        total = (even + odd) / method.real
    else:
        total = even / method.real + odd / method.imaginary
    return 1.0 / total if total else math.inf


def _row(value: Node, count: int) -> tuple[Node, Node]:
    """Return the sums of the absolute derivatives by all cells that a rate reads: even and odd parts."""
    reads: dict[tuple[int, tuple[int, ...]], Node] = {}
    value = without_locals(value, current_trace("a stable step"))
    for node in topological([value]):
        if node.op == "read" and node.data[0] < count:
            reads.setdefault((node.data[0], node.data[2]), node)
    entries = {key: derivative(value, node) for key, node in reads.items()}
    even: list[Node] = []
    odd: list[Node] = []
    for (field, offsets), entry in entries.items():
        other = entries.get((field, tuple(-n for n in offsets)))
        if not any(offsets):
            even.append(abs(entry))
        elif other is None:
            even.append(0.5 * abs(entry))
            odd.append(0.5 * abs(entry))
        else:
            even.append(0.5 * abs(entry + other))
            odd.append(0.5 * abs(entry - other))
    return _total(even), _total(odd)


def _total(terms: Sequence[Node]) -> Node:
    return functools.reduce(operator.add, terms) if terms else as_node(np.float64(0.0))


def _most(values: Sequence[Node]) -> Node:
    return values[0] if len(values) == 1 else extreme("max", tuple(values))
