"""What is looked at for people: fields of layers, and a state in their units."""

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
    """The edge in the middle of a layer, or just beyond."""
    return min((layer.first + layer.last + 1) // 2 + 1, max(layer.last, 1))


@functools.cache
def layer_field(ndim: int, axis: int) -> Kernel:
    """E = -d phi/dx on one edge, V/cm: the sum over a region of that edge."""
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def field(potential: CellReader, slope: CellReader) -> Reduced:
        return mg.sum((potential[low] - potential[high]) * slope[high])

    return Kernel(field, name="field in a layer")


@functools.cache
def field_strength(ndim: int, axis: int) -> Kernel:
    """E = -d phi/dx on the edges across an axis, V/cm."""
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def field(potential: CellReader, slope: CellReader, out: CellReader) -> None:
        out[high] = (potential[low] - potential[high]) * slope[high]

    return Kernel(field, name=f"field across axis {axis}")


@functools.cache
def shown(ndim: int) -> Kernel:
    """A state in V: the potential, and the quasi-Fermi potentials from their own contacts."""
    here = (0,) * ndim

    def show(state: Readers, out: Readers, *, thermal: Node) -> None:
        for item, target in zip(state, out, strict=True):
            target[here] = item[here] * thermal

    return Kernel(show, name="state in volts")
