"""The time of a model: conversion of completed steps to seconds or another unit of time."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from minga.errors import CaseError, ProgramError, shown
from minga.space.field import TIME, Register

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["Clock", "Interval", "Kind", "multiple", "passed"]

Interval = int | float | str
"""A number of steps (int), or an interval of model time: a number (float), or a text with a unit."""

Kind = Literal["constant", "split", "adaptive", "free"]

_ROUNDING: Final = 1e-9
"""Part of an interval, or relative error of a time, that rounding may cause."""
_ULPS: Final = 1e-15
"""Relative error of a quotient of two times, with some reserve."""
_DIGITS: Final = 15
"""Largest number of significant digits that people write and a double holds."""
_SMALL: Final = 10**6
"""Largest denominator of fractions such as 1/3."""
_WRITTEN: Final = re.compile(r"\s*((?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][-+]?\d{1,3})?)\s*(\S{0,40})\s*")
_SECONDS: Final[Mapping[str, Fraction]] = {
    "fs": Fraction(1, 10**15),
    "ps": Fraction(1, 10**12),
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
"""Seconds of the units of time that are converted into each other."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of a model, which its files, datasets and pictures give for a frame.

    Its form decides how a run reaches a given time, such as ``mg.run(model, until=5.0, every=0.5)``:

    - ``Clock(dt=0.01)``: all steps have one length. The time after n steps is n dt, without accumulated rounding, and
      a run reaches only multiples of dt.
    - ``Clock(dt=register)``: the run sets the length of steps. The initial value of the register is the longest step.
      Up to the next time at which something happens the run splits the rest into equal steps, writes their length to
      the register, and sets the time exactly at the end. The step's program adds the register to the time.
    - ``Clock(target=register)``: the step's program chooses its length, for instance by an error estimate. The run
      writes the next time at which something happens to `target` (infinity if there is none); a step never passes it,
      and sets the time equal to it where it reaches it.
    - ``Clock(time=register)``: steps of any length. A run ends after a number of steps, not at a time.

    Parameters
    ----------
    dt
        Length of every step, or the register of it that the run sets.
    time
        Register that holds the time after each step; `mg.TIME` by default where the steps may differ in length. With a
        number as `dt` it is only read.
    unit
        Unit of all times; ``"1"`` is dimensionless.
    target
        Register of the time that an adaptive step must not pass.

    Raises
    ------
    ProgramError
        If these do not make one of the forms above, or `dt` is not positive.
    """

    dt: float | Register | None = None
    time: Register | None = None
    unit: str = "s"
    target: Register | None = None

    def __post_init__(self) -> None:
        remedy = "write mg.Clock(dt=0.001), or dt=register, target=register or time=register"
        if self.dt is None and self.time is None and self.target is None:
            raise ProgramError("a clock needs dt, time or target", remedy=remedy)
        if self.dt is not None and self.target is not None:
            raise ProgramError(
                "a clock has either dt or target: steps are of a given length or adaptive", remedy=remedy
            )
        for name, value in (("time", self.time), ("target", self.target)):
            if value is not None and not isinstance(value, Register):
                raise ProgramError(
                    f"{name}={value!r}: expected a register", remedy="a constant step is mg.Clock(dt=...)"
                )
        for register in (self.dt, self.time, self.target):
            if isinstance(register, Register) and register.dtype != "f8":
                raise ProgramError(
                    f"{register!r}: times need the type f8", remedy=f"write mg.Register({register.name!r})"
                )
        if isinstance(self.dt, Register) or self.target is not None:
            object.__setattr__(self, "time", self.time or TIME)
        elif self.dt is not None and not 0 < self.dt < math.inf:
            raise ProgramError(f"dt={self.dt!r}: expected a positive number", remedy="write mg.Clock(dt=0.001)")

    @property
    def kind(self) -> Kind:
        """Form of the clock: "constant", "split" (by the run), "adaptive" or "free"."""
        if self.target is not None:
            return "adaptive"
        if isinstance(self.dt, Register):
            return "split"
        return "free" if self.dt is None else "constant"

    @property
    def length(self) -> float | None:
        """Length of every step; None if steps may differ in length."""
        return None if self.dt is None or isinstance(self.dt, Register) else float(self.dt)

    def at(self, step: int) -> float:
        """Return the time after a number of steps.

        Parameters
        ----------
        step
            The number of completed steps.

        Returns
        -------
        float
            The time, NaN if the step alone does not determine it.
        """
        return math.nan if self.length is None else multiple(self.length, step)

    def read(self, step: int, engine: Engine) -> float:
        """Return the present time.

        Parameters
        ----------
        step
            The number of completed steps.
        engine
            The engine that runs the model.

        Returns
        -------
        float
            The present time.
        """
        return self.at(step) if self.time is None else float(engine.read(self.time))

    def value(self, given: float | str, key: str) -> float:
        """Return a time in the clock's unit.

        Parameters
        ----------
        given
            A number in that unit, or a text such as ``"0.5 s"``, which is converted.
        key
            Entry that the time was given for, for errors.

        Returns
        -------
        float
            The time.

        Raises
        ------
        CaseError
            If it is not a positive time, or its unit is none of the clock.
        """
        found = self._number(given)
        if found is None or not 0 < found < math.inf:
            unit, bare = ("", "times of this model have no unit: ") if self.unit == "1" else (f" {self.unit}", "")
            raise CaseError(
                f"expected a positive time of the model, found {shown(given)}",
                key=key,
                remedy=f'{bare}write a number with a decimal point, or a text such as "2.5{unit}"',
            )
        return found

    def _number(self, given: object) -> float | None:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return float(given)
        written = _WRITTEN.fullmatch(given) if isinstance(given, str) else None
        if written is None:
            return None
        number, unit = Fraction(written[1]), written[2]
        if unit in ("", self.unit):
            return float(number)
        if unit not in _SECONDS or self.unit not in _SECONDS:
            return None
        return float(number * _SECONDS[unit] / _SECONDS[self.unit])

    def steps_to(self, time: float, key: str) -> int:
        """Return the number of steps of one length up to a time.

        Parameters
        ----------
        time
            The time.
        key
            Entry that the time was given for, for errors.

        Returns
        -------
        int
            The number of steps.

        Raises
        ------
        CaseError
            If the time is not a multiple of the step, within a relative error of 1e-9.
        """
        dt = self.length
        assert dt is not None, "only steps of one length are counted"
        count = round(time / dt)
        if count < 1 or abs(time / dt - count) > _ROUNDING * max(1, count):
            unit = "" if self.unit == "1" else f" {self.unit}"
            below, above = (multiple(dt, n) for n in (math.floor(time / dt), math.floor(time / dt) + 1))
            quoted = [
                repr(each) if self.unit == "1" else f'"{each!r} {self.unit}"' for each in (below, above) if each > 0
            ]
            near = " or ".join(quoted)
            raise CaseError(
                f"{time!r}{unit} is not a multiple of the model's time step, {dt!r}{unit}",
                key=key,
                remedy=f"give {near}, or the model a time step that divides {time!r}{unit}: "
                f"dt = {time / math.ceil(time / dt)!r}",
            )
        return count


def multiple(interval: float, count: int) -> float:
    """Return `count` times an interval, rounded once: the 3rd multiple of 0.1 is 0.3, of 1/3 it is 1.

    The interval stands for the fraction of small numerator and denominator, or the decimal number of up to 15 digits,
    whose nearest double it is, where there is one.
    """
    return float(count * _meant(interval))


@functools.lru_cache(maxsize=256)
def _meant(interval: float) -> Fraction:
    """Return the number that a double stands for."""
    exact = Fraction(interval)
    simple = exact.limit_denominator(_SMALL)
    if float(simple) == interval:
        return simple
    written = repr(interval)
    digits = re.sub(r"e.*|\D", "", written).strip("0")
    return Fraction(written) if len(digits) <= _DIGITS else exact


def passed(time: float, interval: float) -> int:
    """Return how many multiples of an interval a time has reached, with an allowance for rounding."""
    found = time / interval
    return math.floor(found + max(_ROUNDING, _ULPS * abs(found)))
