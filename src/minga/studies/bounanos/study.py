"""Experiments of Bounanos, Fleury, Nicolas and Vickers as tables and figures: ``minga bench bounanos``.

Their cluster is emulated; iteration counts are those of real runs on a coarser mesh. The paper's statements about its
figures are checked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from minga.errors import CaseError
from minga.studies import report
from minga.studies.bounanos.experiments import EXPERIMENTS, NODES, Bench, Sizes, sizes
from minga.studies.report import failed

__all__ = ["NAMES", "failed", "measure", "page", "read_lab_runs", "sizes", "tables"]

Say = Callable[[str], None]
Result = dict[str, Any]

MESSAGES: Final = "E1"
"""Experiment that needs MPI, and a process of its own for it."""


def _order(name: str) -> tuple[bool, int]:
    """Return a sort key: E0 to E12, then the others."""
    number = name[1:]
    return not number.isdigit(), int(number) if number.isdigit() else 0


_TITLES: Final = {MESSAGES: "Fig. 11. Sending a boundary", **{name: title for name, (title, _) in EXPERIMENTS.items()}}
TITLES: Final[Mapping[str, str]] = {name: _TITLES[name] for name in sorted(_TITLES, key=_order)}
NAMES: Final = tuple(TITLES)

MINUTES: Final = ("E10",)
AXES: Final[Mapping[str, tuple[str, str]]] = {
    "E2": ("progress of the run", "time of a sub-cycle, relative to its start"),
    "E4": ("segments", "migrations per node"),
    "E6": ("segments", "iterations"),
    "E10": ("segments", "minutes"),
}
"""Labels of the figures' axes, unless they are segments and speed-up."""


def measure(how: Sizes, names: Sequence[str], say: Say, pictures: Path | None) -> Result:
    """Run experiments and return their results as data; figures are written to a directory."""
    start = time.perf_counter()
    bench = Bench(how)
    found: Result = {"sizes": asdict(how), "emulated": True, "experiments": {}}
    for name in names:
        began = time.perf_counter()
        result = messages() if name == MESSAGES else EXPERIMENTS[name][1](bench)
        result = {"title": TITLES[name], **result, "seconds": round(time.perf_counter() - began, 1)}
        if pictures is not None and "curves" in result:
            result["picture"] = str(draw(name, result, pictures))
        found["experiments"][name] = result
        held = sum(map(bool, result["shape"].values()))
        say(f"{name} {TITLES[name]}: {held} of {len(result['shape'])} statements hold")
    return found | {"seconds": round(time.perf_counter() - start, 1)}


def messages() -> Result:
    """Run E1 in a process of its own, since MPI can start only once per process."""
    command = [sys.executable, "-m", "minga.studies.bounanos.boundaries"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"left out": f"MPI does not start here: {reason}", "shape": {}}
    times = json.loads(done.stdout.strip().splitlines()[-1])
    return {
        "microseconds": times,
        "shape": {"pickling takes longest": max(times, key=times.__getitem__) == "pickled"},
    }


def draw(name: str, result: Mapping[str, Any], pictures: Path) -> Path:
    """Draw the figure of an experiment."""
    from minga.view.curves import draw_curves

    xlabel, ylabel = AXES.get(name, ("segments", "speed-up"))
    marks = {f"{NODES} nodes": float(NODES)} if xlabel == "segments" and name != "E6" else None
    return draw_curves(
        result["x"], result["curves"], pictures / f"bounanos-{name}.png",
        title=f"{name}. {result['title']}", xlabel=xlabel, ylabel=ylabel, logarithmic=name in (*MINUTES, "E2"),
        marks=marks,
    )  # fmt: skip


def read_lab_runs(path: Path) -> Result:
    """Return runs stored by ``python -m benchmarks.bounanos``: by organisation, real runs and emulated times."""
    try:
        results: Result = json.loads(path.read_text())["results"]
        for found in results.values():
            for run in found["runs"]:
                _lab_line(run)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CaseError(
            f"{path} does not hold runs in a lab: {type(error).__name__} {error}",
            remedy="give a file written by `python -m benchmarks.bounanos --out FILE`",
        ) from None
    return results


def _lab_line(run: Mapping[str, Any]) -> str:
    numbers = f"{run['seconds']:9.3g}{run['emulated']:10.3g}{run['efficiency']:12.2f}"
    return f"  {run['nodes']:5}  {run['cut']:10}{numbers}"


def _lab(results: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, found in results.items():
        lines += [f"In a lab, {name}", "  nodes  cut         seconds  emulated  efficiency"]
        lines += [_lab_line(run) for run in found["runs"]]
    return lines


def tables(found: Mapping[str, Any]) -> str:
    """Return all results as text."""
    lines = _lab(found.get("lab", {}))
    return "\n".join([report.tables(found), *([""] if lines else []), *lines])


TITLE: Final = "Drift-diffusion on a cluster, emulated"
PREFACE: Final = (
    "Experiments of Bounanos, Fleury, Nicolas and Vickers. Times are virtual: they follow from what rows cost and from "
    "assumed overheads of systems, not from that cluster."
)


def page(found: Mapping[str, Any]) -> str:
    """Return all results as one self-contained HTML page."""
    more = {"Real runs": _lab(found["lab"])} if "lab" in found else {}
    return report.page(found, TITLE, PREFACE, more)
