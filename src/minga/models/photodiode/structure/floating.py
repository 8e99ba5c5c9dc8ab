"""Doped regions that touch no contact, such as guard rings."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.structure.device import Device

__all__ = ["floats"]

DOPED: Final = 10.0
"""Doping of a region, in intrinsic densities, from which on its carriers have a potential of their own."""


def floats(device: Device) -> bool:
    """Return True if junctions part a doped region from all contacts."""
    kind = np.where(np.abs(device.doping) > DOPED * device.nie, np.sign(device.doping), 0.0)
    reached = np.logical_or.reduce([terminal.nodes for terminal in device.terminals])
    count = -1
    while (now := int(reached.sum())) > count:
        count = now
        for axis in range(kind.ndim):
            _spread(np.moveaxis(kind, axis, 0), np.moveaxis(reached, axis, 0))
    return bool(((kind != 0.0) & ~reached).any())


def _spread(kind: NDArray[np.float64], reached: NDArray[np.bool_]) -> None:
    """Reach the nodes next to those that are reached, along the first axis, which are of their kind."""
    for k in range(1, kind.shape[0]):
        reached[k] |= reached[k - 1] & (kind[k] == kind[k - 1])
    for k in range(kind.shape[0] - 2, -1, -1):
        reached[k] |= reached[k + 1] & (kind[k] == kind[k + 1])
