"""Temperature dependence of material parameters, and the list of parameters that keep their values at 300 K."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.structure.ionisation import IonisationSet
from minga.models.photodiode.structure.materials import CaugheyThomas, Material, Saturation
from minga.models.photodiode.structure.stack import Stack
from minga.models.photodiode.structure.vurgaftman import alloy_gap

__all__ = ["REFERENCE_TEMPERATURE", "gap_at", "lattice_share", "saturation_at", "unheated", "with_impurities"]

Floats = NDArray[np.float64]

REFERENCE_TEMPERATURE: Final = 300.0
"""Temperature at which the tabulated material parameters hold, K."""


def gap_at(material: Material, temperature: float) -> float:
    """Return the band gap in eV; away from 300 K by Varshni's formula, in alloys by those of their compounds."""
    if temperature == REFERENCE_TEMPERATURE:
        return material.gap
    if material.alloy is not None:
        return (
            material.gap + alloy_gap(*material.alloy, temperature) - alloy_gap(*material.alloy, REFERENCE_TEMPERATURE)
        )
    if material.varshni is None:
        return material.gap
    alpha, beta = material.varshni
    room = REFERENCE_TEMPERATURE
    return material.gap - alpha * (temperature * temperature / (temperature + beta) - room * room / (room + beta))


def lattice_share(model: CaugheyThomas | None, temperature: float) -> float:
    """Return the factor (300 K/T)^exponent of the mobility of pure material; 1 if its dependence is unknown."""
    if temperature == REFERENCE_TEMPERATURE or model is None or model.max_exponent is None:
        return 1.0
    return float(portable.power(REFERENCE_TEMPERATURE / temperature, model.max_exponent))


def with_impurities(model: CaugheyThomas, impurities: Floats, temperature: float) -> Floats:
    """Return the mobility, cm2/Vs, at an impurity density, 1/cm3; away from 300 K after Sotoodeh et al."""
    largest = model.max * lattice_share(model, temperature)
    reference = model.reference * portable.power(temperature / REFERENCE_TEMPERATURE, model.reference_exponent)
    found: Floats = model.min + (largest - model.min) / (1 + portable.power(impurities / reference, model.exponent))
    return found


def saturation_at(model: Saturation, temperature: float) -> Saturation:
    """Return the velocities at another temperature, scaled by (300 K/T)^exponent; unchanged if that is unknown."""
    if temperature == REFERENCE_TEMPERATURE or model.heat is None:
        return model
    electrons, holes = (portable.power(REFERENCE_TEMPERATURE / temperature, exponent) for exponent in model.heat)
    return Saturation(
        model.velocity_n * electrons, model.velocity_p * holes, model.exponent_n, model.exponent_p, model.heat
    )


def unheated(
    stack: Stack, materials: Sequence[Material], sets: Sequence[IonisationSet]
) -> Mapping[str, tuple[str, ...]]:
    """Return the parameters that keep their values at 300 K: kinds, and the materials or sets concerned (empty: all).

    Parameters
    ----------
    stack
        Structure of the device.
    materials
        Materials of the nodes.
    sets
        Sets of ionisation coefficients in use.
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
    names = {"srh": "lifetimes", "radiative": "radiative coefficients", "auger": "Auger coefficients"}
    found |= {names[name]: () for name in names if name in stack.recombination}
    if stack.light is not None:
        found |= {"absorption": ()}
    return found
