"""Entries of the rows of a Jacobian: the derivatives of a rate by each cell that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from minga.lang.derivative import derivative
from minga.lang.expr import Node, author_error
from minga.lang.graph import topological
from minga.lang.trace import current_trace
from minga.lang.without_locals import without_locals

__all__ = ["Entries", "row_entries"]

Entries = dict[tuple[int, tuple[int, ...]], Node]
"""Entries by the number of the kernel's parameter that is read, and the offsets of the read."""

MOST: Final = 1000
"""Most operations of a rate, with those of its locals, whose entries are derived."""


def row_entries(value: Node, own: Sequence[int], most: int = MOST) -> Entries:
    """Return the derivatives of a rate by all cells that it reads, in a kernel.

    Parameters
    ----------
    value
        The rate.
    own
        The numbers of the parameters by which it is derived.
    most
        Most operations of the rate, with those of its locals.

    Returns
    -------
    dict
        The entries.

    Raises
    ------
    KernelError
        If the rate has more operations.
    """
    reads: dict[tuple[int, tuple[int, ...]], Node] = {}
    value = without_locals(value, current_trace("the entries of a row"))
    nodes = list(topological([value]))
    if len(nodes) > most:
        raise author_error(f"rates of {len(nodes)} operations", "their entries would take too long to compute")
    for node in nodes:
        if node.op == "read" and node.data[0] in own:
            reads.setdefault((node.data[0], node.data[2]), node)
    return {key: derivative(value, node) for key, node in reads.items()}
