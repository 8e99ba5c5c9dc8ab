"""Measure growth to the anode: this version beside an older one, with the bound of a pass.

python -m benchmarks.cell.growth                    this version alone
python -m benchmarks.cell.growth --older DIRECTORY  beside the sources in DIRECTORY, one run after the other
python -m benchmarks.cell.growth --side 24          24 x 24 x 24 cells; 48 by default, which takes some ten minutes
python -m benchmarks.cell.growth --axes 2 --side 400   a square
python -m benchmarks.cell.growth --end "1 s"        to a time, in place of the anode
python -m benchmarks.cell.growth --store            keeps what is found in benchmarks/results/growth, in the file of
                                                    this family of processors, beside runs of other sizes

A pass is bound by memory: it reads and writes each array of its kernels at least once. `bytes` counts these for two
ions, from the kernels' arguments; at the rate of a plain copy on this machine that is `bound`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import RESULTS, family
from benchmarks.machine import measured
from benchmarks.timing import Effort


def numbers_of(axes: int) -> tuple[int, int, float]:
    """Return the numbers of 8 bytes a cell in a pass without iterations, and in one for an ion and for the potential.

    A pass has coefficients of faces (7 an axis), currents (13 an axis), the residual, the right-hand side of the second
    system, the beginning and the end of both ions' systems, and secants (25). An iteration for the potential has a
    first sweep, three others and a residual, on all grids, and the vectors of conjugate gradients; one for an ion has
    two products with the matrix, and the vectors of BiCGStab.
    """
    a_pass = 20 * axes + (7 + 3 * axes) + (2 + 2 * axes) + 2 * (15 + 6 * axes) + 25
    cycle = (3 + 4 * (4 + axes)) * 2**axes / (2**axes - 1) + 16 + axes
    return a_pass, 2 * (2 + 2 * axes) + 14, cycle


def main(arguments: list[str]) -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="Measure the growth of a deposit.")
    parser.add_argument("--older", type=Path, help="sources of an older version")
    parser.add_argument("--side", type=int, default=48, help="cells along each axis")
    parser.add_argument("--axes", type=int, default=3, choices=(2, 3), help="a square, or a cube")
    parser.add_argument("--end", default="20 s", help="end of the run, if the anode is not reached before")
    parser.add_argument("--store", action="store_true", help="keep what is found, with the machine and its load")
    asked = parser.parse_args(arguments)
    if asked.store:
        store(RESULTS / "growth" / f"{family()}.json", asked, measured(lambda: compare(asked), False, Effort()))
    else:
        compare(asked)
    return 0


def store(path: Path, asked: argparse.Namespace, found: dict[str, Any]) -> None:
    """Keep what was found under the number of cells and the end of the run, beside what was found for others."""
    name = f"{' x '.join([str(asked.side)] * asked.axes)}, {asked.end}"
    before = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(before | {name: found}, indent=1) + "\n")


def compare(asked: argparse.Namespace) -> dict[str, Any]:
    """Run each version, print one line of JSON for each, and return what was found by the name of the version."""
    rate = copy_rate()
    found: dict[str, Any] = {}
    for name, root in (("now", Path(__file__).parents[2]), ("older", asked.older)):
        if root is not None:
            found[name] = measure(root, [asked.side] * asked.axes, asked.end, rate)
            sys.stdout.write(json.dumps({"version": name, **found[name]}) + "\n")
            sys.stdout.flush()
    if "older" in found:
        # Runs that end at the anode may end at different times.
        ratio = (found["older"]["seconds"] / found["older"]["time"]) / (found["now"]["seconds"] / found["now"]["time"])
        found["times faster"] = round(ratio, 2)
        sys.stdout.write(json.dumps({"times faster": found["times faster"]}) + "\n")
    return found


def measure(root: Path, shape: list[int], end: str, rate: float) -> dict[str, Any]:
    """Run the example `growth` on a square or cube of 1 mm with the sources in a folder, on one rank and thread."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [
            f"grid.shape={shape}", "electrodeposition.width=1 mm", f"electrodeposition.time.end={end}",
            f"electrodeposition.time.every={end}",
        ]  # fmt: skip
        if len(shape) == 3:
            settings += ["electrodeposition.gap=1 mm", "electrodeposition.growth.porosity=0.998"]
        words = [sys.executable, "-m", "minga", "run", "growth", "-n", "1", "--threads", "1", "--json"]
        words += ["--out", f"{folder}/run", *(part for setting in settings for part in ("--set", setting))]
        before = time.perf_counter()
        done = subprocess.run(
            words, env=os.environ | {"PYTHONPATH": str(root / "src")}, cwd=folder, check=True, capture_output=True
        )
        wall = time.perf_counter() - before
    result = json.loads(done.stdout)
    seen = result["observables"]
    attempts = seen["steps_taken"] + seen["steps_rejected"]
    a_pass, iteration, cycle = numbers_of(len(shape))
    numbers = seen["passes"] * a_pass + seen["potential_iterations"] * cycle + seen["species_iterations"] * iteration
    moved = 8.0 * math.prod(shape) * numbers
    return {
        "cells": math.prod(shape), "ended": result["ended"]["reason"], "seconds": round(result["seconds"], 2),
        "wall": round(wall, 2), "time": seen["time"],
        "deposited": seen["deposit_cells"], "attempts": attempts, "passes": seen["passes"] / attempts,
        "potential": seen["potential_iterations"] / attempts, "species": seen["species_iterations"] / attempts,
        "bytes": moved, "bound": round(moved / rate, 2), "times bound": round(result["seconds"] * rate / moved, 2),
    }  # fmt: skip


def copy_rate() -> float:
    """Return the bytes that a plain copy of a large array reads and writes in a second; the best of ten."""
    source = np.ones(1 << 23)
    target = np.zeros_like(source)
    best = 0.0
    for _ in range(10):
        before = time.perf_counter()
        np.copyto(target, source)
        best = max(best, 2.0 * source.nbytes / (time.perf_counter() - before))
    return best


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
