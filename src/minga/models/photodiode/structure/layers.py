"""Properties of the layers at the nodes: the layer of each node, and the material there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError, suggest
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY, thermal_voltage
from minga.models.photodiode.structure.ionisation import EdgeIonisation, IonisationSet, on_edges, shipped_sets
from minga.models.photodiode.structure.materials import CaugheyThomas, Material
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.optics import absorption_of
from minga.models.photodiode.structure.stack import Layer, Light, Stack
from minga.models.photodiode.structure.temperature import gap_at, lattice_share, saturation_at, with_impurities
from minga.models.photodiode.structure.tunnelling import (
    KANE,
    NodeTunnelling,
    TunnellingSet,
    nodes_of,
    shipped_tunnelling,
)

__all__ = [
    "Kinds",
    "LayerProperties",
    "absorption_at",
    "chosen_sets",
    "edge_ionisation",
    "layer_numbers",
    "materials_at",
    "properties_of",
]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_ROOM: Final = 1e-6  # in spacings: a node this close to a boundary lies on it


@dataclass(frozen=True, slots=True, eq=False)
class LayerProperties:
    """Properties that vary along x: `values` by name, f8 of shape (N,), and the materials and layers of the nodes."""

    values: dict[str, Floats]
    materials: tuple[Material, ...]
    numbers: Numbers

    def mobilities(self, stack: Stack, impurities: Floats) -> tuple[Floats, Floats]:
        """Return the low-field mobilities of electrons and holes at all nodes for a density of impurities."""
        electrons, holes = (self._mobility(stack, carrier, impurities) for carrier in "np")
        return electrons, holes

    def _mobility(self, stack: Stack, carrier: str, impurities: Floats) -> Floats:
        name = f"mobility_{carrier}"
        found = np.empty_like(impurities)
        nodes_of: dict[tuple[Material, int], list[int]] = {}
        for node, key in enumerate(zip(self.materials, self.numbers.tolist(), strict=True)):
            nodes_of.setdefault(key, []).append(node)
        for (material, number), nodes in nodes_of.items():
            layer = stack.layers[number]
            model: CaugheyThomas | None = getattr(material, f"caughey_thomas_{carrier}")
            if name in layer.changes:
                found[nodes] = layer.changes[name]
            elif "doping" not in stack.mobility:
                found[nodes] = getattr(material, name) * lattice_share(model, stack.temperature)
            elif model is None:
                raise CaseError(
                    f"layer {layer.name!r}: the doping dependence of mobilities in {material.name} is unknown",
                    key="photodiode.mobility",
                    remedy=f'write mobility = "constant", or {name} in the layer, or a material of your own with '
                    f"caughey_thomas_{carrier}",
                )
            else:
                found[nodes] = with_impurities(model, impurities[nodes], stack.temperature)
        return found


def layer_numbers(layers: Sequence[Layer], mesh: Mesh) -> tuple[Numbers, Floats]:
    """Return the layer number of each node, and the fraction of its volume that lies in the previous layer.

    A node on a boundary belongs to the layer that begins there; the fraction is 0 at all other nodes.
    """
    ends = np.cumsum([layer.thickness for layer in layers])[:-1]
    room = _ROOM * np.minimum(np.append(mesh.lengths, np.inf), np.insert(mesh.lengths, 0, np.inf))
    numbers = np.searchsorted(ends, mesh.nodes + room, side="right").astype(np.int64)
    share = np.zeros(mesh.nodes.size)
    below, above = mesh.halves
    for k, end in enumerate(ends):
        on = np.flatnonzero(np.abs(mesh.nodes - end) <= room)
        share[on] = below[on] / (below[on] + above[on])
        if not np.any(numbers == k):
            raise _too_thin(layers[k])
    if not np.any(numbers == len(layers) - 1):
        raise _too_thin(layers[-1])
    return numbers, share


def _too_thin(layer: Layer) -> CaseError:
    return CaseError(
        f"no node lies in layer {layer.name!r}, which is {1e4 * layer.thickness:g} um thick",
        key="photodiode.mesh",
        remedy="refine the mesh, or make the layer thicker",
    )


def properties_of(
    stack: Stack, mesh: Mesh, numbers: Numbers, share: Floats, first: Material | None = None
) -> LayerProperties:
    """Return the properties of all nodes along x; potentials are 0 in `first`, by default the first node's material."""
    fractions = _fractions(stack, mesh, numbers)
    materials = materials_at(stack, mesh, numbers)
    values = {
        name: np.array([stack.layers[k].changes.get(name, getattr(m, name)) for m, k in zip(materials, numbers)])
        for name in ("permittivity", "tau_n", "tau_p", "radiative", "auger_n", "auger_p")
    }
    values |= _bands(stack.temperature, materials, first or materials[0])
    values |= _saturation(stack, materials, numbers)
    _recombine(values, stack)
    values["doping"], values["impurities"] = _doping(stack.layers, numbers, share, fractions)
    values["absorption"] = (
        np.zeros(len(materials))
        if stack.light is None
        else absorption_at(stack, stack.light, Kinds.of(materials, numbers))
    )
    return LayerProperties(values, materials, numbers)


def materials_at(stack: Stack, mesh: Mesh, numbers: Numbers) -> tuple[Material, ...]:
    """Return the materials of all nodes along x."""
    fractions = _fractions(stack, mesh, numbers)
    return tuple(stack.layers[k].at(float(f)) for f, k in zip(fractions, numbers, strict=True))


def _fractions(stack: Stack, mesh: Mesh, numbers: Numbers) -> Floats:
    """Return the fractions of their layers' depths at which the nodes lie."""
    tops = np.concatenate(([0.0], np.cumsum([layer.thickness for layer in stack.layers])))
    return np.array([(x - tops[k]) / stack.layers[k].thickness for x, k in zip(mesh.nodes, numbers, strict=True)]).clip(
        0.0, 1.0
    )


def _doping(layers: Sequence[Layer], numbers: Numbers, share: Floats, fractions: Floats) -> tuple[Floats, Floats]:
    """Return net doping and total impurities; on a boundary the mean over the node's volume."""
    net = np.empty(numbers.size)
    total = np.empty(numbers.size)
    for row, k in enumerate(numbers):
        first, last = layers[k].doping
        here = first + (last - first) * fractions[row]
        before = layers[k - 1] if share[row] else None
        net[row] = (1 - share[row]) * here + share[row] * (0.0 if before is None else before.doping[1])
        beside = 0.0 if before is None else _impurities(before, 1.0)
        total[row] = (1 - share[row]) * _impurities(layers[k], fractions[row]) + share[row] * beside
    return net, total


def _impurities(layer: Layer, fraction: float) -> float:
    """Return the impurities of both kinds together at a fraction of a layer's depth."""
    if layer.impurities is None:
        return abs(layer.doping[0] + (layer.doping[1] - layer.doping[0]) * fraction)
    return layer.impurities[0] + (layer.impurities[1] - layer.impurities[0]) * fraction


def _bands(temperature: float, materials: Sequence[Material], first: Material) -> dict[str, Floats]:
    """Return theta_n, theta_p, nie, nc and nv at the nodes; `first` sets the zero of potentials."""
    vt = thermal_voltage(temperature)
    found: dict[Material, tuple[float, float, float, float, float]] = {}
    for material in dict.fromkeys((first, *materials)):
        gap = gap_at(material, temperature)
        warm = portable.power(temperature / 300.0, 1.5)
        nc, nv = material.nc * warm, material.nv * warm
        log_nie = 0.5 * portable.log(nc) + 0.5 * portable.log(nv) - 0.5 * gap / vt
        exact = None
        if material.ni is not None:
            log_nie = portable.log(material.ni)
            exact = material.ni if temperature == 300.0 else None
            if temperature != 300.0:
                wider = gap / vt - material.gap / thermal_voltage(300.0)
                log_nie += 1.5 * portable.log(temperature / 300.0) - 0.5 * wider
        # As the material warms up, both band edges move towards the middle of the gap.
        affinity = material.affinity + 0.5 * (material.gap - gap)
        theta_n = affinity / vt + portable.log(nc / REFERENCE_DENSITY)
        theta_p = theta_n - 2 * (log_nie - portable.log(REFERENCE_DENSITY))
        found[material] = (float(theta_n), float(theta_p), exact or float(portable.exp(log_nie)), nc, nv)
    zero = 0.5 * (found[first][0] + found[first][1])
    columns = np.array([found[m] for m in materials]).T
    return {
        "theta_n": columns[0] - zero,
        "theta_p": columns[1] - zero,
        "nie": columns[2],
        "nc": columns[3],
        "nv": columns[4],
    }


def _saturation(stack: Stack, materials: Sequence[Material], numbers: Numbers) -> dict[str, Floats]:
    names = ("velocity_n", "velocity_p", "exponent_n", "exponent_p")
    if "field" not in stack.mobility:
        return {name: np.ones(len(materials)) for name in names}
    for material, k in zip(materials, numbers, strict=True):
        if material.saturation is None:
            raise CaseError(
                f"layer {stack.layers[k].name!r}: the saturation velocities of {material.name} are unknown",
                key="photodiode.mobility",
                remedy='write mobility = "constant" or "doping", or a material of your own with [saturation]',
            )
    tables = [material.saturation for material in materials if material.saturation is not None]
    warm = {table: saturation_at(table, stack.temperature) for table in dict.fromkeys(tables)}
    models = [warm[table] for table in tables]
    return {name: np.array([getattr(model, name) for model in models]) for name in names}


def _recombine(values: dict[str, Floats], stack: Stack) -> None:
    """Switch off recombination mechanisms: infinite lifetimes and zero coefficients."""
    if "srh" not in stack.recombination:
        values["tau_n"][:] = values["tau_p"][:] = np.inf
    if "radiative" not in stack.recombination:
        values["radiative"][:] = 0.0
    if "auger" not in stack.recombination:
        values["auger_n"][:] = values["auger_p"][:] = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Kinds of nodes along x: pairs of a layer's number and a material, and the kind of each node."""

    pairs: tuple[tuple[int, Material], ...]
    nodes: Numbers

    @classmethod
    def of(cls, materials: Sequence[Material], numbers: Numbers) -> Kinds:
        """Return the kinds of nodes with these materials and layers."""
        places: dict[tuple[int, Material], int] = {}
        nodes = [places.setdefault(pair, len(places)) for pair in zip(numbers.tolist(), materials, strict=True)]
        return cls(tuple(places), np.array(nodes, np.int64))


def absorption_at(stack: Stack, light: Light, kinds: Kinds, *, smooth: bool = False) -> Floats:
    """Return the absorption coefficient of the light at all nodes along x, 1/cm; `smooth` as in `absorption_of`."""
    smooth = smooth or light.optics == "transfer-matrix"
    found = [absorption_of(stack.layers[k], material, light.wavelength, smooth=smooth) for k, material in kinds.pairs]
    return np.array(found)[kinds.nodes]


def edge_ionisation(
    stack: Stack, sets: Sequence[Sequence[IonisationSet | None]], kinds: Numbers, rows: Sequence[Numbers]
) -> tuple[tuple[EdgeIonisation, ...], tuple[EdgeIonisation, ...]]:
    """Return the coefficients of electrons and of holes on the edges along each axis.

    Parameters
    ----------
    stack
        Structure of the device.
    sets
        Coefficient sets of the layers, and then of each box.
    kinds
        Number of the material at each node.
    rows
        For the layers and for each box, the layer of its nodes, of the grid's shape, or -1 elsewhere.
    """
    named = {item.name: item.at(stack.temperature) for own in sets for item in own if item is not None}
    known, place = list(named.values()), {name: k for k, name in enumerate(named)}
    at = np.full(kinds.shape, -1, np.int64)
    for own, numbers in zip(sets, rows, strict=True):
        of_layer = np.array([-1 if item is None else place[item.name] for item in own])
        at = np.where(numbers >= 0, of_layer[numbers], at)
    found = []
    for axis in range(kinds.ndim):
        count = kinds.shape[axis]
        low, high = (np.take(at, range(k, count - 1 + k), axis) for k in (0, 1))
        below, above = (np.take(kinds, range(k, count - 1 + k), axis) for k in (0, 1))
        rim = [(1, 1) if k == axis else (0, 0) for k in range(kinds.ndim)]
        found.append(np.pad(np.where((low == high) & (below == above), high, -1), rim, constant_values=-1))
    electrons = tuple(on_edges(n, [s.electrons for s in known]) for n in found)
    holes = tuple(on_edges(n, [s.holes for s in known]) for n in found)
    return electrons, holes


def chosen_sets(stack: Stack, columns: LayerProperties) -> list[IonisationSet | None]:
    """Return the coefficient set of each layer."""
    return [set_of(stack, k, columns.materials) for k in range(len(stack.layers))]


def set_of(stack: Stack, number: int, materials: Sequence[Material]) -> IonisationSet | None:
    """Return the coefficient set of a layer; None if it has none."""
    layer = stack.layers[number]
    material = layer.at(0.5)
    name = layer.ionisation or stack.ionisation.get(material.name) or material.ionisation
    if name is None or name == "none":
        return None
    if isinstance(name, IonisationSet):
        return name
    known = shipped_sets()
    if name not in known:
        raise CaseError(
            f"layer {layer.name!r}: there is no set of ionisation coefficients {name!r}",
            key="photodiode.ionisation",
            suggestion=suggest(name, known),
            remedy=f"choose one of {', '.join(sorted(known))}, or none",
        )
    return known[name]


# Tunnelling ----------------------------------------------------------------------------------------------------------
def tunnelling_of(stack: Stack, columns: LayerProperties) -> NodeTunnelling | None:
    """Return tunnelling at the nodes along x; None if it is switched off."""
    if stack.band_to_band is None and not stack.trap_assisted:
        return None
    kinds = {material: gap_at(material, stack.temperature) for material in dict.fromkeys(columns.materials)}
    names = stack.band_to_band
    sets = {} if names is None else {material: tunnelling_set(material, names.get(material.name)) for material in kinds}
    for material in kinds:
        if (stack.trap_assisted or sets.get(material) == KANE) and material.tunnelling_mass is None:
            raise CaseError(
                f"the tunnelling mass of {material.name} is unknown",
                key="photodiode.tunnelling",
                remedy="use a material of your own with tunnelling_mass = 0.1, relative to the mass of the electron",
            )
    band, trap = nodes_of(
        np.array([kinds[m] for m in columns.materials]),
        [m.tunnelling_mass for m in columns.materials],
        [sets[m] for m in columns.materials] if sets else None,
        stack.trap_assisted,
        thermal_voltage(stack.temperature),
    )
    said = {m.name: own.name if isinstance(own, TunnellingSet) else own or "none" for m, own in sets.items()}
    return NodeTunnelling(band, trap, tuple(said.items()))


def tunnelling_set(material: Material, chosen: str | None) -> TunnellingSet | str | None:
    """Return the set of band-to-band tunnelling of a material: a set, "kane", or None."""
    name = chosen or material.tunnelling
    if isinstance(name, TunnellingSet) or name == KANE:
        return name
    if name == "none":
        return None
    known = shipped_tunnelling()
    if name not in known:
        found = "has no set" if name is None else f"has the set {name!r}, which does not exist"
        raise CaseError(
            f"{material.name} {found} of band-to-band tunnelling",
            key="photodiode.tunnelling.band_to_band",
            suggestion=None if name is None else suggest(name, known),
            remedy=f'choose one of {", ".join([*sorted(known), KANE])}, or "none": {{{material.name} = "none"}}',
        )
    return known[name]
