"""Partial differential equations from text or functions, integrated in time on any grid.

Names are imported when they are first used::

    model = mg.pde("laplace(u) + u - u**3", grid, initial={"u": "cos(x)"}, dt=0.01)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.lazy import attach
from minga.models.pde.settings import PdeSettings
from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.pde.model import pde
    from minga.models.pde.source import EquationError
    from minga.models.settings import GridSettings

__all__ = [
    "EquationError",
    "pde",
]

__getattr__, __dir__ = attach(__name__, __file__)


def make(settings: PdeSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [pde] of a case describes."""
    from minga.models.pde import case

    return case.make(settings, grid, directory)


SPEC = ModelSpec(
    settings=PdeSettings,
    make=make,
    bytes_per_cell=16,
    examples=("swift-hohenberg", "brusselator"),
    description="partial differential equations as text, with operators, conditions at walls and integrators",
    grid=("shape", "boundary"),
)
