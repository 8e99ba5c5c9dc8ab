"""Quantities of a device in user notation, e.g. ``"2.5 nm"`` or ``"1 mW/cm2"``; plain numbers have a default unit."""

from __future__ import annotations

from typing import Final, Literal

from minga.case.quantities import Quantity

__all__ = ["Kind", "quantity"]

Kind = Literal[
    "length", "wavelength", "power", "current", "frequency", "area", "resistance", "capacitance", "inductance", "time"
]

_KINDS: Final[dict[Kind, Quantity]] = {
    "length": Quantity(
        'micrometres, or a length such as "2.5 nm"',
        {"cm": 1.0, "mm": 1e-1, "um": 1e-4, "nm": 1e-7, "A": 1e-8},
        plain="um",
    ),
    "wavelength": Quantity(
        'nanometres, or a wavelength such as "1.55 um"', {"nm": 1.0, "um": 1e3, "A": 1e-1}, plain="nm"
    ),
    "power": Quantity(
        'W/cm2, or a power such as "1 mW/cm2"',
        {"W/cm2": 1.0, "mW/cm2": 1e-3, "uW/cm2": 1e-6, "nW/cm2": 1e-9, "W/m2": 1e-4},
        plain="W/cm2",
    ),
    "current": Quantity(
        'A/cm2, or a current density such as "-10 mA/cm2"',
        {"A/cm2": 1.0, "mA/cm2": 1e-3, "uA/cm2": 1e-6, "nA/cm2": 1e-9, "A/m2": 1e-4},
        plain="A/cm2",
    ),
    "frequency": Quantity(
        'Hz, or a frequency such as "1 MHz"',
        {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9, "THz": 1e12},
        plain="Hz",
    ),
    "area": Quantity('cm2, or an area such as "100 um2"', {"cm2": 1.0, "mm2": 1e-2, "um2": 1e-8}, plain="cm2"),
    "resistance": Quantity(
        'ohm, or a resistance such as "1 kohm"', {"ohm": 1.0, "kohm": 1e3, "Mohm": 1e6}, plain="ohm"
    ),
    "capacitance": Quantity(
        'F, or a capacitance such as "20 fF"', {"F": 1.0, "nF": 1e-9, "pF": 1e-12, "fF": 1e-15}, plain="F"
    ),
    "inductance": Quantity(
        'H, or an inductance such as "1 nH"', {"H": 1.0, "uH": 1e-6, "nH": 1e-9, "pH": 1e-12}, plain="H"
    ),
    "time": Quantity(
        'seconds, or a time such as "20 ps"',
        {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15},
        plain="s",
    ),
}


def quantity(value: object, kind: Kind) -> float:
    """Convert a quantity to cm, nm, W/cm2, A/cm2, Hz, cm2, ohm, F, H or s, depending on its kind.

    Raises
    ------
    ValueError
        If the value is not such a quantity; the message states the expected form.
    """
    return _KINDS[kind].read(value)
