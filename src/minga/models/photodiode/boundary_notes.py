"""Notes on boundaries between materials that a mesh does not have where a case does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from minga.models.photodiode.structure.depletion import column
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.stack import LayerOf

__all__ = ["boundary_notes"]

MOVED: Final = 0.01
"""Distance between a boundary and where the mesh has it, over the thickness of the thinner layer, that is reported."""
_STEP: Final = 0.1
"""Change of the bands, kT, between two nodes on either side of a boundary that is one of compositions."""


def boundary_notes(device: Device) -> Iterator[tuple[str, str]]:
    """Yield a note on the boundary between materials that the mesh moves most, in terms of the layers beside it.

    A node consists of one material: a change lies half-way between two nodes, wherever the boundary is between them.
    """
    nodes, found = device.nodes[0], []
    for before, layer in pairwise(device.layers):
        if not _changes(device, before, layer):
            continue
        moved = abs(layer.start - 0.5 * float(nodes[layer.first - 1] + nodes[layer.first]))
        thin = min((before, layer), key=lambda one: one.end - one.start)
        found.append((moved / (thin.end - thin.start), moved, before, layer, thin))
    if not found:
        return
    share, moved, before, layer, thin = max(found, key=lambda item: item[0])
    if share > MOVED:
        where = (
            f"between {before.name} and {layer.name}, the mesh changes the material {1e7 * moved:.3g} nm beside the "
        )
        size = f"boundary, {100 * share:.2g} % of {thin.name}"
        yield "boundaries", f"{where}{size}: let it lie half-way between two nodes, as by default"


def _changes(device: Device, before: LayerOf, layer: LayerOf) -> bool:
    """Return True if the material changes between two layers; doping alone belongs to nodes in parts."""
    if before.material != layer.material:
        return True
    bands = (column(device, item) for item in (device.theta_n, device.theta_p))
    steps = (abs(float(item[layer.first] - item[layer.first - 1])) for item in bands)
    return device.narrowing is None and max(steps) > _STEP
