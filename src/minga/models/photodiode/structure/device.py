"""A device: all numbers its equations need, at the nodes of its mesh and on the edges between them; in cm, V, s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY, thermal_voltage
from minga.models.photodiode.structure.emission import emission_of
from minga.models.photodiode.structure.ionisation import EdgeIonisation
from minga.models.photodiode.structure.layers import (
    LayerProperties,
    chosen_sets,
    edge_ionisation,
    layer_numbers,
    properties_of,
)
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.optics import generation_of, photon_flux
from minga.models.photodiode.structure.stack import Contact, LayerOf, Light, Region, Stack
from minga.models.photodiode.structure.temperature import unheated
from minga.space.grid import Grid

__all__ = ["Device", "Terminal", "device_from"]

Floats = NDArray[np.float64]

_WHOLE: Final = 1 - 1e-9  # a share of a volume that differs by its round-off


@dataclass(frozen=True, slots=True, eq=False)
class Terminal:
    """A contact of a device: its nodes (bool, of the grid's shape) and what it is; barrier in eV (Schottky)."""

    name: str
    nodes: NDArray[np.bool_]
    kind: Literal["ohmic", "schottky"] = "ohmic"
    barrier: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device on its mesh; cells of the grid are nodes. Arrays are f8 of the grid's shape unless said otherwise.

    grid            axes ("x",) or ("x", "y"), in um; x from the anode to the cathode. Cells end half-way between
                    nodes, so that on an uneven mesh a cell's centre is not quite its node
    nodes           positions along each axis, cm, f8 of shape (N,) each
    volumes         cm (cm2 with two axes)
    lengths         along each axis what lies between nodes, cm, f8 of shape (N + 1,): entry i between the nodes i - 1
                    and i; the first and the last one repeat their neighbours
    areas           along each axis the cross sections of edges, of the shape of edges; 0 on the outermost ones, which
                    carry nothing. 1 with one axis
    permittivity    relative
    doping          donors minus acceptors, 1/cm3; at a Schottky contact's nodes, whose densities of carriers are the
                    metal's, the doping that would hold them
    theta_n, theta_p   n = Nref exp(phi + theta_n - Fn), p = Nref exp(Fp - phi - theta_p) in Boltzmann statistics, with
                    potentials in kT/q; such that phi is 0 where the first node's material would be intrinsic
    nie             exp((theta_n - theta_p)/2) Nref, 1/cm3
    nc, nv          effective densities of states, 1/cm3
    mobility_n, mobility_p   at low fields, cm2/Vs
    velocity_n, velocity_p, exponent_n, exponent_p   of mobilities that fall with the field, if `field_mobility`:
                    mu/(1 + (mu E/velocity)^exponent)^(1/exponent)
    tau_n, tau_p    s; 1/0 = inf where there is no such recombination
    radiative, auger_n, auger_p   cm3/s and cm6/s; 0 where there is no such recombination
    generation      pairs made by the light, 1/cm3 s
    absorption      of the light, 1/cm
    ionisation_n, ionisation_p   coefficients on the edges along each axis
    layer           number of the layer, i8
    layers          the layers from the anode to the cathode
    terminals       the contacts
    emission        of `structure.emission`, one over velocities on the edges along each axis; empty: none is limited
    unheated        at another temperature than 300 K what stays as it is there, by kind, and of what (all: empty)
    """

    grid: Grid
    nodes: tuple[Floats, ...]
    volumes: Floats
    lengths: tuple[Floats, ...]
    areas: tuple[Floats, ...]
    permittivity: Floats
    doping: Floats
    theta_n: Floats
    theta_p: Floats
    nie: Floats
    nc: Floats
    nv: Floats
    mobility_n: Floats
    mobility_p: Floats
    velocity_n: Floats
    velocity_p: Floats
    exponent_n: Floats
    exponent_p: Floats
    tau_n: Floats
    tau_p: Floats
    radiative: Floats
    auger_n: Floats
    auger_p: Floats
    generation: Floats
    absorption: Floats
    ionisation_n: tuple[EdgeIonisation, ...]
    ionisation_p: tuple[EdgeIonisation, ...]
    layer: NDArray[np.int64]
    layers: tuple[LayerOf, ...]
    terminals: tuple[Terminal, ...]
    temperature: float = 300.0
    statistics: Literal["boltzmann", "fermi-dirac"] = "boltzmann"
    field_mobility: bool = False
    light: Light | None = None
    emission: tuple[Floats, ...] = ()
    unheated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def thermal_voltage(self) -> float:
        """kT/q, V."""
        return thermal_voltage(self.temperature)

    def terminal(self, name: str) -> Terminal:
        """A contact by name."""
        return next(t for t in self.terminals if t.name == name)


def device_from(stack: Stack, mesh: Mesh, across: Mesh | None = None) -> Device:
    """The device of a stack on a mesh along x, and one across (along y) where it has two axes.

    Raises CaseError where something of a layer is missing or makes no sense.
    """
    numbers, weights = layer_numbers(stack.layers, mesh)
    columns = properties_of(stack, mesh, numbers, weights)
    shape = (mesh.nodes.size,) if across is None else (mesh.nodes.size, across.nodes.size)
    spread = {name: _spread(values, shape) for name, values in columns.values.items()}
    doping, impurities = spread.pop("doping"), spread.pop("impurities")
    for region in stack.regions:
        doping, impurities = _with_region(region, doping, impurities, mesh, across)
    mobility_n, mobility_p = columns.mobilities(stack, impurities)
    electrons, holes = edge_ionisation(stack, columns, shape)
    terminals = tuple(_terminal(contact, shape, across) for contact in stack.contacts)
    for terminal in terminals:
        if terminal.barrier is not None:
            held = _held_by(terminal.barrier, spread, thermal_voltage(stack.temperature))
            doping = np.where(terminal.nodes, held, doping)
    return Device(
        grid=_grid(mesh, across),
        nodes=(mesh.nodes,) if across is None else (mesh.nodes, across.nodes),
        volumes=mesh.volumes if across is None else np.outer(mesh.volumes, across.volumes),
        lengths=(_lengths(mesh),) if across is None else (_lengths(mesh), _lengths(across)),
        areas=_areas(mesh, across),
        doping=doping,
        mobility_n=mobility_n,
        mobility_p=mobility_p,
        generation=_spread(_generation(stack, columns, mesh), shape),
        ionisation_n=electrons,
        ionisation_p=holes,
        layer=_spread_numbers(numbers, shape),
        layers=_layers_of(stack, numbers),
        terminals=terminals,
        temperature=stack.temperature,
        statistics=stack.statistics,
        field_mobility="field" in stack.mobility,
        light=stack.light,
        emission=_emission(stack, columns, spread, terminals),
        unheated=unheated(stack, columns.materials, [s for s in chosen_sets(stack, columns) if s is not None]),
        **spread,
    )


def _spread(column: Floats, shape: tuple[int, ...]) -> Floats:
    """What varies along x only, at all nodes."""
    return np.array(np.broadcast_to(column.reshape(-1, *[1] * (len(shape) - 1)), shape), np.float64)


def _spread_numbers(column: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(np.broadcast_to(column.reshape(-1, *[1] * (len(shape) - 1)), shape), np.int64)


def _grid(mesh: Mesh, across: Mesh | None) -> Grid:
    meshes = (mesh,) if across is None else (mesh, across)
    widths = [1e4 * m.volumes for m in meshes]
    even = [w[0] if np.allclose(w, w[0], rtol=1e-12, atol=0.0) else w for w in widths]
    return Grid(
        [m.nodes.size for m in meshes],
        axes=("x", "y")[: len(meshes)],
        spacing=even,
        origin=[1e4 * float(m.faces[0]) for m in meshes],
        units="um",
        nodes=[1e4 * m.nodes for m in meshes],
    )


def _lengths(mesh: Mesh) -> Floats:
    inner = mesh.lengths
    return np.concatenate((inner[:1], inner, inner[-1:]))


def _areas(mesh: Mesh, across: Mesh | None) -> tuple[Floats, ...]:
    inside = np.ones(mesh.nodes.size + 1)
    inside[[0, -1]] = 0.0
    if across is None:
        return (inside,)
    between = np.ones(across.nodes.size + 1)
    between[[0, -1]] = 0.0
    return np.outer(inside, across.volumes), np.outer(mesh.volumes, between)


def _generation(stack: Stack, columns: LayerProperties, mesh: Mesh) -> Floats:
    light, absorption = stack.light, columns.values["absorption"]
    if light is None:
        return np.zeros_like(absorption)
    below, above = mesh.halves
    flux = photon_flux(light.power, light.wavelength) if light.flux is None else light.flux
    return generation_of(flux, absorption, below, above, from_high=light.side == "cathode")


def _with_region(
    region: Region, doping: Floats, impurities: Floats, mesh: Mesh, across: Mesh | None
) -> tuple[Floats, Floats]:
    """Doping and impurities with those of a region put in their place."""
    if across is None:
        raise CaseError(
            f"region {region.name!r} in a device with one axis",
            key="photodiode.regions",
            remedy="give the device a width and columns, or leave the region out",
        )
    inside = np.outer(_shares(mesh, region.x), _shares(across, region.y))
    if not inside.any():
        raise CaseError(
            f"no node lies in region {region.name!r}",
            key="photodiode.regions",
            remedy="make it larger, or move it into the device",
        )
    return doping + inside * (region.doping - doping), impurities + inside * (abs(region.doping) - impurities)


def _shares(mesh: Mesh, span: tuple[float, float]) -> Floats:
    """How much of each node's volume lies between two positions, 0 to 1."""
    below, above = mesh.halves
    low, high = np.maximum(mesh.nodes - below, span[0]), np.minimum(mesh.nodes + above, span[1])
    shares = (high - low).clip(0.0) / mesh.volumes
    return np.where(shares > _WHOLE, 1.0, np.where(shares < 1 - _WHOLE, 0.0, shares))


def _terminal(contact: Contact, shape: tuple[int, ...], across: Mesh | None) -> Terminal:
    nodes = np.zeros(shape, np.bool_)
    row = nodes[0 if contact.at == "top" else -1 :][:1]
    if across is None or contact.y is None:
        row[...] = True
    else:
        row[..., (across.nodes >= contact.y[0]) & (across.nodes <= contact.y[1])] = True
    if not nodes.any():
        raise CaseError(
            f"no node lies at contact {contact.name!r}",
            key="photodiode.contacts",
            remedy="make it wider, move it onto the device, or give the device more columns",
        )
    return Terminal(contact.name, nodes, contact.kind, contact.barrier)


def _emission(
    stack: Stack, columns: LayerProperties, values: dict[str, Floats], terminals: Sequence[Terminal]
) -> tuple[Floats, ...]:
    """Of `Device.emission`."""
    if not stack.emission:
        return ()
    shape = values["nc"].shape
    names = list(dict.fromkeys(m.name for m in columns.materials))
    numbers = np.array([names.index(m.name) for m in columns.materials], np.int64)
    metal = np.zeros(shape, np.bool_)
    for terminal in terminals:
        metal |= terminal.nodes & (terminal.kind == "schottky")
    bands = (
        (values["nc"], np.log(values["nc"] / REFERENCE_DENSITY) - values["theta_n"]),
        (values["nv"], np.log(values["nv"] / REFERENCE_DENSITY) + values["theta_p"]),
    )
    return emission_of(bands, _spread_numbers(numbers, shape), metal, stack.temperature)


def _held_by(barrier: float, values: dict[str, Floats], vt: float) -> Floats:
    """Electrons minus holes at a metal whose Fermi level lies `barrier` eV below the conduction band, 1/cm3."""
    electrons: Floats = values["nc"] * np.exp(-barrier / vt)
    held: Floats = electrons - values["nie"] ** 2 / electrons
    return held


def _layers_of(stack: Stack, numbers: NDArray[np.int64]) -> tuple[LayerOf, ...]:
    ends = np.concatenate(([0.0], np.cumsum([layer.thickness for layer in stack.layers])))
    found: Sequence[NDArray[np.int64]] = [np.flatnonzero(numbers == k) for k in range(len(stack.layers))]
    return tuple(
        LayerOf(layer.name, layer.at(0.5).name, float(ends[k]), float(ends[k + 1]), int(at[0]), int(at[-1]))
        for k, (layer, at) in enumerate(zip(stack.layers, found, strict=True))
    )
