"""Units of the quantities of an inversion: changes that count alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.models.waves.medium import Floats

if TYPE_CHECKING:
    from minga.models.waves.inversion import Inversion

__all__ = ["units_of"]

PLAIN: Final = ("epsilon", "delta", "theta", "phi")
"""Quantities of which a change by 1 counts like one of a velocity by its largest value."""


def units_of(inversion: Inversion, start: Mapping[str, Floats]) -> dict[str, float]:
    """Return the unit of each quantity: the given one, 1 for those of PLAIN, or its largest value at the start.

    Phase velocities change by about epsilon of themselves, so that 1 is to epsilon what its value is to a velocity. The
    largest epsilon, which may be 0 at the start, says nothing about how far it will change.

    Parameters
    ----------
    inversion
        The inversion.
    start
        The initial medium.
    """
    usual = {name: 1.0 if name in PLAIN else float(np.abs(values).max()) or 1.0 for name, values in start.items()}
    return usual | {name: float(unit) for name, unit in inversion.units.items()}
