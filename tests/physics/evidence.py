"""What tests compare with published and exact numbers, kept for docs/verification.md.

With VERIFICATION=directory in the environment every number is stored there, also one that misses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Sense = Literal["relative", "absolute", "at most", "between"]


@dataclass(frozen=True, slots=True)
class Number:
    """One number that was found.

    section   the part of the page that it belongs to
    expected  what it should be; of "at most" the limit, of "between" the lower limit
    within    how far off it may be; of "between" the upper limit
    """

    section: str
    what: str
    found: float
    expected: float
    within: float
    sense: Sense

    @property
    def met(self) -> bool:
        if self.sense == "at most":
            return self.found <= self.expected
        if self.sense == "between":
            return self.expected <= self.found <= self.within
        unit = abs(self.expected) if self.sense == "relative" else 1.0
        return abs(self.found - self.expected) <= self.within * unit


@dataclass(frozen=True, slots=True)
class Curve:
    """A line that was found, and points that it should go through."""

    section: str
    what: str
    x: Sequence[float]
    found: Sequence[float]
    points_x: Sequence[float]
    points: Sequence[float]


@dataclass(frozen=True)
class Evidence:
    """Compares what a test found, and stores it for the page."""

    test: str
    directory: Path | None
    items: list[Number | Curve] = field(default_factory=list)

    def relative(self, section: str, what: str, found: float, expected: float, within: float) -> None:
        """The number is what is expected, but for this part of it."""
        self._take(Number(section, what, float(found), float(expected), float(within), "relative"))

    def absolute(self, section: str, what: str, found: float, expected: float, within: float) -> None:
        """The number is what is expected, but for so much."""
        self._take(Number(section, what, float(found), float(expected), float(within), "absolute"))

    def at_most(self, section: str, what: str, found: float, limit: float) -> None:
        self._take(Number(section, what, float(found), float(limit), 0.0, "at most"))

    def between(self, section: str, what: str, found: float, low: float, high: float) -> None:
        self._take(Number(section, what, float(found), float(low), float(high), "between"))

    def curve(self, section: str, what: str, x: Any, found: Any, points_x: Any, points: Any) -> None:
        """A line for the page's picture; what it should be is for numbers to say."""
        values = (list(map(float, part)) for part in (x, found, points_x, points))
        self.items.append(Curve(section, what, *values))
        self._store()

    def _take(self, number: Number) -> None:
        self.items.append(number)
        self._store()
        assert number.met, number

    def _store(self) -> None:
        if self.directory is None:
            return
        content = {"numbers": [], "curves": []}
        for item in self.items:
            of_kind = content["numbers" if isinstance(item, Number) else "curves"]
            of_kind.append(asdict(item) | ({"met": item.met} if isinstance(item, Number) else {}))
        name = "".join(c if c.isalnum() else "-" for c in self.test)
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / f"{name}.json").write_text(json.dumps({"test": self.test, **content}))
