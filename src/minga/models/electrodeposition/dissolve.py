"""Dissolution of the deposit: cells that have grown turn back into solution where a reverse current takes their metal.

The volume that is owed becomes negative. Once it makes up a cell, a cell of the deposit beside the solution is drawn by
the same race as for growth, with the flux that leaves it in place of the one that enters, and every cell that is drawn
receives its share of the ions in the solution beside it: they spread evenly over the room and the cell. No ion is
created or lost. What was solid at the start is part of the electrode, and stays.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.lang.math import log
from minga.lang.random import random
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import CATHODE, FLUID, Problem
from minga.models.electrodeposition.race import HALF_A_WORD, NOBODY, Race, neighbours, room_beside
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.transport import Transport
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field

__all__ = ["Dissolving"]

Readers = Sequence[CellReader]

MOST: Final = 0.75
"""Largest fraction of its ions that a cell of solution passes on to the cells that dissolve beside it."""


@dataclass(frozen=True, eq=False)
class Dissolving:
    """The race of the cells that dissolve, and the change of those that are drawn: `race.turning` is 1 there.

    Attributes
    ----------
    number
        Index of the species that the metal consists of.
    rates
        Fields of dc/dt of each species; they move with the ions.
    given
        1 in cells that were solid at the start; None if there were none.
    asks
        The fraction of the ions beside it that a cell asks for; 0 in cells that do not dissolve.
    limits
        The fraction of what it is asked for that a cell of solution passes on.
    shares
        What each volume of solution passes on, per fraction that is asked for, for three values at once.
    """

    problem: Problem
    state: State
    lengths: Lengths
    transport: Transport
    number: int
    rates: Sequence[Field]
    race: Race
    given: Field | None = field(init=False)
    asks: Field = field(init=False)
    limits: Field = field(init=False)
    shares: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid, put, zero = self.problem.grid, object.__setattr__, fixed(0.0)
        solid = self.problem.kinds is not None and bool(np.any(self.problem.kinds == CATHODE))
        put(self, "given", Field("solid at the start", grid, "u1") if solid else None)
        put(self, "asks", Field("fraction asked for", grid, boundary=zero))
        put(self, "limits", Field("fraction passed on", grid, boundary=zero))
        names = ("passed on", "passed on before", "rate passed on")
        put(self, "shares", tuple(Field(name, grid, boundary=zero) for name in names))

    @property
    def initial(self) -> Mapping[Field, Any]:
        """Fields that a Model must declare, with their values."""
        return {} if self.given is None else {self.given: np.asarray(self.problem.kinds == CATHODE, np.uint8)}

    def start(self, program: Program) -> None:
        """Record the arrival times of the cells of the deposit that lose metal; no cell is drawn yet."""
        transport, ions = self.transport, self.state.concentration[self.number].now
        ups, downs = ([axis[self.number] for axis in side] for side in (transport.up, transport.down))
        made = leave(self.lengths, self.race.exponent)
        program.apply(
            made, self.state.kind, ions, ups, downs, self.lengths.fields, [] if self.given is None else [self.given],
            self.race.arrival, self.race.turning,
        )  # fmt: skip

    def record(self, program: Program) -> None:
        """Record that the cells that have been drawn become solution."""
        state, lengths, turning = self.state, self.lengths, self.race.turning
        program.apply(ask(lengths), state.kind, turning, lengths.fields, self.asks)
        program.apply(limit(lengths.ndim), state.kind, self.asks, self.limits)
        for ions, rate in zip(state.concentration, self.rates, strict=True):
            levels = [ions.now, ions.previous, rate.now]
            program.apply(offer(lengths.ndim), self.limits, levels, self.shares)
            program.apply(receive(lengths), turning, self.asks, self.shares, lengths.fields, levels)
        phi = state.potential
        program.apply(look_around(lengths.ndim), state.kind, phi.now, self.shares[0])
        program.apply(open_cells, turning, self.shares[0], state.kind, phi.now, phi.previous)


@functools.cache
def _sides(ndim: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return the axis and the offset of each neighbour of a cell."""
    return tuple((axis, step(ndim, axis, side)) for axis in range(ndim) for side in (-1, 1))


def leave(lengths: Lengths, exponent: float) -> Kernel:
    """Return the kernel of the logarithm of each deposited cell's arrival time, which also clears all marks."""
    ndim = lengths.ndim
    here = (0,) * ndim

    @kernel
    def arrival_of_dissolving(
        kind: CellReader, c: CellReader, ups: Readers, downs: Readers, widths: Readers, given: Readers,
        arrival: CellReader, turning: CellReader,
    ) -> None:  # fmt: skip
        lost = as_node(0.0)
        for axis in range(ndim):
            up, down = step(ndim, axis, 1), step(ndim, axis, -1)
            lost = lost + where(kind[up] == FLUID, ups[axis][up] - downs[axis][up] * c[up], 0.0)
            lost = lost + where(kind[down] == FLUID, downs[axis][here] - ups[axis][here] * c[down], 0.0)
        runs = (kind[here] == CATHODE) & (lost > 0.0)
        for first in given:
            runs = runs & (first[here] == 0)
        weight = where(runs, lost, 1.0) / volume(lengths, widths)
        arrival[here] = where(runs, log(-log(random() + HALF_A_WORD)) - exponent * log(weight), NOBODY)
        turning[here] = 0

    return arrival_of_dissolving


def ask(lengths: Lengths) -> Kernel:
    """Return the kernel of the fraction that a cell needs of the ions beside it to hold as many as they do."""
    here = (0,) * lengths.ndim

    @kernel
    def ask_for_ions(kind: CellReader, turning: CellReader, widths: Readers, asks: CellReader) -> None:
        size, room = volume(lengths, widths), room_beside(lengths, kind, widths)
        asks[here] = where(turning[here] > 0, size / (size + room), 0.0)

    return ask_for_ions


def _asked(asks: CellReader, ndim: int) -> Node:
    total = as_node(0.0)
    for _, offset in _sides(ndim):
        total = total + asks[offset]
    return total


def limit(ndim: int) -> Kernel:
    """Return the kernel of the fraction of what it is asked for that each cell of solution passes on."""
    here = (0,) * ndim

    @kernel
    def limit_of_ions(kind: CellReader, asks: CellReader, limits: CellReader) -> None:
        total = _asked(asks, ndim)
        much = total > MOST
        limits[here] = where(kind[here] == FLUID, where(much, MOST / where(much, total, 1.0), 1.0), 0.0)

    return limit_of_ions


def offer(ndim: int) -> Kernel:
    """Return the kernel of what the solution passes on per fraction that is asked for."""
    here = (0,) * ndim

    @kernel
    def offer_solution(limits: CellReader, values: Readers, shares: Readers) -> None:
        for value, share in zip(values, shares, strict=True):
            share[here] = limits[here] * value[here]

    return offer_solution


def receive(lengths: Lengths) -> Kernel:
    """Return the kernel that moves ions from the solution to the cells that dissolve beside it."""
    ndim = lengths.ndim
    here = (0,) * ndim

    @kernel
    def receive_ions(turning: CellReader, asks: CellReader, shares: Readers, widths: Readers, values: Readers) -> None:
        asked = _asked(asks, ndim)
        for share, value in zip(shares, values, strict=True):
            received = as_node(0.0)
            for axis, offset in neighbours(lengths.grid):
                wide = as_node(lengths.width(widths, axis, offset[axis])) / lengths.width(widths, axis)
                received = received + wide * share[offset]
            value[here] = where(turning[here] > 0, asks[here] * received, value[here] - asked * share[here])

    return receive_ions


def look_around(ndim: int) -> Kernel:
    """Return the kernel of the mean potential of the solution beside each cell."""
    here = (0,) * ndim

    @kernel
    def mean_potential(kind: CellReader, phi: CellReader, mean: CellReader) -> None:
        total, count = as_node(0.0), as_node(0.0)
        for _, offset in _sides(ndim):
            fluid = kind[offset] == FLUID
            total, count = total + where(fluid, phi[offset], 0.0), count + where(fluid, 1.0, 0.0)
        mean[here] = total / mg.max(count, 1.0)

    return mean_potential


@kernel
def open_cells(turning: CellReader, mean: CellReader, kind: CellReader, phi: CellReader, previous: CellReader) -> None:
    """Make the cells that dissolved a part of the solution."""
    here = (0,) * len(kind.axes)
    opens = turning[here] > 0
    phi[here] = where(opens, mean[here], phi[here])
    previous[here] = where(opens, mean[here], previous[here])
    kind[here] = where(opens, FLUID, kind[here])
