"""Estimates from the depletion approximation, for planning a run rather than for quoting.

All quantities vary along x only; in a device with two axes they are taken under the middle of the anode. The
junction is where the doping first changes its sign; from there both sides are depleted as far as the voltage requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import EdgeIonisation

__all__ = ["Depletion", "built_in_voltage", "debye_lengths", "neutral_potential", "photocurrent_sign", "reverse_sign"]

Floats = NDArray[np.float64]

_HOMOTYPE: Final = 10.0
"""Largest built-in potential between two regions of the same type, kT/q."""


def column(device: Device, values: Floats) -> Floats:
    """Return an array along x; its column under the middle of the anode if the device has two axes."""
    return values if values.ndim == 1 else values[:, device.middle]


def neutral_potential(device: Device) -> Floats:
    """Return the potential of neutral nodes at equilibrium with Boltzmann statistics, kT/q."""
    return column(device, _neutral(device))


def _neutral(device: Device) -> Floats:
    """Return `neutral_potential` at all nodes."""
    half = device.doping / (2 * device.nie)
    found: Floats = portable.asinh(half) - 0.5 * (device.theta_n + device.theta_p)
    return found


def reverse_sign(device: Device) -> float:
    """Return the sign of the voltages in reverse bias: -1, 1 with the n side at the anode, 0 without a junction."""
    phi = _neutral(device)
    anode, cathode = (float(phi[device.terminal(name).nodes].mean()) for name in ("anode", "cathode"))
    return 0.0 if abs(cathode - anode) <= _HOMOTYPE else math.copysign(1.0, anode - cathode)


def photocurrent_sign(device: Device) -> float:
    """Return 1 if light drives a current from the cathode to the anode, -1 for a diode with its n side at the anode."""
    return -reverse_sign(device) or 1.0


def built_in_voltage(device: Device) -> float:
    """Return the potential of the cathode over the anode at equilibrium, V; ohmic contacts, Boltzmann statistics."""
    phi = neutral_potential(device)
    return float(phi[-1] - phi[0]) * device.thermal_voltage


def debye_lengths(device: Device) -> Floats:
    """Return sqrt(eps kT/(q^2 N)) at the nodes along x in cm; N is the larger of doping and intrinsic density."""
    density = np.maximum(np.abs(column(device, device.doping)), column(device, device.nie))
    permittivity = column(device, device.permittivity) * VACUUM
    return np.sqrt(permittivity * device.thermal_voltage / (CHARGE * density))


@dataclass(frozen=True)
class Depletion:
    """Depleted part of a device; `junction` is the last node on the anode's side of the p-n junction."""

    device: Device
    junction: int

    @classmethod
    def of(cls, device: Device) -> Depletion | None:
        """Return the depletion of a device; None if it has no p-n junction with the p side at the anode."""
        doping = column(device, device.doping)
        ends = np.flatnonzero((doping[:-1] < 0) & (doping[1:] >= 0))
        return cls(device, int(ends[0])) if ends.size and doping[-1] > 0 else None

    @cached_property
    def _charges(self) -> Floats:
        """Contribution of each node's dopants to the displacement, as a field in V/cm times eps_r."""
        doping = column(self.device, self.device.doping) * self._heights
        return doping * (CHARGE / VACUUM)

    @cached_property
    def _heights(self) -> Floats:
        lengths = self.device.lengths[0]
        inner = np.concatenate(([0.0], lengths[1:-1], [0.0]))
        return 0.5 * (inner[:-1] + inner[1:])

    def fields(self, peak: float) -> Floats:
        """Return |E| between the nodes for a displacement at the junction.

        Parameters
        ----------
        peak
            The displacement, V/cm times eps_r.

        Returns
        -------
        numpy.ndarray
            V/cm, of shape (N - 1,).
        """
        charges, k = self._charges, self.junction
        right = peak - np.concatenate(([0.0], np.cumsum(charges[k + 1 : -1])))
        left = peak + np.concatenate(([0.0], np.cumsum(charges[k:0:-1])))
        displacement = np.concatenate((_until_none(left)[::-1], _until_none(right)))
        permittivity = column(self.device, self.device.permittivity)
        return displacement[: permittivity.size - 1] / (0.5 * (permittivity[:-1] + permittivity[1:]))

    def voltage(self, peak: float) -> float:
        """Return the voltage across the depleted part for a displacement at the junction."""
        return float((self.fields(peak) * self.device.lengths[0][1:-1]).sum())

    def peak_at(self, bias: float) -> float:
        """Return the displacement at the junction for a bias of the anode relative to the cathode."""
        wanted = built_in_voltage(self.device) - bias
        if wanted <= 0:
            return 0.0
        return _root(lambda peak: self.voltage(peak) - wanted)

    def field_at(self, bias: float) -> Floats:
        """Return |E| between the nodes at a bias, V/cm."""
        return self.fields(self.peak_at(bias))

    def reaches(self, number: int, strength: float = 0.0) -> float | None:
        """Return the bias at which the field reaches `strength` in a layer; None for a layer on the anode's side.

        The field is taken in the middle of the layer, or at its first node if `strength` is 0.
        """
        layer = self.device.layers[number]
        node = (layer.first + layer.last) // 2 if strength else layer.first
        if node <= self.junction:
            return None
        permittivity = float(column(self.device, self.device.permittivity)[node])
        peak = float(self._charges[self.junction + 1 : node].sum()) + strength * permittivity
        return built_in_voltage(self.device) - self.voltage(peak) if peak > 0 else None

    def breakdown(self, most: float = 1e4) -> float | None:
        """Return the bias at which the ionisation integral is 1; None if it is not below `most` volts.

        At an integral of 1 each carrier generates one further carrier on its way.
        """
        electrons, holes = self.device.ionisation_n[0], self.device.ionisation_p[0]
        if not electrons.a.any() and not holes.a.any():
            return None
        voltage = built_in_voltage(self.device)

        def beyond(peak: float) -> float:
            return self.integral(self.fields(peak)) - 1.0

        peak = _root(beyond, most=1e9)
        found = voltage - self.voltage(peak)
        return found if abs(found) < most and np.isfinite(found) else None

    def integral(self, fields: Floats) -> float:
        """Return the ionisation integral of holes from the cathode's side; 1 where both carriers sustain each other."""
        electrons = coefficient_on(self.device.ionisation_n[0], fields)
        holes = coefficient_on(self.device.ionisation_p[0], fields)
        lengths = self.device.lengths[0][1:-1]
        # Holes drift towards the anode; those that start at x = W: int beta exp(-int_x^W (beta - alpha)) dx.
        gained = (holes - electrons) * lengths
        beyond = np.concatenate((np.cumsum(gained[::-1])[::-1][1:], [0.0])) + 0.5 * gained
        return float((holes * portable.exp(np.clip(-beyond, -700.0, 700.0)) * lengths).sum())


def coefficient_on(edges: EdgeIonisation, fields: Floats) -> Floats:
    """Return alpha in 1/cm on the edges between nodes along x for |E| there."""
    found = np.zeros_like(fields)
    taken = np.zeros(fields.shape, np.bool_)
    strength = np.maximum(fields, 1.0)
    for k in range(edges.pieces):
        a, b, m, power, to = (
            (v[k] if v.ndim == 2 else v[k][:, v.shape[2] // 2])[1:-1]
            for v in (edges.a, edges.b, edges.m, edges.power, edges.to)
        )
        here = ~taken & (fields < to)
        value = a * portable.power(strength, power) * portable.exp(-portable.power(b / strength, m))
        found = np.where(here, value, found)
        taken |= here
    return found


def _until_none(displacement: Floats) -> Floats:
    """Return the displacement from the junction outwards, set to 0 from where it would change its sign."""
    below = np.flatnonzero(displacement <= 0)
    if below.size:
        displacement = displacement.copy()
        displacement[below[0] :] = 0.0
    return displacement


def _root(f: Callable[[float], float], most: float = 1e12) -> float:
    """Return the root of an increasing function by bisection between 0 and `most`."""
    low, high = 0.0, 1.0
    while f(high) < 0 and high < most:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return 0.5 * (low + high)
