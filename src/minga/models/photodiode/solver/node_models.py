"""Coefficients of tunnelling and surfaces at the nodes, for `minga.models.photodiode.solver.coefficients`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.structure.device import Device

__all__ = ["BandTunnelling", "TrapTunnelling", "gradient_weights", "surface_values"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BandTunnelling:
    """Tunnelling from band to band at the nodes, A E^power exp(-B/E).

    Attributes
    ----------
    a, b, power
        A in 1/cm3 s, 0 where nothing tunnels; B in V/cm; the exponent. `a` is a field, the others fields or numbers.
    log_n, log_p
        ln(Nc/nie) and ln(Nv/nie).
    """

    a: Any
    b: Any
    power: Any
    log_n: Any
    log_p: Any


@dataclass(frozen=True, slots=True)
class TrapTunnelling:
    """Tunnelling to traps at the nodes.

    Attributes
    ----------
    depth, strength
        Depth in kT, 0 where nothing tunnels, and F in V/cm.
    log_n, log_p
        ln(Nc/nie) and ln(Nv/nie).
    """

    depth: Any
    strength: Any
    log_n: Any
    log_p: Any


def gradient_weights(device: Device, axis: int, half: Floats, slope: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield names and values of the weights of both neighbours along an axis in the mean square of a gradient.

    `half` and `slope` are those of EdgeCoefficients.
    """
    count = device.grid.shape[axis]
    below, above = (np.take(half, range(k, count + k), axis) for k in (0, 1))
    total = np.where(below + above > 0.0, below + above, 1.0)
    for name, part, k in (("below", below, 0), ("above", above, 1)):
        squared = np.take(slope, range(k, count + k), axis)
        yield f"gradient {name} along {device.grid.axes[axis]}", part / total * squared * squared


def surface_values(device: Device) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield names and values of `Coefficients.surface`; nothing without surfaces."""
    surface = device.surface
    if surface is None:
        return
    yield "surface of electrons", surface.area / device.volumes * surface.velocity_n
    yield "surface of holes", surface.area / device.volumes * surface.velocity_p
    yield "carrier that a contact does not hold", surface.free
