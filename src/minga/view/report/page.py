"""The page: collects everything known of a run and fills the template."""

from __future__ import annotations

import datetime
import json
import math
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.output.directory import RunDirectory, write_whole
from minga.output.happenings import happened
from minga.output.series import TIMES
from minga.output.store import FrameReader
from minga.output.variables import CONSERVED
from minga.view.amounts import grouped
from minga.view.pages import fill, png_address
from minga.view.progress import extent_text, ranks_text
from minga.view.report.bound import find_bound
from minga.view.report.charts import Curve, curves
from minga.view.report.decomposition import block_rows, blocks_of, overlay, window_of
from minga.view.report.drawings import drawing_charts
from minga.view.report.figures import Figure, figures
from minga.view.report.plan import plan_section
from minga.view.report.scenes import scene_section
from minga.view.report.time import ranks_of, time_section, traffic_section, waiting_shares
from minga.view.values import outcome_texts, value_text

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["write_report"]

_MOST_CHARTS = 24
_MOST_LOSSES = 50
_TIME = "%Y-%m-%d %H:%M %Z"
_STEP = "step"
_RECEIVERS = "receivers"
"""Name of the observable that is drawn as a seismogram, if its samples were kept."""
_ENDED = {
    "condition": "the condition of [stop] holds",
    "wall time": "its wall time was used up",
    "asked": "a person asked it to stop",
    "time limit": "its time was up; it can be resumed",
}


@dataclass(frozen=True, slots=True)
class Chart:
    """Observable over time, its unit, first and last value, and the colours of its curves if there are several."""

    name: str
    unit: str
    drawing: Markup
    first: str
    last: str
    keys: tuple[tuple[str, str], ...] = ()


def write_report(directory: RunDirectory) -> Path:
    """Write ``report.html`` into a run's directory, from the files in it, and return its path.

    The report leaves out everything that a run did not leave, because it was stopped or is older.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    path = directory.path / "report.html"
    write_whole(path, render(directory))
    return path


def render(directory: RunDirectory) -> str:
    """Return the text of the page."""
    return fill(Path(__file__).parent / "report.html.j2", _content(directory))


def _content(directory: RunDirectory) -> dict[str, Any]:
    files = (directory.result, directory.ledger, directory.series, directory.plan)
    result, ledger, series, plan = (_json(path) for path in files)
    case = _text(directory.case)
    table = _toml(case)
    ranks = ranks_of(ledger)
    shape = [int(length) for length in result.get("shape", ())]
    pictures = _figures(directory)
    blocks = blocks_of(result.get("layout"), len(shape)) if shape else []
    waiting = waiting_shares(ranks)
    steps = int(result.get("steps", 0))
    losses = happened(directory)
    drawn = _RECEIVERS if directory.traces.is_dir() else None
    units = {name: "" if unit == "1" else unit for name, unit in result.get("units", {}).items()}
    return {
        "name": str(table.get("name") or directory.path.resolve().name),
        "made": datetime.datetime.now().astimezone().strftime(_TIME),
        "result": result,
        "extent": extent_text(result).replace(" x ", " \u00d7 ") if shape else "",
        "ended": _ended(result, _json(directory.progress)),
        "facts": list(_facts(result, table, plan)),
        "machine": list(_machine(result, ranks)),
        "observables": {n: text for n, text in outcome_texts(result, grouped).items() if n != drawn},
        "happened": [{**line, "at": _local_time(line["time"])} for line in losses[:_MOST_LOSSES]],
        "more_happened": max(0, len(losses) - _MOST_LOSSES),
        "before": result.get("preflight") or _json(directory.preflight),
        "waves": [*_waves(directory)],
        "flow": [*_flow(directory)],
        "scene": scene_section(FrameReader.open(directory.fields)) if directory.fields.exists() else None,
        "audit": [*_audit(directory, series)],
        "figures": pictures,
        "block_rows": block_rows(blocks, ranks, waiting),
        "overlays": {
            f.field: overlay(f, blocks, window_of(table.get("output"), shape, f.dims), waiting)
            for f in pictures
            if len(shape) == len(f.dims)
        }
        if len(blocks) > 1
        else {},
        "drawings": drawing_charts(directory),
        "charts": _charts({name: values for name, values in series.items() if name != drawn}, units),
        "over": _over(directory, series),
        "plan": plan_section(plan, ledger, shape) if shape else None,
        "time": time_section(ranks),
        "traffic": traffic_section(ledger, steps),
        "bound": find_bound(result, ranks) if steps else None,
        "case": case,
        "trace": (directory.path / "trace.json.gz").is_file(),
        "run": str(directory.path),
        "again": _again(result, directory.case),
        "ranks": ranks_text(int(result.get("ranks", 1))),
    }


def _local_time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().strftime(_TIME)


def _waves(directory: RunDirectory) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures for waves with receivers: their samples, and the last frame across the source."""
    if not directory.traces.is_dir():
        return
    from minga.output.traces import read_traces
    from minga.view.seismogram import seismogram

    recorded = read_traces(directory.traces)
    if len(recorded.seconds) > 1:
        yield "Samples of the receivers, time downwards", png_address(seismogram(recorded))
    found = _section(directory, recorded.sources[0] if len(recorded.sources) else None)
    if found is not None:
        yield found


def _flow(directory: RunDirectory) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures for runs that kept a velocity: sections through the flow."""
    if directory.fields.exists():
        from minga.view.flow import flow_pictures

        for words, picture in flow_pictures(FrameReader.open(directory.fields)):
            yield words, png_address(picture)


def _audit(directory: RunDirectory, series: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, first and last amount, and relative change of each conserved quantity."""
    if not directory.fields.exists():
        return
    names = str(FrameReader.open(directory.fields).group.attrs.get(CONSERVED, "")).split(", ")
    for name in names:
        values = series.get(name)
        if isinstance(values, list) and len(values) > 1:
            first, last = _float(values[0]), _float(values[-1])
            change = (last - first) / abs(first) if first else math.nan
            yield name, f"{first:.10g}", f"{last:.10g}", "none" if change == 0 else f"{change:+.2e}"


def _section(directory: RunDirectory, source: Sequence[float] | None) -> tuple[str, str] | None:
    """Return the last frame of the first field on three axes, across y at the source or in the middle."""
    from minga.view.section import section

    reader = FrameReader.open(directory.fields) if directory.fields.exists() else None
    names = [name for name in reader.fields if len(reader.coordinates(name)) == 3] if reader and reader.steps else []
    if reader is None or not names:
        return None
    z, y, x = reader.coordinates(names[0])
    nearest = len(y.values) // 2 if source is None else min(
        range(len(y.values)), key=lambda k: abs(float(y.values[k]) - source[1])
    )  # fmt: skip
    values = reader.frame(names[0])[:, nearest, :]
    command = f"{names[0]} after step {reader.steps[-1]}, y = {float(y.values[nearest]):g} m, depth downwards"
    return command, png_address(section(values, z, x, ""))


def _again(result: Mapping[str, Any], case: Path) -> str:
    """Return the command that repeats a run with the same number of steps, even if a person or the clock ended it."""
    words = ["minga", "run", str(case)]
    if result:
        words += ["-n", str(result.get("ranks", 1))]
    ended = result.get("ended")
    reason = ended.get("reason") if isinstance(ended, Mapping) else None
    if reason in ("asked", "wall time", "time limit"):
        words += ["--set", f"run.steps={result.get('steps', 0)}"]
    if reason == "wall time":
        words += ["--set", "stop.wall_time=1000 d"]
    return shlex.join(words)


def _figures(directory: RunDirectory) -> list[Figure]:
    return figures(FrameReader.open(directory.fields)) if directory.fields.exists() else []


def _facts(result: Mapping[str, Any], table: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield facts of the run in the terms of the case."""
    section = table.get(str(table.get("model", "")), table.get("parameters", {}))
    grid = table.get("grid", {})
    for label, source, key in (
        ("model", table, "model"),
        ("rule", section, "rule"),
        ("initial cells", section, "init"),
        ("seed", section, "seed"),
        ("boundary", grid, "boundary"),
    ):
        if isinstance(source, Mapping) and key in source:
            yield label, _shown(source[key])
    if isinstance(section, Mapping):
        values = section.get("parameters", section if section is table.get("parameters") else {})
        if isinstance(values, Mapping) and values:
            yield "parameters", ", ".join(f"{key} = {_shown(value)}" for key, value in values.items())
    run = table.get("run", {})
    threads = int(result.get("threads", 1))
    yield "workers", ranks_text(int(result.get("ranks", 1))) + (f" of {threads} threads" if threads > 1 else "")
    for key in ("layout", "mapping", "halo_depth", "overlap"):
        if isinstance(run, Mapping) and key in run:
            chosen = plan.get(key, run[key])
            yield key.replace("_", " "), _shown(chosen) + (" (planned)" if chosen != run[key] else "")


def _machine(result: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    about = result.get("environment", {})
    hosts = sorted({str(line["host"]) for line in ranks if "host" in line})
    if hosts:
        yield "hosts", ", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else "")
    if isinstance(about, Mapping):
        for label in ("processor", "logical_cores", "system"):
            if label in about:
                yield label.replace("_", " "), str(about[label])
        versions = about.get("versions", {})
        if isinstance(versions, Mapping) and versions:
            yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())


def _ended(result: Mapping[str, Any], progress: Mapping[str, Any]) -> str:
    """Describe the end of the run."""
    steps = grouped(int(result.get("steps", progress.get("step", 0))))
    if not result:
        reason = str(progress.get("reason") or "it left no result").partition("\n")[0]
        return f"failed after step {steps} or later: {reason}" if progress else "no result"
    ended = result.get("ended")
    reason = ended.get("reason", "steps") if isinstance(ended, Mapping) else "steps"
    if reason == "steps":
        unmet = ended.get("unmet") if isinstance(ended, Mapping) else None
        return f"all {steps} steps done" + (f"; {unmet}" if unmet else "")
    text = _ENDED.get(reason) or ended.get("text", reason)  # type: ignore[union-attr]
    return f"ended after step {steps}: {text}"


def _over(directory: RunDirectory, series: Mapping[str, Any]) -> str:
    """Describe the horizontal axis of the charts: the time with its unit, or the step."""
    if TIMES not in series or not directory.fields.exists():
        return "step"
    unit = FrameReader.open(directory.fields).unit
    return "time" if unit in (None, "1") else f"time ({unit})"


def _charts(series: Mapping[str, Any], units: Mapping[str, str]) -> list[Chart]:
    """Return a chart for each observable with two values or more, over the time if the run has one, but none of it."""
    steps = series.get(TIMES, series.get(_STEP, []))
    charts = []
    for name, values in series.items():
        if (
            name in (_STEP, TIMES)
            or values == steps
            or not isinstance(values, list)
            or len(values) != len(steps)
            or len(steps) < 2
        ):
            continue
        lines = _lines(name, steps, values)
        if lines:
            keys = tuple((line.label, line.colour) for line in lines) if len(lines) > 1 else ()
            ends = value_text(values[0], grouped), value_text(values[-1], grouped)
            charts.append(Chart(name, units.get(name, ""), curves(name, lines), *ends, keys))
    return charts[:_MOST_CHARTS]


def _lines(name: str, steps: Sequence[float], values: Sequence[Any]) -> list[Curve]:
    """Return the curves of an observable: one for a number, one for each entry of a list."""
    if isinstance(values[0], list):
        width = len(values[0])
        if not all(isinstance(entry, list) and len(entry) == width for entry in values):
            return []
        return [
            Curve(str(place), steps, [_float(entry[place]) for entry in values], f"var(--line-{place % 8 + 1})")
            for place in range(min(width, 16))
        ]
    numbers = [_float(value) for value in values]
    return [Curve(name, steps, numbers)] if any(map(math.isfinite, numbers)) else []


def _float(value: object) -> float:
    """Return a number, or NaN if it is not one; JSON uses words for values that are not finite."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_shown(entry)}" for key, entry in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)


def _json(path: Path) -> dict[str, Any]:
    """Return an object from a file; an empty one if there is none, or an incomplete one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
