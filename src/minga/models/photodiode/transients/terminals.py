"""Current of the terminals from those of the edges: the theorem of Ramo and Shockley.

With w the potential of the device without carriers, 1 at the anode and 0 at the cathode, the current of the anode is

    I = sum over edges of (w_low - w_high) J + dQ/dt,      Q = sum over the contacts' nodes of q_i phi_i,

where q_i is the charge that w has at a node: the displacement currents of all edges amount to those of the contacts
alone. The discrete equations obey this exactly, because the whole current of the edges of every other node adds up to
0. With one axis w_low - w_high is h/eps over the sum of h/eps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.solver.coefficient_values import on_edges
from minga.models.photodiode.structure.constants import VACUUM
from minga.models.photodiode.structure.device import Device
from minga.solve.five_point import FivePoint
from minga.solve.sparse_factors import solution

__all__ = ["Weighting", "weighting"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """Weights of a device's edges and contacts in the current from the anode.

    Attributes
    ----------
    edges
        w_low - w_high of the edges along each axis; 0 beyond the first and last node.
    contacts
        q_i over the capacitance at the nodes of the contacts: adds up to 1 at the anode and to -1 at the cathode.
    capacitance
        Capacitance of the device without carriers, F/cm2.
    """

    edges: tuple[Floats, ...]
    contacts: Floats
    capacitance: float


def weighting(device: Device) -> Weighting:
    """Return the weights of a device."""
    if device.grid.ndim == 1:
        return _of_one_axis(device)
    couplings = [
        area * (on_edges(device.permittivity, axis) * VACUUM) / length.reshape([-1, 1] if axis == 0 else [1, -1])
        for axis, (area, length) in enumerate(zip(device.areas, device.lengths, strict=True))
    ]
    w = _potential(device, couplings)
    edges = tuple(_difference(w, axis) for axis in range(2))
    charge = sum((np.diff(c * e, axis=axis) for axis, (c, e) in enumerate(zip(couplings, edges, strict=True))))
    assert isinstance(charge, np.ndarray)
    anode, cathode = (device.terminal(name).nodes for name in ("anode", "cathode"))
    whole = math.fsum(charge[anode])
    contacts = np.where(anode, charge / whole, np.where(cathode, -charge / math.fsum(charge[cathode]), 0.0))
    return Weighting(edges, contacts, whole / float(device.areas[0][1].sum()))


def _of_one_axis(device: Device) -> Weighting:
    elastances = device.lengths[0] / (on_edges(device.permittivity, 0) * VACUUM)  # cm2/F
    capacitance = 1.0 / math.fsum(elastances[1:-1])
    edges = device.direction * elastances * capacitance
    edges[[0, -1]] = 0.0
    anode, cathode = (device.terminal(name).nodes for name in ("anode", "cathode"))
    return Weighting((edges,), anode.astype(np.float64) - cathode.astype(np.float64), capacitance)


def _potential(device: Device, couplings: list[Floats]) -> Floats:
    """Return w at the nodes, exact but for its last digit."""
    anode = device.terminal("anode").nodes
    held = anode | device.terminal("cathode").nodes
    matrix = FivePoint(device.grid, 1, ((True,),), "weighting")
    values = {matrix.diagonal[0]: np.where(held, 1.0, 0.0)}
    for axis, coupling in enumerate(couplings):
        sides = (matrix.lower[axis][0], np.take(coupling, range(coupling.shape[axis] - 1), axis)), (
            matrix.upper[axis][0], np.take(coupling, range(1, coupling.shape[axis]), axis)
        )  # fmt: skip
        for field, side in sides:
            values[field] = np.where(held, 0.0, -side)
            values[matrix.diagonal[0]] = values[matrix.diagonal[0]] + np.where(held, 0.0, side)
    found: Floats = solution(matrix, values, [np.where(anode, 1.0, 0.0)])[0]
    return found


def _difference(w: Floats, axis: int) -> Floats:
    """Return w_low - w_high of the edges along an axis."""
    wide = [(0, 0), (0, 0)]
    wide[axis] = (1, 1)
    return np.pad(-np.diff(w, axis=axis), wide)
