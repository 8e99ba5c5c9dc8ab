"""Band edges of III-V alloys after Vurgaftman, Meyer and Ram-Mohan (2001).

The gaps of the compounds follow Varshni's formula, Eg(T) = Eg(0) - alpha T^2/(T + beta). At each temperature they are
interpolated linearly in the composition and lowered by x (1 - x) times a bowing parameter. The gap of an alloy is the
smaller of that of the direct valley and that of the X valley.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["alloy_gap", "alloy_valence", "alloys", "compound_gap", "compound_valence", "direct_up_to", "valley_gap"]


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def alloys() -> tuple[str, ...]:
    """Return the names of the alloys."""
    return tuple(_tables()["alloys"])


def compound_gap(name: str, temperature: float, valley: str = "gamma") -> float:
    """Return the gap of a compound in eV; `valley`: "gamma" or "x"."""
    zero, alpha, beta = _tables()["compounds"][name][valley]
    return float(zero - alpha * temperature * temperature / (temperature + beta))


def compound_valence(name: str) -> float:
    """Return the valence band edge of a compound in eV, on a scale that all compounds and alloys share."""
    return float(_tables()["compounds"][name]["vbo"])


def alloy_gap(name: str, x: float, temperature: float) -> float:
    """Return the gap of an alloy in eV: the smaller one of the direct and the X valley."""
    return min(valley_gap(name, x, temperature, valley) for valley in ("gamma", "x"))


def valley_gap(name: str, x: float, temperature: float, valley: str) -> float:
    """Return the gap between an alloy's valence band and a valley, "gamma" or "x", in eV."""
    alloy = _tables()["alloys"][name]
    constant, slope = alloy["gamma"] if valley == "gamma" else (alloy["x"], 0.0)
    last, first = (compound_gap(compound, temperature, valley) for compound in alloy["of"])
    return _bowed(last, first, constant + slope * x, x)


def direct_up_to(name: str, temperature: float) -> float:
    """Return the largest x for which the gap of an alloy is direct; 1 if it always is."""
    low, high = 0.0, 1.0
    for _ in range(50):
        x = 0.5 * (low + high)
        direct = valley_gap(name, x, temperature, "gamma") <= valley_gap(name, x, temperature, "x")
        low, high = (x, high) if direct else (low, x)
    return high


def alloy_valence(name: str, x: float) -> float:
    """Return the valence band edge of an alloy in eV, on the same scale as that of compounds."""
    alloy = _tables()["alloys"][name]
    last, first = alloy["of"]
    return _bowed(compound_valence(last), compound_valence(first), alloy["vbo"], x)


def _bowed(last: float, first: float, bowing: float, x: float) -> float:
    return x * last + (1 - x) * first - x * (1 - x) * bowing
