"""The stored numbers as tables in Markdown, for docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

WAYS = ("forward", "forward, homogeneous", "update", "gcc", "devito so=8 forward", "devito so=16 forward")
BOUNDS = ("memory bound", "arithmetic bound")


def markdown(content: Mapping[str, Any]) -> str:
    """Both parts, as far as they were measured."""
    machine = content["machine"]
    lines = [
        f"{content['date'][:10]}, {machine['processor']} ({machine['llvm_name']}), {machine['usable_cores']} cores.",
        "",
    ]
    if content.get("speed"):
        lines += [*_table(("Mcells/s", *WAYS, *BOUNDS), _speeds(content["speed"])), ""]
    if content.get("paper"):
        lines += [*_table(("run", "seconds", "sd", "expected", "memory, frames"), _runs(content["paper"])), ""]
    lines += [*_table(("target", "found", "limit", ""), _targets(content)), ""]
    return "\n".join(lines)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    return [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _speeds(results: list[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for result in results:
        values = result["values"]
        shown = [values[way].get("median", values[way]["best"]) if way in values else None for way in (*WAYS, *BOUNDS)]
        yield result["title"], *("" if value is None else f"{value:.3g}" for value in shown)


def _runs(paper: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, run in paper["results"].items():
        took, memory = run["returned"], run.get("memory_in_frames")
        seconds = f"{took['median']:.2f}", f"{took['sd']:.2f}", f"{run['expected']:.2f}"
        yield name, *seconds, "" if memory is None else f"{memory:.1f}"


def targets_of(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All targets, each with what it belongs to."""
    for result in content.get("speed") or ():
        yield from ((result["title"], target) for target in result["targets"])
    yield from (("", target) for target in (content.get("paper") or {}).get("targets", ()))


def _targets(content: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for place, target in targets_of(content):
        sign = "≥" if target["sense"] == "at least" else "≤"
        what = f"{place}: {target['what']}" if place else target["what"]
        yield what, f"{target['found']:.3g}", f"{sign} {target['limit']:g}", "met" if target["met"] else "MISSED"
