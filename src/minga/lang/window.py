"""Sums over large neighbourhoods in few additions: partial sums that neighbouring cells share are computed once.

A neighbourhood is cut into runs of cells along one direction. The sum of a long run is composed of sums of shorter
runs, which are locals (see `minga.lang.cell.local`), so that it costs about log2 of its length. Runs of equal length
are then added along the next direction in the same way. Directions are the axes, or the diagonals of a plane if these
give fewer lengths. Thus the number of additions for a box or a diamond of radius r grows with log r instead of with the
number of cells, and for a disc with r.

This is for integers only: their sums are the same in every order, sums of floats are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.cell import local
from minga.lang.expr import Node, author_error, binary, const
from minga.lang.neighbourhood import Offset
from minga.lang.trace import current_trace

__all__ = ["MOST_TERMS", "pays", "terms", "window_sum"]

FEWEST: Final = 20
"""Number of cells from which on a neighbourhood is cut into runs."""
MOST_TERMS: Final = 800
"""Maximum number of terms of a sum. Each length of runs is a local, and together they must fit into the caches."""

Places = NDArray[Any]
"""Offsets by rows, in the coordinates of the directions."""
Place = tuple[int, ...]


def pays(around: Sequence[Offset]) -> bool:
    """Return True if a sum over these offsets is worth its locals."""
    return len(around) >= FEWEST and any(abs(x) > 1 for offset in around for x in offset)


def terms(around: Sequence[Offset]) -> int:
    """Return the number of terms of a sum over these offsets in the best cut; at most MOST_TERMS are allowed."""
    return _best(lambda _: const(0), around).terms


def window_sum(value: Callable[[Offset], Node], around: Sequence[Offset]) -> Node:
    """Return the sum of integers over these offsets; their type must hold the sum.

    If the offsets lack the cell itself, it is added and subtracted again where that gives longer runs.
    """
    best = _best(value, around)
    if best.terms > MOST_TERMS:
        raise author_error(
            f"a neighbourhood of {len(around)} cells is too large: its sum has {best.terms} terms",
            "use a smaller radius, or a box or a diamond (mg.moore, mg.von_neumann), which can be summed at any radius",
        )
    total = best.total()
    return binary("sub", total, value((0,) * len(around[0]))) if len(best.places) > len(around) else total


def _best(value: Callable[[Offset], Node], around: Sequence[Offset]) -> _Axes:
    """Return the cut with the fewest terms, with or without the cell itself."""
    cells = np.array(around)
    places = [cells]
    if cells.any(axis=1).all():
        places.append(np.vstack([cells, np.zeros_like(cells[:1])]))
    kinds = [_Axes, _Diagonals] if cells.shape[1] == 2 else [_Axes]
    return min((kind(value, each) for kind in kinds for each in places), key=lambda plan: plan.terms)


class _Axes:
    """A sum by runs along the axes, beginning with the innermost one."""

    step = 1

    def __init__(self, value: Callable[[Offset], Node], offsets: Places) -> None:
        self._value = value
        self.places: Places = self._placed(offsets)
        self._last = self.places.shape[1] - 1

    @property
    def terms(self) -> int:
        """Approximate number of terms of the sum."""
        return self._terms(self.places, self._last)

    def _terms(self, places: Places, axis: int) -> int:
        if axis < 0:
            return len(places)
        return sum(
            1 if len(of_length) == 1 else 1 + self._terms(of_length, axis - 1)
            for _, of_length in self._by_length(places, axis)
        )

    def _by_length(self, places: Places, axis: int) -> list[tuple[int, Places]]:
        """Return each length of the runs along `axis`, with the places where runs of that length begin."""
        starts, lengths = _runs(places, axis, self.step)
        return [(length, starts[lengths == length]) for length in np.unique(lengths).tolist()]

    def total(self) -> Node:
        """Return the sum."""
        return self._total(lambda place: self._value(self.offset(place)), self.places, self._last)

    def _placed(self, offsets: Places) -> Places:
        return offsets

    def offset(self, place: Place) -> Offset:
        """Return the offset at a place."""
        return place

    def _total(self, source: Callable[[Place], Node], places: Places, axis: int) -> Node:
        """Return the sum of `source` over these places, by runs along `axis` and then along the axes before it."""
        if axis < 0:
            return _sum(source(tuple(place)) for place in places.tolist())
        runs = _Runs(self, source, axis)
        parts = []
        for length, of_length in self._by_length(places, axis):
            if len(of_length) == 1 and length > 1:
                parts.append(runs.added(length, tuple(of_length[0].tolist())))
            else:
                parts.append(self._total(runs.source(length), of_length, axis - 1))
        return _sum(parts)


class _Diagonals(_Axes):
    """A sum by runs along the two diagonals of a plane: a place is (row + column, row - column)."""

    step = 2

    def _placed(self, offsets: Places) -> Places:
        return np.stack([offsets[:, 0] + offsets[:, 1], offsets[:, 0] - offsets[:, 1]], axis=1)

    def offset(self, place: Place) -> Offset:
        """Return the offset at a place."""
        return (place[0] + place[1]) // 2, (place[0] - place[1]) // 2


def _runs(places: Places, axis: int, step: int) -> tuple[Places, NDArray[Any]]:
    """Return the first place and the length of each gapless run of places along `axis`."""
    others = [places[:, other] for other in range(places.shape[1]) if other != axis]
    ordered = places[np.lexsort([places[:, axis], *reversed(others)])]
    moved = np.diff(ordered, axis=0)
    goes_on = moved[:, axis] == step
    for other in range(places.shape[1]):
        goes_on &= (moved[:, other] == 0) | (other == axis)
    first = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    return ordered[first], np.diff(np.append(first, len(ordered)))


class _Runs:
    """Sums of runs of several lengths along one direction."""

    def __init__(self, plan: _Axes, source: Callable[[Place], Node], axis: int) -> None:
        self._plan, self._axis = plan, axis
        self._known: dict[int, Callable[[Place], Node]] = {1: source}

    def source(self, length: int) -> Callable[[Place], Node]:
        """Return a function that gives the sum of the run of this length that begins at a place."""
        if length not in self._known:
            here = (0,) * current_trace("a sum over neighbours").ndim
            value = local(self.added(length, here))
            self._known[length] = lambda place: value[self._plan.offset(place)]
        return self._known[length]

    def added(self, length: int, start: Place) -> Node:
        """Return the sum of one run, composed of sums of shorter runs."""
        parts = []
        place = list(start)
        for part in self._parts(length):
            parts.append(self.source(part)(tuple(place)))
            place[self._axis] += part * self._plan.step
        return _sum(parts)

    def _parts(self, length: int) -> list[int]:
        two = [part for part in self._known if length - part in self._known]
        if two:
            return [max(two), length - max(two)]
        part = _part(length)
        return [part] * (length // part) + [1] * (length % part)


@cache
def _part(length: int) -> int:
    """Return the length of the shorter runs that make a run cheapest; single cells make up the remainder."""
    return min(range(1, length // 2 + 1), key=lambda part: _cost(part) + length // part + length % part)


@cache
def _cost(length: int) -> int:
    """Return the number of loads and stores for a local that holds the sum of a run of this length."""
    return 0 if length == 1 else _cost(part := _part(length)) + length // part + length % part + 1


def _sum(values: Iterable[Node]) -> Node:
    first, *others = values
    for value in others:
        first = binary("add", first, value)
    return first
