"""Specification of the model of seismic waves, an entry point of the group ``minga.models``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from minga.case.spec import ModelSpec
from minga.models.waves.settings import FletcherSettings

if TYPE_CHECKING:
    from minga.case.settings import GridSettings
    from minga.engine.model import Model

__all__ = ["SPEC"]


def make(
    settings: FletcherSettings, grid: GridSettings, directory: Path, times: Mapping[str, float | str] | None = None
) -> Model:
    """Make the model that the table [fletcher] of a case describes."""
    from minga.models.waves import case

    return case.make(settings, grid, directory, times)


def make_to_plan(
    settings: FletcherSettings, grid: GridSettings, directory: Path, times: Mapping[str, float | str] | None = None
) -> Model:
    """Make a model for planning, from a sample of a large medium."""
    from minga.models.waves import case

    return case.make(settings, grid, directory, times, sample=True)


SPEC = ModelSpec(
    settings=FletcherSettings,
    make=make,
    make_to_plan=make_to_plan,
    bytes_per_cell=8,
    examples=("waves", "waves-vti"),
    description="seismic waves in tilted transversely isotropic media",
    grid=("shape", "boundary"),
    times=True,
)
