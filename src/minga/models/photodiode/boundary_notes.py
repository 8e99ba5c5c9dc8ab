"""Notes on boundaries between materials that a mesh does not have where a case does, and on oblique ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from minga.models.photodiode.structure.depletion import column
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.regions import Polygon, Region
from minga.models.photodiode.structure.stack import LayerOf

__all__ = ["boundary_notes", "staircase_notes"]

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
        names, where = f"between {before.name} and {layer.name}", f"{1e7 * moved:.3g} nm beside the boundary"
        size = f"{100 * share:.2g} % of {thin.name}"
        what = f"{names}, the mesh changes the material {where}, {size}"
        yield "boundaries", f"{what}: let it lie half-way between two nodes, as by default"


def staircase_notes(device: Device, regions: Sequence[Region | Polygon]) -> Iterator[tuple[str, str]]:
    """Yield a note on each region with a material whose edges are oblique: how far apart the nodes beside them are."""
    for region in regions:
        edges = pairwise((*region.corners, region.corners[0]))
        oblique = np.array([edge for edge in edges if edge[0][0] != edge[1][0] and edge[0][1] != edge[1][1]])
        if region.material is None or not oblique.size:
            continue
        along, across = (
            f"{1e7 * _apart(nodes, float(on.min()), float(on.max())):.3g} nm"
            for nodes, on in zip(device.nodes, oblique.T)
        )
        what = f"oblique edges are staircases of nodes up to {along} along x and {across} across apart"
        yield f"region {region.name}", f"{what}; errors of the currents fall with these distances"


def _apart(nodes: np.ndarray, low: float, high: float) -> float:
    """Return the largest distance between nodes that lies in an interval in part."""
    inside = (nodes[1:] > low) & (nodes[:-1] < high)
    return float(np.diff(nodes)[inside].max(initial=0.0))


def _changes(device: Device, before: LayerOf, layer: LayerOf) -> bool:
    """Return True if the material changes between two layers; doping alone belongs to nodes in parts."""
    if before.material != layer.material:
        return True
    bands = (column(device, item) for item in (device.theta_n, device.theta_p))
    steps = (abs(float(item[layer.first] - item[layer.first - 1])) for item in bands)
    return device.narrowing is None and max(steps) > _STEP
