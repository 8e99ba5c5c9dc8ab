"""Kernels of observables: the field in a layer, and a state in user units."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node
from minga.lang.kernel import Kernel
from minga.models.photodiode.structure.stack import LayerOf
from minga.solve.laplacian import step

__all__ = ["field_strength", "layer_field", "middle_edge", "shown"]

Readers = Sequence[CellReader]


def middle_edge(layer: LayerOf) -> int:
    """Return the edge in the middle of a layer, or just beyond it."""
    return min((layer.first + layer.last + 1) // 2 + 1, max(layer.last, 1))


@functools.cache
def layer_field(ndim: int, axis: int) -> Kernel:
    """Return the kernel of E = -d phi/dx on one edge, V/cm: the sum over a region that contains this edge only."""
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def field(potential: CellReader, slope: CellReader) -> Reduced:
        return mg.sum((potential[low] - potential[high]) * slope[high])

    return Kernel(field, name="field in a layer")


@functools.cache
def field_strength(ndim: int, axis: int) -> Kernel:
    """Return the kernel of E = -d phi/dx on the edges along an axis, V/cm."""
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def field(potential: CellReader, slope: CellReader, out: CellReader) -> None:
        out[high] = (potential[low] - potential[high]) * slope[high]

    return Kernel(field, name=f"field across axis {axis}")


@functools.cache
def shown(ndim: int) -> Kernel:
    """Return the kernel of a state in V: the potential, and quasi-Fermi potentials relative to their own contacts."""
    here = (0,) * ndim

    def show(state: Readers, out: Readers, *, thermal: Node) -> None:
        for item, target in zip(state, out, strict=True):
            target[here] = item[here] * thermal

    return Kernel(show, name="state in volts")
