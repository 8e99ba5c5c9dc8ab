"""Constants of nature in the units of devices: cm, V, s, K and elementary charges."""

from __future__ import annotations

from typing import Final

__all__ = ["BOLTZMANN", "CHARGE", "LIGHT_SPEED", "PLANCK", "REFERENCE_DENSITY", "VACUUM", "thermal_voltage"]

CHARGE: Final = 1.602176634e-19
"""Elementary charge, C."""

BOLTZMANN: Final = 1.380649e-23
"""J/K."""

VACUUM: Final = 8.8541878128e-14
"""Permittivity of vacuum, F/cm."""

PLANCK: Final = 6.62607015e-34
"""J s."""

LIGHT_SPEED: Final = 2.99792458e10
"""cm/s."""

REFERENCE_DENSITY: Final = 1e10
"""Nref, the density that band parameters are counted from, 1/cm3; any number does."""


def thermal_voltage(temperature: float) -> float:
    """kT/q in V; 0.0258519998 at 300 K."""
    return BOLTZMANN * temperature / CHARGE
