"""Specification of the model of photodiodes, an entry point of the group ``minga.models``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.case.spec import ModelSpec
from minga.models.photodiode.settings import PhotodiodeSettings

if TYPE_CHECKING:
    from minga.case.settings import GridSettings
    from minga.engine.model import Model

__all__ = ["SPEC"]


def make(settings: PhotodiodeSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [photodiode] of a case describes."""
    from minga.models.photodiode import case

    return case.make(settings, grid, directory)


SPEC = ModelSpec(
    settings=PhotodiodeSettings,
    make=make,
    examples=(
        "pin-inp",
        "pin-ac",
        "apd",
        "msm",
        "planar",
        "si-1",
        "si-qe",
        "recovery",
    ),
    description="electrons and holes in layers of semiconductors, light and impact ionisation",
    grid=("shape", "boundary"),
)
