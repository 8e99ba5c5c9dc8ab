"""Ions, potential and flow between two electrodes, and the deposit growing on one of them.

Names are imported when they are first used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.lazy import attach
from minga.models.electrodeposition.settings import ElectrodepositionSettings
from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.electrodeposition.model import electrodeposition
    from minga.models.electrodeposition.problem import (
        ButlerVolmer,
        Constants,
        Electrode,
        Flux,
        Growth,
        Held,
        Problem,
        Reversible,
        Species,
        Steps,
    )
    from minga.models.settings import GridSettings

__all__ = [
    "ButlerVolmer",
    "Constants",
    "Electrode",
    "Flux",
    "Growth",
    "Held",
    "Problem",
    "Reversible",
    "Species",
    "Steps",
    "electrodeposition",
]

__getattr__, __dir__ = attach(__name__, __file__)


def make(settings: ElectrodepositionSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [electrodeposition] of a case describes."""
    from minga.models.electrodeposition import case

    return case.make(settings, grid, directory)


SPEC = ModelSpec(
    settings=ElectrodepositionSettings,
    make=make,
    bytes_per_cell=72,
    examples=(
        "zn-cell",
        "zn-cell-cathode-above",
        "zn-cell-cathode-below",
        "fingers",
        "growth",
        "membrane",
        "pnp-1d",
    ),
    description="ions, potential and flow between two electrodes, and the deposit that grows",
    grid=("shape", "boundary"),
)
