"""Units and descriptions of the observables of a device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from minga.models.observed import quantities

__all__ = ["units_of"]

_OF_A_CURVE: Final = {
    "J": ("A/cm2", "current density, positive from the anode to the cathode inside"),
    "C_quasistatic": ("F/cm2", "quasi-static capacitance dQ/dV"),
    "uniformity": ("1", "variation of the current along the device, of the current"),
    "E_max": ("V/cm", "strongest field"),
    "iterations": ("1", "iterations of the solver at this voltage"),
    "change": ("1", "largest change of the last iteration"),
    "M": ("1", "current over what is left of it without the pairs that ionisation makes"),
}
_ALL: Final = {
    "V": ("V", "voltage of the anode over the cathode"),
    "gain": ("1", "photocurrent over the photocurrent without ionisation"),
    "punch_through": ("V", "voltage at which the field reaches the absorber"),
    "breakdown": ("V", "voltage of breakdown"),
    "E_*": ("V/cm", "field in the middle of layer {}"),
    **{name: (unit, f"{words}, in the dark") for name, (unit, words) in _OF_A_CURVE.items()},
    **{f"{name}_lit": (unit, f"{words}, lit") for name, (unit, words) in _OF_A_CURVE.items()},
}


def units_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the units and descriptions of the named observables."""
    return quantities(names, _ALL)
