"""Drift-diffusion model of semiconductor layers: electrons, holes, light and impact ionisation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.settings import GridSettings

__all__ = ["SPEC", "make"]


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
)
