"""Limits of the parameters of semiconductors: beyond them lies no known one, but a value in another unit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from minga.errors import CaseError
from minga.models.photodiode.structure.materials import CaugheyThomas, Material

__all__ = ["LIFETIME", "MOBILITY", "check_material"]

LIFETIME: Final = (1e-15, 1.0)
"""Seconds: from less than a collision to more than that of the purest silicon."""
MOBILITY: Final = (1e-6, 1e6)
"""cm2/Vs at low fields: from organic films to InSb."""

_LIMITS: Final[dict[str, tuple[float, float, str]]] = {
    "gap": (0.05, 10.0, "eV"),
    "affinity": (0.1, 10.0, "eV"),
    "permittivity": (1.0, 1e3, "relative to vacuum"),
    "nc": (1e15, 1e23, "1/cm3"),
    "nv": (1e15, 1e23, "1/cm3"),
    "mobility_n": (*MOBILITY, "cm2/Vs"),
    "mobility_p": (*MOBILITY, "cm2/Vs"),
    "tau_n": (*LIFETIME, "s"),
    "tau_p": (*LIFETIME, "s"),
    "radiative": (0.0, 1e-6, "cm3/s"),
    "auger_n": (0.0, 1e-22, "cm6/s"),
    "auger_p": (0.0, 1e-22, "cm6/s"),
    "tunnelling_mass": (1e-3, 10.0, "masses of the electron"),
    "caughey_thomas_n.max": (*MOBILITY, "cm2/Vs"),
    "caughey_thomas_p.max": (*MOBILITY, "cm2/Vs"),
    "saturation.velocity_n": (5e5, 1e9, "cm/s"),
    "saturation.velocity_p": (5e5, 1e9, "cm/s"),
    "donor.energy": (1e-4, 10.0, "eV"),
    "acceptor.energy": (1e-4, 10.0, "eV"),
}
"""Lowest and highest value, and their unit."""


def check_material(material: Material) -> None:
    """Raise CaseError for the first parameter beyond its limits; the key has the names of material and parameter."""
    for name, value, low, high, unit in (*_limited(material), *_related(material)):
        if value < low or value > high:
            raise CaseError(
                f"{material.name}.{name}: expected a number from {low:.3g} to {high:.3g} ({unit}), found {value:g}",
                key=f"{material.name}.{name}",
                remedy=f"check its unit, {unit}",
            )


def _limited(material: Material) -> Iterator[tuple[str, float, float, float, str]]:
    """Yield parameters with their limits."""
    for name, (low, high, unit) in _LIMITS.items():
        value: object = material
        for part in name.split("."):
            value = getattr(value, part, None)
        if isinstance(value, int | float):
            yield name, value, low, high, unit


def _related(material: Material) -> Iterator[tuple[str, float, float, float, str]]:
    """Yield parameters that are limited by others."""
    if material.ni is not None:
        yield "ni", material.ni, 0.0, math.sqrt(material.nc * material.nv), "1/cm3"
    for name in ("caughey_thomas_n", "caughey_thomas_p"):
        if isinstance(mobility := getattr(material, name), CaugheyThomas):
            yield f"{name}.min", mobility.min, 0.0, mobility.max, "cm2/Vs"
