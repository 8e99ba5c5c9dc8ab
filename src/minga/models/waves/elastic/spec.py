"""Specification of the model of elastic waves, an entry point of the group ``minga.models``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from minga.case.spec import ModelSpec
from minga.models.waves.elastic.settings import ElasticSettings

if TYPE_CHECKING:
    from minga.case.settings import GridSettings
    from minga.engine.model import Model

__all__ = ["SPEC"]


def make(
    settings: ElasticSettings, grid: GridSettings, directory: Path, times: Mapping[str, float | str] | None = None
) -> Model:
    """Make the model that the table [elastic] of a case describes."""
    from minga.models.waves.elastic import case

    return case.make(settings, grid, directory, times)


def make_to_plan(
    settings: ElasticSettings, grid: GridSettings, directory: Path, times: Mapping[str, float | str] | None = None
) -> Model:
    """Make a model for planning, from a sample of a large medium."""
    from minga.models.waves.elastic import case

    return case.make(settings, grid, directory, times, sample=True)


SPEC = ModelSpec(
    settings=ElasticSettings,
    make=make,
    make_to_plan=make_to_plan,
    bytes_per_cell=20,
    examples=("land",),
    description="elastic waves in isotropic media, fluids included",
    grid=("shape", "boundary"),
    times=True,
)
