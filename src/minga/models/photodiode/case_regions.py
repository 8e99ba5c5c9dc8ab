"""Regions of other doping, or of another material, that a case describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Final

from minga.errors import CaseError
from minga.models.photodiode.case_materials import material_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_layers import LayerSettings, RegionSettings
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.regions import Polygon, Region
from minga.models.photodiode.structure.stack import Layer

__all__ = ["check_span", "edges_of", "islands_of", "regions_of", "steps_of"]

_TAIL: Final = 3.0
"""Distance from a smooth edge in straggles, where junctions are usually."""


def regions_of(
    settings: PhotodiodeSettings, layers: tuple[Layer, ...], materials: Mapping[str, Material]
) -> tuple[Region | Polygon, ...]:
    """Return the regions of a case.

    Raises
    ------
    CaseError
        If a region is described twice or not at all, or doped beyond the solubility in a layer; the error names it.
    """
    found = []
    for k, entry in enumerate(settings.regions):
        key = f"photodiode.regions[{k}]"
        region = _with_material(_region(entry, key), entry, key, settings, materials)
        _check_solubility(region, layers, key)
        found.append(region)
    return tuple(found)


def islands_of(regions: tuple[Region | Polygon, ...]) -> Iterator[Layer]:
    """Yield a layer for each region with a material of its own, for the checks that layers undergo."""
    for region in regions:
        if region.material is not None:
            yield Layer(region.name, region.material, region.x[1] - region.x[0], (region.doping, region.doping))


def edges_of(entry: RegionSettings, axis: int) -> tuple[float, ...]:
    """Return the places along an axis where the mesh has to be fine for a region: its ends, or those of its tails."""
    if entry.polygon is not None:
        places = [corner[axis] for corner in entry.polygon]
        return min(places), max(places), *steps_of(entry, axis)
    span = (entry.x, entry.y)[axis]
    if span is None:
        return ()
    tail = _TAIL * _straggle(entry)[axis]
    return span[0] - tail, span[1] + tail


def steps_of(entry: RegionSettings, axis: int) -> tuple[float, ...]:
    """Return the places along an axis where the material changes along a whole edge of a region."""
    if entry.material is None:
        return ()
    if entry.polygon is None:
        return (entry.x, entry.y)[axis] or ()
    edges = pairwise((*entry.polygon, entry.polygon[0]))
    return tuple(start[axis] for start, end in edges if start[axis] == end[axis])


def check_span(what: str, low: float, high: float, key: str) -> None:
    """Raise CaseError if an interval ends before it begins."""
    if not low < high:
        raise CaseError(
            f"{what} reaches from {1e4 * low:g} to {1e4 * high:g} um",
            key=key,
            remedy="give where it begins and then where it ends, in um",
        )


def _straggle(entry: RegionSettings) -> tuple[float, float]:
    said = entry.straggle or 0.0
    return said if isinstance(said, tuple) else (said, said)


def _region(entry: RegionSettings, key: str) -> Region | Polygon:
    what = f"region {entry.name!r}"
    if entry.polygon is not None:
        for name in ("x", "y", "straggle"):
            if getattr(entry, name) is not None:
                raise CaseError(f"{what}: both polygon and {name}", key=f"{key}.{name}", remedy="leave one of them out")
        return Polygon(entry.name, entry.polygon, entry.doping)
    if entry.x is None or entry.y is None:
        raise CaseError(
            f"{what} has no {'x' if entry.x is None else 'y'}",
            key=f"{key}.{'x' if entry.x is None else 'y'}",
            remedy="write x = [0.0, 1.5] and y = [0.0, 2.0], or polygon = [[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]]",
        )
    for axis, (low, high) in (("x", entry.x), ("y", entry.y)):
        check_span(what, low, high, f"{key}.{axis}")
    return Region(entry.name, entry.x, entry.y, entry.doping, _straggle(entry))


def _with_material(
    region: Region | Polygon,
    entry: RegionSettings,
    key: str,
    settings: PhotodiodeSettings,
    materials: Mapping[str, Material],
) -> Region | Polygon:
    """Return a region with its material, if it has one; CaseError for what only regions with sharp edges have."""
    if entry.material is None:
        return region
    if entry.straggle is not None:
        raise CaseError(
            f"region {entry.name!r}: a material in a region with smooth edges",
            key=f"{key}.material",
            remedy="leave out straggle: a node cannot consist of two materials",
        )
    if settings.mode == "qe":
        raise CaseError(
            f"region {entry.name!r}: a material of its own in mode 'qe', whose light follows the layers",
            key=f"{key}.material",
            remedy='leave it out, or write mode = "iv"',
        )
    found = material_of(LayerSettings(material=entry.material), entry.name, key, materials, "region")
    assert isinstance(found, Material)
    return replace(region, material=found)


def _check_solubility(region: Region | Polygon, layers: tuple[Layer, ...], key: str) -> None:
    """Check that a region is not doped beyond the solubility limit of any layer that it overlaps."""
    ends = [0.0, *accumulate(layer.thickness for layer in layers)]
    kind, what = ("n", "donors") if region.doping > 0 else ("p", "acceptors")
    for layer, low, high in zip(layers, ends, ends[1:]):
        material = region.material or layer.at(0.5)
        limit: float | None = getattr(material, f"solubility_{kind}")
        if limit is not None and abs(region.doping) > limit and region.x[0] < high and region.x[1] > low:
            raise CaseError(
                f"region {region.name!r}: {abs(region.doping):.3g} {what} per cm3 exceed the solubility in "
                f"{material.name} of layer {layer.name!r}, {limit:.3g}",
                key=f"{key}.doping",
                remedy=f"reduce the doping, or define a material with another solubility_{kind}",
            )
