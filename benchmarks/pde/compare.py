"""One problem solved by minga and by a peer in turns, each in a process of its own on one core."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.machine import ROOT, SOURCES
from benchmarks.pde.problems import EXPLICIT, GALLERY, Problem
from benchmarks.pde.protocol import Solver

SCRIPTS: Final = Path(__file__).parent / "scripts"
PEERS: Final = ROOT / ".venv-pde" / "bin" / "python"
_LIMITS: Final = {"py-pde": 3.0, "Devito": 1.0}
_FIRST: Final = 5.0
"""Times as fast, warm, and times as soon, until the first result, that minga should be beside py-pde."""
_STARTS: Final = 3
"""Starts whose first results are timed."""


def gallery(quick: bool) -> dict[str, Any]:
    """Compare with py-pde on equations of its gallery."""
    return compared("py-pde", "pypde.py", GALLERY, quick)


def explicit(quick: bool) -> dict[str, Any]:
    """Compare with Devito on explicit schemes."""
    return compared("Devito", "devito_text.py", EXPLICIT, quick)


def compared(
    peer: str, script: str, problems: Mapping[str, Problem], quick: bool, python: Path = PEERS
) -> dict[str, Any]:  # fmt: skip
    """Return the peer's version and one row for each problem; no rows where the peer is not installed."""
    version = _version(peer, python)
    names = list(problems)[:1] if quick else list(problems)
    rows = [_row(peer, script, problems[name], quick, python) for name in names] if version else []
    return {"peer": peer, "version": version, "rows": rows}


def _version(peer: str, python: Path) -> str | None:
    name = {"py-pde": "py-pde", "Devito": "devito"}[peer]
    words = f"import importlib.metadata as m; print(m.version({name!r}))"
    if not python.exists():
        return None
    done = subprocess.run([python, "-c", words], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _row(peer: str, script: str, problem: Problem, quick: bool, python: Path) -> dict[str, Any]:
    print(f"  {problem.title} ...", file=sys.stderr, flush=True)
    starts = []
    for _ in range(0 if quick else _STARTS - 1):
        with _both(script, problem, python) as (ours, theirs):
            starts.append((ours.first_result, theirs.first_result))
    with _both(script, problem, python) as (ours, theirs):
        steps = 3 if quick else _steps(ours, theirs)
        seconds = [(ours.advance(steps) / steps, theirs.advance(steps) / steps) for _ in range(2 if quick else 7)]
        starts.append((ours.first_result, theirs.first_result))
        difference = _difference(ours.finish(), theirs.finish())
    here, there = map(statistics.median, zip(*seconds, strict=True))
    first, first_there = map(statistics.median, zip(*starts, strict=True))
    ratios = [b / a for a, b in seconds]
    row = {
        "title": problem.title,
        "cells": list(problem.shape),
        "integrator": problem.integrator,
        "order": problem.order,
        "steps": steps,
        "seconds_a_step": {"minga": here, peer: there},
        "times_as_fast": {"median": statistics.median(ratios), "low": min(ratios), "high": max(ratios)},
        "required": _LIMITS[peer],
        "first_result_seconds": {"minga": first, peer: first_there},
        "times_as_soon": statistics.median(b / a for a, b in starts),
        "largest_difference": difference,
    }
    return row | ({"required_soon": _FIRST} if peer == "py-pde" else {})


@contextmanager
def _both(script: str, problem: Problem, python: Path) -> Iterator[tuple[Solver, Solver]]:
    """Start both programs; minga's with an empty cache of kernels, as after its installation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = {"PYTHONPATH": SOURCES, "MINGA_CACHE": str(folder / "cache")}
        with (
            Solver([sys.executable, str(SCRIPTS / "minga_text.py")], problem, folder / "minga.npz", own) as ours,
            Solver([str(python), str(SCRIPTS / script)], problem, folder / "peer.npz") as theirs,
        ):
            yield ours, theirs


def _steps(ours: Solver, theirs: Solver) -> int:
    """Return the steps that take minga about a tenth of a second; both programs take the same ones meanwhile."""
    steps = 1
    while True:
        seconds = ours.advance(steps)
        theirs.advance(steps)
        if seconds >= 0.05:
            return steps
        steps = max(steps + 1, min(10 * steps, round(0.1 * steps / max(seconds, 1e-6))))


def _difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float:
    """Return the largest difference of the first results, relative to their largest values."""
    return max(float(np.abs(ours[name] - theirs[name]).max() / np.abs(theirs[name]).max()) for name in ours)
