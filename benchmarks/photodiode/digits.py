"""How many digits of the currents agree with DEVSIM's in extended precision, on the same nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.photodiode.ours import apd, silicon, solve
from benchmarks.photodiode.peer import Asked, curves
from minga.models.photodiode.solver.problem import CURVES, Curve, Problem
from minga.models.photodiode.structure.device import Device

ALL = 16
"""Digits of a double."""


@dataclass(frozen=True, slots=True)
class Case:
    """A device, what is solved for it, and the longest step of DEVSIM's ramp in V."""

    name: str
    device: Device
    volts: tuple[float, ...]
    curves: tuple[Curve, ...] = ("dark",)
    ionisation: bool = False
    step: float = 1.0


def cases(quick: bool) -> list[Case]:
    """Each voltage is reached from the one before."""
    if quick:
        return [Case("SI-1", silicon(), (0.1,), step=0.1)]
    diode = apd(5)
    return [
        Case("SI-1, forward", silicon(), (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8), step=0.1),
        Case("SI-1, reverse", silicon(), (-0.1, -1.0, -2.0, -10.0)),
        Case("APD, 364 rows", diode, (-1.0, -10.0, -20.0, -45.0, -50.0), CURVES),
        Case("APD, 364 rows, ionisation", diode, (-45.0, -50.0, -60.0), CURVES, ionisation=True),
    ]


def measure_digits(quick: bool, python: Path) -> dict[str, Any]:
    """Currents of both, and digits that agree."""
    rows: list[dict[str, Any]] = []
    for case in cases(quick):
        asked = Asked(case.volts, case.curves, case.ionisation, step=case.step)
        other = curves(case.device, asked, python)["curves"]
        own = solve(case.device, Problem(case.volts, case.curves, case.ionisation))["rows"]
        for curve in case.curves:
            rows += [{"device": case.name, "curve": curve} | row for row in compared(own, other[curve]["rows"], curve)]
    return {"rows": rows, "fewest": min(row["digits"] for row in rows)}


def compared(own: Sequence[dict[str, float]], other: Sequence[dict[str, float]], curve: str) -> list[dict[str, Any]]:
    """Currents of a curve side by side, at the voltages that both reached."""
    name = "J" if curve == "dark" else "J_lit"
    found = []
    for ours, theirs in zip(own, other, strict=False):
        assert abs(ours["V"] - theirs["V"]) <= 1e-12 * abs(ours["V"]), (ours["V"], theirs["V"])
        minga, devsim = ours[name], theirs["J"]
        found.append({"V": theirs["V"], "minga": minga, "devsim": devsim, "digits": equal_digits(minga, devsim)})
    return found


def equal_digits(one: float, other: float) -> int:
    """Of two numbers, from the first one that is not 0: they differ by half a unit of the last of these at most."""
    size = max(abs(one), abs(other))
    if one == other or size == 0.0:
        return ALL
    lead = math.floor(math.log10(size))
    return max(0, min(ALL, 1 + lead - math.ceil(math.log10(2.0 * abs(one - other)))))
