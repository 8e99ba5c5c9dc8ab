"""What is read off a solution: current, its uniformity, multiplication, and the electric field."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.kernel import Kernel
from minga.models.photodiode.physics import EdgeValues, Flux
from minga.models.photodiode.stack import LayerOf
from minga.solve.laplacian import step

__all__ = ["field_strength", "layer_field", "middle_edge", "shown", "terminal_current"]

Readers = Sequence[CellReader]

ULP: Final = 2.0**-52
QUIET: Final = 1e-30
"""1/cm2 s: stands for the round-off of a flux that has none."""


@functools.cache
def terminal_current(ndim: int, axis: int, ionising: bool) -> Kernel:
    """Of one solution in one dimension, over the inner edges: what `measured` makes numbers of.

    Every edge carries the same current, but not with the same round-off: where many carriers move little, the small
    differences of their quasi-Fermi potentials are known to fewer digits. So the current is the mean over edges,
    weighted with the inverse square of each one's round-off.
    """
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def current(state: Readers, edges: Readers, slope: CellReader) -> dict[str, Reduced]:
        values = EdgeValues.of([item[high] for item in edges])
        potential, electron, hole = (mg.max(mg.abs(item[low]), mg.abs(item[high])) for item in state)

        def noise(flux: Flux, level: object) -> object:
            carried = mg.max(mg.abs(flux.fermi_low), mg.abs(flux.fermi_high))
            return carried * level + mg.abs(flux.value) * (1.0 + potential)

        total = values.electrons.value + values.holes.value
        around = ULP * (noise(values.electrons, electron) + noise(values.holes, hole)) + QUIET  # type: ignore[operator]
        weight = 1.0 / (around * around)
        strength = mg.abs(state[0][high] - state[0][low]) * slope[high]
        made = values.pairs[0] if ionising else total * 0.0
        return {
            "weighted": mg.sum(weight * total),
            "weight": mg.sum(weight),
            "least": mg.min(total),
            "most": mg.max(total),
            "carried": mg.max(mg.abs(values.electrons.value) + mg.abs(values.holes.value)),
            "pairs": mg.sum(made),
            "strongest": mg.max(strength),
            "place": mg.argmax(strength),
        }

    return Kernel(current, name="terminal current")


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

    def show(state: Readers, out: Readers, *, thermal: object) -> None:
        for item, target in zip(state, out, strict=True):
            target[here] = item[here] * thermal

    return Kernel(show, name="state in volts")
