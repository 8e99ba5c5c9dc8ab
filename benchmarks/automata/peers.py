"""The peers, each on one core: seconds of processor time for so many generations, and the population at the end."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.automata.soup import States, write_rle

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
_AROUND = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each round for `generations` of a grid, and the live cells at the end."""

    seconds: list[float]
    generations: int
    population: int


_LONG = 500
"""Generations from which two rounds say enough: Golly takes ten seconds for them."""

Peer = Callable[[States, int, int, Path], Measured]
"""(cells, generations, rounds, folder for files) -> Measured"""


def golly(rule: str, algorithm: str) -> Peer | None:
    """Golly's command-line program on a torus; None where it is not installed (Debian's package golly).

    Reading the pattern is measured with one generation and taken off.
    """
    program = shutil.which("bgolly")
    if program is None:
        return None

    def run(cells: States, generations: int, rounds: int, folder: Path) -> Measured:
        rows, columns = cells.shape
        pattern = folder / "soup.rle"
        write_rle(pattern, cells, f"{rule}:T{columns},{rows}")

        def once(count: int) -> tuple[float, int]:
            before = os.times()
            command = [program, "-a", algorithm, "-m", str(count), "-i", str(count), str(pattern)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            after = os.times()
            populations = re.findall(r"^\s*([\d,]+):\s*([\d,]+)", done.stdout, re.MULTILINE)
            spent = after.children_user + after.children_system - before.children_user - before.children_system
            return spent, int(populations[-1][1].replace(",", ""))

        reading = min(once(1)[0] for _ in range(2))
        rounds = min(rounds, 2) if generations >= _LONG else rounds
        results = [once(generations + 1) for _ in range(rounds)]
        population = once(generations)[1]
        return Measured([max(1e-9, seconds - reading) for seconds, _ in results], generations, population)

    return run


def script(name: str) -> Peer | None:
    """A program in the peers' own environment (`make bench-automata`); None where that, or the peer, is not there."""
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import cellpylib, cax"], capture_output=True).returncode:
        return None

    def run(cells: States, generations: int, rounds: int, folder: Path) -> Measured:
        np.save(folder / "soup.npy", cells)
        command = [str(PYTHON), str(HERE / "scripts" / name), str(folder / "soup.npy"), str(generations), str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return Measured(found["seconds"], found["generations"], found["population"])

    return run


def numpy_rolls(cells: States, generations: int, rounds: int, folder: Path) -> Measured:
    """Life as eight np.roll of bytes."""
    import time

    seconds = []
    for _ in range(rounds):
        now = cells
        began = time.thread_time()
        for _ in range(generations):
            n = sum((np.roll(now, offsets, (0, 1)) for offsets in _AROUND), np.zeros_like(now))
            now = ((n | now) == 3).astype(np.uint8)
        seconds.append(time.thread_time() - began)
    return Measured(seconds, generations, int(np.count_nonzero(now)))


def versions() -> dict[str, str | None]:
    """What was found of each peer."""
    found: dict[str, str | None] = {
        "bgolly": None,
        "cellpylib": None,
        "cax": None,
        "jax": None,
        "numpy": np.__version__,
    }
    if program := shutil.which("bgolly"):
        text = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
        match = re.search(r"bgolly\s+([\d.]+)", text.stdout + text.stderr)
        found["bgolly"] = match[1] if match else "installed"
    if PYTHON.exists():
        words = "import importlib.metadata as m; print(*(m.version(n) for n in ('cellpylib', 'cax', 'jax')))"
        done = subprocess.run([PYTHON, "-c", words], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found |= dict(zip(("cellpylib", "cax", "jax"), done.stdout.split(), strict=True))
    return found
