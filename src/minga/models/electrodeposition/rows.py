"""Parts of the rows of the implicit step of a concentration, which kernels of one species and of two share."""

from __future__ import annotations

from collections.abc import Sequence

from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID
from minga.solve.laplacian import step

__all__ = ["arriving", "diagonal", "from_neighbours", "volume"]

Readers = Sequence[CellReader]


def volume(lengths: Lengths, widths: Readers) -> Node:
    """Return the volume of a cell, m3."""
    result = as_node(1.0)
    for axis in range(lengths.ndim):
        result = lengths.width(widths, axis) * result
    return result


def arriving(kind: CellReader, ups: Readers, downs: Readers) -> Node:
    """Return the flux into a cell from the metals next to it, mol/s."""
    ndim = len(ups)
    here, total = (0,) * ndim, as_node(0.0)
    for axis in range(ndim):
        low, high = kind[step(ndim, axis, -1)], kind[step(ndim, axis, 1)]
        total = total + where((low == CATHODE) | (low == ANODE), ups[axis][here], 0.0)
        total = total + where((high == CATHODE) | (high == ANODE), downs[axis][step(ndim, axis, 1)], 0.0)
    return total


def diagonal(ups: Readers, downs: Readers, size: Node, rate: Node) -> Node:
    """Return the diagonal of the matrix, m3/s."""
    ndim = len(ups)
    total = size * rate
    for axis in range(ndim):
        total = total + (ups[axis][step(ndim, axis, 1)] + downs[axis][(0,) * ndim])
    return total


def from_neighbours(c: CellReader, kind: CellReader, ups: Readers, downs: Readers, least: float | None = None) -> Node:
    """Return the flux into a cell from the solution around it, mol/s; `least` bounds concentrations from below."""

    def at(place: tuple[int, ...]) -> Node:
        return c[place] if least is None else mg.max(c[place], least)

    ndim = len(ups)
    here, total = (0,) * ndim, as_node(0.0)
    for axis in range(ndim):
        down, up = step(ndim, axis, -1), step(ndim, axis, 1)
        total = total + where(kind[down] == FLUID, ups[axis][here] * at(down), 0.0)
        total = total + where(kind[up] == FLUID, downs[axis][up] * at(up), 0.0)
    return total
