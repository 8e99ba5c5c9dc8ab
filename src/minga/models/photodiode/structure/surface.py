"""Surfaces that recombine carriers: planes inside a device or at its rim, and ohmic contacts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.stack import Contact, Surface

__all__ = ["NodeSurface", "surface_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class NodeSurface:
    """Surfaces at the nodes, arrays of the grid's shape.

    Parameters
    ----------
    area
        Area of the surface of each node, of the units of `Device.areas`; 0 where there is none.
    velocity_n, velocity_p
        Velocities of recombination of electrons and holes, cm/s.
    free
        Carrier that a contact does not hold at its density of equilibrium, u1: 1 electrons, 2 holes, 0 none.
    """

    area: Floats
    velocity_n: Floats
    velocity_p: Floats
    free: NDArray[np.uint8]


def surface_of(
    surfaces: Sequence[Surface], contacts: Sequence[tuple[Contact, Bools]], mesh: Mesh, across: Mesh | None,
    doping: Floats,
) -> NodeSurface | None:  # fmt: skip
    """Return the surfaces at the nodes; None if there are none.

    Parameters
    ----------
    surfaces
        Planes.
    contacts
        Contacts and their nodes.
    mesh, across
        Meshes along x and y.
    doping
        Donors minus acceptors at the nodes, 1/cm3: at a contact the minority carriers are those that recombine.

    Raises
    ------
    CaseError
        If a surface lies outside the device, covers no node or meets another one; or if a contact has no minority.
    """
    loose = [(contact, nodes) for contact, nodes in contacts if contact.recombination is not None]
    if not surfaces and not loose:
        return None
    made = [np.zeros(doping.shape) for _ in range(3)]
    free = np.zeros(doping.shape, np.uint8)
    metal = np.zeros(doping.shape, np.bool_)
    for _, nodes in contacts:
        metal |= nodes
    for k, surface in enumerate(surfaces):
        area = np.where(metal, 0.0, _area(surface, mesh, across, f"photodiode.surfaces[{k}]"))
        if not area.any() or np.any((area > 0.0) & (made[0] > 0.0)):
            raise CaseError(
                f"surface {k + 1} {'meets another one' if area.any() else 'covers no node beside the contacts'}",
                key=f"photodiode.surfaces[{k}]",
                remedy="move it, or leave it out; a contact has a recombination of its own",
            )
        _put(made, area > 0.0, area, surface.velocity_n, surface.velocity_p)
    for contact, nodes in loose:
        if not np.all(doping[nodes] != 0.0):
            raise CaseError(
                f"the {contact.name} has a recombination velocity, but the layer there is not doped",
                key=f"photodiode.contacts.{contact.name}.recombination",
                remedy="dope the layer: its minority carriers are those that recombine at the contact",
            )
        whole = np.ones(doping.shape) if across is None else np.broadcast_to(across.sections, doping.shape)
        assert contact.recombination is not None
        _put(made, nodes, whole, contact.recombination, contact.recombination)
        free[nodes] = np.where(doping[nodes] < 0.0, 1, 2)
    return NodeSurface(made[0], made[1], made[2], free)


def _put(made: Sequence[Floats], nodes: Bools, area: Floats, velocity_n: float, velocity_p: float) -> None:
    """Write the area and both velocities of a surface at some nodes."""
    made[0][nodes] = area[nodes]
    made[1][nodes] = velocity_n
    made[2][nodes] = velocity_p


def _area(surface: Surface, mesh: Mesh, across: Mesh | None, key: str) -> Floats:
    """Return the area of a surface at the nodes, contacts included."""
    if across is None:
        if surface.normal == "y" or surface.span is not None:
            raise CaseError(
                "a surface with y in a device with one axis", key=key, remedy="give x alone, or the device a width"
            )
        area = np.zeros(mesh.nodes.size)
        area[_nearest(mesh, surface.at, key)] = 1.0
        return area
    along, other = (mesh, across) if surface.normal == "x" else (across, mesh)
    line = np.zeros(along.nodes.size)
    line[_nearest(along, surface.at, key)] = 1.0
    around = 2.0 * math.pi * surface.at if along.radial else 1.0
    cover = around * other.sections * (1.0 if surface.span is None else other.shares(surface.span))
    return np.outer(line, cover) if surface.normal == "x" else np.outer(cover, line)


def _nearest(mesh: Mesh, at: float, key: str) -> int:
    """Return the node nearest to a position."""
    room = 1e-9 * (mesh.faces[-1] - mesh.faces[0])
    if not mesh.faces[0] - room <= at <= mesh.faces[-1] + room:
        raise CaseError(
            f"a surface at {1e4 * at:g} um, outside the device",
            key=key,
            remedy=f"place it between {1e4 * mesh.faces[0]:g} and {1e4 * mesh.faces[-1]:g} um",
        )
    return int(np.argmin(np.abs(mesh.nodes - at)))
