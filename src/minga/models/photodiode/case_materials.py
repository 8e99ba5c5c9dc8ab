"""Materials of the layers of a case: those of its file and those that ship, and alloys of any composition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from minga.case.files import locate, nearest
from minga.errors import CaseError, suggest
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_layers import LayerSettings
from minga.models.photodiode.structure.composition import quaternary
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.materials_file import read_materials, shipped_materials
from minga.models.photodiode.structure.ternary import MATCHED, SUBSTRATE, ternary
from minga.models.photodiode.structure.vurgaftman import direct_up_to

__all__ = ["borrowed", "material_of", "materials_of"]

_ALLOY: Final = "InGaAsP"
Pair = tuple[float, float]


def materials_of(settings: PhotodiodeSettings, directory: Path) -> dict[str, Material]:
    """Return the materials shipped with minga, overridden and extended by those of the case's own file."""
    if settings.materials is None:
        return shipped_materials()
    path = locate(settings.materials, directory)
    if not path.is_file():
        raise CaseError(
            f"there is no file {settings.materials!r}",
            key="photodiode.materials",
            where=str(directory),
            suggestion=nearest(settings.materials, directory),
            remedy="put it beside the case",
        )
    return shipped_materials() | read_materials(path)


def material_of(
    entry: LayerSettings, name: str, key: str, materials: Mapping[str, Material], what: str = "layer"
) -> Material | Callable[[float], Material]:
    """Return the material of a layer: one, or a function of the fraction of its depth if its composition varies."""
    if entry.material not in materials:
        raise CaseError(
            f"{what} {name!r}: there is no material {entry.material!r}",
            key=f"{key}.material",
            suggestion=suggest(entry.material, materials),
            remedy=f'choose one of {", ".join(sorted(materials))}, or one of a file of your own: materials = "my.toml"',
        )
    for letter, said, has in (("x", entry.x, entry.material in SUBSTRATE), ("y", entry.y, entry.material == _ALLOY)):
        if said is not None and not has:
            raise CaseError(
                f"layer {name!r}: {entry.material} has no {letter}",
                key=f"{key}.{letter}",
                remedy=f"leave it out; {', '.join(SUBSTRATE)} have x, and {_ALLOY} has y",
            )
    base = materials[entry.material]
    if entry.material == _ALLOY:
        alloy = partial(quaternary, materials=materials)
        return base if entry.y is None else _composed(alloy, entry.y, name, f"{key}.y")
    x = entry.x
    if x is None and base.alloy is not None and base is shipped_materials().get(entry.material):
        x = base.alloy[1]
    if x is None:
        return base
    made = _composed(partial(ternary, entry.material, materials=materials), x, name, f"{key}.x")
    if entry.material != "AlGaAs":
        _check_direct(entry.material, x, name, f"{key}.x")
    return made


def borrowed(settings: PhotodiodeSettings) -> Iterator[tuple[str, str]]:
    """Yield a note for each layer of an alloy whose composition is not that for which its parameters hold."""
    for k, entry in enumerate(settings.layers):
        ends = entry.x if isinstance(entry.x, tuple) else (entry.x, entry.x)
        low, high = MATCHED.get(entry.material, (0.0, 1.0))
        if entry.x is not None and not all(x is None or low <= x <= high for x in ends):
            said = " to ".join(f"{x:g}" for x in dict.fromkeys(ends))
            shared = "permittivity, densities of states, mobilities, lifetimes, radiative and Auger coefficients"
            words = f"{entry.material}, x = {said}; values of the lattice-matched alloy used for: {shared}"
            yield f"alloy of {entry.name or f'layer {k + 1}'}", words


def _check_direct(material: str, x: float | Pair, name: str, key: str) -> None:
    """Raise CaseError for a composition with an indirect gap, whose densities of states and mobilities are unknown."""
    limit = direct_up_to(material, 300.0)
    if max(x if isinstance(x, tuple) else (x,)) > limit:
        raise CaseError(
            f"layer {name!r}: the gap of {material} is indirect beyond x = {limit:.3f}, where its densities of states "
            "and mobilities are unknown",
            key=key,
            remedy="choose a smaller x, or a material of your own",
        )


def _composed(
    alloy: Callable[[float], Material], said: float | Pair, name: str, key: str
) -> Material | Callable[[float], Material]:
    """Return an alloy of one composition, or one that varies linearly over the layer."""
    first, last = said if isinstance(said, tuple) else (said, said)
    if not (0 <= first <= 1 and 0 <= last <= 1):
        raise CaseError(
            f"layer {name!r}: {key[-1]} = {said}",
            key=key,
            remedy="give a share from 0 to 1: of arsenic (y), or of aluminium or gallium (x)",
        )
    return alloy(first) if first == last else partial(_graded, alloy, first, last)


def _graded(alloy: Callable[[float], Material], first: float, last: float, fraction: float) -> Material:
    return alloy(first + (last - first) * fraction)
