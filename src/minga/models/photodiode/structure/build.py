"""Devices from stacks and meshes: the coefficients at the nodes and on the edges between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.structure.boxes import MaterialBox, boxes_of, in_boxes
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY, thermal_voltage
from minga.models.photodiode.structure.device import Device, Terminal
from minga.models.photodiode.structure.emission import emission_of
from minga.models.photodiode.structure.generation import generated_in
from minga.models.photodiode.structure.heavy import NodeDopants, dopants_of, narrowing_of
from minga.models.photodiode.structure.layers import (
    LayerProperties,
    chosen_sets,
    edge_ionisation,
    layer_numbers,
    properties_of,
    tunnelling_of,
)
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.regions import Polygon, Region
from minga.models.photodiode.structure.stack import Contact, LayerOf, Stack
from minga.models.photodiode.structure.surface import surface_of
from minga.models.photodiode.structure.temperature import unheated
from minga.models.photodiode.structure.tunnelling import NodeTunnelling
from minga.space.grid import Grid

__all__ = ["device_from"]

Floats = NDArray[np.float64]


def device_from(stack: Stack, mesh: Mesh, across: Mesh | None = None) -> Device:
    """Return the device of a stack.

    Parameters
    ----------
    stack
        Layers, contacts, light and physics of the device.
    mesh
        Mesh along x.
    across
        Mesh along y for a device with two axes.

    Returns
    -------
    Device
        The device.

    Raises
    ------
    CaseError
        If a property of a layer is missing or inconsistent.
    """
    numbers, weights = layer_numbers(stack.layers, mesh)
    columns = properties_of(stack, mesh, numbers, weights)
    shape = (mesh.nodes.size,) if across is None else (mesh.nodes.size, across.nodes.size)
    spread = {name: _spread(values, shape) for name, values in columns.values.items()}
    boxes = boxes_of(stack, mesh, across, columns.materials[0])
    for name in spread.keys() - {"doping", "impurities"}:
        spread[name] = in_boxes(spread[name], boxes, [box.columns.values[name] for box in boxes])
    doping, impurities = spread.pop("doping"), spread.pop("impurities")
    for region in stack.regions:
        doping, impurities = _with_region(region, doping, impurities, mesh, across)
    mobility_n, mobility_p = (
        in_boxes(own, boxes, [box.columns.mobilities(box.stack, impurities)[k] for box in boxes])
        for k, own in enumerate(columns.mobilities(stack, impurities))
    )
    lit = generated_in(
        stack, columns.values["absorption"], numbers, mesh, across, spread["absorption"] if boxes else None
    )
    narrowing = None
    if stack.gap_narrowing:
        narrowing = _narrow(stack, columns, spread, doping, impurities)
    dopants = _dopants(stack, columns, spread, doping, impurities)
    kinds, sets = _kinds(columns, boxes, shape), [chosen_sets(stack, columns)]
    rows = [_spread_numbers(numbers, shape)]
    for box in boxes:
        sets.append(chosen_sets(box.stack, box.columns))
        rows.append(np.where(box.inside, rows[0], -1))
    electrons, holes = edge_ionisation(stack, sets, kinds, rows)
    terminals = tuple(_terminal(contact, shape, across, columns, boxes) for contact in stack.contacts)
    for terminal in terminals:
        if terminal.barrier is not None:
            held = _held_by(terminal.barrier, spread, thermal_voltage(stack.temperature))
            doping = np.where(terminal.nodes, held, doping)
            if dopants is not None:  # the metal determines the densities
                dopants.donors[terminal.nodes] = dopants.acceptors[terminal.nodes] = 0.0
    return Device(
        grid=_grid(mesh, across),
        nodes=(mesh.nodes,) if across is None else (mesh.nodes, across.nodes),
        volumes=mesh.volumes if across is None else np.outer(mesh.volumes, across.sections),
        lengths=(_lengths(mesh),) if across is None else (_lengths(mesh), _lengths(across)),
        areas=_areas(mesh, across),
        doping=doping,
        mobility_n=mobility_n,
        mobility_p=mobility_p,
        generation=lit.pairs,
        ionisation_n=electrons,
        ionisation_p=holes,
        layer=_spread_numbers(numbers, shape),
        layers=_layers_of(stack, numbers),
        terminals=terminals,
        temperature=stack.temperature,
        statistics=stack.statistics,
        field_mobility="field" in stack.mobility,
        light=stack.light,
        illumination=lit.illumination,
        lit_section=lit.section,
        emission=_emission(stack, kinds, spread, terminals),
        tunnelling=_tunnelling(stack, columns, shape),
        dopants=dopants,
        narrowing=narrowing,
        surface=surface_of(
            stack.surfaces,
            [(contact, terminal.nodes) for contact, terminal in zip(stack.contacts, terminals, strict=True)],
            mesh,
            across,
            doping,
        ),
        unheated=unheated(
            stack,
            [*columns.materials, *(box.columns.materials[0] for box in boxes)],
            [item for own in sets for item in own if item is not None],
        ),
        **spread,
    )


def _spread(column: Floats, shape: tuple[int, ...]) -> Floats:
    """Return a quantity that varies along x only at all nodes."""
    return np.array(np.broadcast_to(column.reshape(-1, *[1] * (len(shape) - 1)), shape), np.float64)


def _kinds(columns: LayerProperties, boxes: Sequence[MaterialBox], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the number of the material at each node; materials of the same name are one."""
    names = [m.name for m in columns.materials]
    place = {name: k for k, name in enumerate(dict.fromkeys([*names, *(b.columns.materials[0].name for b in boxes)]))}
    found = _spread_numbers(np.array([place[name] for name in names], np.int64), shape)
    for box in boxes:
        found[box.inside] = place[box.columns.materials[0].name]
    return found


def _spread_numbers(column: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(np.broadcast_to(column.reshape(-1, *[1] * (len(shape) - 1)), shape), np.int64)


def _grid(mesh: Mesh, across: Mesh | None) -> Grid:
    meshes = (mesh,) if across is None else (mesh, across)
    widths = [1e4 * m.volumes for m in meshes]
    even = [w[0] if np.allclose(w, w[0], rtol=1e-12, atol=0.0) else w for w in widths]
    return Grid(
        [m.nodes.size for m in meshes],
        axes=("x",) if across is None else ("x", "r" if across.radial else "y"),
        spacing=even,
        origin=[1e4 * float(m.faces[0]) for m in meshes],
        units="um",
        nodes=[1e4 * m.nodes for m in meshes],
        down=() if across is None else "x",
    )


def _lengths(mesh: Mesh) -> Floats:
    inner = mesh.lengths
    return np.concatenate((inner[:1], inner, inner[-1:]))


def _areas(mesh: Mesh, across: Mesh | None) -> tuple[Floats, ...]:
    if across is None:
        return (mesh.openings,)
    return np.outer(mesh.openings, across.sections), np.outer(mesh.volumes, across.openings)


def _with_region(
    region: Region | Polygon, doping: Floats, impurities: Floats, mesh: Mesh, across: Mesh | None
) -> tuple[Floats, Floats]:
    """Return doping and impurities with those of a region substituted inside it."""
    if across is None:
        raise CaseError(
            f"region {region.name!r} in a device with one axis",
            key="photodiode.regions",
            remedy="give the device a width and columns, or leave the region out",
        )
    inside = region.inside(mesh, across)
    if not inside.any():
        raise CaseError(
            f"no node lies in region {region.name!r}",
            key="photodiode.regions",
            remedy="make it larger, or move it into the device",
        )
    return doping + inside * (region.doping - doping), impurities + inside * (abs(region.doping) - impurities)


def _terminal(
    contact: Contact,
    shape: tuple[int, ...],
    across: Mesh | None,
    columns: LayerProperties,
    boxes: Sequence[MaterialBox],
) -> Terminal:
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
    for box in boxes:
        if contact.tunnelling and (nodes & box.inside).any():
            raise CaseError(
                f"region {box.name!r} has a material of its own at the {contact.name}, which has tunnelling by the "
                "material of the layer",
                key=f"photodiode.contacts.{contact.name}.tunnelling",
                remedy="leave it out, or end the region before the contact",
            )
    mass = columns.materials[0 if contact.at == "top" else -1].tunnelling_mass
    if contact.tunnelling and mass is None:
        raise CaseError(
            f"the tunnelling mass of the semiconductor at the {contact.name} is unknown",
            key=f"photodiode.contacts.{contact.name}.tunnelling",
            remedy="use a material of your own with tunnelling_mass = 0.1, relative to the mass of the electron",
        )
    return Terminal(
        contact.name, nodes, contact.kind, contact.barrier, contact.image_force, mass if contact.tunnelling else None
    )


def _emission(
    stack: Stack, kinds: NDArray[np.int64], values: dict[str, Floats], terminals: Sequence[Terminal]
) -> tuple[Floats, ...]:
    """Return the reciprocal velocities of `Device.emission`; `kinds` as in `edge_ionisation`."""
    if not stack.emission:
        return ()
    metal = np.zeros(kinds.shape, np.bool_)
    for terminal in terminals:
        metal |= terminal.nodes & (terminal.kind == "schottky")
    bands = (
        (values["nc"], portable.log(values["nc"] / REFERENCE_DENSITY) - values["theta_n"]),
        (values["nv"], portable.log(values["nv"] / REFERENCE_DENSITY) + values["theta_p"]),
    )
    return emission_of(bands, kinds, metal, stack.temperature)


def _narrow(
    stack: Stack, columns: LayerProperties, values: dict[str, Floats], doping: Floats, impurities: Floats
) -> Floats:
    """Narrow the gap in theta_n, theta_p and nie, half in each band; return the narrowing in eV."""
    shift = narrowing_of([m.narrowing for m in columns.materials], doping, impurities)
    half = 0.5 * shift / thermal_voltage(stack.temperature)
    values["theta_n"] = values["theta_n"] + half
    values["theta_p"] = values["theta_p"] - half
    values["nie"] = values["nie"] * portable.exp(half)
    return shift


def _dopants(
    stack: Stack, columns: LayerProperties, values: dict[str, Floats], doping: Floats, impurities: Floats
) -> NodeDopants | None:
    if not stack.incomplete_ionisation:
        return None
    levels = [(m.donor, m.acceptor) for m in columns.materials]
    states = [values["nc"], values["nv"]]
    return dopants_of(levels, doping, impurities, states, thermal_voltage(stack.temperature))


def _tunnelling(stack: Stack, columns: LayerProperties, shape: tuple[int, ...]) -> NodeTunnelling | None:
    found = tunnelling_of(stack, columns)
    if found is None:
        return None
    band, trap = (
        None if part is None else [_spread(item, shape) for item in part] for part in (found.band, found.trap)
    )
    return NodeTunnelling(
        None if band is None else (band[0], band[1], band[2]), None if trap is None else (trap[0], trap[1]), found.names
    )


def _held_by(barrier: float, values: dict[str, Floats], vt: float) -> Floats:
    """Return electrons minus holes, 1/cm3, at a metal with its Fermi level `barrier` eV below the conduction band."""
    electrons: Floats = values["nc"] * portable.exp(-barrier / vt)
    held: Floats = electrons - values["nie"] * values["nie"] / electrons
    return held


def _layers_of(stack: Stack, numbers: NDArray[np.int64]) -> tuple[LayerOf, ...]:
    ends = np.concatenate(([0.0], np.cumsum([layer.thickness for layer in stack.layers])))
    found: Sequence[NDArray[np.int64]] = [np.flatnonzero(numbers == k) for k in range(len(stack.layers))]
    return tuple(
        LayerOf(layer.name, layer.at(0.5).name, float(ends[k]), float(ends[k + 1]), int(at[0]), int(at[-1]))
        for k, (layer, at) in enumerate(zip(stack.layers, found, strict=True))
    )
