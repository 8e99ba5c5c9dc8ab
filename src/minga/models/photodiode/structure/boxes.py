"""Boxes of another material in a device with two axes, with edges in any direction: nodes, and the properties there.

A node belongs to the material of the box that its place lies in; no node consists of two materials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.structure.layers import LayerProperties, layer_numbers, properties_of
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.regions import nodes_inside
from minga.models.photodiode.structure.stack import Stack

__all__ = ["MaterialBox", "boxes_of", "in_boxes", "lit_columns"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class MaterialBox:
    """A box: its nodes (bool, of the grid's shape), and a stack whose layers all have its material, along x."""

    name: str
    inside: Bools
    stack: Stack
    columns: LayerProperties


def boxes_of(stack: Stack, mesh: Mesh, across: Mesh | None, first: Material) -> tuple[MaterialBox, ...]:
    """Return the boxes of a stack; `first` is the material of its first node.

    Raises
    ------
    CaseError
        If a box has no nodes, or the stack has physics or light that follow layers.
    """
    found = []
    for region in stack.regions:
        if across is None or region.material is None:
            continue
        material = region.material
        _check(stack, region.name)
        inside = nodes_inside(region, mesh, across)
        if not inside.any():
            raise CaseError(
                f"no node lies in region {region.name!r}",
                key="photodiode.regions",
                remedy="make it larger, or move it into the device",
            )
        layers = tuple(replace(one, material=material, changes={}, ionisation=None, index=None) for one in stack.layers)
        own = replace(stack, layers=layers)
        columns = properties_of(own, mesh, *layer_numbers(layers, mesh), first)
        found.append(MaterialBox(region.name, inside, own, columns))
    return tuple(found)


def _check(stack: Stack, name: str) -> None:
    """Raise CaseError for physics and light that depend on the layers alone."""
    light = stack.light
    for excluded, what, key in (
        (stack.gap_narrowing, "gap_narrowing", "gap_narrowing"),
        (stack.incomplete_ionisation, "incomplete_ionisation", "incomplete_ionisation"),
        (stack.band_to_band is not None or stack.trap_assisted, "tunnelling", "tunnelling"),
        (light is not None and light.optics != "beer-lambert", 'optics = "transfer-matrix"', "light.optics"),
        (light is not None and light.lateral, "light across the layers", "light.side"),
    ):
        if excluded:
            raise CaseError(
                f"region {name!r} has a material of its own, with {what}, which follows the layers",
                key=f"photodiode.{key}",
                remedy="leave one of them out",
            )


def in_boxes(values: Floats, boxes: Sequence[MaterialBox], of_boxes: Sequence[Floats]) -> Floats:
    """Return values at all nodes with those of the boxes; a later box replaces earlier ones."""
    for box, own in zip(boxes, of_boxes, strict=True):
        values = np.where(box.inside, own if own.ndim > 1 else own[:, None], values)
    return values


def lit_columns(absorption: Floats, along: Callable[[Floats], Floats]) -> Floats:
    """Return what a function of absorption coefficients along x returns for each column; like columns share a call."""
    found = np.empty_like(absorption)
    known: dict[bytes, Floats] = {}
    for j in range(absorption.shape[1]):
        column = np.ascontiguousarray(absorption[:, j])
        key = column.tobytes()
        if key not in known:
            known[key] = along(column)
        found[:, j] = known[key]
    return found
