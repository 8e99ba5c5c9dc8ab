"""Seismic waves in tilted transversely isotropic media, after Fletcher, Du and Fowler (2009).

Examples
--------
>>> import minga as mg
>>> from minga.models.waves import Medium, Sponge
>>> model = mg.fletcher(
...     (100, 100, 100), dt=1e-3, medium=Medium(3000.0, 0.24, 0.1, 0.785, 1.0), boundary=Sponge()
... )
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.settings import GridSettings
    from minga.models.waves.boundary import Cpml, Random, Release, Rigid, Sponge
    from minga.models.waves.medium import Medium
    from minga.models.waves.migration import migrate
    from minga.models.waves.model import fletcher, prepare
    from minga.models.waves.receivers import Receivers
    from minga.models.waves.source import PlaneSource, PointSource, Ricker, Wavelet

__all__ = [
    "SPEC",
    "Cpml",
    "Medium",
    "PlaneSource",
    "PointSource",
    "Random",
    "Receivers",
    "Release",
    "Ricker",
    "Rigid",
    "Sponge",
    "Wavelet",
    "fletcher",
    "load",
    "migrate",
    "prepare",
]

_ROOMS: Final = {
    "boundary": ("Cpml", "Random", "Release", "Rigid", "Sponge"),
    "medium": ("Medium",),
    "migration": ("migrate",),
    "model": ("fletcher", "prepare"),
    "receivers": ("Receivers",),
    "source": ("PlaneSource", "PointSource", "Ricker", "Wavelet"),
}
"""Modules of the names above; they are imported on first use, since a case file may name another model."""


def load(section: Mapping[str, Any], grid: GridSettings, directory: Path) -> Model:
    """Return the model described by the [fletcher] table of a case; see `minga.models`."""
    from minga.models.waves import case

    return case.load(section, grid, directory)


def load_to_plan(section: Mapping[str, Any], grid: GridSettings, directory: Path) -> Model:
    """Return the model for planning, from a sample of a large medium; see `minga.models.case.load_model`."""
    from minga.models.waves import case

    return case.load(section, grid, directory, sample=True)


SPEC = ModelSpec(load, load_to_plan=load_to_plan, least_bytes=8)


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"minga.models.waves.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
