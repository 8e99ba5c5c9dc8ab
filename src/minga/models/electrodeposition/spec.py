"""Specification of the model of cells of electrodeposition, an entry point of the group ``minga.models``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.case.spec import ModelSpec
from minga.models.electrodeposition.settings import ElectrodepositionSettings

if TYPE_CHECKING:
    from minga.case.settings import GridSettings
    from minga.engine.model import Model

__all__ = ["SPEC"]


def make(settings: ElectrodepositionSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [electrodeposition] of a case describes."""
    from minga.models.electrodeposition import case

    return case.make(settings, grid, directory)


def make_to_plan(settings: ElectrodepositionSettings, grid: GridSettings, directory: Path) -> Model:
    """Make a model for planning, which stands for a large one on a coarser grid."""
    from minga.models.electrodeposition import case

    return case.make_to_plan(settings, grid, directory)


SPEC = ModelSpec(
    settings=ElectrodepositionSettings,
    make=make,
    make_to_plan=make_to_plan,
    bytes_per_cell=72,
    examples=(
        "zn-cell",
        "zn-cell-cathode-above",
        "zn-cell-cathode-below",
        "fingers",
        "growth",
        "membrane",
        "electroconvection",
        "pnp-1d",
        "voltammetry",
        "couple",
    ),
    description="ions, potential and flow between two electrodes, and the deposit that grows",
    grid=("shape", "boundary"),
)
