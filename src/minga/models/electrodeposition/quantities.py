"""Quantities of a cell as people write them, ``"500 um"``, ``"0.1 M"``, ``"5 mA/cm2"``; numbers are in SI."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

__all__ = ["Kind", "quantity"]

Kind = Literal["length", "concentration", "potential", "current", "time"]

_UNITS: Final[dict[str, dict[str, float]]] = {
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "nm": 1e-9},
    "concentration": {
        "mol/m3": 1.0, "mM": 1.0, "mmol/l": 1.0, "M": 1e3, "mol/l": 1e3, "mmol/L": 1.0, "mol/L": 1e3,
    },
    "potential": {"V": 1.0, "mV": 1e-3},
    "current": {"A/m2": 1.0, "mA/cm2": 10.0, "A/cm2": 1e4, "uA/cm2": 1e-2},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
}  # fmt: skip
_EXAMPLES: Final = {
    "length": 'metres, or a length such as "500 um"',
    "concentration": 'mol/m3, or a concentration such as "0.1 M"',
    "potential": 'volts, or a voltage such as "50 mV"',
    "current": 'A/m2, or a current density such as "5 mA/cm2"',
    "time": 'seconds, or a time such as "20 ms"',
}
_WRITTEN: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z/0-9]*)\s*")


def quantity(value: object, kind: Kind) -> float:
    """A quantity in m, mol/m3, V, A/m2 or s. Raises ValueError whose message says what was expected."""
    number = _number(value, kind)
    if number is None or not math.isfinite(number):
        raise ValueError(_EXAMPLES[kind])
    return number


def _number(value: object, kind: Kind) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    found = _WRITTEN.fullmatch(value.replace("µ", "u").replace("μ", "u").replace("³", "3").replace("²", "2"))
    factor = _UNITS[kind].get(found[2]) if found else None
    if found is None or factor is None:
        return None
    # By division where that is exact: "500 um" is to be the number that 500e-6 is.
    return float(found[1]) / round(1 / factor) if factor < 1 else float(found[1]) * factor
