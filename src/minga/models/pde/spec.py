"""Specification of the model of partial differential equations, an entry point of the group ``minga.models``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.case.spec import ModelSpec
from minga.models.pde.settings import PdeSettings

if TYPE_CHECKING:
    from minga.case.settings import GridSettings
    from minga.engine.model import Model

__all__ = ["SPEC"]


def make(settings: PdeSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [pde] of a case describes."""
    from minga.models.pde import case

    return case.make(settings, grid, directory)


SPEC = ModelSpec(
    settings=PdeSettings,
    make=make,
    bytes_per_cell=16,
    examples=("swift-hohenberg", "brusselator", "ginzburg-landau", "phase-field"),
    description="partial differential equations as text, with operators, conditions at walls and integrators",
    grid=("shape", "boundary"),
)
