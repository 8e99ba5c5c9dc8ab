"""Growth of the deposit: cells of solution turn solid as the charge that has passed fills them.

After every accepted step, the amount of metal that entered the cathode, as recorded by the transport, is added to a
pending volume. Before the next step, as long as that volume fills a cell, a cell is drawn among the cells of solution
next to the cathode, with probabilities proportional to (flux into the metal / volume)**eta: eta = 1 is the
dielectric-breakdown model in the field of the ions, eta = 0 Eden's model (Niemeyer, Pietronero and Wiesmann, Phys. Rev.
Lett. 52, 1984). The draw is an exponential race, argmin(-log(u) / weight): one reduction without ordered sums, so that
the same cell wins however the grid is cut. Its random numbers are keyed by the seed, the cell and the number of cells
that have grown before.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

import numpy as np

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.math import log
from minga.lang.random import random
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, Growth, Problem
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.transport import Transport, volume
from minga.solve.laplacian import step
from minga.space.field import STEP, Field, Register, Slot
from minga.space.grid import Grid

__all__ = ["DepositGrowth"]

Readers = Sequence[CellReader]

TURNING: Final = 4
"""Kind of a cell while it turns solid, until its ions have left it."""
AT_ONCE: Final = 0.15
"""Fraction of the cells on the cathode's plane that one step may fill at most; steps settle at a fifth of it."""
NOBODY: Final = 1e300
"""Arrival time of cells that do not take part in the race."""
HALF_A_WORD: Final = 2.0**-33
"""Offset that keeps uniform numbers strictly between 0 and 1."""


@dataclass(frozen=True, eq=False)
class DepositGrowth:
    """Growth of the deposit, recorded around each step.

    Attributes
    ----------
    rates
        Fields of dc/dt of each species; they move with the ions.
    flux
        Flux of the ion from each cell into the cathode in the last step, mol/s.
    passed, lately
        Amount of the ion that has entered the cathode since the beginning, and in the last step, mol.
    owed
        Volume of deposited metal that no cell has taken yet, m3.
    cells, volume
        Number of cells that have grown, and their volume, m3.
    added
        Number of cells that have grown since the last step.
    reached
        1 once the deposit touches the anode.
    """

    problem: Problem
    state: State
    lengths: Lengths
    transport: Transport
    rates: Sequence[Field]
    flux: Field = field(init=False)
    passed: Register = field(default_factory=lambda: Register("passed"))
    lately: Register = field(default_factory=lambda: Register("passed lately"))
    owed: Register = field(default_factory=lambda: Register("owed volume"))
    cells: Register = field(default_factory=lambda: Register("cells grown", "i8"))
    volume: Register = field(default_factory=lambda: Register("grown volume"))
    added: Register = field(default_factory=lambda: Register("cells added", "i8"))
    reached: Register = field(default_factory=lambda: Register("reached", "i8"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "flux", Field("flux into deposit", self.problem.grid, unit="mol/s"))

    @property
    def growth(self) -> Growth:
        """Settings of the growth."""
        assert self.problem.growth is not None
        return self.problem.growth

    @property
    def number(self) -> int:
        """Index of the species that is deposited."""
        return [s.name for s in self.problem.species].index(self.growth.ion)

    @property
    def per_mol(self) -> float:
        """Volume of deposit per mole of the ion, m3/mol."""
        return self.growth.volume / (1.0 - self.growth.porosity)

    def observe(self, program: Program) -> dict[str, Register]:
        """Record the observables of the deposit, and return their registers by name.

        They are its number of cells, its volume (m3), its height (m, of the tallest finger above the cathode's plane),
        the mean speed of its front since the beginning (m/s), and the charge that the ions brought (C). Cells, volume
        and charge count what has grown, without solids that were there at the start.
        """
        problem = self.problem
        first = first_deposit(problem)
        found = program.apply(measure_deposit(self.lengths), self.state.kind, self.lengths.fields)
        assert isinstance(found, SimpleNamespace)
        ion = problem.species[self.number]
        passed = as_node(self.state.time) > 0.0
        values: dict[str, Node] = {
            "deposit_cells": found.cells - first.cells,
            "deposit_volume": found.volume - first.volume,
            "deposit_charge": ion.charge * problem.constants.faraday * as_node(self.passed),
            "deposit_height": as_node(found.height),
            "front_speed": where(passed, (found.height - first.height) / where(passed, self.state.time, 1.0), 0.0),
        }
        seen = {name: Register(f"observed {name}", value.dtype) for name, value in values.items()}
        for name, register in seen.items():
            program.let(register, values[name])
        return seen

    @property
    def at_once(self) -> float:
        """Volume that one step may deposit, m3: limited, because cells that turn solid together ignore one another."""
        grid = self.problem.grid
        return smallest_cell(grid) * max(2.0, AT_ONCE * grid.size / grid.shape[grid.axis("y")])

    @property
    def amount(self) -> Node:
        """Volume that the last accepted step deposited, as a fraction of the volume that it may deposit."""
        return self.lately * (self.per_mol / self.at_once)

    def fill(self, program: Program) -> None:
        """Record the solidification of cells for the volume that was deposited."""
        program.let(self.added, 0)
        more = Register("more to grow", "bool")
        smallest = smallest_cell(self.problem.grid)
        program.let(more, (self.owed >= smallest) & (self.reached == 0))
        with program.repeat(until=~more):
            place, found = self._draw(program)
            drawn = self._look(program, place)
            program.let(more, found & (self.owed >= drawn.size))
            with program.when(more):
                # The last cell of solution before the anode stays: its ions have nowhere to go, and the run ends.
                with program.when(drawn.room > 0.0):
                    self._turn(program, place, drawn)
                    program.let(self.owed, self.owed - drawn.size)
                    program.let(self.volume, self.volume + drawn.size)
                    program.let(self.cells, self.cells + 1)
                    program.let(self.added, self.added + 1)
                program.let(self.reached, where(drawn.touches > 0, 1, 0))
                program.let(more, (self.owed >= smallest) & (self.reached == 0))

    def book(self, program: Program) -> None:
        """Record the amount that an accepted step deposited, which its time formula removed from the solution."""
        transport, formula, number = self.transport, self.transport.formula, self.number
        ups, downs = ([axis[number] for axis in side] for side in (transport.up, transport.down))
        total = program.apply(
            into_cathode(self.problem.grid),
            self.state.kind,
            self.state.concentration[number].now,
            ups,
            downs,
            self.flux,
        )
        assert isinstance(total, Register)
        program.let(self.lately, (total + formula.before * self.lately) / formula.rate)
        program.let(self.passed, self.passed + self.lately)
        program.let(self.owed, self.owed + self.lately * self.per_mol)

    def _draw(self, program: Program) -> tuple[Register, Node]:
        """Record the race; return the winning cell and whether there is one.

        The number of cells that have grown takes the place of the step in the random generator.
        """
        kept = Register("step of run", "u8")
        program.let(kept, STEP)
        program.let(STEP, cast(as_node(self.cells), "u8"))
        won = program.apply(
            race_for_growth(self.lengths, self.growth.exponent), self.state.kind, self.flux, self.lengths.fields
        )
        program.let(STEP, kept)
        assert isinstance(won, SimpleNamespace)
        return won.place, won.time < NOBODY

    def _look(self, program: Program, place: Register) -> SimpleNamespace:
        """Record a look at the cell: its size, the `room` next to it, whether it touches the anode, and its ions."""
        ions, older, rates = self._ions()
        found = program.apply(
            look_at_cell(self.lengths, self.problem.grid), self.state.kind, ions, older, rates, self.lengths.fields,
            place=place,
        )  # fmt: skip
        assert isinstance(found, SimpleNamespace)
        return found

    def _ions(self) -> tuple[list[Slot], list[Slot], list[Slot]]:
        ions = self.state.concentration
        return [c.now for c in ions], [c.previous for c in ions], [r.now for r in self.rates]

    def _turn(self, program: Program, place: Register, drawn: SimpleNamespace) -> None:
        """Record that the cell turns solid and its ions move to the solution next to it."""
        state, grid = self.state, self.problem.grid
        program.apply(mark(grid), state.kind, place=place)
        for number, (now, older, rate) in enumerate(zip(*self._ions(), strict=True)):
            shares = {name: getattr(drawn, f"{name}{number}") / drawn.room for name in ("amount", "older", "rate")}
            program.apply(spread(grid), state.kind, now, older, rate, **shares)
        for axis, velocity in enumerate(state.velocity):
            program.apply(hold(grid.ndim, axis), state.kind, velocity.now, velocity.previous)
        program.apply(settle, state.kind, state.potential.now, state.potential.previous)


@dataclass(frozen=True, slots=True)
class Deposit:
    """Metal on the cathode's plane: number of cells, volume (m3), and height of the tallest finger (m)."""

    cells: int
    volume: float
    height: float


def first_deposit(problem: Problem) -> Deposit:
    """Return the solid cathode that a problem begins with."""
    if problem.kinds is None:
        return Deposit(0, 0.0, 0.0)
    grid, there = problem.grid, problem.kinds == CATHODE
    sizes = functools.reduce(np.multiply.outer, [grid.widths(a) for a in range(grid.ndim)])
    y = grid.axis("y")
    tops = (grid.faces(y)[1:] - grid.faces(y)[0])[np.any(there, axis=tuple(a for a in range(grid.ndim) if a != y))]
    return Deposit(int(there.sum()), float(sizes[there].sum()), float(tops.max(initial=0.0)))


def smallest_cell(grid: Grid) -> float:
    """Return the volume of the smallest cell, m3."""
    return float(np.prod([grid.widths(axis).min() for axis in range(grid.ndim)]))


# In kernels ----------------------------------------------------------------------------------------------------------
def _beside(grid: Grid) -> list[tuple[int, tuple[int, ...]]]:
    """Return the axis and the offset of each neighbour of a cell, except where that is the cell itself."""
    axes = [a for a in range(grid.ndim) if grid.shape[a] > 1 or not grid.periodic[a]]
    return [(a, step(grid.ndim, a, side)) for a in axes for side in (-1, 1)]


def _is(place: Node, grid: Grid) -> Node:
    """Return whether the cell has this row-major number."""
    number: Node = mg.index(0, "i8")
    for axis in range(1, grid.ndim):
        number = number * grid.shape[axis] + mg.index(axis, "i8")
    return number == place


def into_cathode(grid: Grid) -> Kernel:
    """Return the kernel of the flux of an ion from each cell into the cathode next to it, and of its sum."""
    ndim = grid.ndim
    here = (0,) * ndim

    @kernel
    def flux_into_cathode(kind: CellReader, c: CellReader, ups: Readers, downs: Readers, flux: CellReader) -> Reduced:
        total = as_node(0.0)
        for axis in range(ndim):
            up, down = step(ndim, axis, 1), step(ndim, axis, -1)
            total = total + where(kind[down] == CATHODE, downs[axis][here] * c[here] - ups[axis][here], 0.0)
            total = total + where(kind[up] == CATHODE, ups[axis][up] * c[here] - downs[axis][up], 0.0)
        value = where(kind[here] == FLUID, total, 0.0)
        flux[here] = value
        return mg.sum(value)

    return flux_into_cathode


def race_for_growth(lengths: Lengths, exponent: float) -> Kernel:
    """Return the kernel of the logarithm of each cell's arrival time, and of the first cell to arrive.

    Only cells take part that have solution next to them, where their ions can go, or the anode.
    """
    grid, here = lengths.grid, (0,) * lengths.ndim

    @kernel
    def race(kind: CellReader, flux: CellReader, widths: Readers) -> dict[str, Reduced]:
        beside = as_node(False)
        for _, offset in _beside(grid):
            beside = beside | (kind[offset] == FLUID) | (kind[offset] == ANODE)
        runs = (kind[here] == FLUID) & (flux[here] > 0.0) & beside
        weight = where(runs, flux[here], 1.0) / volume(lengths, widths)
        time = log(-log(random() + HALF_A_WORD)) - exponent * log(weight)
        shown = where(runs, time, NOBODY)
        return {"time": mg.min(shown), "place": mg.argmin(shown)}

    return race


def look_at_cell(lengths: Lengths, grid: Grid) -> Kernel:
    """Return the kernel that reads one cell and its neighbours."""
    ndim = grid.ndim
    here = (0,) * ndim

    @kernel
    def look(
        kind: CellReader, ions: Readers, older: Readers, rates: Readers, widths: Readers, *, place: Node
    ) -> dict[str, Reduced]:
        mine, size = _is(place, grid), volume(lengths, widths)
        room, touches = as_node(0.0), as_node(False)
        for axis, offset in _beside(grid):
            across = size / lengths.width(widths, axis) * lengths.width(widths, axis, offset[axis])
            room = room + where(kind[offset] == FLUID, across, 0.0)
            touches = touches | (kind[offset] == ANODE)
        found = {"size": mg.sum(where(mine, size, 0.0)), "room": mg.sum(where(mine, room, 0.0))}
        for number in range(len(ions)):
            for name, readers in (("amount", ions), ("older", older), ("rate", rates)):
                found[f"{name}{number}"] = mg.sum(where(mine, size * readers[number][here], 0.0))
        return {**found, "touches": mg.count(mine & touches)}

    return look


def mark(grid: Grid) -> Kernel:
    """Return the kernel that marks a cell as turning solid."""
    here = (0,) * grid.ndim

    @kernel
    def mark_cell(kind: CellReader, *, place: Node) -> None:
        kind[here] = where(_is(place, grid), TURNING, kind[here])

    return mark_cell


def spread(grid: Grid) -> Kernel:
    """Return the kernel that moves the ions of a cell turning solid to the adjacent solution, evenly by volume."""
    here = (0,) * grid.ndim

    @kernel
    def spread_ions(
        kind: CellReader, c: CellReader, before: CellReader, slope: CellReader, *, amount: Node, older: Node, rate: Node
    ) -> None:
        faces = as_node(0.0)
        for _, offset in _beside(grid):
            faces = faces + where(kind[offset] == TURNING, 1.0, 0.0)
        fluid, solid = kind[here] == FLUID, kind[here] == TURNING
        for target, share in ((c, amount), (before, older), (slope, rate)):
            value = target[here]
            target[here] = where(solid, 0.0, where(fluid, value + share * faces, value))

    return spread_ions


def hold(ndim: int, axis: int) -> Kernel:
    """Return the kernel that stops the flow through the faces of a cell turning solid."""
    here, down = (0,) * ndim, step(ndim, axis, -1)

    @kernel
    def hold_velocity(kind: CellReader, now: CellReader, previous: CellReader) -> None:
        solid = (kind[here] == TURNING) | (kind[down] == TURNING)
        now[here] = where(solid, 0.0, now[here])
        previous[here] = where(solid, 0.0, previous[here])

    return hold_velocity


def measure_deposit(lengths: Lengths) -> Kernel:
    """Return the kernel of the number of cells, the volume and the height of the cathode's metal."""
    grid, here = lengths.grid, (0,) * lengths.ndim
    y = grid.axis("y")
    plane = float(grid.faces(y)[0])

    @kernel
    def deposit(kind: CellReader, widths: Readers) -> dict[str, Reduced]:
        there = kind[here] == CATHODE
        top = mg.coordinate(y) + 0.5 * lengths.width(widths, y) - plane
        return {
            "cells": mg.count(there),
            "volume": mg.sum(where(there, volume(lengths, widths), 0.0)),
            "height": mg.max(where(there, top, 0.0)),
        }

    return deposit


@kernel
def settle(kind: CellReader, phi: CellReader, previous: CellReader) -> None:
    """Make the cell that turned solid a part of the cathode."""
    here = (0,) * len(kind.axes)
    solid = kind[here] == TURNING
    phi[here] = where(solid, 0.0, phi[here])
    previous[here] = where(solid, 0.0, previous[here])
    kind[here] = where(solid, CATHODE, kind[here])
