"""Positions of kernel calls in a wave: an order of their cells in which several steps can be computed band by band.

Calls of several steps are executed together, each on the cells that lie in the same band, while the band passes over
the block. A call is given a position along each axis: a cell of row r is computed when the band reaches r + lag or, if
the call is `at_once`, all its cells when the band reaches one place. Positions are the least ones at which, along each
axis, no cell lies before one that it must follow: it reads or overwrites what the other stored, or overwrites what the
other reads. Calls in the same band keep their order. So each cell gets the same values as without bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Position", "Span", "Touch", "positions"]

THIN: Final = 2
"""Largest number of rows of a call that are computed at once."""
Span = tuple[tuple[int, ...], tuple[int, ...]]
"""Least and largest offset of the accessed cells from the computed one, along each axis."""


@dataclass(frozen=True, slots=True)
class Touch:
    """The cells that a call computes, and what it accesses: arrays, by any key, with the span of their offsets."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    reads: Mapping[int, Span]
    writes: Mapping[int, Span]


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a call along one axis: a lag, or with `at_once` the place itself."""

    place: int
    at_once: bool

    def range(self, lo: int, hi: int) -> tuple[int, int]:
        """Return the half-open range of places at which cells from `lo` to `hi` are computed."""
        return (self.place, self.place + 1) if self.at_once else (lo + self.place, hi + self.place)


def positions(calls: Sequence[Touch], axis: int) -> list[Position]:
    """Return the positions of calls, in the order of their execution, along an axis."""
    found: list[Position] = []
    users: dict[int, list[int]] = {}
    kinds: dict[object, int] = {}  # calls that access the same cells: those of a step are repeated in each round
    kind = [kinds.setdefault(_accessed(call), len(kinds)) for call in calls]
    known: dict[tuple[int, int], int | None] = {}

    def conflict(first: int, later: int) -> int | None:
        pair = kind[first], kind[later]
        if pair not in known:
            known[pair] = _conflict(calls[first], calls[later], axis)
        return known[pair]

    for current, call in enumerate(calls):
        at_once = call.hi[axis] - call.lo[axis] <= THIN
        arrays = call.reads.keys() | call.writes.keys()
        earlier = sorted({number for array in arrays for number in users.get(array, ())})
        least = [
            _after(calls[number], found[number], call, at_once, reach, axis)
            for number in earlier
            if (reach := conflict(number, current)) is not None
        ]
        found.append(Position(max(least, default=call.lo[axis] if at_once else 0), at_once))
        for array in arrays:
            users.setdefault(array, []).append(len(found) - 1)
    return found


def _accessed(call: Touch) -> object:
    """Return what a call accesses, equal for equal calls."""
    return call.lo, call.hi, frozenset(call.reads.items()), frozenset(call.writes.items())


def _after(first: Touch, place: Position, call: Touch, at_once: bool, reach: int, axis: int) -> int:
    """Return the least position of a call after another one, of which it needs rows up to `reach` after its own."""
    if at_once:
        last = min(first.hi[axis], call.hi[axis] + reach) - 1
        return place.range(last, last + 1)[0]
    if place.at_once:
        return place.place - max(call.lo[axis], first.lo[axis] - reach)
    return place.place + min(reach, first.hi[axis] - 1 - call.lo[axis])


def _conflict(first: Touch, call: Touch, axis: int) -> int | None:
    """Return how far after its own row a call needs the rows of an earlier one; None if they access no common cell."""
    most: int | None = None
    for ours, theirs in ((call.reads, first.writes), (call.writes, first.reads), (call.writes, first.writes)):
        for array in ours.keys() & theirs.keys():
            if _meet(first, theirs[array], call, ours[array]):
                reach = ours[array][1][axis] - theirs[array][0][axis]
                most = reach if most is None else max(most, reach)
    return most


def _meet(first: Touch, theirs: Span, call: Touch, ours: Span) -> bool:
    """Return True if two accesses to an array have cells in common."""
    return all(
        first.lo[a] + theirs[0][a] < call.hi[a] + ours[1][a] and call.lo[a] + ours[0][a] < first.hi[a] + theirs[1][a]
        for a in range(len(call.lo))
    )
