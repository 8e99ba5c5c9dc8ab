"""Specification of the model of cellular automata, an entry point of the group ``minga.models``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.case.spec import ModelSpec
from minga.models.automaton.settings import AutomatonSettings

if TYPE_CHECKING:
    from minga.case.settings import GridSettings
    from minga.engine.model import Model

__all__ = ["SPEC"]


def make(settings: AutomatonSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [automaton] of a case describes."""
    from minga.models.automaton import case

    return case.make(settings, grid, directory)


def new_case(rule: str | None, directory: Path) -> str:
    """Return the text of a case with a rule."""
    from minga.models.automaton.new_case import new_case

    return new_case(rule, directory)


SPEC = ModelSpec(
    settings=AutomatonSettings,
    make=make,
    examples=(
        "life",
        "highlife",
        "day-and-night",
        "brians-brain",
        "bugs",
        "life-3d",
        "cyclic",
        "forest-fire",
        "gray-scott",
        "ising",
        "sandpile",
        "traffic",
        "wireworld",
        "langtons-loop",
        "billiard-balls",
        "critters",
    ),
    description="cellular automata: rules by name or in Python, patterns and soups",
    grid=("shape", "boundary"),
    new_case=new_case,
)
