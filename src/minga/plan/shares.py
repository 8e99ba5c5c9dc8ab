"""Shares of work with which unequal workers all finish at the same time: real and integer shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import LayoutError
from minga.plan.ranks import RankGroup
from minga.space.boxes import Ints

__all__ = ["Times", "assign", "equal_time"]

Floats = NDArray[np.float64]
Times = Callable[[Ints], Floats]
"""Function that returns the seconds of every part for its number of cells, shape (parts,); it never decreases."""

_HALVINGS = 100
"""Number of bisection steps, enough to reach any two neighbouring floats."""

_FEW_LEFT = 32
"""Number of units that are assigned one by one."""


def assign(total: int, times: Times, least: ArrayLike, most: ArrayLike | None = None, granule: int = 1) -> Ints:
    """Find integer shares of ``total`` cells whose longest time is as short as possible.

    Parameters
    ----------
    total
        Number of cells to assign; all are assigned.
    times
        Seconds of every part for its share.
    least, most
        Minimum and maximum number of cells of each part, shape (parts,); without ``most``, there is no maximum.
    granule
        Shares are multiples of it, except for the last non-empty part if ``total`` is not a multiple.

    Returns
    -------
    ndarray
        Shares in cells, int64, shape (parts,).

    Raises
    ------
    LayoutError
        If ``least`` or ``most`` leave no solution.

    Notes
    -----
    The longest time is found by bisection: within a given time, every part can process a number of cells, since times
    grow with them, and the shortest time in which all cells can be processed is the optimum. The greedy algorithm (each
    unit to the part that would finish first) finds the same; rounding real shares does not.
    """
    fewest = np.atleast_1d(np.asarray(least, np.int64))
    room = np.full(len(fewest), total) if most is None else np.minimum(np.asarray(most, np.int64), total)
    missing = -total % granule
    best, shortest = None, np.inf
    for last in range(len(fewest) - 1, -1, -1):
        # The last non-empty part lacks ``missing`` cells of a whole unit; if none are missing, it may be any part.
        short = np.where(np.arange(len(fewest)) == last, missing, 0)
        low = -(-(fewest + short * (fewest > 0)) // granule)
        high = np.where(np.arange(len(fewest)) <= last, (room + short) // granule, 0)
        shares = _shared(-(-total // granule), partial(_seconds, times, granule, short), low, high)
        if shares is not None:
            cells = _cells(granule, short, shares)
            longest = float(times(cells).max())
            if cells.sum() == total and longest < shortest:
                best, shortest = cells, longest
        if not missing or fewest[last] > 0:
            break
    if best is None:
        raise LayoutError(
            f"{total} cells cannot be shared by {len(fewest)} parts of at least {_span(fewest)}"
            + (f" and at most {_span(room)}" if most is not None else "")
            + (f" in multiples of {granule}" if granule > 1 else ""),
            remedy="use fewer parts, or a larger grid",
        )
    return best


def _cells(granule: int, short: Ints, units: Ints) -> Ints:
    cells: Ints = np.maximum(units * granule - short, 0)
    return cells


def _seconds(times: Times, granule: int, short: Ints, units: Ints) -> Floats:
    return times(_cells(granule, short, units))


def _shared(units: int, seconds: Times, low: Ints, high: Ints) -> Ints | None:
    """Return shares from ``low`` to ``high`` with sum ``units`` and the shortest longest time; None if impossible."""
    if low.sum() > units or high.sum() < units or (low > high).any():
        return None
    shorter, longer = float(seconds(low).max()), float(seconds(high).max())
    fewest, enough = _within(seconds, shorter, low, high), high
    if fewest.sum() >= units:
        enough, fewest = fewest, low
    else:
        for _ in range(_HALVINGS):
            middle = shorter + (longer - shorter) / 2
            if not shorter < middle < longer or units - fewest.sum() <= _FEW_LEFT:
                break
            some = _within(seconds, middle, fewest, enough)
            if some.sum() >= units:
                longer, enough = middle, some
            else:
                shorter, fewest = middle, some
    if units - fewest.sum() <= _FEW_LEFT:
        return _one_by_one(seconds, fewest, high, units)
    return _filled(fewest, enough, units)


def _within(seconds: Times, limit: float, low: Ints, high: Ints) -> Ints:
    """Return the largest shares from ``low`` to ``high`` within the time ``limit``, or ``low`` if there are none."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        fits = seconds(middle) <= limit
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
        high = np.maximum(low, high)
    return low


def _one_by_one(seconds: Times, shares: Ints, most: Ints, units: int) -> Ints:
    """Assign the remaining units one by one, each to the part that would finish it first."""
    for _ in range(units - int(shares.sum())):
        shares[np.argmin(np.where(shares < most, seconds(np.minimum(shares + 1, most)), np.inf))] += 1
    return shares


def _filled(fewest: Ints, enough: Ints, units: int) -> Ints:
    """Return shares between two bounds with sum ``units``, in proportion to the room of each part."""
    room = enough - fewest
    missing = units - int(fewest.sum())
    given = room * missing // max(1, int(room.sum()))
    rest = missing - int(given.sum())
    open_ = np.flatnonzero(given < room)[:rest]
    given[open_] += 1
    return fewest + given


def equal_time(group: RankGroup, total: float, most: Floats) -> Floats:
    """Return real shares of ``total`` cells of the model that all ranks finish at the same time, shape (ranks,).

    This is the geometric partition of Lastovetsky and Reddy (2007): each rank gets what it processes in a common time,
    which is found by bisection. No rank gets more than ``most``; if ``total`` exceeds the sum of ``most``, all shares
    are ``most`` scaled by the same factor.
    """
    held = float(most.sum())
    if held <= total:
        return most * (total / held)

    def within(seconds: float) -> Floats:
        each = np.array([float(speed.within(seconds)) for speed in group.speeds])
        shares: Floats = np.minimum(each[group.speed_of], most)
        return shares

    longer = max(float(speed.time(total)) for speed in group.speeds)
    while within(longer).sum() < total:
        longer *= 2
    shorter = 0.0
    for _ in range(60):
        middle = (shorter + longer) / 2
        shorter, longer = (shorter, middle) if within(middle).sum() >= total else (middle, longer)
    shares = within(longer)
    return shares * (total / float(shares.sum()))


def _span(values: Ints) -> str:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return f"{low} cells" if low == high or math.isinf(high) else f"{low} to {high} cells"
