"""Small-signal admittance beside DEVSIM's on the same nodes: digits, and seconds of processor time a frequency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.photodiode.digits import equal_digits
from benchmarks.photodiode.ours import run, silicon
from benchmarks.photodiode.peer import Asked, spectra
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.problem import Problem

VOLTS = (0.0, -1.0, 0.5, 0.7)
SEEN = (1e2, 1e6, 1e9)
"""Frequencies that are compared, Hz."""
TIMES = 20
"""Rounds of these frequencies that are timed."""
EXTENDED = Asked(VOLTS, step=0.1)
DOUBLE = replace(EXTENDED, extended=False, relative=1e-6)
"""DEVSIM's densities do not settle to 1e-10 in double precision."""


def measure_spectra(quick: bool, python: Path) -> dict[str, Any]:
    """Both programs on the silicon diode, each voltage reached from the one before."""
    device, volts = silicon(), VOLTS[:1] if quick else VOLTS
    frequencies = SEEN * (1 if quick else TIMES)
    # Each voltage twice: at the second time only the oscillations are to be solved for.
    bias = tuple(v for v in volts for _ in range(2))
    model = photodiode(device, Problem(bias, ionisation=False, mode="ac", frequencies=frequencies))
    own, seconds = run(model, len(bias))
    found: dict[str, Any] = {"minga": median(seconds[1::2]) / len(frequencies)}
    rows = []
    for name, asked in (("extended", EXTENDED), ("double", DOUBLE)):
        other = spectra(device, replace(asked, volts=volts), frequencies, python)
        found[name] = median(item["seconds"] for row in other for item in row["spectrum"])
        if name == "extended":
            for ours, theirs in zip(own[1::2], other, strict=True):
                rows += [
                    {
                        "V": theirs["V"], "f": f, "G": ours["G"][k], "G_devsim": theirs["spectrum"][k]["G"],
                        "C": ours["C"][k], "digits_C": equal_digits(ours["C"][k], theirs["spectrum"][k]["C"]),
                    }
                    for k, f in enumerate(SEEN)
                ]  # fmt: skip
    return {"rows": rows, "seconds": found}
