"""Light in a wafer that is too thick for interference: powers add up in place of amplitudes.

The wafer lies behind a device or before it. Light that crosses it in one pass is attenuated to a fraction `left`, and
goes to and fro between both of its sides; the sum over all passes is a geometric series. Everything is a fraction of
the incident power, and adds up to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Part", "before_device", "behind_device"]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Response of films to light from one side: fractions reflected, transmitted, and absorbed in each part."""

    reflected: float
    transmitted: float
    absorbed: NDArray[np.float64]


def behind_device(device: tuple[Part, Part], left: float, mirror: float) -> tuple[Part, float]:
    """Return what a device with a wafer behind it does with light from its front, and what the wafer absorbs.

    Parameters
    ----------
    device
        The device with light from its front, and with light from the wafer.
    left
        Fraction of the light left after one pass through the wafer.
    mirror
        Fraction that the far side of the wafer reflects.
    """
    front, back = device
    down = front.transmitted / (1.0 - left * left * mirror * back.reflected)  # that leaves the device
    up = left * left * mirror * down  # that comes back to it
    part = Part(
        front.reflected + up * back.transmitted,
        left * down * (1.0 - mirror),
        front.absorbed + up * back.absorbed,
    )
    return part, down * (1.0 - left) * (1.0 + left * mirror)


def before_device(surface: tuple[Part, Part], device: Part, left: float) -> tuple[Part, float]:
    """Return what a device does with light that passes a wafer first, and what the wafer absorbs.

    Parameters
    ----------
    surface
        The outer side of the wafer, with its coatings, with light from outside and from the wafer.
    device
        The device with light from the wafer.
    left
        Fraction of the light left after one pass through the wafer.
    """
    outside, inside = surface
    arriving = outside.transmitted * left / (1.0 - left * left * device.reflected * inside.reflected)
    returned = arriving * device.reflected
    up = returned * left  # that comes back to the outer side
    part = Part(
        outside.reflected + up * inside.transmitted,
        arriving * device.transmitted,
        outside.absorbed + up * inside.absorbed + arriving * device.absorbed,
    )
    return part, (1.0 - left) * (outside.transmitted + up * inside.reflected + returned)
