"""Current of the terminals from those of the edges: the theorem of Ramo and Shockley.

The displacement current of an edge is part of the total current, which is the same on all edges. Their mean, weighted
with h/eps, is the mean of the conduction currents and Cg dV/dt, exactly also between nodes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.solver.coefficients import on_edges
from minga.models.photodiode.structure.constants import VACUUM
from minga.models.photodiode.structure.device import Device

__all__ = ["displacement_capacitance", "edge_weights"]

Floats = NDArray[np.float64]


def displacement_capacitance(device: Device) -> float:
    """Return the capacitance of a device without carriers, Cg = 1/sum(h/eps), F/cm2."""
    return 1.0 / math.fsum(_elastances(device)[1:-1])


def edge_weights(device: Device) -> Floats:
    """Return the weights of the edges in the current from the anode; 0 beyond the first and last node.

    They are negative if the anode lies at the last row.
    """
    found = device.direction * _elastances(device) * displacement_capacitance(device)
    found[[0, -1]] = 0.0
    return found


def _elastances(device: Device) -> Floats:
    """Return h/eps of the edges, cm2/F."""
    found: Floats = device.lengths[0] / (on_edges(device.permittivity, 0) * VACUUM)
    return found
