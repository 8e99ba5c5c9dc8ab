"""Drift-diffusion model of semiconductor layers: electrons, holes, light and impact ionisation.

Names are imported when they are first used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.lazy import attach
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.photodiode.model import photodiode
    from minga.models.photodiode.pointwise.setup import Pointwise
    from minga.models.photodiode.solver.problem import Problem
    from minga.models.photodiode.structure.device import Device, Terminal, device_from
    from minga.models.photodiode.structure.stack import Contact, Layer, Light, Region, Stack
    from minga.models.settings import GridSettings

__all__ = [
    "Contact",
    "Device",
    "Layer",
    "Light",
    "Pointwise",
    "Problem",
    "Region",
    "Stack",
    "Terminal",
    "device_from",
    "photodiode",
]

__getattr__, __dir__ = attach(__name__, __file__)


def make(settings: PhotodiodeSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [photodiode] of a case describes."""
    from minga.models.photodiode import case

    return case.make(settings, grid, directory)


SPEC = ModelSpec(
    settings=PhotodiodeSettings,
    make=make,
    examples=(
        "pin-inp",
        "apd",
        "msm",
        "planar",
        "si-1",
    ),
    description="electrons and holes in layers of semiconductors, light and impact ionisation",
    grid=("shape", "boundary"),
)
