"""Units of what notes say before a run, and quantities with prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["SCALED", "SI", "Notes", "prefixed"]

Notes = Iterator[tuple[str, str]]

SI: Final = {
    "concentration": " mol/m3", "diffusivity": " m2/s", "length": " m", "time": " s", "current": " A/m2",
    "potential": " V", "velocity": " m/s", "conductivity": " S/m", "capacity": " F/m2",
}  # fmt: skip
SCALED: Final = dict.fromkeys(SI, "")
PREFIXES: Final[Sequence[tuple[float, str]]] = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p"))


def prefixed(value: float, unit: str) -> str:
    """Format a quantity with the prefix that leaves one to three digits before the point; without if it has no unit."""
    if not unit or not value:
        return f"{value:.3g}{unit}"
    factor, prefix = next((p for p in PREFIXES if abs(value) >= p[0]), PREFIXES[-1])
    return f"{value / factor:.3g} {prefix}{unit.strip()}"
