"""Fate of the light: what a device reflects, transmits and absorbs, and in which of its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.structure.incidence import check_light
from minga.models.photodiode.structure.indices import Index
from minga.models.photodiode.structure.layers import Kinds, absorption_at, layer_numbers, materials_at
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.optics import film_of, uncovered
from minga.models.photodiode.structure.stack import Light, Stack
from minga.models.photodiode.structure.thick import Part, before_device, behind_device
from minga.models.photodiode.structure.transfer_matrix import Film, Waves, waves_in

__all__ = ["Illumination", "Spectrum", "illumination_of", "spectrum_of"]

Floats = NDArray[np.float64]

_ALL: Final = slice(None)
OPAQUE: Final = 1e-2
"""Largest k over n of a substrate, whose surfaces reflect as if it did not absorb."""


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
        Fractions absorbed in the volumes of the nodes, f8 of the grid's shape.
    substrate
        Fraction absorbed in the substrate.
    """

    reflected: float
    transmitted: float
    coatings: tuple[float, ...]
    layers: tuple[float, ...]
    nodes: Floats
    substrate: float = 0.0


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


def spectrum_of(
    stack: Stack, light: Light, mesh: Mesh, wavelengths: Sequence[float], across: Mesh | None = None
) -> Spectrum:
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
    across
        Mesh along y of a device with two axes.

    Returns
    -------
    Spectrum
        The light in the device.

    Raises
    ------
    CaseError
        If an optical property of a layer or a coating is unknown at a wavelength, or there can be no such light.
    """
    check_light(light, mesh, across)
    lights = [replace(light, wavelength=wavelength) for wavelength in wavelengths]
    numbers, _ = layer_numbers(stack.layers, mesh)
    if light.optics == "transfer-matrix":
        dark = np.zeros(mesh.nodes.size)  # films have indices instead
        every = (illumination_of(stack, item, mesh, dark, numbers, across) for item in lights)
        return Spectrum(tuple(wavelengths), tuple(every))
    kinds = Kinds.of(materials_at(stack, mesh, numbers), numbers)
    found = [
        illumination_of(stack, item, mesh, absorption_at(stack, item, kinds, smooth=True), numbers, across)
        for item in lights
    ]
    return Spectrum(tuple(wavelengths), tuple(found))


def illumination_of(
    stack: Stack, light: Light, mesh: Mesh, absorption: Floats, numbers: NDArray[np.int64], across: Mesh | None = None
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
    across
        Mesh along y of a device with two axes.

    Raises
    ------
    CaseError
        If the refractive index of a layer or a coating is unknown at the wavelength.
    """
    if light.lateral and across is not None:
        return _along_rows(stack, light, mesh, absorption, numbers, across)
    if light.optics == "transfer-matrix":
        found = _coherent(stack, light, mesh)
    else:
        nodes, left = _decaying(absorption * mesh.volumes, backwards=stack.from_high(light))
        found = Illumination(0.0, float(left), (), _by_layer(stack, numbers, nodes), nodes)
    if across is None:
        return found
    return replace(found, nodes=np.outer(found.nodes, _parts(light.beam.over(across) * across.sections)))


def _along_rows(
    stack: Stack, light: Light, mesh: Mesh, absorption: Floats, numbers: NDArray[np.int64], across: Mesh
) -> Illumination:
    """Return where light across the layers goes: each row absorbs what it receives."""
    received = _parts(light.beam.over(mesh) * mesh.volumes)
    shares, left = _decaying(np.outer(absorption, across.volumes), backwards=light.side == "right")
    nodes = shares * received[:, None]
    return Illumination(0.0, math.fsum((received * left).tolist()), (), _by_layer(stack, numbers, nodes), nodes)


def _decaying(depths: Floats, *, backwards: bool) -> tuple[Floats, Floats]:
    """Return the shares of the light that cells of these optical depths absorb along the last axis, and what is left.

    Each cell takes its share of what reaches it, so that the shares and what is left add up to 1.
    """
    order = slice(None, None, -1 if backwards else 1)
    depths = depths[..., order]
    before = np.cumsum(depths, axis=-1)
    reached = np.concatenate((np.zeros((*depths.shape[:-1], 1)), before[..., :-1]), axis=-1)
    shares = portable.exp(-reached) * -portable.expm1(-depths)
    return shares[..., order], portable.exp(-before[..., -1])


def _parts(amounts: Floats) -> Floats:
    """Return amounts as parts of their sum."""
    return amounts / math.fsum(amounts.tolist())


def _by_layer(stack: Stack, numbers: NDArray[np.int64], nodes: Floats) -> tuple[float, ...]:
    """Return the sum over the nodes of each layer."""
    return tuple(math.fsum(nodes[numbers == k].ravel().tolist()) for k in range(len(stack.layers)))


def _coherent(stack: Stack, light: Light, mesh: Mesh) -> Illumination:
    stacks = _Stacks.of(stack, light, mesh)
    wafer = light.substrate
    lost = 0.0
    if wafer is None:
        part = stacks.part(_ALL, light.ambient, stacks.beyond(stacks.films[-1]))
    else:
        slab = _film(f"substrate {wafer.index.name}", wafer.index, wafer.thickness, light)
        if slab.k > OPAQUE * slab.n:
            raise CaseError(
                f"the substrate {wafer.index.name!r} absorbs light of {light.wavelength:g} nm (k = {slab.k:.2g})",
                key="photodiode.light.substrate",
                remedy="leave the substrate out, so that the last layer has no far side, or make it a layer",
            )
        part, lost = _with_wafer(stacks, slab, near=wafer.at == "near")
    coatings, layers = len(light.coatings), len(stack.layers)
    return Illumination(
        part.reflected,
        part.transmitted,
        tuple(part.absorbed[:coatings].tolist()),
        tuple(part.absorbed[coatings : coatings + layers].tolist()),
        part.absorbed[coatings + layers :],
        lost,
    )


def _with_wafer(stacks: _Stacks, slab: Film, *, near: bool) -> tuple[Part, float]:
    """Return what a device on a wafer does, and what the wafer absorbs."""
    light = stacks.light
    inside = (slab.n, 0.0)
    left = float(portable.exp(-4.0 * math.pi * slab.k / (light.wavelength * 1e-7) * slab.thickness))
    films = stacks.outer if near else _ALL
    sides = (
        stacks.part(films, light.ambient, inside),
        stacks.part(films, slab.n, (light.ambient, 0.0), back=True),
    )
    if near:
        device = stacks.part(stacks.inner, slab.n, stacks.beyond(stacks.films[-1]))
        return before_device(sides, device, left)
    mirror = waves_in(slab.n, (), stacks.beyond(Film(1.0, 0.0, 0.0)), light.wavelength).reflected
    return behind_device(sides, left, mirror)


@dataclass(frozen=True, slots=True, eq=False)
class _Stacks:
    """Coatings and layers as films, from the light's side, and the mesh on which layers absorb."""

    light: Light
    mesh: Mesh
    films: tuple[Film, ...]
    from_high: bool

    @classmethod
    def of(cls, stack: Stack, light: Light, mesh: Mesh) -> _Stacks:
        """Return the films of a device."""
        from_high = stack.from_high(light)
        layers = stack.layers[::-1] if from_high else stack.layers
        coatings = tuple(
            _film(f"coating {k + 1}", item.index, item.thickness, light) for k, item in enumerate(light.coatings)
        )
        return cls(light, mesh, (*coatings, *(film_of(layer, light.wavelength) for layer in layers)), from_high)

    @property
    def outer(self) -> slice:
        """The coatings among the films."""
        return slice(0, len(self.light.coatings))

    @property
    def inner(self) -> slice:
        """The layers among the films."""
        return slice(len(self.light.coatings), None)

    def beyond(self, otherwise: Film) -> tuple[float, float]:
        """Return n and k of what lies behind the far side."""
        if self.light.backing is None:
            return otherwise.n, otherwise.k
        backing = _film("backing", self.light.backing, 0.0, self.light)
        return backing.n, backing.k

    def part(self, chosen: slice, ambient: float, beyond: tuple[float, float], *, back: bool = False) -> Part:
        """Return what all films, the coatings or the layers do with light from their front or their back."""
        turn = -1 if back else 1
        order = self.films[chosen][::turn]
        waves = waves_in(ambient, order, beyond, self.light.wavelength)
        shares, nodes = np.zeros(len(self.films)), np.zeros(self.mesh.nodes.size)
        shares[chosen] = np.array(waves.absorbed)[::turn]
        layers = shares[self.outer.stop :]
        if chosen != self.outer:
            first = 0 if back else len(order) - layers.size
            nodes = _in_nodes(waves, first, layers.size, self.mesh, from_high=self.from_high != back)
        in_layers = layers[:: -1 if self.from_high else 1]
        return Part(waves.reflected, waves.transmitted, np.concatenate((shares[self.outer], in_layers, nodes)))


def _film(what: str, index: Index, thickness: float, light: Light) -> Film:
    if not index.covers(light.wavelength):
        raise uncovered(what, index, light.wavelength)
    return Film(*index.at(light.wavelength), thickness)


def _in_nodes(waves: Waves, first: int, count: int, mesh: Mesh, *, from_high: bool) -> Floats:
    """Return what each node's volume absorbs: the difference of the power at its two faces."""
    films = waves.films[first : first + count]
    tops = np.concatenate(([0.0], np.cumsum([film.thickness for film in films])))
    faces = mesh.faces - mesh.faces[0]
    depths = (faces[-1] - faces)[::-1] if from_high else faces
    number = np.searchsorted(tops[1:-1], depths, side="right")
    inside = np.minimum((depths - tops[number]).clip(0.0), np.diff(tops)[number])
    power = waves.power(first + number, inside)
    absorbed = (power[:-1] - power[1:]).clip(0.0)
    return absorbed[::-1] if from_high else absorbed
