"""Quantities as people write them in cases: ``"500 um"``, ``"0.1 M"``, ``"5 mA/cm2"``; plain numbers have a unit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Quantity"]

_WRITTEN: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z/0-9]*)\s*")
_PLAIN: Final = str.maketrans({"µ": "u", "μ": "u", "³": "3", "²": "2", "Å": "A"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of quantity.

    expected  what is to be written, in words, for those who wrote something else
    units     by what numbers in these units are multiplied
    plain     the unit of numbers without one
    """

    expected: str
    units: Mapping[str, float]
    plain: str

    def read(self, value: object) -> float:
        """The number that is meant. Raises ValueError whose message says what was expected."""
        number = self._number(value)
        if number is None or not math.isfinite(number):
            raise ValueError(self.expected)
        return number

    def _number(self, value: object) -> float | None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _times(float(value), self.units[self.plain])
        found = _WRITTEN.fullmatch(value.translate(_PLAIN)) if isinstance(value, str) else None
        factor = self.units.get(found[2]) if found else None
        return None if found is None or factor is None else _times(float(found[1]), factor)


def _times(number: float, factor: float) -> float:
    # By division where that is exact: "500 um" is to be the number that 500e-6 is.
    return number / round(1 / factor) if factor < 1 else number * factor
