"""Seconds for the current-voltage curve of the avalanche photodiode, beside DEVSIM on the same nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.photodiode.digits import compared
from benchmarks.photodiode.ours import apd, solve
from benchmarks.photodiode.peer import Asked, curves
from minga.models.photodiode.solver.problem import CURVES, Problem

VOLTS = tuple(0.0 - 2.0 * k for k in range(31))
"""0 to -60 V."""
RUNS = 3
"""Of minga, of which the fastest counts; DEVSIM takes too long for more than one."""
BUDGET = 240.0
"""Seconds of processor time after which DEVSIM begins no further voltage."""
EXTENDED = Asked(VOLTS, CURVES, True, step=2.0, budget=BUDGET)
DOUBLE = replace(EXTENDED, extended=False)


def measure_speed(quick: bool, python: Path | None) -> dict[str, Any]:
    """Both programs by size; None: only minga. `whole` is the example `apd` as it comes, both curves."""
    volts = VOLTS[:2] if quick else VOLTS
    rows = []
    for coarsen in (20,) if quick else (5, 1):
        device = apd(coarsen)
        own = solve(device, Problem(volts, CURVES), 1 if quick else RUNS)
        row: dict[str, Any] = {"rows": device.grid.shape[0], "minga": _seen(own)}
        kinds = [("extended", EXTENDED), *([("double", DOUBLE)] if coarsen > 1 and not quick else [])]
        for name, asked in kinds if python else []:
            other = curves(device, replace(asked, volts=volts), python)["curves"]
            row[name] = _beside(own, other, volts)
        rows.append(row)
    example = apd(20) if quick else apd(1, None)
    own = solve(example, Problem(volts, CURVES), 1 if quick else RUNS)
    return {"volts": volts, "rows": rows, "whole": {"rows": example.grid.shape[0]} | _seen(own)}


def _seen(own: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of minga's run."""
    iterations = sum(int(row[name]) for row in own["rows"] for name in ("iterations", "iterations_lit"))
    return {"seconds": own["seconds"], "iterations": iterations}


def _beside(own: Mapping[str, Any], other: Mapping[str, Any], volts: Sequence[float]) -> dict[str, Any]:
    """DEVSIM's seconds, how many voltages it reached, and the fewest digits that agree where there is a current: at 0 V
    in the dark there is none."""
    pairs = [
        pair
        for curve in CURVES
        for pair in compared(own["rows"], other[curve]["rows"], curve)
        if curve == "lit" or pair["V"] != 0.0
    ]
    seconds = sum(other[curve]["seconds"] for curve in CURVES)
    reached = sum(len(other[curve]["rows"]) for curve in CURVES)
    found = {
        "seconds": seconds,
        "iterations": sum(other[curve]["iterations"] for curve in CURVES),
        "reached": reached,
        "asked": len(volts) * len(CURVES),
        "times_as_fast": round(seconds / own["seconds"], 1),
        "uneven": max(
            (abs(row["J"] / row["J_cathode"] - 1.0) for curve in CURVES for row in other[curve]["rows"] if row["V"]),
            default=0.0,
        ),
    }
    return found | ({"fewest_digits": min(pair["digits"] for pair in pairs)} if pairs else {})
