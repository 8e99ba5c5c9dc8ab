"""What is to be solved for a device: at which voltages, in the dark or lit, with which physics, how accurately.

    div(eps grad phi) = -q (p - n + doping)
    div Jn = q (R - G - Gii),   Jn = q mu_n n E + q D_n grad n
    div Jp = -q (R - G - Gii),  Jp = q mu_p p E - q D_p grad p

in steady state, with recombination R (Shockley-Read-Hall, radiative, Auger), light G and impact ionisation Gii.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from minga.errors import CaseError

__all__ = ["CURVES", "Curve", "Linear", "Problem", "Scheme", "suffix"]

Curve = Literal["dark", "lit"]
Scheme = Literal["newton", "gummel", "pointwise"]
Linear = Literal["auto", "rows", "sparse", "krylov"]

CURVES: Final[tuple[Curve, ...]] = ("dark", "lit")


def suffix(curve: Curve) -> str:
    """Of the names of what is seen of a curve: nothing in the dark, "_lit" in the light."""
    return "_lit" if curve == "lit" else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is solved; one run step goes to the next voltage of `bias`.

    bias           V, anode minus cathode; each is reached from the one before, the first from equilibrium
    current        A/cm2, in place of `bias`: one run step finds the next one's voltage, for one curve
    curves         "dark", "lit" or both: each is solved at every voltage
    ionisation     whether carriers ionise
    gain           whether each curve is solved without ionisation, too: gain is (J_lit - J_dark) over the same without
    quasistatic_capacitance   whether dQ/dV of each curve is worked out
    scheme         "newton": all equations together; "gummel": one after the other; "pointwise": node after node
    linear         what solves the linear systems of two axes, see `minga.models.photodiode.solver.linear`
    tolerance      kT/q: a solution is found once Newton's correction of no potential is larger, nor is any residual,
                   divided by its diagonal
    limit          corrections at most before an attempt is given up and a shorter step of the voltage is tried
    first_step, largest_step, smallest_step   V, of steps from one voltage to the next
    punch_through  V/cm: the light's layer is reached by the field once its mean there is this strong
    breakdown      1/M at which breakdown is reached, with M the current over what is left of it without ionisation
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

    def __post_init__(self) -> None:
        if self.bias and self.current:
            raise CaseError(
                "both voltages and currents are given", key="photodiode.current", remedy="leave one of them out"
            )
        if self.current and (len(self.curves) > 1 or self.gain):
            raise CaseError(
                "a current is held for more than one curve, which would each have a voltage of their own",
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
            raise CaseError(
                "gain is asked for without both curves", key="photodiode.curves", remedy='curves = ["dark", "lit"]'
            )
        if self.gain and not self.ionisation:
            raise CaseError(
                "gain is asked for without ionisation", key="photodiode.ionisation", remedy="set it to true"
            )

    @property
    def steps(self) -> int:
        """Of the run: voltages or currents."""
        return len(self.bias or self.current)
