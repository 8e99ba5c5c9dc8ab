"""Quantities of a device as people write them, ``"2.5 nm"``, ``"1 mW/cm2"``; plain numbers have a unit each."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

__all__ = ["Kind", "quantity"]

Kind = Literal["length", "wavelength", "power", "current"]

# The factors divide or multiply so that "2.5 nm" is the very number that 2.5e-7 cm is.
_UNITS: Final[dict[Kind, dict[str, float]]] = {
    "length": {"cm": 1.0, "mm": 1e-1, "um": 1e-4, "nm": 1e-7, "A": 1e-8},
    "wavelength": {"nm": 1.0, "um": 1e3, "A": 1e-1},
    "power": {"W/cm2": 1.0, "mW/cm2": 1e-3, "uW/cm2": 1e-6, "nW/cm2": 1e-9, "W/m2": 1e-4},
    "current": {"A/cm2": 1.0, "mA/cm2": 1e-3, "uA/cm2": 1e-6, "nA/cm2": 1e-9, "A/m2": 1e-4},
}
_DEFAULT: Final[dict[Kind, str]] = {"length": "um", "wavelength": "nm", "power": "W/cm2", "current": "A/cm2"}
_EXAMPLES: Final[dict[Kind, str]] = {
    "length": 'micrometres, or a length such as "2.5 nm"',
    "wavelength": 'nanometres, or a wavelength such as "1.55 um"',
    "power": 'W/cm2, or a power such as "1 mW/cm2"',
    "current": 'A/cm2, or a current density such as "-10 mA/cm2"',
}
_WRITTEN: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z/0-9]*)\s*")


def quantity(value: object, kind: Kind) -> float:
    """A quantity in cm, nm, W/cm2 or A/cm2. Raises ValueError whose message says what was expected."""
    number = _number(value, kind)
    if number is None or not math.isfinite(number):
        raise ValueError(_EXAMPLES[kind])
    return number


def _number(value: object, kind: Kind) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _in(float(value), _UNITS[kind][_DEFAULT[kind]])
    if not isinstance(value, str):
        return None
    found = _WRITTEN.fullmatch(value.replace("µ", "u").replace("μ", "u").replace("²", "2").replace("Å", "A"))
    if found is None:
        return None
    factor = _UNITS[kind].get(found[2])
    return None if factor is None else _in(float(found[1]), factor)


def _in(number: float, factor: float) -> float:
    return number / round(1 / factor) if factor < 1 else number * factor
