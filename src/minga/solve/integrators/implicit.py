"""Fully implicit integrators for stiff equations: TR-BDF2 and the second backward differentiation formula.

TR-BDF2 takes the trapezoidal rule to t + g dt, g = 2 - sqrt(2), and from there a backward differentiation formula; both
parts solve u - (g/2) dt f(u) = known. BDF2 with steps of varying length needs the state before; the step without one,
and the one after a step that was less than half as long, is made by TR-BDF2. Both are of order 2 and L-stable.

Sources: R. E. Bank et al., IEEE Trans. Electron Devices 32 (1985) 1992. M. E. Hosea, L. F. Shampine, Appl. Numer. Math.
20 (1996) 21 (the estimate of the error of TR-BDF2, and its filter). E. Hairer, S. P. Norsett, G. Wanner, Solving
Ordinary Differential Equations I, III.5 (steps of varying length).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader, Reduced
from minga.lang.elementary import clip, pow
from minga.lang.expr import Node, as_node, where
from minga.solve.integrators.explicit import Given
from minga.solve.integrators.step_control import StepControl
from minga.solve.integrators.tr_bdf2 import ERROR, IMPLICIT, INNER
from minga.solve.integrators.workspace import Recorded, like
from minga.solve.jacobian import Vector
from minga.solve.newton_krylov import MOST_PRODUCTS, NewtonKrylov
from minga.solve.permitted import PermittedErrors, sizes
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Register

__all__ = ["chosen", "given"]

Readers = Sequence[CellReader]

_TRAPEZOIDAL, _BACKWARD, _MULTISTEP, _END = range(4)
"""Stages of a step: two of TR-BDF2, or one of BDF2."""
_GROWTH: Final = 2.0
"""Largest ratio of two steps of BDF2, which is stable up to 1 + sqrt(2)."""
_FILTER: Final = 1e-2
"""Part to which the filter of the error is solved."""
_ORDER: Final = 3.0
"""Order of the estimated error."""


def chosen(multistep: bool) -> Callable[..., Recorded]:
    """Return the function that records a step of a length that the method chooses.

    Parameters
    ----------
    multistep
        True for BDF2, False for TR-BDF2.

    Returns
    -------
    callable
        A function of the program, the rates, the fields, `dt` and `target` as `Integrator.record` takes them, and the
        permitted errors.
    """

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], *, dt: float | Register | None,
        target: Register | None, permitted: PermittedErrors,
    ) -> Recorded:  # fmt: skip
        return _Recording(multistep, program, rates, fields, permitted).chosen(dt, target)

    return record


def given(multistep: bool) -> Callable[..., Recorded]:
    """Return the function that records a step of a given length, with the parameters of `chosen`."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], *, dt: float | Register | None,
        target: Register | None, permitted: PermittedErrors,
    ) -> Recorded:  # fmt: skip
        if dt is None:
            raise ProgramError("an implicit integrator needs dt", remedy="give a number, or a register")
        return _Recording(multistep, program, rates, fields, permitted).given(dt)

    return record


class _Recording:
    """The recording of one implicit method for some fields."""

    def __init__(
        self, multistep: bool, program: Program, rates: Rates, fields: tuple[Field, ...], permitted: PermittedErrors
    ) -> None:
        self.multistep, self.program, self.rates = multistep, program, rates
        self.fields, self.permitted = fields, permitted
        name = program.name
        self.newton = NewtonKrylov(rates, fields, f"{name}.newton")
        words = ["known", "inner", "slope", *(["old"] if multistep else [])]
        self.work = {word: tuple(like(item, word) for item in fields) for word in words}
        self.h, self.scale, self.start = (Register(f"{name}.{word}") for word in ("length", "scale", "start"))
        self.before, self.ratio = Register(f"{name}.length_before"), Register(f"{name}.ratio")
        self.stage, self.kind = Register(f"{name}.stage", "i8"), Register(f"{name}.kind", "i8")
        self.solved = Register(f"{name}.solved", "i8")

    def slots(self, word: str) -> Vector:
        """Return the slots of a level or of a part of the workspace."""
        if word in ("now", "next"):
            return tuple(item.now if word == "now" else item.next for item in self.fields)
        return tuple(item.now for item in self.work[word])

    @property
    def recorded(self) -> Recorded:
        """Workspace of a step, and the hierarchies of grids that it uses."""
        work = (item for group in self.work.values() for item in group)
        return Recorded(
            (*work, *self.newton.workspace),
            hierarchies=self.newton.hierarchies,
            before=self.before if self.multistep else None,
        )

    # One attempt ---------------------------------------------------------------------------------------------------
    def attempt(self) -> None:
        """Record the stages of a step of length `h` from `start`; `solved` becomes 1 if all iterations converged."""
        program, stage, h = self.program, self.stage, self.h
        program.let(self.kind, _TRAPEZOIDAL)
        if self.multistep:
            program.let(self.ratio, where(self.before > 0.0, h / where(self.before > 0.0, self.before, 1.0), math.inf))
            program.let(self.kind, where(self.ratio <= _GROWTH * (1.0 + 1e-9), _MULTISTEP, _TRAPEZOIDAL))
        program.let(stage, self.kind)
        program.let(self.solved, 1)
        with (
            program.repeat(until=(stage == _END) | (self.solved == 0), expected=2 - self.multistep),
            program.unchecked(),
        ):
            with program.when(stage == _TRAPEZOIDAL):
                program.let(TIME, self.start)
                self._trapezoidal()
                program.let(TIME, self.start + INNER * h)
                program.let(self.scale, IMPLICIT * h)
            with program.when(stage == _BACKWARD):
                program.apply(backward, *map(self.slots, ("now", "next", "inner", "known")))
                program.let(TIME, self.start + h)
            if self.multistep:
                with program.when(stage == _MULTISTEP):
                    program.let(TIME, self.start + h)
                    program.apply(multistep, *map(self.slots, ("now", "old", "next", "known")), w=self.ratio)
                    program.let(self.scale, (1.0 + self.ratio) / (1.0 + 2.0 * self.ratio) * h)
            self.newton.solve(program, self.slots("next"), self.slots("known"), self.scale, self.permitted)
            program.let(self.solved, self.newton.good)
            program.let(stage, where(stage == _TRAPEZOIDAL, _BACKWARD, _END))

    def _trapezoidal(self) -> None:
        """Record the rates at the beginning, and the known part of the trapezoidal rule to the inner point."""
        rates = self.rates

        def compute(
            state: list[Any], constants: list[Any], guess: list[Any], slope: list[Any], known: list[Any], **scalars: Any
        ) -> None:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            values = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
            for u, first, f, b, value in zip(state, guess, slope, known, values, strict=True):
                first[here] = u[here]
                f[here] = value
                b[here] = u[here] + (IMPLICIT * h) * value

        self.program.apply(
            rates_kernel(compute, "trapezoidal", rates), self.slots("now"), rates.constants, self.slots("next"),
            self.slots("slope"), self.slots("known"), dt=self.h, **rates.scalars,
        )  # fmt: skip

    def finish(self) -> None:
        """Record what the next step needs of an accepted one, and the change of levels."""
        if self.multistep:
            self.program.apply(kept, *map(self.slots, ("now", "next", "known", "old", "slope")), scale=self.scale)
            self.program.let(self.before, self.h)
        self.program.rotate(*self.fields)

    # Steps of a given length ---------------------------------------------------------------------------------------
    def given(self, dt: float | Register) -> Recorded:
        """Record a step of a given length, with which the run ends if an iteration does not converge."""
        program = self.program
        time = Given(program, dt)
        program.let(self.h, dt)
        program.let(self.start, TIME)
        self._measure()
        program.let(self.solved, 0)
        with program.repeat(until=self.solved > 0, limit=1):
            self.attempt()
        time.end()
        self.finish()
        return replace(self.recorded, failure="the implicit equations of the step were not solved")

    # Steps that the method chooses ---------------------------------------------------------------------------------
    def chosen(self, dt: float | Register | None, target: Register | None) -> Recorded:
        """Record one accepted step of a length that the method chooses."""
        program = self.program
        control = StepControl(program, self.h, dt, target)
        program.let(self.start, TIME)
        control.begin(self.permitted.fastest(self._measure(), "rate"), 1.0)
        with control.attempts():
            self.attempt()
            program.let(control.error, math.inf)
            with program.when(self.solved > 0), program.unchecked():
                self._estimate(control.error)
            control.decide(0.7 / _ORDER, 0.4 / _ORDER, _GROWTH, self._reduced)
        control.end()
        self.finish()
        return replace(self.recorded, wish=control.wish)

    def _reduced(self, error: Node) -> Node:
        """Return the factor by which a rejected attempt is shortened."""
        return where(self.solved > 0, clip(0.9 * pow(error, -1.0 / _ORDER), 0.1, 0.9), 0.25)

    def _measure(self) -> Any:
        """Record the sizes of values and rates at the beginning of a step."""
        rates = self.rates

        def compute(state: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
            values = rates.function(state, constants, TIME, **scalars)
            return sizes("size", [u[_here(state)] for u in state]) | sizes("rate", values)

        kernel = rates_kernel(compute, "sizes", rates, step=False)
        found = self.program.apply(kernel, self.slots("now"), rates.constants, **rates.scalars)
        self.permitted.see(self.program, found, "size")
        return found

    def _estimate(self, error: Register) -> None:
        """Record the largest error of the attempt in units of the tolerance."""
        program, newton = self.program, self.newton
        with program.when(self.kind == _TRAPEZOIDAL):
            right, filtered = newton.systems.right, newton.systems.change
            words = ("now", "inner", "next", "known", "slope")
            program.apply(difference, *map(self.slots, words), right, h=self.h)
            # The estimate of stiff components is far too large: (1 - d dt J)^-1 damps it.
            unsolved = Register(f"{program.name}.unfiltered", "i8")
            newton.systems.solve(
                program, self.slots("next"), self.scale, tolerance=_FILTER, limit=MOST_PRODUCTS,
                name=f"{program.name}.filter", unsolved=unsolved,
            )  # fmt: skip
            found = program.apply(measured, self.slots("next"), filtered)
            program.let(error, where(unsolved > 0, math.inf, self.permitted.share(found, "error", "size")))
        if self.multistep:
            with program.when(self.kind == _MULTISTEP):
                found = program.apply(
                    predicted, *map(self.slots, ("now", "old", "slope", "next")), h=self.h, before=self.before,
                    w=self.ratio,
                )  # fmt: skip
                program.let(error, self.permitted.share(found, "error", "size"))


# Kernels, of any number of fields ------------------------------------------------------------------------------------
def _here(readers: Readers) -> tuple[int, ...]:
    return (0,) * len(readers[0].axes)


@kernel
def backward(now: Readers, end: Readers, inner: Readers, known: Readers) -> None:
    """Store the inner point, and the known part of the backward differentiation formula to the end."""
    here = _here(now)
    for u, v, middle, b in zip(now, end, inner, known, strict=True):
        middle[here] = v[here]
        b[here] = (v[here] - ((1.0 - INNER) * (1.0 - INNER)) * u[here]) / (INNER * (2.0 - INNER))


@kernel
def multistep(now: Readers, old: Readers, end: Readers, known: Readers, *, w: Node) -> None:
    """Store the known part of BDF2 for the ratio w of the steps, and the first guess."""
    here = _here(now)
    for u, before, first, b in zip(now, old, end, known, strict=True):
        first[here] = u[here]
        b[here] = (((1.0 + w) * (1.0 + w)) * u[here] - (w * w) * before[here]) / (1.0 + 2.0 * w)


@kernel
def kept(now: Readers, end: Readers, known: Readers, old: Readers, slope: Readers, *, scale: Node) -> None:
    """Store the state before the next step, and the rates at its beginning, as the solved equation gives them."""
    here = _here(now)
    for u, v, b, before, f in zip(now, end, known, old, slope, strict=True):
        before[here] = u[here]
        f[here] = (v[here] - b[here]) / scale


@kernel
def difference(
    now: Readers, inner: Readers, end: Readers, known: Readers, slope: Readers, error: Readers, *, h: Node
) -> None:
    """Store the difference of TR-BDF2 and the method of order 3 with the same stages."""
    here = _here(now)
    for u, middle, v, b, f, target in zip(now, inner, end, known, slope, error, strict=True):
        first = h * f[here]
        second = (middle[here] - u[here]) / IMPLICIT - first
        third = (v[here] - b[here]) / IMPLICIT
        target[here] = ERROR[0] * first + ERROR[1] * second + ERROR[2] * third


@kernel
def measured(end: Readers, error: Readers) -> dict[str, Reduced]:
    """Return the sizes of errors and values."""
    return _measured(end, [item[_here(end)] for item in error])


@kernel
def predicted(
    now: Readers, old: Readers, slope: Readers, end: Readers, *, h: Node, before: Node, w: Node
) -> dict[str, Reduced]:
    """Return the sizes of values and of errors of BDF2, from the difference to a parabola through two former states."""
    here = _here(now)
    errors = []
    for u, past, f, v in zip(now, old, slope, end, strict=True):
        bend = ((past[here] - u[here]) / before + f[here]) / before
        parabola = u[here] + h * (f[here] + h * bend)
        errors.append((1.0 + w) / (2.0 + 3.0 * w) * (v[here] - parabola))
    return _measured(end, errors)


def _measured(end: Readers, errors: Sequence[Any]) -> dict[str, Reduced]:
    return sizes("error", errors) | sizes("size", [v[_here(end)] for v in end])
