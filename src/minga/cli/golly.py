"""The rule of a run as pattern files name it: Golly goes on where the run ended, on a grid with the same ends."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.errors import CaseError
from minga.models.automaton.initial import pattern_of
from minga.record.directory import RunDirectory

__all__ = ["PatternRule", "golly_rule"]


@dataclass(frozen=True, slots=True)
class PatternRule:
    """What the head of a pattern file says.

    text      the rule with the bounded grid it runs on, such as "B3/S23:T512,512"; None where Golly has no such rule
    bounded   whether it names a bounded grid: a torus (T) or a plane of dead cells around (P)
    comments  what it cannot say
    """

    text: str | None
    bounded: bool
    comments: tuple[str, ...]

    def corner(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Row and column of the upper left cell: Golly's bounded grids have cell (0, 0) in the middle."""
        return (-(shape[0] // 2), -(shape[1] // 2)) if self.bounded else None


def golly_rule(run: RunDirectory) -> PatternRule:
    """The rule of a run out of its case."""
    try:
        case = tomllib.loads(run.case.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        case = {}
    section = case.get("automaton")
    name = _rule_name(section, run) if isinstance(section, Mapping) else None
    if name is None or ".py" in name or section.get("update") is not None:  # type: ignore[union-attr]
        said = name or case.get("model", "a model without a rule")
        return PatternRule(None, False, (f"cells of {said}, which Golly has no name for",))
    if name.endswith(".rule"):
        name = Path(name).stem  # Golly finds rule files by their names
    grid = case.get("grid", {})
    if ":" in name and "boundary" not in grid:
        return PatternRule(name, True, ())
    name = name.partition(":")[0]
    letter = _bounds(grid.get("boundary", "periodic"))
    shape = grid.get("shape")
    if letter is None or not isinstance(shape, list) or len(shape) != 2:
        return PatternRule(name, False, (f"the grid's boundary is {grid.get('boundary')}",))
    return PatternRule(f"{name}:{letter}{shape[1]},{shape[0]}", True, ())


def _rule_name(section: Mapping[str, Any], run: RunDirectory) -> str | None:
    """The case's rule, or the one its initial pattern names."""
    if isinstance(section.get("rule"), str):
        return str(section["rule"])
    try:
        pattern = pattern_of(section.get("init"), run.path)
    except CaseError:
        return None
    return pattern.rule if pattern else None


def _bounds(boundary: object) -> str | None:
    """Golly's letter for a grid with such ends."""
    words = boundary if isinstance(boundary, list) else [boundary]
    if all(word == "periodic" for word in words):
        return "T"
    fixed = all(word in ("fixed", ["fixed", "fixed"]) for word in words) or boundary == ["fixed", 0]
    return "P" if fixed else None
