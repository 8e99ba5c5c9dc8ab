"""Circuit around a photodiode: series resistance, the capacitance of a pad, and a load with an inductance."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from minga.errors import CaseError
from minga.solve.complex_numbers import Complex

__all__ = ["Circuit"]


@dataclass(frozen=True, slots=True)
class Circuit:
    """A series resistance, and after it the capacitance of a pad in parallel with the load and its inductance.

    Load and inductance lie between the device and the source of its voltage. Bandwidths and transients have the same
    circuit; noise only its load.

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
    inductance
        Inductance in series with the load, H.

    Raises
    ------
    CaseError
        For an area that is not positive, and other values that are negative or not finite.
    """

    area: float
    load: float = 50.0
    series: float = 0.0
    pad: float = 0.0
    inductance: float = 0.0

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
            (1 + i w pad Z) (1 + area Y series) + area Y Z with Z = load + i w inductance.
        """
        device = admittance * self.area
        beside = Complex(1.0, frequency * (self.load * self.pad))
        found = beside * (device * self.series + 1.0) + device * self.load
        if not self.inductance:
            return found
        reactance = frequency * self.inductance
        more = (device * self.series + 1.0) * (-frequency * self.pad) + Complex(-device.im, device.re)
        whole: Complex = found + more * reactance
        return whole
