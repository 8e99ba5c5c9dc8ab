"""Time steps below the stability limit: those that are given, and the one that is chosen where none is."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal
from typing import Final

from minga.errors import CaseError

__all__ = ["SHARE", "stable_step", "step_for"]

SHARE: Final = 0.75
"""Fraction of the stability limit that a time step has by default; errors grow with the step."""


def step_for(limit: float) -> float:
    """Return the time step where none is given: three quarters of the limit, rounded down to two digits."""
    return _two_digits(SHARE * limit)


def stable_step(dt: float | None, limit: float) -> float:
    """Return a time step that is given, or with None that of `step_for`.

    Parameters
    ----------
    dt
        The time step, s; None: none is given.
    limit
        The stability limit, s.

    Raises
    ------
    CaseError
        If the given step is not positive, or above the limit.
    """
    if dt is None:
        return step_for(limit)
    if isinstance(dt, bool) or not isinstance(dt, int | float) or not (dt > 0 and math.isfinite(dt)):
        raise CaseError(f"the time step is {dt!r}", key="fletcher.dt", remedy="give a positive number of seconds")
    if dt > limit:
        raise CaseError(
            f"the time step of {dt:.4g} s is above the stability limit, {limit:.4g} s",
            key="fletcher.dt",
            remedy=f"use dt = {_two_digits(0.9 * limit):.3g} or less, or larger cells",
        )
    return dt


def _two_digits(value: float) -> float:
    """Return a positive number rounded down to two digits, with a tolerance of 1e-9 of the last one."""
    given = Decimal(value)
    unit = Decimal(10) ** (given.adjusted() - 1)
    return float((given / unit + Decimal("1e-9")).to_integral_value(ROUND_FLOOR) * unit)
