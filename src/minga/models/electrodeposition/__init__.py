"""Ions, potential and flow between two electrodes, and the deposit growing on one of them."""

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
    """Return the model described by the table [electrodeposition] of a case; see `minga.models`."""
    from minga.models.electrodeposition import case

    return case.load(section, grid, directory)


SPEC = ModelSpec(load, least_bytes=72)
