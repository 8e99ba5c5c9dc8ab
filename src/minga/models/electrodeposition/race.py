"""The race by which cells are drawn for growth, and the marks of the cells that have been drawn.

Every cell beside the cathode arrives at the time -log(u) / weight, and cells are drawn as they arrive. All cells of one
batch are drawn by the same fluxes, so none is drawn beside another: next to a fresh tip these fluxes are out of date.

With a radius w, weights follow from the flux and the volume of the cells around, averaged with a bell-shaped weight
whose standard deviation along each axis is w/2. Branches are then about as wide as w, whatever the width of cells is.

With a grain g, the cells of each block of the width g share their u, until the volume of a block has been deposited.
The quantum of chance is then g**ndim, whatever the width of cells is, and the blocks of a seed draw the same numbers on
any grid.
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
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.math import log
from minga.lang.random import random, random_at
from minga.models.electrodeposition.averages import record_averages, rounds_over
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import ANODE, FLUID, Problem
from minga.models.electrodeposition.rows import volume
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Register
from minga.space.grid import Grid

__all__ = ["NOBODY", "Race", "check_grain", "neighbours"]

Readers = Sequence[CellReader]

NOBODY: Final = 1e300
"""Arrival time of cells that do not take part in the race."""
HALF_A_WORD: Final = 2.0**-33
"""Offset that keeps uniform numbers strictly between 0 and 1."""


@dataclass(frozen=True, eq=False)
class Race:
    """Fields of a race.

    Attributes
    ----------
    lengths
        The widths of cells.
    exponent
        Exponent of the weights.
    radius
        Radius over which fluxes are averaged, m; 0: each cell counts by itself.
    grain
        Width of the blocks that share their random numbers, m; 0: each cell draws by itself.
    arrival
        Logarithm of each cell's arrival time.
    turning
        1 in cells that have been drawn, otherwise 0.
    """

    lengths: Lengths
    exponent: float
    radius: float = 0.0
    grain: float = 0.0
    arrival: Field = field(init=False)
    turning: Field = field(init=False)
    mean: tuple[Field, Field] = field(init=False)

    def __post_init__(self) -> None:
        grid, put = self.lengths.grid, object.__setattr__
        put(self, "arrival", Field("arrival", grid))
        put(self, "turning", Field("turning", grid, "u1", boundary=fixed(0)))
        means = ("mean flux", "mean volume")
        put(self, "mean", tuple(Field(name, grid, slots=2, boundary=fixed(0.0)) for name in means))

    @property
    def rounds(self) -> tuple[int, ...]:
        """Number of averages over three cells along each axis."""
        return rounds_over(self.lengths.grid, self.radius)

    @property
    def block(self) -> tuple[int, ...]:
        """Number of cells along each axis of a block that shares its random numbers."""
        grid = self.lengths.grid
        return tuple(max(1, round(self.grain / float(grid.widths(axis)[0]))) for axis in range(grid.ndim))

    def start(self, program: Program, kind: Field, flux: Field) -> None:
        """Record the arrival times of all cells; no cell is drawn yet."""
        lengths = self.lengths
        flow, size = self.mean
        program.apply(weigh(lengths), kind, flux, lengths.fields, flow.now, size.now)
        record_averages(program, self.mean, self.rounds)
        made = arrive(lengths.grid.shape, self.exponent, self.block if self.grain else None)
        program.apply(made, kind, flux, flow.now, size.now, self.arrival, self.turning)

    def draw(self, program: Program, kind: Field) -> SimpleNamespace:
        """Record the search for the next cell to arrive.

        It returns registers: the cell's `time` and `place`, its `size` (m3), the `room` of the solution next to it
        (m3), and whether it `touches` the anode (0 or more).
        """
        won = program.apply(first_to_arrive(self.lengths.grid), kind, self.turning, self.arrival)
        assert isinstance(won, SimpleNamespace)
        found = program.apply(look_at_cell(self.lengths), kind, self.lengths.fields, place=won.place)
        return SimpleNamespace(**vars(won), **vars(found))

    def mark(self, program: Program, place: Register) -> None:
        """Record that a cell has been drawn."""
        program.apply(mark_cell(self.lengths.grid), self.turning, place=place)


def check_grain(problem: Problem) -> None:
    """Reject a grain that is narrower than a cell, and a grain or a radius that is wider than the whole bath.

    Raises
    ------
    CaseError
        If the growth has such a grain or radius.
    """
    growth = problem.growth
    if growth is None:
        return
    longest = max(float(np.ptp(problem.grid.faces(axis))) for axis in range(problem.grid.ndim))
    for name, length in (("grain", growth.grain), ("radius", growth.radius)):
        if length > longest:
            raise CaseError(
                f"the {name} of {length:.3g} m is wider than the whole bath, {longest:.3g} m",
                key=f"electrodeposition.growth.{name}",
                remedy="give a length of one or more cells, such as that of a branch, or leave it out",
            )
    widest = max(float(problem.grid.widths(axis).max()) for axis in range(problem.grid.ndim))
    if 0.0 < growth.grain < (1.0 - 1e-6) * widest:
        raise CaseError(
            f"the grain of {growth.grain:.3g} m is narrower than a cell, {widest:.3g} m",
            key="electrodeposition.growth.grain",
            remedy="refine the grid, or give a grain of one or more cells",
        )


# In kernels ----------------------------------------------------------------------------------------------------------
def neighbours(grid: Grid) -> list[tuple[int, tuple[int, ...]]]:
    """Return the axis and the offset of each neighbour of a cell, except where that is the cell itself."""
    axes = [a for a in range(grid.ndim) if grid.shape[a] > 1 or not grid.periodic[a]]
    return [(a, step(grid.ndim, a, side)) for a in axes for side in (-1, 1)]


def _is(place: Node, grid: Grid) -> Node:
    """Return whether the cell has this row-major number."""
    number: Node = mg.index(0, "i8")
    for axis in range(1, grid.ndim):
        number = number * grid.shape[axis] + mg.index(axis, "i8")
    return number == place


def weigh(lengths: Lengths) -> Kernel:
    """Return the kernel of the flux and the volume of the cells from which the cathode draws current."""
    here = (0,) * lengths.ndim

    @kernel
    def weigh_cells(kind: CellReader, flux: CellReader, widths: Readers, flow: CellReader, size: CellReader) -> None:
        draws = (kind[here] == FLUID) & (flux[here] > 0.0)
        flow[here] = where(draws, flux[here], 0.0)
        size[here] = where(draws, volume(lengths, widths), 0.0)

    return weigh_cells


def _shared(shape: tuple[int, ...], block: tuple[int, ...]) -> Node:
    """Return the random number of the block that the cell belongs to."""
    numbers = [cast(mg.index(axis, "i8") // width, "u4") for axis, width in enumerate(block)]
    row = cast(as_node(0), "u4")
    for axis, number in enumerate(numbers[:-1]):
        row = row * cast(as_node(-(-shape[axis] // block[axis])), "u4") + number
    return random_at((numbers[-1], row))


@functools.cache
def arrive(shape: tuple[int, ...], exponent: float, block: tuple[int, ...] | None = None) -> Kernel:
    """Return the kernel of the logarithm of each cell's arrival time, which also clears all marks."""
    here = (0,) * len(shape)

    @kernel
    def arrival_of_cells(
        kind: CellReader, flux: CellReader, flow: CellReader, size: CellReader, arrival: CellReader, turning: CellReader
    ) -> None:
        runs = (kind[here] == FLUID) & (flux[here] > 0.0)
        weight = where(runs, flow[here], 1.0) / where(runs, size[here], 1.0)
        drawn = random() if block is None else _shared(shape, block)
        time = log(-log(drawn + HALF_A_WORD)) - exponent * log(weight)
        arrival[here] = where(runs, time, NOBODY)
        turning[here] = 0

    return arrival_of_cells


def first_to_arrive(grid: Grid) -> Kernel:
    """Return the kernel that finds the first cell to arrive.

    Only cells take part that have solution next to them, where their ions can go, or the anode, but no cell that has
    been drawn.
    """
    here = (0,) * grid.ndim

    @kernel
    def first_arrival(kind: CellReader, turning: CellReader, arrival: CellReader) -> dict[str, Reduced]:
        beside, free = as_node(False), turning[here] == 0
        for _, offset in neighbours(grid):
            beside = beside | (kind[offset] == FLUID) | (kind[offset] == ANODE)
            free = free & (turning[offset] == 0)
        time = where(beside & free, arrival[here], NOBODY)
        return {"time": mg.min(time), "place": mg.argmin(time)}

    return first_arrival


def look_at_cell(lengths: Lengths) -> Kernel:
    """Return the kernel that reads the size of one cell and what lies beside it."""
    grid = lengths.grid

    @kernel
    def look(kind: CellReader, widths: Readers, *, place: Node) -> dict[str, Reduced]:
        mine, size = _is(place, grid), volume(lengths, widths)
        room, touches = room_beside(lengths, kind, widths), as_node(False)
        for _, offset in neighbours(grid):
            touches = touches | (kind[offset] == ANODE)
        return {
            "size": mg.sum(where(mine, size, 0.0)),
            "room": mg.sum(where(mine, room, 0.0)),
            "touches": mg.count(mine & touches),
        }

    return look


def room_beside(lengths: Lengths, kind: CellReader, widths: Readers) -> Node:
    """Return the volume of the solution in the cells next to a cell."""
    size, room = volume(lengths, widths), as_node(0.0)
    for axis, offset in neighbours(lengths.grid):
        across = size / lengths.width(widths, axis) * lengths.width(widths, axis, offset[axis])
        room = room + where(kind[offset] == FLUID, across, 0.0)
    return room


def mark_cell(grid: Grid) -> Kernel:
    """Return the kernel that marks a cell as drawn."""
    here = (0,) * grid.ndim

    @kernel
    def mark(turning: CellReader, *, place: Node) -> None:
        turning[here] = where(_is(place, grid), 1, turning[here])

    return mark
