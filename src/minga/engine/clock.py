"""The time of a model: conversion of completed steps to seconds or another unit of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minga.errors import ProgramError
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["Clock"]


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of a model, which its files, datasets and pictures give for a frame.

    Parameters
    ----------
    dt
        Length of every step.
    time
        Instead of `dt`, for steps of different lengths: the register that holds the time after each step.
    unit
        Unit of both; ``"1"`` is dimensionless.

    Raises
    ------
    ProgramError
        Unless exactly one of `dt` and `time` is given, `dt` as a positive number.
    """

    dt: float | None = None
    time: Register | None = None
    unit: str = "s"

    def __post_init__(self) -> None:
        if (self.dt is None) == (self.time is None):
            raise ProgramError("a clock needs either dt or time", remedy="write mg.Clock(dt=0.001), or time=register")
        if self.dt is not None and not 0 < self.dt < math.inf:
            raise ProgramError(f"dt={self.dt!r}: expected a positive number", remedy="write mg.Clock(dt=0.001)")
        if self.time is not None and not isinstance(self.time, Register):
            raise ProgramError(f"time={self.time!r}: expected a register", remedy="a constant step is mg.Clock(dt=...)")

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
        return math.nan if self.dt is None else step * float(self.dt)

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
