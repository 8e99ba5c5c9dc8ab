"""Objects in the ash of a soup: clusters of cells that are told apart, run alone, and named by what they do.

Ash is settled if every cluster returns to its shape when it is run alone, if all cells some steps later are where these
runs say, and if no spaceship is on its way to anything. Clusters that only touch without influence, such as two blocks
beside each other, count as several objects.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from minga.models.automaton.soups.apgcode import Cells, apgcode

__all__ = ["Behaviour", "Laboratory", "clusters", "objects"]

LONGEST: Final = 120
"""Longest period that is recognised."""
_NEAR: Final = tuple((i, j) for i, j in itertools.product(range(-2, 3), repeat=2) if i or j)
"""Cells that a cell may influence the neighbours of."""
_AROUND: Final = tuple((i, j) for i, j in itertools.product(range(-1, 2), repeat=2) if i or j)
_APART: Final = 4.0
"""Distance that a spaceship keeps from what it passes, in addition to the extents of both."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of a cluster alone: its phases, and the rows and columns by which it has moved after all of them."""

    phases: tuple[Cells, ...]
    move: tuple[int, int]

    @property
    def period(self) -> int:
        """Number of steps after which it returns to its shape."""
        return len(self.phases)

    def at(self, steps: int) -> Cells:
        """Return the cells after some steps."""
        turns, phase = divmod(steps, self.period)
        return _moved(self.phases[phase], (turns * self.move[0], turns * self.move[1]))


@dataclass(slots=True)
class Laboratory:
    """Clusters that have been run alone, by their shape.

    Attributes
    ----------
    born, kept
        Numbers of live neighbours with which cells come alive, and stay so.
    """

    born: frozenset[int]
    kept: frozenset[int]
    _known: dict[Cells, Behaviour | None] = field(default_factory=dict)
    _names: dict[Cells, tuple[str, ...]] = field(default_factory=dict)

    def after(self, cells: Cells) -> Cells:
        """Return the cells after one step."""
        counts = Counter((y + i, x + j) for y, x in cells for i, j in _AROUND)
        alive = {cell for cell, n in counts.items() if n in (self.kept if cell in cells else self.born)}
        return frozenset(alive | ({c for c in cells if c not in counts} if 0 in self.kept else set()))

    def behaviour(self, cells: Cells) -> Behaviour | None:
        """Return what a cluster does alone; None if it dies, or does not return to its shape."""
        shape, corner = _shape(cells)
        if shape not in self._known:
            self._known[shape] = self._observed(shape)
        found = self._known[shape]
        return None if found is None else Behaviour(tuple(_moved(p, corner) for p in found.phases), found.move)

    def names(self, cells: Cells) -> tuple[str, ...]:
        """Return the names of the objects that a cluster which returns to its shape consists of."""
        shape, _ = _shape(cells)
        if shape not in self._names:
            found = self.behaviour(shape)
            assert found is not None
            self._names[shape] = tuple(self._name(part) for part in self._parts(shape, found))
        return self._names[shape]

    def _observed(self, shape: Cells) -> Behaviour | None:
        phases, now = [shape], shape
        for _ in range(LONGEST):
            now = self.after(now)
            if not now:
                return None
            if len(now) == len(shape):
                same, corner = _shape(now)
                if same == shape:
                    return Behaviour(tuple(phases), corner)
            phases.append(now)
        return None

    def _parts(self, shape: Cells, found: Behaviour) -> Iterable[Cells]:
        """Return the parts of a cluster that do alone what they do together, or the whole cluster."""
        if any(found.move):
            return [shape]
        islands = clusters(frozenset().union(*found.phases), _AROUND)
        parts = [island & shape for island in islands]
        alone = [None if not part else self.behaviour(part) for part in parts]
        if len(parts) > 1 and all(one is not None and not any(one.move) for one in alone):
            together = (frozenset().union(*(one.at(step) for one in alone if one)) for step in range(found.period))
            if all(cells == phase for cells, phase in zip(together, found.phases, strict=True)):
                return parts
        return [shape]

    def _name(self, part: Cells) -> str:
        found = self.behaviour(part)
        assert found is not None
        kind = "q" if any(found.move) else "p" if found.period > 1 else "s"
        return apgcode(kind, len(part) if kind == "s" else found.period, found.phases)


def objects(laboratory: Laboratory, now: Cells, later: Cells, steps: int) -> Mapping[str, int] | None:
    """Return how many objects of each name the ash consists of; None if it is not settled.

    Parameters
    ----------
    laboratory
        Runs of clusters alone.
    now, later
        All live cells, and those after `steps` further steps.
    steps
        Number of these steps.
    """
    groups = clusters(now, _NEAR)
    found = [laboratory.behaviour(group) for group in groups]
    if any(one is None for one in found):
        return None
    known = [one for one in found if one is not None]
    if frozenset().union(*(one.at(steps) for one in known)) != later or _will_meet(known):
        return None
    return Counter(name for group in groups for name in laboratory.names(group))


def clusters(cells: Cells, near: Iterable[tuple[int, int]]) -> list[Cells]:
    """Return groups of cells that are connected by steps to cells `near`, in the order of their first cells."""
    offsets, left, found = tuple(near), set(cells), []
    for start in sorted(cells):
        if start in left:
            left.discard(start)
            group, ahead = [start], [start]
            while ahead:
                y, x = ahead.pop()
                for cell in _present(left, y, x, offsets):
                    left.discard(cell)
                    group.append(cell)
                    ahead.append(cell)
            found.append(frozenset(group))
    return found


def _present(cells: set[tuple[int, int]], y: int, x: int, near: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    yield from [cell for cell in ((y + i, x + j) for i, j in near) if cell in cells]


def _shape(cells: Cells) -> tuple[Cells, tuple[int, int]]:
    """Return cells moved to row and column 0, and where they were."""
    top, left = min(y for y, _ in cells), min(x for _, x in cells)
    return _moved(cells, (-top, -left)), (top, left)


def _moved(cells: Cells, by: tuple[int, int]) -> Cells:
    return frozenset((y + by[0], x + by[1]) for y, x in cells)


def _will_meet(known: list[Behaviour]) -> bool:
    """Return whether a spaceship comes near another cluster some time."""
    places = np.array([np.mean(list(one.phases[0]), axis=0) for one in known])
    sizes = np.array([np.ptp(np.array(list(frozenset().union(*one.phases))), axis=0).max() for one in known])
    speeds = np.array([np.divide(one.move, one.period) for one in known])
    for ship in np.flatnonzero(speeds.any(axis=1)):
        apart, speed = places - places[ship], speeds[ship] - speeds
        square = (speed**2).sum(axis=1)
        time = np.divide((apart * speed).sum(axis=1), square, out=np.zeros(len(known)), where=square > 0)
        nearest = np.abs(apart - speed * np.maximum(time, 0)[:, None]).max(axis=1)
        if ((time > 0) & (nearest <= sizes + sizes[ship] + _APART)).any():
            return True
    return False
