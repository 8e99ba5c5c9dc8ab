"""The rule of a run as pattern files name it: Golly goes on where the run ended, on a grid with the same ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minga.models.automaton.golly import NOTE, PATTERN

__all__ = ["PatternRule", "golly_rule"]


@dataclass(frozen=True, slots=True)
class PatternRule:
    """What the head of a pattern file says.

    text      the rule with the bounded grid it runs on, such as "B3/S23:T512,512"; None where Golly has no such rule
    comments  what it cannot say
    """

    text: str | None
    comments: tuple[str, ...]

    def corner(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Row and column of the upper left cell: Golly's bounded grids have cell (0, 0) in the middle."""
        return (-(shape[0] // 2), -(shape[1] // 2)) if self.text and ":" in self.text else None


def golly_rule(attributes: Mapping[str, Any]) -> PatternRule:
    """The rule that the attributes of a run's frames say."""
    if PATTERN not in attributes and NOTE not in attributes:
        model = attributes.get("model", "a run")
        return PatternRule(None, (f"cells of {model}, which names no rule; Golly takes this for Life, B3/S23",))
    note = attributes.get(NOTE)
    return PatternRule(attributes.get(PATTERN), (str(note),) if note else ())
