"""The page of the demo: a section for each part, with the pictures of its runs, the commands, and what to change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.output.directory import RunDirectory, write_whole
from minga.output.store import FrameReader
from minga.studies.demo.parts import Part, Show
from minga.studies.demo.play import Outcome
from minga.view.amounts import amount, grouped
from minga.view.pages import fill, png_address
from minga.view.progress import rate_text, time_text
from minga.view.report.charts import Bar, stacked_bars
from minga.view.report.figures import Figure, figures
from minga.view.report.scenes import scene_section

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["headline", "write_page"]


@dataclass(frozen=True, slots=True)
class Shown:
    """Run as the page shows it."""

    command: str
    report: str
    figures: tuple[Figure, ...]
    pictures: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    machines: Markup | None
    scene: Mapping[str, Any] | None


def write_page(directory: Path, outcomes: Sequence[Outcome], version: str) -> Path:
    """Write ``index.html`` into the directory of the demo, and return its path.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    sections = [
        {"part": each.part, "outcome": each, "time": time_text(each.seconds), "shows": _shows(directory, each)}
        for each in outcomes
    ]
    path = directory / "index.html"
    template = Path(__file__).parent / "page.html.j2"
    write_whole(path, fill(template, {"sections": sections, "version": version, "directory": str(directory)}))
    return path


def headline(part: Part, run: Path) -> str:
    """Return one line for the terminal: the cells, steps and speed of a run."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return ", ".join(text for _, text in _facts(part.shows[0], result)[:2])


def _shows(directory: Path, outcome: Outcome) -> list[Shown]:
    return [_shown(directory, show, run) for show, run in zip(outcome.part.shows, outcome.runs, strict=False)]


def _shown(directory: Path, show: Show, path: Path) -> Shown:
    run = RunDirectory.open(path)
    result = json.loads(run.result.read_text(encoding="utf-8"))
    found = figures(FrameReader.open(run.fields)) if show.fields else []
    return Shown(
        "minga " + show.command,
        (path / "report.html").relative_to(directory).as_posix(),
        tuple(sorted((f for f in found if f.field in show.fields), key=lambda f: show.fields.index(f.field))),
        tuple(_pictures(run, show)),
        tuple(_facts(show, result)),
        _machines(run) if show.machines else None,
        scene_section(FrameReader.open(run.fields)) if show.scene else None,
    )


def _pictures(run: RunDirectory, show: Show) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures: those of the run's directory that are named, and the samples of receivers."""
    for name, caption in show.pictures:
        yield caption, png_address((run.pictures / name).read_bytes())
    if show.receivers:
        from minga.output.traces import read_traces
        from minga.view.seismogram import seismogram

        yield "Samples of the receivers, time downwards", png_address(seismogram(read_traces(run.traces)))


def _facts(show: Show, result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the size and speed of a run, and the observables that the part names."""
    cells = " \u00d7 ".join(grouped(length) for length in result["shape"])
    facts = [
        ("nodes" if show.pictures else "cells", cells),
        ("computed in", f"{time_text(result['seconds'])}, {grouped(result['steps'])} steps"),
    ]
    if show.speed:
        facts.append(("speed", rate_text(result["cells_per_second"])))
    for name, caption in show.numbers:
        facts.append((caption, amount(result["observables"][name], result["units"].get(name, "1"))))
    return facts


def _machines(run: RunDirectory) -> Markup:
    """Draw the cells of each machine by the run's plan."""
    ranks = json.loads(run.plan.read_text(encoding="utf-8"))["ranks"]
    bars = [Bar(entry["host"], [("compute", float(entry["cells"]))]) for entry in ranks]
    return stacked_bars(bars, "cells of each machine", "cells")
