"""Time steps of cases with dt = "auto": three quarters of the stability limit, or less to divide times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from typing import Final

from minga.engine.clock import Clock
from minga.errors import CaseError
from minga.models.waves.settings import ReceiverSettings
from minga.models.waves.time_step import SHARE, step_for

__all__ = ["auto_step", "divided", "sample_steps", "steps_of", "times_of"]

_SHORTEST: Final = Fraction(1, 4)
"""Shortest step that is chosen for the sake of times, relative to the one without them."""
_TOLERANCE: Final = Fraction(1, 10**9)
_SECONDS: Final = Clock(dt=1.0)


def auto_step(limit: float, times: Mapping[str, float | str]) -> float:
    """Return the longest time step that is at most three quarters of the limit and divides all times.

    Parameters
    ----------
    limit
        The stability limit, s.
    times
        Times of the case by their keys: seconds, or texts such as "10 ms". Without any, the step has two digits.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    CaseError
        If a time is invalid, or no step that is long enough divides all of them.
    """
    if not times:
        return step_for(limit)
    common = reduce(_common, (Fraction(repr(_SECONDS.value(given, key))) for key, given in times.items()))
    longest = Fraction(SHARE) * Fraction(limit)
    step = common / max(1, math.ceil(common / longest - _TOLERANCE))
    if step < _SHORTEST * longest:
        raise CaseError(
            f"no time step near {step_for(limit):g} s divides {_listed(times)}; the longest that does is "
            f"{float(step):g} s",
            key=next(iter(times)),
            remedy="give times that are multiples of each other, or dt",
        )
    return float(step)


def times_of(
    times: Mapping[str, float | str], receivers: ReceiverSettings | None, table: str
) -> dict[str, float | str]:
    """Return the times of a case with that between samples of its receivers, if it is given as one."""
    every = 1 if receivers is None else receivers.every
    return {**times, **({} if isinstance(every, int) else {f"{table}.receivers.every": every})}


def divided(dt: object, times: Mapping[str, float | str]) -> str:
    """Return a list of the times that an automatic step divides, as text; empty if the step is given."""
    return _listed(times) if dt == "auto" and times else ""


def sample_steps(every: float, dt: float, key: str) -> int:
    """Return the number of steps between samples of receivers.

    Parameters
    ----------
    every
        A number of steps (int), or seconds (float).
    dt
        The time step, s.
    key
        Key of the entry, for errors.

    Returns
    -------
    int
        The number of steps.

    Raises
    ------
    CaseError
        If it is a time that is no multiple of the step.
    """
    return every if isinstance(every, int) else Clock(dt=dt).steps_to(every, key)


def steps_of(time: float | None, dt: float) -> int | None:
    """Return the number of steps to a time, at least 1; None without a time."""
    return None if time is None else max(1, math.ceil(time / dt - 1e-9))


def _common(a: Fraction, b: Fraction) -> Fraction:
    """Return the largest number of which both are multiples."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _listed(times: Mapping[str, float | str]) -> str:
    """Return a list of keys, each with its time, as text."""
    *others, last = [f"{key} ({given if isinstance(given, str) else f'{given:g} s'})" for key, given in times.items()]
    return f"{', '.join(others)} and {last}" if others else last
