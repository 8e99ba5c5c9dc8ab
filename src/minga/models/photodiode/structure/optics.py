"""Absorption of light in a device, and the generation of carrier pairs."""

from __future__ import annotations

import bisect

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.structure.constants import CHARGE, LIGHT_SPEED, PLANCK
from minga.models.photodiode.structure.materials import Absorption, Material

__all__ = ["absorption_of", "generation_of", "photon_energy", "photon_flux"]

Floats = NDArray[np.float64]


def photon_energy(wavelength: float) -> float:
    """Return the photon energy in eV at a wavelength in nm."""
    return PLANCK * LIGHT_SPEED / (wavelength * 1e-7 * CHARGE)


def photon_flux(power: float, wavelength: float) -> float:
    """Return the photons per cm2 and second for a power in W/cm2 and a wavelength in nm."""
    return power / (photon_energy(wavelength) * CHARGE)


def absorption_of(material: Material, wavelength: float, layer: str) -> float:
    """Return the absorption coefficient, 1/cm; 0 for photon energies below the gap.

    Raises
    ------
    CaseError
        If the coefficient is unknown at this wavelength; the error names the layer.
    """
    known = material.absorption
    if known is not None and known.wavelengths[0] <= wavelength <= known.wavelengths[-1]:
        return _between(wavelength, known)
    if photon_energy(wavelength) < material.gap:
        return 0.0
    where = "" if known is None else f"; it is known from {known.wavelengths[0]:g} to {known.wavelengths[-1]:g} nm"
    raise CaseError(
        f"layer {layer!r}: the absorption of {material.name} at {wavelength:g} nm is unknown{where}",
        key="photodiode.light.wavelength",
        remedy="write absorption = 1e4 (1/cm) in its layers, 0 for none",
    )


def _between(wavelength: float, known: Absorption) -> float:
    if wavelength in known.wavelengths:
        return known.coefficients[known.wavelengths.index(wavelength)]
    k = bisect.bisect(known.wavelengths, wavelength)
    low, high = known.wavelengths[k - 1 : k + 1]
    first, last = map(portable.log, known.coefficients[k - 1 : k + 1])
    return float(portable.exp(first + (wavelength - low) / (high - low) * (last - first)))


def generation_of(flux: float, absorption: Floats, below: Floats, above: Floats, *, from_high: bool) -> Floats:
    """Return the pairs generated at each node, 1/cm3 s: the absorption times the photons that reach the node.

    The optical depth is measured from the first absorbing node, which therefore receives all photons.

    Parameters
    ----------
    flux
        Incident photons per cm2 and second.
    absorption
        Absorption coefficient of each node's volume, 1/cm.
    below, above
        Extent of that volume to either side of the node, cm.
    from_high
        Whether the light enters at the last node's side.
    """
    alpha = absorption[::-1] if from_high else absorption
    near, far = (above[::-1], below[::-1]) if from_high else (below, above)
    whole = alpha * (near + far)
    depth = np.concatenate(([0.0], np.cumsum(whole)[:-1])) + alpha * near
    first = int(np.argmax(alpha > 0.0))
    pairs: Floats = flux * alpha * portable.exp(depth[first] - depth)
    return pairs[::-1] if from_high else pairs
