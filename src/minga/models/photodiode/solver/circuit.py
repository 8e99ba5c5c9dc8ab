"""Circuit around a photodiode: series resistance, the capacitance of a pad, and a load."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from minga.errors import CaseError
from minga.solve.complex_numbers import Complex

__all__ = ["Circuit"]


@dataclass(frozen=True, slots=True)
class Circuit:
    """A series resistance, and after it the capacitance of a pad in parallel with the load.

    Parameters
    ----------
    area
        Area of the device, cm2, for currents that are given per area.
    load
        Load resistance, ohm.
    series
        Series resistance, ohm.
    pad
        Capacitance of the pad, F.

    Raises
    ------
    CaseError
        For an area that is not positive, and other values that are negative or not finite.
    """

    area: float
    load: float = 50.0
    series: float = 0.0
    pad: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not 0.0 <= value < float("inf") or (item.name == "area" and value == 0.0):
                wanted = "positive" if item.name == "area" else "0 or more"
                raise CaseError(f"{item.name} = {value}", key=item.name, remedy=f"give a finite number, {wanted}")

    def attenuation(self, admittance: Complex, frequency: Any) -> Complex:
        """Return the photocurrent of the short-circuited device over the current of the load.

        Parameters
        ----------
        admittance
            Admittance of the device, S/cm2.
        frequency
            Angular frequency, 1/s.

        Returns
        -------
        Complex
            (1 + i w load pad) (1 + area Y series) + area Y load.
        """
        device = admittance * self.area
        return Complex(1.0, frequency * (self.load * self.pad)) * (device * self.series + 1.0) + device * self.load
