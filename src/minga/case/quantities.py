"""Quantities in cases: text such as ``"500 um"``, ``"0.1 M"`` or ``"5 mA/cm2"``, or numbers in a default unit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

__all__ = ["LENGTH", "POTENTIAL", "TIME", "Metres", "Quantity", "Seconds", "Volts"]

_WRITTEN: Final = re.compile(
    r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*((?:[A-Za-z/0-9]+(?: [A-Za-z/0-9]+)*)?)\s*"
)
_PLAIN: Final = str.maketrans({"µ": "u", "μ": "u", "³": "3", "²": "2", "Å": "A"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of quantity, which can also annotate a number: ``Annotated[float, Quantity(...), Field(gt=0)]``.

    Parameters
    ----------
    expected
        Description of valid values, for messages.
    units
        Factor of each unit.
    plain
        Unit of numbers without a unit.
    """

    expected: str
    units: Mapping[str, float] = field(hash=False)
    plain: str

    def read(self, value: object) -> float:
        """Convert a value to a number in the unit whose factor is 1.

        Parameters
        ----------
        value
            A number, or a number with a unit as text, such as ``"12 um"``.

        Returns
        -------
        float
            The number.

        Raises
        ------
        ValueError
            If the value is neither; the message is `expected`.
        """
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

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Make pydantic convert the quantity before it checks the number."""
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.read, handler(source))


def _times(number: float, factor: float) -> float:
    # Factors below 1 divide by their inverse, which is exact: "500 um" must be the same number as 500e-6.
    return number / round(1 / factor) if factor < 1 else number * factor


LENGTH: Final = Quantity(
    'metres, or a length such as "500 um"',
    {"km": 1e3, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "nm": 1e-9},
    plain="m",
)
TIME: Final = Quantity(
    'seconds, or a time such as "20 ms"',
    {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    plain="s",
)
POTENTIAL: Final = Quantity('volts, or a voltage such as "50 mV"', {"V": 1.0, "mV": 1e-3}, plain="V")

Metres = Annotated[float, LENGTH]
"""A length in metres; ``"10 um"`` and the like are read."""
Seconds = Annotated[float, TIME]
"""A time in seconds; ``"40 s"``, ``"2 h"`` and the like are read."""
Volts = Annotated[float, POTENTIAL]
"""A voltage in volts; ``"50 mV"`` and the like are read."""
