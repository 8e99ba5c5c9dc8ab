"""Absorption of light in a device, and the generation of carrier pairs."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.structure.constants import CHARGE, LIGHT_SPEED, PLANCK
from minga.models.photodiode.structure.indices import Index, between
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.stack import Layer
from minga.models.photodiode.structure.transfer_matrix import Film

__all__ = ["absorption_of", "film_of", "generation_of", "photon_energy", "photon_flux", "uncovered"]

Floats = NDArray[np.float64]

_MICROMETRES: Final = 20.0
"""Number below which an unknown wavelength was probably meant in micrometres."""


def photon_energy(wavelength: float) -> float:
    """Return the photon energy in eV at a wavelength in nm."""
    return PLANCK * LIGHT_SPEED / (wavelength * 1e-7 * CHARGE)


def photon_flux(power: float, wavelength: float) -> float:
    """Return the photons per cm2 and second for a power in W/cm2 and a wavelength in nm."""
    return power / (photon_energy(wavelength) * CHARGE)


def absorption_of(layer: Layer, material: Material, wavelength: float, *, smooth: bool = False) -> float:
    """Return the absorption coefficient, 1/cm; 0 for photon energies below the gap where nothing else is known.

    Parameters
    ----------
    layer
        The layer, whose own absorption, or else the k of its own index, takes precedence.
    material
        Semiconductor at the place of interest in the layer.
    wavelength
        Wavelength, nm.
    smooth
        Whether a table of the index takes precedence over a coefficient of the material that is given for a single
        wavelength, so that the coefficient does not jump there.

    Raises
    ------
    CaseError
        If the coefficient is unknown at this wavelength; the error names the layer.
    """
    if "absorption" in layer.changes:
        return layer.changes["absorption"]
    if layer.index is not None and layer.index.k:
        return _covering(layer, layer.index, wavelength).absorption(wavelength)
    known, index = material.absorption, material.index
    from_index = index is not None and bool(index.k) and index.covers(wavelength)
    if smooth and from_index and known is not None and len(known.wavelengths) == 1:
        known = None
    if known is not None and known.wavelengths[0] <= wavelength <= known.wavelengths[-1]:
        return between(wavelength, known.wavelengths, known.coefficients, logarithmic=True)
    if index is not None and from_index:
        return index.absorption(wavelength)
    if photon_energy(wavelength) < material.gap:
        return 0.0
    tables = [table for table in (known, index) if table is not None and table.wavelengths]
    where = " and ".join(f"from {table.wavelengths[0]:g} to {table.wavelengths[-1]:g} nm" for table in tables)
    raise CaseError(
        f"layer {layer.name!r}: the absorption of {material.name} at {wavelength:g} nm is unknown"
        + (f"; it is known {where}" if where else ""),
        key="photodiode.light.wavelength",
        remedy=_remedy(wavelength, "write absorption = 1e4 (1/cm) in its layers, 0 for none"),
    )


def film_of(layer: Layer, wavelength: float) -> Film:
    """Return a layer as an optical film, with the absorption of `absorption_of`, `smooth`.

    Raises
    ------
    CaseError
        If its refractive index or absorption is unknown at this wavelength; the error names the layer.
    """
    material = layer.at(0.5)
    index = layer.index or material.index
    if index is None:
        raise CaseError(
            f"layer {layer.name!r}: the refractive index of {material.name} is unknown",
            key="photodiode.layers",
            remedy='write index = [3.2, 0.01] (n and k) in its layers, or index = "my.csv" with rows of nm, n, k',
        )
    n = _covering(layer, index, wavelength).at(wavelength)[0]
    k = absorption_of(layer, material, wavelength, smooth=True) * wavelength * 1e-7 / (4.0 * math.pi)
    return Film(n, k, layer.thickness)


def _covering(layer: Layer, index: Index, wavelength: float) -> Index:
    if index.covers(wavelength):
        return index
    raise uncovered(f"layer {layer.name!r}", index, wavelength)


def uncovered(what: str, index: Index, wavelength: float) -> CaseError:
    """Return the error for a wavelength outside a table."""
    return CaseError(
        f"{what}: the refractive index {index.name!r} is known from {index.wavelengths[0]:g} to "
        f"{index.wavelengths[-1]:g} nm, not at {wavelength:g} nm",
        key="photodiode.light.wavelength",
        remedy=_remedy(
            wavelength,
            'choose a wavelength within, or write an index of your own: index = [3.2, 0.01], or index = "my.csv"',
        ),
    )


def _remedy(wavelength: float, otherwise: str) -> str:
    """Return the remedy for a wavelength that was probably meant in micrometres, or that for others."""
    if wavelength < _MICROMETRES:
        return f"wavelengths are in nm: did you mean {1e3 * wavelength:g}?"
    return otherwise


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
