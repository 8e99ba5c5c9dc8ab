"""Results by processor family: a file for each, shown side by side, and compared with what is measured anew.

See :func:`benchmarks.command.family`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.command import RESULTS

__all__ = ["LEAST", "Change", "changes", "side_by_side", "stored", "updated"]

LEAST: Final = 0.9
"""Share of a stored ratio that a new one must reach: in the median, or by the best samples."""


@dataclass(frozen=True, slots=True)
class Change:
    """How many times as fast one way was as another, before and now: medians, and by the best samples."""

    result: str
    pair: str
    before: tuple[float, float]
    now: tuple[float, float]

    @property
    def slower(self) -> bool:
        """True if it is slower by both: a busy moment spoils the median, and luck the best sample."""
        return all(now < LEAST * before for now, before in zip(self.now, self.before, strict=True))


def stored(name: str) -> dict[str, dict[str, Any]]:
    """Return the stored results of a benchmark by family, in alphabetical order."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((RESULTS / name).glob("*.json"))}


def updated(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was stored before, with new results, which get their date, in place of earlier ones."""
    found = {result["name"]: result for result in before["results"]}
    found |= {result["name"]: {**result, "date": now["date"]} for result in now["results"]}
    return {**before, "results": [*found.values()]}


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Return the ratios that both have; absolute numbers depend on what else the machine does."""
    known = {result["name"]: result["ratios"] for result in before["results"]}
    return [
        Change(result["title"], pair, _both(known[result["name"]][pair]), _both(ratio))
        for result in now["results"]
        for pair, ratio in result["ratios"].items()
        if pair in known.get(result["name"], {})
    ]


def _both(ratio: Mapping[str, float]) -> tuple[float, float]:
    return ratio["median"], ratio["of_best"]


def side_by_side(contents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of all ratios by family, with the targets that were missed; none for one family."""
    if len(contents) < 2:
        return
    titles: dict[str, str] = {}
    for content in contents.values():
        titles |= {result["name"]: result["title"] for result in content["results"] if result["ratios"]}
    yield "|  | " + " | ".join(contents) + " |"
    yield "|" + "---|" * (len(contents) + 1)
    for name, title in titles.items():
        cells = [_cell(name, content["results"]) for content in contents.values()]
        yield f"| {title} | " + " | ".join(cells) + " |"


def _cell(name: str, results: Sequence[Mapping[str, Any]]) -> str:
    result = next((each for each in results if each["name"] == name), None)
    if result is None:
        return ""
    missed = {target["what"] for target in result["targets"] if not target["met"]}
    return "; ".join(
        f"{pair} {ratio['median']:.2f}" + (" (MISSED)" if pair in missed else "")
        for pair, ratio in result["ratios"].items()
    )
