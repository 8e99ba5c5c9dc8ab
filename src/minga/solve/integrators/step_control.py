"""Steps whose length a method chooses inside the Program, by PI control of the estimated error.

A rejected attempt leaves no trace. A step that is shortened to end at a given time says nothing against the wish for a
longer one, so the next step is as long as it would have been. Since the error is a reduction, all ranks decide alike.

Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from minga.engine.program import Program
from minga.lang.elementary import pow
from minga.lang.expr import Node, extreme, where
from minga.space.field import TIME, Register

__all__ = ["StepControl"]

_ATTEMPTS: Final = 200


class StepControl:
    """The decisions on the attempts of one step.

    Parameters
    ----------
    program
        The Program that records the step.
    h
        Register of the length of the attempt.
    dt
        Length of the first step; None or a register: chosen.
    target
        Register of the time at which a step has to end; None for none.
    """

    def __init__(self, program: Program, h: Register, dt: float | Register | None, target: Register | None) -> None:
        name = program.name
        self.program, self.h, self.target = program, h, target
        self.wish = Register(f"{name}.wish", initial=0.0 if dt is None or isinstance(dt, Register) else dt)
        self.start, self.rest, self.last = (Register(f"{name}.{word}") for word in ("start", "rest", "error_before"))
        self.error, self.factor = Register(f"{name}.error"), Register(f"{name}.factor")
        self.going, self.done, self.shrunk = (Register(f"{name}.{word}", "i8") for word in ("going", "done", "shrunk"))

    def begin(self, fastest: Any, last: float) -> None:
        """Record the length of the first attempt.

        Parameters
        ----------
        fastest
            Rate at which values change by themselves, from which the very first length follows if none was given.
        last
            Error that counts as that of the step before the first one.
        """
        program, wish, rest = self.program, self.wish, self.rest
        with program.when(self.going.node == 0):
            program.let(wish, where(wish > 0.0, wish, _first_step(fastest)))
            program.let(self.last, last)
            program.let(self.going, 1)
        program.let(rest, math.inf if self.target is None else self.target - self.start)
        near = rest <= wish * (1.0 + 1e-9)
        program.let(self.h, where(near, rest, where(rest < 2.0 * wish, 0.5 * rest, wish)))
        program.let(self.done, 0)
        program.let(self.shrunk, 0)

    def attempts(self) -> AbstractContextManager[Any]:
        """Return the loop of attempts, which ends when one is accepted."""
        return self.program.repeat(until=self.done > 0, limit=_ATTEMPTS, expected=1)

    def decide(self, alpha: float, beta: float, highest: float, reduced: Callable[[Node], Node]) -> None:
        """Record the decision on an attempt, and the length of the next one.

        Parameters
        ----------
        alpha, beta
            Exponents of the error of the attempt and of the step before.
        highest
            Largest ratio of two steps.
        reduced
            Returns the factor by which a rejected attempt is shortened, for its error.
        """
        program, h, wish, shrunk = self.program, self.h, self.wish, self.shrunk
        finite = (self.error >= 0.0) & (self.error < math.inf)
        safe = extreme("max", (where(finite, self.error, 1e10), 1e-10))
        good = finite & (self.error <= 1.0) & (self.start + h > self.start)  # or the time would stand still
        grown = extreme("max", (0.9 * pow(safe, -alpha) * pow(self.last, beta), 0.2))
        grown = extreme("min", (grown, where(shrunk > 0, 1.0, highest)))
        program.let(self.factor, where(good, grown, reduced(safe)))
        program.let(self.last, where(good, extreme("max", (safe, 1e-4)), self.last))
        longer = where(h < wish, extreme("max", (wish, h * self.factor)), h * self.factor)
        program.let(wish, where(good, where(shrunk > 0, h * self.factor, longer), h * self.factor))
        program.let(self.done, where(good, 1, 0))
        program.let(shrunk, where(good, shrunk, 1))
        program.let(h, where(good, h, h * self.factor))

    def end(self) -> None:
        """Record the time at the end of the accepted step: the target exactly, if the step ends there."""
        reached = self.start if self.target is None else self.target
        self.program.let(TIME, where(self.h >= self.rest, reached, self.start + self.h))


def _first_step(fastest: Any) -> Any:
    """Return the length of the first step: a hundredth of the time in which values change by themselves."""
    return where(fastest > 0.0, 0.01 / where(fastest > 0.0, fastest, 1.0), 1e-6)
