"""Validation of the layers, contacts and mesh of a case, and their conversion to a Device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from minga.errors import CaseError, suggest
from minga.models.photodiode.case_light import index_in, is_lit, light_of
from minga.models.photodiode.case_materials import material_of, materials_of
from minga.models.photodiode.case_mesh import across_of, check_size, mesh_of, rows_of
from minga.models.photodiode.case_pairs import pairs_of
from minga.models.photodiode.case_regions import check_span, islands_of, regions_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_contacts import ContactSettings
from minga.models.photodiode.settings_layers import LayerSettings
from minga.models.photodiode.settings_surfaces import SurfaceSettings
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.stack import Contact, Layer, Side, Stack, Surface

__all__ = ["device_of", "device_on", "meshes_of_case", "stack_of"]

_CHANGES: Final = ("tau_n", "tau_p", "mobility_n", "mobility_p", "absorption")
Pair = tuple[float, float]


def device_of(settings: PhotodiodeSettings, directory: Path) -> Device:
    """Return the device of a case.

    Parameters
    ----------
    settings
        The validated [photodiode] table.
    directory
        The directory of the case, in which its files are looked up.

    Raises
    ------
    CaseError
        If the table is inconsistent; the error names the key and the layer.
    """
    stack = stack_of(settings, directory)
    return device_on(settings, stack, meshes_of_case(settings, stack))


def device_on(settings: PhotodiodeSettings, stack: Stack, meshes: tuple[Mesh, ...]) -> Device:
    """Return the device of a case, given its structure and meshes; CaseError if nothing absorbs its light."""
    lit = stack if is_lit(settings) else replace(stack, light=None)
    device = device_from(lit, *meshes)
    if device.light is not None and not device.generation.any():
        raise CaseError(
            f"no layer absorbs light of {device.light.wavelength:g} nm",
            key="photodiode.light.wavelength",
            remedy="choose a shorter wavelength, or write absorption = 6100.0 (1/cm) in the layer that absorbs",
        )
    if stack.pairs is not None and not device.generation.any():
        raise CaseError(
            f"{stack.pairs.name}: no pairs at all", key="photodiode.light.generation", remedy="give G in 1/cm3 s"
        )
    return device


def meshes_of_case(settings: PhotodiodeSettings, stack: Stack) -> tuple[Mesh, ...]:
    """Return the mesh of a case along each axis; CaseError if they are too large or do not fit the layers."""
    check_size(settings, stack.layers)
    along, across = mesh_of(settings, stack.layers), across_of(settings)
    return (along,) if across is None else (along, across)


def stack_of(settings: PhotodiodeSettings, directory: Path) -> Stack:
    """Return the complete structure of the device except for its mesh."""
    materials = materials_of(settings, directory)
    names = _names(settings)
    layers = tuple(
        _layer(k, entry, names[k], materials, settings, directory) for k, entry in enumerate(settings.layers)
    )
    _check_positions(settings, layers)
    regions = regions_of(settings, layers, materials)
    every = (*layers, *islands_of(regions))
    return Stack(
        layers=layers,
        contacts=_contacts(settings),
        regions=regions,
        temperature=_temperature(settings, every),
        light=light_of(settings, directory),
        statistics=settings.statistics,
        mobility=settings.mobility,
        recombination=settings.recombination,
        ionisation=_ionisation(settings, every),
        emission=settings.emission,
        band_to_band=_band_to_band(settings, layers),
        gap_narrowing=_known(settings, "gap_narrowing", layers, ("narrowing",)),
        incomplete_ionisation=_known(settings, "incomplete_ionisation", layers, ("donor", "acceptor")),
        trap_assisted=settings.tunnelling.trap_assisted,
        surfaces=tuple(_surface(k, entry) for k, entry in enumerate(settings.surfaces)),
        pairs=pairs_of(settings, directory),
    )


def _names(settings: PhotodiodeSettings) -> list[str]:
    reserved = {"max": "E_max", "max_lit": "E_max_lit"}
    if settings.mode == "qe" and settings.light is not None:
        reserved |= {name: f"A_{name}" for name in ("coatings", "substrate") if getattr(settings.light, name)}
    names = [entry.name or f"layer {k + 1}" for k, entry in enumerate(settings.layers)]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise CaseError(
                f"two layers are called {name!r}",
                key=f"photodiode.layers[{k}].name",
                remedy="give each a name of its own",
            )
        if name in reserved:
            raise CaseError(
                f"a layer called {name!r}: {reserved[name]} would mean two things",
                key=f"photodiode.layers[{k}].name",
                remedy=f'give it another name, such as "{name} layer"',
            )
    return names


def _layer(
    k: int,
    entry: LayerSettings,
    name: str,
    materials: Mapping[str, Material],
    settings: PhotodiodeSettings,
    directory: Path,
) -> Layer:
    key = f"photodiode.layers[{k}]"
    material = material_of(entry, name, key, materials)
    rows, thickness = rows_of(entry, name, key, settings.mesh)
    donors, acceptors = _doping(entry, name, key)
    layer = Layer(
        name,
        material,
        thickness,
        (donors[0] - acceptors[0], donors[1] - acceptors[1]),
        rows,
        {item: value for item in _CHANGES if (value := getattr(entry, item)) is not None},
        entry.ionisation,
        None if entry.doping is not None else (donors[0] + acceptors[0], donors[1] + acceptors[1]),
        index_in(entry.index, directory, f"{key}.index"),
    )
    _check_doping(layer, donors, acceptors, key)
    return layer


def _doping(entry: LayerSettings, name: str, key: str) -> tuple[Pair, Pair]:
    """Return donors and acceptors, each at both ends of a layer."""
    if entry.doping is not None and (entry.n is not None or entry.p is not None):
        raise CaseError(
            f"layer {name!r}: both doping and n or p are given",
            key=f"{key}.doping",
            remedy="give n, p, or doping with its sign",
        )
    if entry.doping is not None:
        first, last = _ends(entry.doping)
        return (max(first, 0.0), max(last, 0.0)), (max(-first, 0.0), max(-last, 0.0))
    return _ends(entry.n or 0.0), _ends(entry.p or 0.0)


def _ends(said: float | Pair) -> Pair:
    return said if isinstance(said, tuple) else (said, said)


def _check_doping(layer: Layer, donors: Pair, acceptors: Pair, key: str) -> None:
    for kind, what, values in (("n", "donors", donors), ("p", "acceptors", acceptors)):
        for value, fraction in zip(values, (0.0, 1.0)):
            material = layer.at(fraction)
            limit: float | None = getattr(material, f"solubility_{kind}")
            if limit is None or value <= limit:
                continue
            raise CaseError(
                f"layer {layer.name!r}: {value:.3g} {what} per cm3 exceed the solubility in {material.name}, "
                f"{limit:.3g}",
                key=f"{key}.{kind}",
                remedy=f"reduce the doping, or define a material with another solubility_{kind}",
            )


def _check_positions(settings: PhotodiodeSettings, layers: tuple[Layer, ...]) -> None:
    """Check that a layer with an explicit start begins where the previous layer ends."""
    end = 0.0
    for k, (entry, layer) in enumerate(zip(settings.layers, layers, strict=True)):
        begin = end if entry.begin is None else entry.begin
        if not math.isclose(begin, end, rel_tol=1e-9, abs_tol=1e-12):
            before = f"layer {layers[k - 1].name!r} ends" if k else "the device begins"
            what = "overlaps" if begin < end else "leaves a gap to"
            other = f"layer {layers[k - 1].name!r}" if k else "the anode"
            raise CaseError(
                f"layer {layer.name!r} {what} {other}: it begins at {1e4 * begin:g} um, {before} at {1e4 * end:g} um",
                key=f"photodiode.layers[{k}].begin",
                remedy="move begin there, or leave it out",
            )
        end += layer.thickness


def _surface(k: int, entry: SurfaceSettings) -> Surface:
    key = f"photodiode.surfaces[{k}]"
    flat = [name for name in ("x", "y") if isinstance(getattr(entry, name), float)]
    if len(flat) != 1:
        raise CaseError(
            f"surface {k + 1} has {'two positions' if flat else 'no position'}",
            key=key,
            remedy="write x = 1.5 for a plane at that depth, or y = 0.0 for one along x, and a range for the other",
        )
    normal: Literal["x", "y"] = "x" if flat[0] == "x" else "y"
    at, span = (entry.x, entry.y) if normal == "x" else (entry.y, entry.x)
    assert isinstance(at, float)
    assert not isinstance(span, float)
    if span is not None:
        check_span(f"surface {k + 1}", *span, key)
    return Surface(normal, at, span, entry.velocity_n, entry.velocity_p)


def _contacts(settings: PhotodiodeSettings) -> tuple[Contact, ...]:
    found = []
    sides: tuple[tuple[str, Side], ...] = (("anode", "top"), ("cathode", "bottom"))
    for name, place in sides:
        entry = getattr(settings.contacts, name)
        entry = entry if isinstance(entry, ContactSettings) else ContactSettings(kind=entry)
        key = f"photodiode.contacts.{name}"
        if entry.y is not None and settings.width is None:
            raise CaseError(
                f"the {name} reaches from {1e4 * entry.y[0]:g} to {1e4 * entry.y[1]:g} um, but the device has one axis",
                key=f"{key}.y",
                remedy="give the device a width and columns, or leave y out",
            )
        if entry.y is not None:
            check_span(f"the {name}", *entry.y, f"{key}.y")
        _check_kind(name, entry, key)
        found.append(
            Contact(
                name, entry.at or place, entry.y, entry.kind, entry.barrier, entry.recombination, entry.image_force,
                entry.tunnelling,
            )
        )  # fmt: skip
    anode, cathode = found
    if anode.at == cathode.at and (
        anode.y is None or cathode.y is None or (anode.y[0] < cathode.y[1] and cathode.y[0] < anode.y[1])
    ):
        raise CaseError(
            f"anode and cathode touch: both are at the {anode.at} of the device",
            key="photodiode.contacts.cathode",
            remedy="put them on different sides, or give each its own y in a device with two axes",
        )
    return anode, cathode


def _check_kind(name: str, entry: ContactSettings, key: str) -> None:
    """Check that a contact has what its kind needs, and nothing of the other kind."""
    schottky = entry.kind == "schottky"
    if schottky != (entry.barrier is not None):
        raise CaseError(
            f"the {name} is a Schottky contact without a barrier"
            if entry.barrier is None
            else f"the {name} has a barrier, but is an ohmic contact",
            key=f"{key}.barrier",
            remedy='write {kind = "schottky", barrier = 0.55}, in eV for electrons',
        )
    if schottky and entry.recombination is not None:
        raise CaseError(
            f"the {name} is a Schottky contact with a velocity of recombination",
            key=f"{key}.recombination",
            remedy="leave it out: a metal takes up all carriers (or write emission = true)",
        )
    for option in ("image_force", "tunnelling"):
        if getattr(entry, option) and not schottky:
            raise CaseError(
                f"{option} at the {name}, which is an ohmic contact",
                key=f"{key}.{option}",
                remedy='leave it out, or write {kind = "schottky", barrier = 0.55, ...}',
            )


def _temperature(settings: PhotodiodeSettings, layers: tuple[Layer, ...]) -> float:
    """Return the temperature; CaseError if the band gap of any layer is known at 300 K only."""
    if settings.temperature == 300.0:
        return 300.0
    for k, layer in enumerate(layers):
        material = layer.at(0.5)
        if material.varshni is None and material.alloy is None:
            raise CaseError(
                f"{_said(settings, k)} {layer.name!r}: {material.name} is known at 300 K only",
                key="photodiode.temperature",
                remedy="write temperature = 300.0, or a material of your own with varshni = {alpha = ..., beta = ...}",
            )
    return settings.temperature


def _said(settings: PhotodiodeSettings, number: int) -> str:
    """Return the word for an entry of all layers and then regions with materials."""
    return "layer" if number < len(settings.layers) else "region"


def _ionisation(settings: PhotodiodeSettings, layers: tuple[Layer, ...]) -> dict[str, str]:
    """Return the coefficient sets chosen by the case, by material; CaseError for a layer without known coefficients."""
    chosen = _chosen(settings.ionisation, layers, "photodiode.ionisation")
    if settings.ionisation is False:
        return {}
    for k, layer in enumerate(layers):
        material = layer.at(0.5)
        if layer.ionisation is None and material.name not in chosen and material.ionisation is None:
            raise CaseError(
                f"{_said(settings, k)} {layer.name!r}: no ionisation coefficients of {material.name} are known",
                key=f"photodiode.layers[{k}].ionisation" if k < len(settings.layers) else "photodiode.ionisation",
                remedy='choose a set, or write ionisation = "none" in the layer'
                if k < len(settings.layers)
                else f'choose a set, or write ionisation = {{{material.name} = "none"}}',
            )
    return chosen


def _band_to_band(settings: PhotodiodeSettings, layers: tuple[Layer, ...]) -> dict[str, str] | None:
    """Return the sets of band-to-band tunnelling chosen by the case, by material; None if it is switched off."""
    said = settings.tunnelling.band_to_band
    return None if said is False else _chosen(said, layers, "photodiode.tunnelling.band_to_band")


def _known(settings: PhotodiodeSettings, name: str, layers: tuple[Layer, ...], properties: tuple[str, ...]) -> bool:
    """Return an option; CaseError if it is chosen and no layer's material has any of the properties it requires."""
    on = bool(getattr(settings, name))
    materials = {layer.at(0.5) for layer in layers}
    if on and not any(getattr(material, item) is not None for material in materials for item in properties):
        raise CaseError(
            f"{' and '.join(properties)} of {', '.join(sorted(m.name for m in materials))} are unknown",
            key=f"photodiode.{name}",
            remedy=f"leave it out, or use a material of your own with {' and '.join(properties)}",
        )
    return on


def _chosen(said: bool | dict[str, str], layers: tuple[Layer, ...], key: str) -> dict[str, str]:
    """Return sets by material as a case gives them; CaseError for a material that no layer is made of."""
    chosen = said if isinstance(said, dict) else {}
    present = {layer.at(0.5).name for layer in layers}
    for name in chosen:
        if name not in present:
            raise CaseError(
                f"no layer is made of {name!r}",
                key=f"{key}.{name}",
                suggestion=suggest(name, present),
                remedy=f"the layers are made of {', '.join(sorted(present))}",
            )
    return dict(chosen)
