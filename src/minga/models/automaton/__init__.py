"""Cellular automata: B/S and elementary rules by name, rules in Python, patterns, soups.

Names are imported when they are first used::

    model = mg.models.automaton.automaton("B3/S23", (512, 512), init={"soup": 0.375, "seed": 1})
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minga.lazy import attach
from minga.models.automaton.settings import AutomatonSettings
from minga.models.spec import ModelSpec

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.automaton.model import automaton
    from minga.models.automaton.patterns import Pattern, read_pattern
    from minga.models.automaton.rules import find_rule
    from minga.models.settings import GridSettings

__all__ = [
    "Pattern",
    "automaton",
    "find_rule",
    "read_pattern",
]

__getattr__, __dir__ = attach(__name__, __file__)


def make(settings: AutomatonSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [automaton] of a case describes."""
    from minga.models.automaton import case

    return case.make(settings, grid, directory)


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
)
