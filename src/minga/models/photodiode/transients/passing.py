"""Kernels of the currents and charges that pass the edges of a device, and of those of its terminals."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.coefficient_values import ANODE, CATHODE
from minga.models.photodiode.solver.physics import EdgeValues
from minga.solve.laplacian import step as step_along

__all__ = ["fallen", "flows", "gathered", "moved", "responses"]

Readers = Sequence[CellReader]
POTENTIAL, ELECTRONS, HOLES = range(3)


def _here(field: CellReader) -> tuple[int, ...]:
    return (0,) * len(field.axes)


def _flows(edges: Readers, weight: CellReader, out: CellReader) -> Reduced:
    """Store the flux of charge through each edge along an axis, and return their weighted sum, 1/s."""
    here = _here(out)
    values = EdgeValues.of([item[here] for item in edges])
    total = values.electrons.value + values.holes.value
    out[here] = total
    return mg.sum(weight[here] * total)


flows = Kernel(_flows, name="conduction current")


@functools.cache
def responses(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the change of the conduction current of an axis due to corrections, 1/s."""
    high, low = (0,) * ndim, step_along(ndim, axis, -1)

    def respond(edges: Readers, weight: CellReader, change: Readers) -> Reduced:
        values = EdgeValues.of([item[high] for item in edges])
        found = None
        for k, flux in ((ELECTRONS, values.electrons), (HOLES, values.holes)):
            part = (flux.potential_low * change[POTENTIAL][low] + flux.potential_high * change[POTENTIAL][high]) + (
                flux.fermi_low * change[k][low] + flux.fermi_high * change[k][high]
            )
            found = part if found is None else found + part
        assert found is not None
        return mg.sum(weight[high] * found)

    return Kernel(respond, name=f"response of the conduction current across axis {axis}")


@functools.cache
def moved(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the charge that passed the edges along an axis in a step, displacement included.

    It is stored in `out` and reduced to its weighted sum and its extremes, in units of q.
    """
    high, low = (0,) * ndim, step_along(ndim, axis, -1)

    def move(
        early: CellReader, inner: CellReader, late: CellReader, coupling: CellReader, weight: CellReader,
        potential: CellReader, out: CellReader, *, outer: Any, own: Any,
    ) -> dict[str, Reduced]:  # fmt: skip
        passed = outer * (early[high] + inner[high]) + own * late[high]
        passed = passed - coupling[high] * (potential[high] - potential[low])
        out[high] = passed
        return {"mean": mg.sum(weight[high] * passed), "least": mg.min(passed), "most": mg.max(passed)}

    return Kernel(move, name=f"charge that passed across axis {axis}")


def _gathered(passed: Readers, contact: CellReader) -> dict[str, Reduced]:
    """Return the charge that left the nodes of each contact, from that of the edges along each axis."""
    here, found = _here(contact), None
    for axis, item in enumerate(passed):
        part = item[step_along(len(here), axis, 1)] - item[here]
        found = part if found is None else found + part
    assert found is not None
    kinds = (("anode", ANODE), ("cathode", CATHODE))
    return {name: mg.sum(where(contact[here] == kind, found, 0.0)) for name, kind in kinds}


gathered = Kernel(_gathered, name="charge of the contacts")


def _fallen(potential: CellReader, weight: CellReader) -> Reduced:
    """Return the drop of a potential between the contacts, the mean that the charge of their nodes weights."""
    here = _here(potential)
    return mg.sum(weight[here] * potential[here])


fallen = Kernel(_fallen, name="drop of the potential")
