"""Physical constants in the units of devices: cm, V, s, K and C."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BOLTZMANN",
    "CHARGE",
    "ELECTRON_MASS",
    "LIGHT_SPEED",
    "PLANCK",
    "REFERENCE_DENSITY",
    "VACUUM",
    "thermal_voltage",
]

CHARGE: Final = 1.602176634e-19
"""Elementary charge, C."""

BOLTZMANN: Final = 1.380649e-23
"""Boltzmann constant, J/K."""

VACUUM: Final = 8.8541878128e-14
"""Permittivity of vacuum, F/cm."""

PLANCK: Final = 6.62607015e-34
"""Planck constant, J s."""

ELECTRON_MASS: Final = 9.1093837015e-31
"""Mass of the electron, kg."""

LIGHT_SPEED: Final = 2.99792458e10
"""Speed of light, cm/s."""

REFERENCE_DENSITY: Final = 1e10
"""Nref, the reference density of the band parameters, 1/cm3; its value is arbitrary."""


def thermal_voltage(temperature: float) -> float:
    """Return kT/q in V; 0.0258519998 at 300 K."""
    return BOLTZMANN * temperature / CHARGE
