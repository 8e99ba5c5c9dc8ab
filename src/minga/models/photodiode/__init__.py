"""Drift-diffusion model of semiconductor layers: electrons, holes, light and impact ionisation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.settings import GridSettings

__all__ = ["SPEC", "load"]


def load(section: Mapping[str, Any], grid: GridSettings, directory: Path) -> Model:
    """Return the model described by the [photodiode] table of a case; see `minga.models`."""
    from minga.models.photodiode import case

    return case.load(section, grid, directory)


SPEC = ModelSpec(load)
