"""Problem to be solved for a device: voltages, illumination, physics and accuracy.

The equations are

    div(eps grad phi) = -q (p - n + doping)
    div Jn = q (R - G - Gii),   Jn = q mu_n n E + q D_n grad n
    div Jp = -q (R - G - Gii),  Jp = q mu_p p E - q D_p grad p

in steady state, with recombination R (Shockley-Read-Hall, radiative, Auger), light G and impact ionisation Gii.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from minga.errors import CaseError
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.thresholds import DeadSpace

__all__ = ["CURVES", "Curve", "Linear", "Mode", "NoiseMethod", "Problem", "Scheme", "suffix"]

Curve = Literal["dark", "lit"]
Scheme = Literal["newton", "gummel", "pointwise"]
Linear = Literal["auto", "rows", "sparse", "krylov"]
Mode = Literal["iv", "cv", "ac", "noise", "qe"]
NoiseMethod = Literal["profile", "adjoint"]

CURVES: Final[tuple[Curve, ...]] = ("dark", "lit")
MOST_FREQUENCIES: Final = 1000
"""Largest number of frequencies in one run."""


def suffix(curve: Curve) -> str:
    """Return the suffix of the observables of a curve: empty for the dark curve, "_lit" for the lit one."""
    return "_lit" if curve == "lit" else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Statement of the problem; each step of a run moves to the next voltage of `bias`.

    Parameters
    ----------
    bias
        Voltages of the anode relative to the cathode, V; each is reached from the previous one, the first from
        equilibrium.
    curves
        "dark", "lit" or both: each is solved at every voltage.
    ionisation
        Whether to include impact ionisation.
    gain
        Whether to solve each curve without ionisation as well; the gain is (J_lit - J_dark) over the same without.
    scheme
        "newton": all equations together; "gummel": one after the other; "pointwise": node by node.
    tolerance
        Tolerance, kT/q, of the Newton corrections of all potentials and of all residuals over their coefficients.
        Levels that hardly matter, in layers that no current can charge, are known to 1e-3 kT/q once residuals are
        round-off.
    limit
        Largest number of corrections before an attempt is given up and repeated with a shorter step of the voltage.
    first_step, largest_step, smallest_step
        Steps from one voltage to the next, V.
    punch_through
        Mean field in the illuminated layer, V/cm, from which the layer counts as reached by the field.
    breakdown
        1/M at which breakdown is reached, with M the current over the current that remains without ionisation.
    current
        Current densities, A/cm2, instead of `bias`: each step finds the voltage of the next one, for one curve.
    quasistatic_capacitance
        Whether to compute dQ/dV of each curve.
    repeats
        Number of steps at each voltage, 1 or more; with a spectrum it is the number of its wavelengths.
    current_parts
        Whether to observe the parts of each current.
    linear
        Solver of linear systems with two axes, see `minga.models.photodiode.solver.linear`.
    mode
        Analysis at each voltage: "iv": none; "cv": small-signal capacitance and conductance at one frequency; "ac":
        admittance and photoresponse at all `frequencies`; "noise": excess noise of the multiplication; "qe": quantum
        efficiencies over the wavelength.
    frequencies
        Frequencies of "cv" and "ac", Hz.
    circuit
        Circuit around the device, for bandwidths and noise; None: none.
    noise_method
        "profile": carriers drift through the profile of the ionisation coefficients, with one axis only; "adjoint": all
        events, weighted with their effect on the current; None: the first with one axis, the second with two.
    dead_space
        Energies that carriers gain before they ionise, with one axis and in modes "iv" and "noise"; None: ionisation
        is local.
    """

    bias: tuple[float, ...] = ()
    curves: tuple[Curve, ...] = ("dark",)
    ionisation: bool = True
    gain: bool = False
    scheme: Scheme = "newton"
    tolerance: float = 1e-7
    limit: int = 60
    first_step: float = 0.1
    largest_step: float = 4.0
    smallest_step: float = 1e-4
    punch_through: float = 5e3
    breakdown: float = 2e-3
    current: tuple[float, ...] = ()
    quasistatic_capacitance: bool = False
    linear: Linear = "auto"
    mode: Mode = "iv"
    frequencies: tuple[float, ...] = ()
    circuit: Circuit | None = None
    noise_method: NoiseMethod | None = None
    repeats: int = 1
    current_parts: bool = False
    dead_space: DeadSpace | None = None

    def __post_init__(self) -> None:
        if self.bias and self.current:
            raise CaseError(
                "both voltages and currents are given", key="photodiode.current", remedy="leave one of them out"
            )
        if self.current and (len(self.curves) > 1 or self.gain):
            raise CaseError(
                "a current is imposed on more than one curve, but each curve would have its own voltage",
                key="photodiode.current",
                remedy='choose one, curves = ["dark"] or ["lit"], and leave gain out',
            )
        if not self.bias and not self.current:
            raise CaseError(
                "no voltage is given", key="photodiode.bias", remedy="give one or more in V: bias = [0.5, 0.7, -1]"
            )
        if not self.curves or any(c not in CURVES for c in self.curves) or len(set(self.curves)) < len(self.curves):
            raise CaseError(
                f"curves {list(self.curves)}", key="photodiode.curves", remedy='some of "dark" and "lit", each once'
            )
        if self.gain and set(self.curves) != set(CURVES):
            raise CaseError("gain requires both curves", key="photodiode.curves", remedy='curves = ["dark", "lit"]')
        if self.gain and not self.ionisation:
            raise CaseError("gain requires ionisation", key="photodiode.ionisation", remedy="set it to true")
        if self.repeats < 1:
            raise CaseError(
                f"{self.repeats} steps at each voltage", key="photodiode.bias", remedy="repeats = 1 or more"
            )
        self._check_frequencies()

    def _check_frequencies(self) -> None:
        """Raise CaseError for frequencies that the mode does not take, or that are not positive."""
        most = {"cv": 1, "ac": MOST_FREQUENCIES}.get(self.mode, 0)
        if not min(most, 1) <= len(self.frequencies) <= most:
            raise CaseError(
                f"{len(self.frequencies)} frequencies in mode {self.mode!r}",
                key="photodiode.ac.frequencies",
                remedy=f'"cv" takes one frequency, "ac" 1 to {most if most > 1 else MOST_FREQUENCIES}, others none',
            )
        for value in self.frequencies:
            if not 0.0 < value < float("inf"):
                raise CaseError(
                    f"a frequency of {value:g} Hz",
                    key="photodiode.ac.frequencies",
                    remedy='give positive numbers in Hz, or with a unit: "1 MHz"',
                )

    @property
    def steps(self) -> int:
        """Number of steps of the run: voltages or currents, times `repeats`."""
        return len(self.bias or self.current) * self.repeats
