"""Problem of a transient: sources, circuit, duration and accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from minga.errors import CaseError
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.transients.circuit import PerArea, per_area
from minga.models.photodiode.transients.waveform import Waveform

__all__ = ["Transient"]


@dataclass(frozen=True, slots=True)
class Transient:
    """Sources and circuit of a device over time, from the steady state of the sources' first values.

    Parameters
    ----------
    until
        Duration, s.
    voltage
        Source voltage, V.
    light
        Light relative to that of the device.
    circuit
        Circuit between the source and the device; None: none.
    tolerance
        Largest error of a step: of the potential, kT/q, and relative of densities.
    first, largest, smallest
        Length of the first step, also after corners, of the longest and of the shortest one, s; None: 1e-6, 0.02 and
        1e-14 of the duration.

    Raises
    ------
    CaseError
        If the problem cannot be solved as stated.
    """

    until: float
    voltage: Waveform
    light: Waveform = field(default_factory=lambda: Waveform((0.0,), (0.0,)))
    circuit: Circuit | None = None
    tolerance: float = 5e-4
    first: float | None = None
    largest: float | None = None
    smallest: float | None = None

    def __post_init__(self) -> None:
        for name in ("until", "tolerance"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise CaseError(
                    f"{name} is {getattr(self, name)}",
                    key=f"photodiode.transient.{name}",
                    remedy="give a positive number",
                )
        if not self.drive.external and any(time < self.until for time in self.voltage.jumps):
            raise CaseError(
                f"the voltage jumps at {self.voltage.jumps[0]:g} s, and no resistance limits the current",
                key="photodiode.transient.voltage",
                remedy='give a rise time, rise = "1 ps", or a load with the area of the device',
            )
        if self.light.extremes[0] < 0.0:
            raise CaseError(
                f"light falls to {self.light.extremes[0]:g} of its power",
                key="photodiode.transient.light",
                remedy="give values of 0 or more; the amplitude of a sine is at most the value before it",
            )
        first, largest, smallest = self.lengths
        if not 0.0 < smallest <= first <= largest:
            raise CaseError(
                f"the first step, {first:g} s, is not between the smallest, {smallest:g} s, and the largest, "
                f"{largest:g} s",
                key="photodiode.transient.steps",
                remedy="give 0 < smallest <= first <= largest",
            )

    @property
    def drive(self) -> PerArea:
        """Elements of the circuit, per area."""
        return per_area(self.circuit)

    @property
    def lengths(self) -> tuple[float, float, float]:
        """Lengths of the first, the longest and the shortest step, s."""
        periods = [1.0 / wave.frequency for wave in (self.voltage, self.light) if wave.amplitude]
        longest = min([0.02 * self.until, *(0.05 * period for period in periods)])
        largest = longest if self.largest is None else self.largest
        first = min(1e-6 * self.until, largest) if self.first is None else self.first
        return first, largest, min(1e-14 * self.until, first) if self.smallest is None else self.smallest
