"""A census of soups: each is run on an unbounded plane until only known objects are left; the counts are added up.

The number of a soup determines its cells, so a census depends neither on the processes that share it nor on their
order, and those of disjoint ranges of soups add up to that of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import SerialComm
from minga.errors import CaseError, suggest
from minga.models.automaton.initial import soup
from minga.models.automaton.model import automaton
from minga.models.automaton.notation.birth_survival import parse_birth_survival
from minga.models.automaton.soups.apgcode import Cells
from minga.models.automaton.soups.objects import Laboratory, objects
from minga.options import RunOptions
from minga.running.growing import Growing, sparse_cells
from minga.running.observer import Observer
from minga.running.schedule import Schedule
from minga.running.session import execute
from minga.running.simulation import Simulation
from minga.space.box import Box

__all__ = ["SYMMETRIES", "Census", "Search", "cells_of_soup", "census", "run_soup"]

UNSETTLED: Final = "zz_UNSETTLED"
"""Name that counts soups whose cells were not settled after all steps."""
LOOKS: Final = 240
"""Steps from one look at the cells to the next, a multiple of common periods."""
SELDOM: Final = 8
"""Looks of which only one examines cells whose number has changed: most ash repeats it from look to look."""
BATCH: Final = 20
"""Soups that a process takes at a time."""

Cells2 = NDArray[np.uint8]

SYMMETRIES: Final[Mapping[str, Callable[[Cells2], Cells2]]] = {
    "C1": lambda a: a,
    "C2_4": lambda a: np.vstack([a, np.rot90(a, 2)]),
    "C4_4": lambda a: np.block([[a, np.rot90(a, -1)], [np.rot90(a, 1), np.rot90(a, 2)]]),
    "D2_+2": lambda a: np.vstack([a, a[::-1]]),
    "D4_+4": lambda a: np.block([[a, a[:, ::-1]], [a[::-1], a[::-1, ::-1]]]),
}
"""Soups of a symmetry made of random cells, by the names of Catagolue: C rotations, D reflections."""


@dataclass(frozen=True, slots=True)
class Search:
    """Subject of a census: the rule, and how soups are made.

    Attributes
    ----------
    rule
        A rule by the number of live neighbours, "B3/S23".
    seed
        Seed of all soups.
    symmetry
        One of `SYMMETRIES`.
    size
        Rows and columns of random cells of a soup.
    density
        Probability of live cells.
    steps
        Steps after which a soup is given up.
    """

    rule: str = "B3/S23"
    seed: int = 0
    symmetry: str = "C1"
    size: int = 16
    density: float = 0.5
    steps: int = 30000

    def __post_init__(self) -> None:
        plain = parse_birth_survival(self.rule)
        if plain is None or plain.letter or 0 in plain.birth:
            raise CaseError(
                f"{self.rule!r}: expected a rule by the number of live neighbours, without birth from none",
                key="rule",
                remedy='write "B3/S23"',
            )
        if self.symmetry not in SYMMETRIES:
            raise CaseError(
                f"no symmetry {self.symmetry!r}",
                key="symmetry",
                suggestion=suggest(self.symmetry, SYMMETRIES),
                remedy=f"choose one of {', '.join(SYMMETRIES)}",
            )
        if not 1 <= self.size <= 256:
            raise CaseError(f"size = {self.size}: expected 1 to 256 cells", key="size")
        if not 0 <= self.density <= 1:
            raise CaseError(f"density = {self.density}: expected a probability", key="density")
        if self.steps < LOOKS:
            raise CaseError(f"steps = {self.steps}: expected at least {LOOKS}", key="steps")


@dataclass(slots=True)
class Census:
    """Counts of objects by name, and for each name the first soup that contains it.

    Attributes
    ----------
    soups
        Number of soups.
    counts
        Number of objects by name, the most frequent first; ties in alphabetical order.
    samples
        Number of the first soup with an object, by its name.
    """

    soups: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    samples: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, found: Mapping[str, int]) -> None:
        """Add the objects of a soup."""
        self.soups += 1
        self.counts.update(found)
        for name in found:
            self.samples[name] = min(number, self.samples.get(name, number))

    def as_data(self, search: Search) -> dict[str, Any]:
        """Return the census as data for JSON."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return {
            "search": {name: getattr(search, name) for name in Search.__slots__},
            "soups": self.soups,
            "objects": sum(n for name, n in ordered if name != UNSETTLED),
            "counts": dict(ordered),
            "samples": {name: self.samples[name] for name, _ in ordered},
        }


def census(
    search: Search, numbers: range, workers: int = 1, tell: Callable[[int], object] = lambda done: None
) -> Census:
    """Return the census of soups.

    Parameters
    ----------
    search
        What it is of.
    numbers
        Numbers of the soups.
    workers
        Processes that share them.
    tell
        Called with the number of soups that are done.

    Returns
    -------
    Census
        The counts, the same for any number of processes.

    Raises
    ------
    CaseError
        If `workers` is not positive.
    """
    if workers < 1:
        raise CaseError(f"workers = {workers}: expected at least one process", key="workers")
    found = Census()
    batches = [numbers[first : first + BATCH] for first in range(0, len(numbers), BATCH)]
    for several in _results(search, batches, workers):
        for number, counts in several:
            found.add(number, counts)
        tell(found.soups)
    return found


def _results(search: Search, batches: Iterable[range], workers: int) -> Iterator[list[tuple[int, Mapping[str, int]]]]:
    of_batch = partial(_of_batch, search)
    if workers == 1:
        yield from map(of_batch, batches)
        return
    import multiprocessing

    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(of_batch, batches)


def _of_batch(search: Search, numbers: range) -> list[tuple[int, Mapping[str, int]]]:
    laboratory = _laboratory(search.rule)
    return [(number, run_soup(search, number, laboratory)) for number in numbers]


@lru_cache(maxsize=1)
def _laboratory(rule: str) -> Laboratory:
    """Return the laboratory of this process."""
    plain = parse_birth_survival(rule)
    assert plain is not None
    return Laboratory(plain.birth, plain.survival)


def cells_of_soup(search: Search, number: int) -> Cells2:
    """Return the cells with which a soup begins.

    Parameters
    ----------
    search
        What the census is of.
    number
        Number of the soup.
    """
    shape = (search.size, search.size)
    seed = (search.seed << 32) + number
    values = soup([search.density], seed % 2**64, shape)(Box.of(shape))
    return SYMMETRIES[search.symmetry](np.asarray(values, np.uint8))


def run_soup(search: Search, number: int, laboratory: Laboratory) -> Mapping[str, int]:
    """Return how many objects of each name a soup leaves.

    Parameters
    ----------
    search
        What the census is of.
    number
        Number of the soup.
    laboratory
        Clusters that have been run before.
    """
    cells = cells_of_soup(search, number)
    model = automaton(search.rule, cells.shape, init=cells, boundary="unbounded")
    watcher = _Ash(laboratory)
    options = RunOptions.of(steps=search.steps)
    execute(model, SerialComm(), options, (), [watcher], growing=Growing(model))
    return watcher.found or {UNSETTLED: 1}


class _Ash(Observer):
    """Observer that ends the run of a soup when only known objects are left."""

    schedule = Schedule(steps=LOOKS)

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._before: Cells | None = None
        self.found: Mapping[str, int] | None = None

    def observe(self, simulation: Simulation) -> None:
        """Compare the cells with those that the objects of the last look would have become."""
        points = sparse_cells(simulation.model, simulation.engine, "cell").points
        now: Cells = frozenset(map(tuple, points.tolist()))
        if not now:
            self.found = {}
        elif self._before is not None and (len(now) == len(self._before) or simulation.step % (SELDOM * LOOKS) == 0):
            self.found = objects(self._laboratory, self._before, now, LOOKS)
        self._before = now
        if self.found is not None:
            simulation.end("only known objects are left")
