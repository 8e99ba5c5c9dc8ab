"""How the numbers of a material depend on the temperature, and which of them stay as they are at 300 K."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.structure.ionisation import IonisationSet
from minga.models.photodiode.structure.materials import CaugheyThomas, Material, Saturation
from minga.models.photodiode.structure.stack import Stack

__all__ = ["REFERENCE_TEMPERATURE", "gap_at", "lattice_share", "saturation_at", "unheated", "with_impurities"]

Floats = NDArray[np.float64]

REFERENCE_TEMPERATURE: Final = 300.0
"""K, at which numbers of materials hold."""


def gap_at(material: Material, temperature: float) -> float:
    """Eg in eV, by Varshni's formula away from 300 K."""
    if temperature == REFERENCE_TEMPERATURE or material.varshni is None:
        return material.gap
    alpha, beta = material.varshni
    room = REFERENCE_TEMPERATURE
    return material.gap - alpha * (temperature**2 / (temperature + beta) - room**2 / (room + beta))


def lattice_share(model: CaugheyThomas | None, temperature: float) -> float:
    """What the warmer lattice leaves of the mobility of pure material: (300 K/T)^exponent, 1 where it is not known."""
    if temperature == REFERENCE_TEMPERATURE or model is None or model.max_exponent is None:
        return 1.0
    return float((REFERENCE_TEMPERATURE / temperature) ** model.max_exponent)


def with_impurities(model: CaugheyThomas, impurities: Floats, temperature: float) -> Floats:
    """Mobility at a density of impurities (1/cm3), cm2/Vs: after Sotoodeh et al. away from 300 K."""
    largest = model.max * lattice_share(model, temperature)
    reference = model.reference * (temperature / REFERENCE_TEMPERATURE) ** model.reference_exponent
    found: Floats = model.min + (largest - model.min) / (1 + (impurities / reference) ** model.exponent)
    return found


def saturation_at(model: Saturation, temperature: float) -> Saturation:
    """Velocities at another temperature: (300 K/T)^exponent, as they are where that is not known."""
    if temperature == REFERENCE_TEMPERATURE or model.heat is None:
        return model
    electrons, holes = ((REFERENCE_TEMPERATURE / temperature) ** exponent for exponent in model.heat)
    return Saturation(
        model.velocity_n * electrons, model.velocity_p * holes, model.exponent_n, model.exponent_p, model.heat
    )


def unheated(
    stack: Stack, materials: Sequence[Material], sets: Sequence[IonisationSet]
) -> Mapping[str, tuple[str, ...]]:
    """What stays as it is at 300 K, by kind, with the materials or sets whose dependence is not known (all: empty).

    materials   of the nodes
    sets        of ionisation coefficients
    """
    if stack.temperature == REFERENCE_TEMPERATURE:
        return {}
    kinds = list(dict.fromkeys(materials))
    models = {material.name: (material.caughey_thomas_n, material.caughey_thomas_p) for material in kinds}
    still = tuple(name for name, own in models.items() if any(m is None or m.max_exponent is None for m in own))
    found: dict[str, tuple[str, ...]] = {"mobilities": still} if still else {}
    if "field" in stack.mobility:
        slow = tuple(dict.fromkeys(m.name for m in kinds if m.saturation is None or m.saturation.heat is None))
        found |= {"saturation velocities": slow} if slow else {}
    cold = tuple(dict.fromkeys(item.name for item in sets if item.heat is None))
    found |= {"ionisation": cold} if cold else {}
    words = {"srh": "lifetimes", "radiative": "radiative coefficients", "auger": "Auger coefficients"}
    found |= {words[name]: () for name in words if name in stack.recombination}
    if stack.light is not None:
        found |= {"absorption": ()}
    return found
