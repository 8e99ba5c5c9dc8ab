"""Velocities of thermionic emission across Schottky contacts and across interfaces between materials.

Carriers of density n at the top of a barrier cross it with a flux v n, where v = (kT/h) (2/N)^(1/3). This equals
A* T^2 / (q N) with the Richardson constant of the effective mass that corresponds to the density of states N
(C. R. Crowell, S. M. Sze, Solid-State Electron. 9, 1035 (1966)). Between two materials the smaller of their constants
is used (A. A. Grinberg, Phys. Rev. B 33, 7256 (1986)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.structure.constants import CHARGE, PLANCK, thermal_voltage

__all__ = ["emission_of", "emission_velocity"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

SMALLEST_OFFSET: Final = 1.0
"""Smallest band offset, kT, across which emission is considered."""


def emission_velocity(states: Floats | float, temperature: float) -> Floats:
    """Return the emission velocity in cm/s of carriers with an effective density of states in 1/cm3."""
    rate = thermal_voltage(temperature) * CHARGE / PLANCK
    return np.asarray(rate * portable.cbrt(2.0 / np.asarray(states)))


def emission_of(
    bands: Sequence[tuple[Floats, Floats]], material: NDArray[np.int64], contacts: Bools, temperature: float
) -> tuple[Floats, ...]:
    """Return the reciprocal emission velocities on the edges along each axis.

    Parameters
    ----------
    bands
        For electrons and for holes: the effective densities of states at the nodes, 1/cm3, and the height of the band
        edge above the carriers' zero of energy, kT.
    material
        Number of the material at each node.
    contacts
        Nodes of Schottky contacts.
    temperature
        Temperature, K.

    Returns
    -------
    tuple of numpy.ndarray
        For each axis s/cm, f8 of shape (4, *edges), 0 where emission does not limit the flux: electrons with the
        barrier at the low node of the edge, electrons with the barrier at the high node, then holes in the same order.
    """
    return tuple(
        np.stack(
            [side for states, edge in bands for side in _sides(states, edge, material, contacts, axis, temperature)]
        )
        for axis in range(material.ndim)
    )


def _sides(
    states: Floats, edge: Floats, material: NDArray[np.int64], contacts: Bools, axis: int, temperature: float
) -> tuple[Floats, Floats]:
    """Return the reciprocal velocities of a carrier for edges with the barrier at the low and at the high node."""
    n_low, n_high = _pair(states, axis)
    e_low, e_high = _pair(edge, axis)
    m_low, m_high = _pair(material, axis)
    c_low, c_high = _pair(contacts, axis)
    v_low, v_high = (emission_velocity(n, temperature) for n in (n_low, n_high))
    least = np.minimum(v_low * n_low, v_high * n_high)
    steps = (m_low != m_high) & (np.abs(e_high - e_low) > SMALLEST_OFFSET) & ~c_low & ~c_high
    low = np.where(c_low & ~c_high, 1.0 / v_low, np.where(steps & (e_low > e_high), n_low / least, 0.0))
    high = np.where(c_high & ~c_low, 1.0 / v_high, np.where(steps & (e_high > e_low), n_high / least, 0.0))
    rim = [(1, 1) if k == axis else (0, 0) for k in range(states.ndim)]
    return np.pad(low, rim), np.pad(high, rim)


def _pair(values: NDArray[Scalar], axis: int) -> tuple[NDArray[Scalar], NDArray[Scalar]]:
    """Return the values at the low and the high node of each inner edge along an axis."""
    count = values.shape[axis]
    return np.take(values, range(count - 1), axis), np.take(values, range(1, count), axis)
