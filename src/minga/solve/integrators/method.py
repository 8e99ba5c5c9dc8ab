"""A method that advances fields in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from minga.engine.program import Program
from minga.errors import ProgramError, shown
from minga.solve.integrators.workspace import Recorded
from minga.solve.modal_rates import ModalRates
from minga.solve.permitted import PermittedErrors
from minga.solve.rates import Rates
from minga.space.field import Field, Register

__all__ = ["Integrator"]


@dataclass(frozen=True)
class Integrator:
    """A method that advances fields in time; `mg.solve.integrator` returns those that there are by name.

    Parameters
    ----------
    name
        The name that cases and `mg.pde` use.
    order
        Order of accuracy.
    real, imaginary
        The largest z for which steps of du/dt = -z u, and of du/dt = i z u, do not grow.
    recorder
        The function that records a step: of program, rates, fields, dt, target and the permitted errors.
    adaptive
        Whether the method chooses its steps.
    swing
        The largest z, up to 0.3, for which steps of du/dt = i z u resolve the oscillation, which does not grow by more
        than 0.1 % a radian; of methods with an implicit part beside waves in that part, of any frequency.
    waves
        Whether waves of the implicit part that nothing damps do not grow beside explicit oscillations.
    stochastic
        Whether the method takes noise.
    split
        Whether the part of the rates that is linear in the fields is implicit and the rest explicit; `real` and
        `imaginary` are then those of the rest alone.
    given
        The function that records a step of a given length, for a method that chooses its steps and can take such ones.
    differentiates
        Whether the method differentiates the rates by the cells that they read.
    modal
        Whether the method takes rates in the space of modes as well, into which it brings others itself.
    """

    name: str
    order: int
    real: float
    imaginary: float
    recorder: Callable[..., Recorded]
    adaptive: bool = False
    swing: float = 0.3
    waves: bool = True
    stochastic: bool = False
    split: bool = False
    given: Callable[..., Recorded] | None = None
    differentiates: bool = False
    modal: bool = False

    def with_given_steps(self) -> Integrator:
        """Return the method with steps of a given length.

        Returns
        -------
        Integrator
            The method itself if its steps are of a given length, or it can only choose them.
        """
        if self.given is None:
            return self
        return replace(self, recorder=self.given, adaptive=False, given=None)

    def record(
        self,
        program: Program,
        rates: Rates | ModalRates,
        fields: Sequence[Field],
        *,
        dt: float | Register | None = None,
        target: Register | None = None,
        tolerance: float = 1e-6,
        absolute: Sequence[float] | float = 0.0,
    ) -> Recorded:
        """Record one step, which advances the fields and the register `mg.TIME`.

        Parameters
        ----------
        program
            The Program that records.
        rates
            The rates of change; those in the space of modes for methods that are `modal`.
        fields
            The fields, with two slots; the step rotates them.
        dt
            Length of the step: a number, a register, or for adaptive methods the first attempt (None: estimated).
        target
            For adaptive methods the register of a time that no step passes.
        tolerance
            The largest error of a step of an adaptive method, relative to the largest value that each field has had; of
            this error Newton's iterations of implicit methods leave a hundredth.
        absolute
            An error that is always permitted beside it, in the units of the fields: one for all, or one for each.

        Returns
        -------
        Recorded
            The workspace.

        Raises
        ------
        ProgramError
            If a field has one slot, the step has no length, or the method does not take such rates.
        """
        for item in fields:
            if item.slots < 2:
                raise ProgramError(
                    f"{self.name}: field {item.name!r} has a single slot", remedy="declare it with slots=2"
                )
        self._check(rates)
        floors = _floors(absolute, len(fields))
        if len(floors) != len(fields) and not self.modal:  # fields in the space of modes have companions
            raise ProgramError(
                f"{self.name}: {len(floors)} absolute errors for {len(fields)} fields",
                remedy="give one for each",
            )
        permitted = PermittedErrors(program.name, fields, tolerance, floors)
        return self.recorder(program, rates, tuple(fields), dt=dt, target=target, permitted=permitted)

    def _check(self, rates: Rates | ModalRates) -> None:
        """Raise ProgramError for rates that the method does not take."""
        if isinstance(rates, ModalRates):
            if not self.modal:
                raise ProgramError(
                    f"integrator {self.name!r} with rates in the space of modes",
                    remedy='use "etdrk4", or mg.solve.Rates',
                )
            return
        if rates.noise is not None and not self.stochastic:
            raise ProgramError(
                f"integrator {self.name!r} takes no noise",
                remedy='use "euler-maruyama" or "milstein", which are made for it',
            )
        if rates.prepare is not None and self.differentiates:
            raise ProgramError(
                f"integrator {self.name!r} with rates that depend on more than the cells around",
                remedy="use an explicit method: integrals and spectral derivatives have no derivative by cells",
            )


def _floors(absolute: Any, count: int) -> tuple[float, ...]:
    """Return the permitted absolute error of each field; raise ProgramError for what is none."""
    floors = (absolute,) * count if isinstance(absolute, Real) else tuple(absolute)
    known = all(isinstance(each, Real) and not isinstance(each, bool) for each in floors)
    if not known or any(not 0.0 <= float(each) < math.inf for each in floors):
        raise ProgramError(
            f"absolute={shown(absolute)}", remedy="give 0, or a positive number in the unit of the field"
        )
    return tuple(map(float, floors))
