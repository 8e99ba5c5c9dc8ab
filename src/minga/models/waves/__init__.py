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

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.models.spec import ModelSpec
from minga.models.waves.settings import FletcherSettings

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
    "make",
    "make_to_plan",
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


def make(settings: FletcherSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [fletcher] of a case describes."""
    from minga.models.waves import case

    return case.make(settings, grid, directory)


def make_to_plan(settings: FletcherSettings, grid: GridSettings, directory: Path) -> Model:
    """Make a model for planning, from a sample of a large medium."""
    from minga.models.waves import case

    return case.make(settings, grid, directory, sample=True)


SPEC = ModelSpec(
    settings=FletcherSettings,
    make=make,
    make_to_plan=make_to_plan,
    bytes_per_cell=8,
    examples=("waves", "waves-vti"),
    description="seismic waves in tilted transversely isotropic media",
)


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"minga.models.waves.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
