"""Values of the coefficients of a device at its nodes and on its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.solver.fermi import activity_of
from minga.models.photodiode.structure.constants import CHARGE, REFERENCE_DENSITY, VACUUM
from minga.models.photodiode.structure.device import Device

__all__ = ["ANODE", "CATHODE", "POTENTIAL", "edge_values", "neutral_potential", "node_values", "on_edges"]

Floats = NDArray[np.float64]

ANODE = 1
CATHODE = 2
POTENTIAL = 3


def on_edges(values: Floats, axis: int) -> Floats:
    """Return the mean of the two nodes of each edge along an axis; on outermost edges the value of their only node."""
    low = np.concatenate((np.take(values, [0], axis), values), axis)
    high = np.concatenate((values, np.take(values, [-1], axis)), axis)
    return 0.5 * (low + high)


def neutral_potential(device: Device) -> Floats:
    """Return the potential, kT/q, at which holes - electrons + doping = 0 at each node by itself, at zero bias."""
    middle = -0.5 * (device.theta_n + device.theta_p)
    found: Floats = middle + portable.asinh(device.doping / (2.0 * device.nie))
    if device.statistics == "boltzmann" and device.dopants is None:
        return found
    # Where one carrier is degenerate, the other is negligible; in between, Boltzmann statistics is accurate.
    levels = portable.log(device.nc / REFERENCE_DENSITY), portable.log(device.nv / REFERENCE_DENSITY)
    degenerate = device.statistics != "boltzmann"
    for _ in range(100):
        eta_n, eta_p = found + device.theta_n - levels[0], -found - device.theta_p - levels[1]
        n, p = device.nc * portable.exp(eta_n), device.nv * portable.exp(eta_p)
        bound = (0.0, 0.0, 0.0) if device.dopants is None else device.dopants.neutral(n, p)
        if degenerate:
            n, p = (
                states * portable.exp(eta + activity_of(eta))
                for states, eta in ((device.nc, eta_n), (device.nv, eta_p))
            )
        change = (n - p - (device.doping - bound[0])) / (n + p + bound[1] + bound[2])
        found = found - np.clip(change, -0.5, 0.5)
        if float(np.abs(change).max()) < 1e-15:
            break
    return found


def node_values(device: Device) -> dict[str, NDArray[Any]]:
    """Return the values of NodeCoefficients."""
    contact = np.zeros(device.grid.shape, np.uint8)
    contact[device.terminal("anode").nodes] = ANODE
    contact[device.terminal("cathode").nodes] = CATHODE
    return {
        "volume": device.volumes,
        "doping": device.doping,
        "theta_n": device.theta_n,
        "theta_p": device.theta_p,
        "intrinsic": device.nie,
        "rate_n": 1.0 / device.tau_n,
        "rate_p": 1.0 / device.tau_p,
        "radiative": device.radiative,
        "auger_n": device.auger_n,
        "auger_p": device.auger_p,
        "generation": device.generation,
        "contact": contact,
        "neutral": neutral_potential(device),
    }


def edge_values(device: Device, axis: int) -> dict[str, Floats]:
    """Return the values of EdgeCoefficients along an axis."""
    thermal, area = device.thermal_voltage, device.areas[axis]
    place = [1] * device.grid.ndim
    place[axis] = -1
    length = device.lengths[axis].reshape(place)
    inside = np.where(area > 0.0, 1.0, 0.0)
    return {
        "coupling": area * on_edges(device.permittivity, axis) * (VACUUM * thermal / CHARGE) / length,
        "mobile_n": area * on_edges(device.mobility_n, axis) * thermal / length,
        "mobile_p": area * on_edges(device.mobility_p, axis) * thermal / length,
        "slope": inside * thermal / length,
        "half": 0.5 * inside * length,
    }
