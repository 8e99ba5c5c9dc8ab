"""Fate of the light: what a device reflects, transmits and absorbs, and in which of its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.structure.layers import absorption_at, layer_numbers, materials_at
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.optics import film_of, uncovered
from minga.models.photodiode.structure.stack import Light, Stack
from minga.models.photodiode.structure.transfer_matrix import Film, Waves, waves_in

__all__ = ["Illumination", "Spectrum", "illumination_of", "spectrum_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Illumination:
    """The light of one wavelength, as fractions of the incident photons.

    Parameters
    ----------
    reflected, transmitted
        Fractions that leave the device on the light's side and on the far side.
    coatings
        Fractions absorbed in the coatings, from the outside inwards.
    layers
        Fractions absorbed in the layers, from the anode to the cathode.
    nodes
        Fractions absorbed in the volumes of the nodes along x, f8 of shape (N,).
    """

    reflected: float
    transmitted: float
    coatings: tuple[float, ...]
    layers: tuple[float, ...]
    nodes: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The light in a device at several wavelengths.

    Parameters
    ----------
    wavelengths
        Wavelengths, nm.
    illuminations
        Where the light of each goes.
    """

    wavelengths: tuple[float, ...]
    illuminations: tuple[Illumination, ...]


def spectrum_of(stack: Stack, light: Light, mesh: Mesh, wavelengths: Sequence[float]) -> Spectrum:
    """Return where light of each wavelength goes.

    Parameters
    ----------
    stack
        Structure of the device.
    light
        The light; its wavelength does not matter.
    mesh
        Mesh along x.
    wavelengths
        Wavelengths, nm.

    Returns
    -------
    Spectrum
        The light in the device.

    Raises
    ------
    CaseError
        If an optical property of a layer or a coating is unknown at a wavelength.
    """
    numbers, _ = layer_numbers(stack.layers, mesh)
    materials = materials_at(stack, mesh, numbers)
    found = []
    for wavelength in wavelengths:
        coloured = replace(light, wavelength=wavelength)
        absorption = absorption_at(stack, coloured, materials, numbers)
        found.append(illumination_of(stack, coloured, mesh, absorption, numbers))
    return Spectrum(tuple(wavelengths), tuple(found))


def illumination_of(
    stack: Stack, light: Light, mesh: Mesh, absorption: Floats, numbers: NDArray[np.int64]
) -> Illumination:
    """Return where the light goes.

    Parameters
    ----------
    stack
        Structure of the device.
    light
        The light.
    mesh
        Mesh along x.
    absorption
        Absorption coefficient at the nodes, 1/cm; used without interference.
    numbers
        Layers of the nodes.

    Raises
    ------
    CaseError
        If the refractive index of a layer or a coating is unknown at the wavelength.
    """
    if light.optics == "transfer-matrix":
        return _coherent(stack, light, mesh)
    # Each node's volume takes its share of what reaches it, so that the shares and what is left add up to 1.
    depths = (absorption * mesh.volumes)[:: -1 if light.side == "cathode" else 1]
    before = np.concatenate(([0.0], np.cumsum(depths)))
    nodes = (portable.exp(-before[:-1]) * -portable.expm1(-depths))[:: -1 if light.side == "cathode" else 1]
    layers = tuple(math.fsum(nodes[numbers == k].tolist()) for k in range(len(stack.layers)))
    return Illumination(0.0, float(portable.exp(-before[-1])), (), layers, nodes)


def _coherent(stack: Stack, light: Light, mesh: Mesh) -> Illumination:
    layers = stack.layers[::-1] if light.side == "cathode" else stack.layers
    coatings = [_coating(k, light) for k in range(len(light.coatings))]
    films = [film_of(layer, light.wavelength) for layer in layers]
    beyond = (films[-1].n, films[-1].k)
    if light.backing is not None:
        if not light.backing.covers(light.wavelength):
            raise uncovered("backing", light.backing, light.wavelength)
        beyond = light.backing.at(light.wavelength)
    waves = waves_in(light.ambient, [*coatings, *films], beyond, light.wavelength)
    absorbed = waves.absorbed
    nodes = _in_nodes(waves, len(coatings), mesh, from_high=light.side == "cathode")
    inside = absorbed[len(coatings) :]
    return Illumination(
        waves.reflected,
        waves.transmitted,
        absorbed[: len(coatings)],
        inside[::-1] if light.side == "cathode" else inside,
        nodes,
    )


def _coating(number: int, light: Light) -> Film:
    coating = light.coatings[number]
    if not coating.index.covers(light.wavelength):
        raise uncovered(f"coating {number + 1}", coating.index, light.wavelength)
    return Film(*coating.index.at(light.wavelength), coating.thickness)


def _in_nodes(waves: Waves, first: int, mesh: Mesh, *, from_high: bool) -> Floats:
    """Return what each node's volume absorbs: the difference of the power at its two faces."""
    films = waves.films[first:]
    tops = np.concatenate(([0.0], np.cumsum([film.thickness for film in films])))
    faces = mesh.faces - mesh.faces[0]
    depths = (faces[-1] - faces)[::-1] if from_high else faces
    number = np.searchsorted(tops[1:-1], depths, side="right")
    inside = np.minimum((depths - tops[number]).clip(0.0), np.diff(tops)[number])
    power = waves.power(first + number, inside)
    absorbed = (power[:-1] - power[1:]).clip(0.0)
    return absorbed[::-1] if from_high else absorbed
