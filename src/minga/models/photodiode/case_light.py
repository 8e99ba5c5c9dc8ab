"""Light and refractive indices that a case describes."""

from __future__ import annotations

import math
from pathlib import Path

from minga.errors import CaseError
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_incident import LightSettings
from minga.models.photodiode.structure.beam import Beam
from minga.models.photodiode.structure.indices import Index, IndexSaid, index_of
from minga.models.photodiode.structure.stack import Coating, Light, Substrate

__all__ = ["index_in", "is_lit", "light_of"]


def index_in(said: IndexSaid | None, directory: Path, key: str) -> Index | None:
    """Return the refractive index that a case gives; files are looked up in its directory."""
    return None if said is None else index_of(said, directory, key)


def is_lit(settings: PhotodiodeSettings) -> bool:
    """Return whether the light belongs to the state of the device, and not only to its quantum efficiency."""
    return settings.mode != "qe" or "lit" in (settings.curves or ())


def light_of(settings: PhotodiodeSettings, directory: Path) -> Light | None:
    """Return the light of a case; CaseError if it is inconsistent."""
    said = settings.light
    if said is None or said.generation is not None:
        return None
    for name in ("coatings", "ambient", "backing", "substrate"):
        if said.optics != "transfer-matrix" and name in said.model_fields_set:
            raise CaseError(
                f"{name} of a device whose optics are {said.optics!r}, which reflect nothing",
                key=f"photodiode.light.{name}",
                remedy='leave it out, or write optics = "transfer-matrix"',
            )
    if is_lit(settings):
        _check_light(said)
    _check_side(said)
    return Light(
        said.wavelength or math.inf,
        said.power or 0.0,
        said.flux,
        said.side,
        said.optics,
        tuple(
            Coating(index_of(entry.index, directory, f"photodiode.light.coatings[{k}].index"), entry.thickness)
            for k, entry in enumerate(said.coatings)
        ),
        1.0 if said.ambient is None else said.ambient,
        index_in(said.backing, directory, "photodiode.light.backing"),
        None
        if said.substrate is None
        else Substrate(
            index_of(said.substrate.index, directory, "photodiode.light.substrate.index"),
            said.substrate.thickness,
            said.substrate.at,
        ),
        _beam(said),
    )


def _beam(said: LightSettings) -> Beam:
    window = said.y if said.x is None else said.x
    return Beam(window) if said.gaussian is None else Beam(window, said.gaussian.middle, said.gaussian.radius)


def _check_side(said: LightSettings) -> None:
    """Check that the lit part is given along the side's own axis."""
    wrong, right = ("y", "x") if said.side in ("left", "right") else ("x", "y")
    if getattr(said, wrong) is not None:
        raise CaseError(
            f"{wrong} of light from the {said.side}",
            key=f"photodiode.light.{wrong}",
            remedy=f"that side extends along {right}: write {right} = [0.0, 5.0]",
        )


def _check_light(settings: LightSettings) -> None:
    if settings.wavelength is None:
        raise CaseError(
            "'wavelength' is missing", key="photodiode.light.wavelength", remedy="write it in nm: wavelength = 1550.0"
        )
    if (settings.power is None) == (settings.flux is None):
        raise CaseError(
            "neither power nor flux of the light" if settings.power is None else "both power and flux of the light",
            key="photodiode.light.power",
            remedy='write power = "1 mW/cm2", or flux = 7.8e15',
        )
