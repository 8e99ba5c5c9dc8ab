"""Parsing of a cell's quantities, such as ``"500 um"``, ``"0.1 M"`` and ``"5 mA/cm2"``; plain numbers are in SI."""

from __future__ import annotations

from typing import Final, Literal

from minga.case.quantities import LENGTH, POTENTIAL, TIME, Quantity

__all__ = ["Kind", "quantity"]

Kind = Literal[
    "length", "concentration", "potential", "current", "charge", "capacity", "resistance", "frequency", "time"
]

_CONCENTRATIONS: Final = {
    "mol/m3": 1.0, "mM": 1.0, "mmol/l": 1.0, "M": 1e3, "mol/l": 1e3, "mmol/L": 1.0, "mol/L": 1e3,
}  # fmt: skip
_KINDS: Final[dict[Kind, Quantity]] = {
    "length": LENGTH,
    "concentration": Quantity('mol/m3, or a concentration such as "0.1 M"', _CONCENTRATIONS, plain="mol/m3"),
    "potential": POTENTIAL,
    "current": Quantity(
        'A/m2, or a current density such as "5 mA/cm2"',
        {"A/m2": 1.0, "mA/cm2": 10.0, "A/dm2": 100.0, "A/cm2": 1e4, "uA/cm2": 1e-2},
        plain="A/m2",
    ),
    "charge": Quantity(
        'C/m2, or a charge density such as "10 C/cm2"',
        {"C/m2": 1.0, "C/cm2": 1e4, "mC/cm2": 10.0, "mAh/cm2": 3.6e4, "Ah/dm2": 3.6e5, "Ah/m2": 3600.0},
        plain="C/m2",
    ),
    "capacity": Quantity(
        'F/m2, or a capacity such as "20 uF/cm2"', {"F/m2": 1.0, "uF/cm2": 1e-2, "mF/cm2": 10.0}, plain="F/m2"
    ),
    "resistance": Quantity(
        'ohm m2, or a resistance such as "1 ohm cm2"',
        {"ohm m2": 1.0, "ohm cm2": 1e-4, "mohm cm2": 1e-7},
        plain="ohm m2",
    ),
    "frequency": Quantity(
        'hertz, or a frequency such as "10 kHz"', {"Hz": 1.0, "mHz": 1e-3, "kHz": 1e3, "MHz": 1e6}, plain="Hz"
    ),
    "time": TIME,
}


def quantity(value: object, kind: Kind) -> float:
    """Return a quantity in m, mol/m3, V, A/m2, C/m2, F/m2, ohm m2, Hz or s.

    Raises
    ------
    ValueError
        If the value cannot be read; the message says what was expected.
    """
    return _KINDS[kind].read(value)
