"""Pairs that light generates at the nodes of a device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.structure.boxes import lit_columns
from minga.models.photodiode.structure.illumination import Illumination, illumination_of
from minga.models.photodiode.structure.incidence import check_light, section_of
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.optics import generation_of, photon_flux
from minga.models.photodiode.structure.stack import Stack

__all__ = ["Generated", "generated_in"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """Pairs in a device.

    Attributes
    ----------
    pairs
        Pairs, 1/cm3 s, f8 of the grid's shape.
    illumination
        Where the light goes; None where that is not integrated over the nodes' volumes.
    section
        Area of the light over that of the device normal to x: 1 if its whole anode or cathode is lit.
    """

    pairs: Floats
    illumination: Illumination | None = None
    section: float = 1.0


def generated_in(
    stack: Stack,
    absorption: Floats,
    numbers: NDArray[np.int64],
    mesh: Mesh,
    across: Mesh | None,
    over_nodes: Floats | None = None,
) -> Generated:
    """Return the pairs that the light of a stack, or its table, generates.

    Parameters
    ----------
    stack
        Structure of the device.
    absorption
        Absorption coefficient at the nodes along x, 1/cm.
    numbers
        Layers of the nodes along x.
    mesh, across
        Meshes along x and y.
    over_nodes
        Absorption coefficient at all nodes, where it varies along y, too; else None.

    Raises
    ------
    CaseError
        If there can be no such light in the device.
    """
    shape = (mesh.nodes.size,) if across is None else (mesh.nodes.size, across.nodes.size)
    light = stack.light
    if stack.pairs is not None:
        return Generated(stack.pairs.over(*((mesh,) if across is None else (mesh, across))))
    if light is None:
        return Generated(np.zeros(shape))
    check_light(light, mesh, across)
    flux = photon_flux(light.power, light.wavelength) if light.flux is None else light.flux
    section = section_of(light, mesh, across)
    if light.optics == "beer-lambert" and not light.lateral:
        below, above = mesh.halves
        if over_nodes is not None and across is not None:
            made = lit_columns(
                over_nodes, lambda one: generation_of(flux, one, below, above, from_high=stack.from_high(light))
            )
            return Generated(made * light.beam.over(across), section=section)
        pairs = generation_of(flux, absorption, below, above, from_high=stack.from_high(light))
        return Generated(pairs if across is None else np.outer(pairs, light.beam.over(across)), section=section)
    found = illumination_of(stack, light, mesh, absorption, numbers, across)
    if across is None:
        return Generated(flux * found.nodes / mesh.volumes, found)
    photons = flux * section * math.fsum(across.sections.tolist())
    return Generated(photons * found.nodes / np.outer(mesh.volumes, across.sections), found, section)
