"""Cells that turn solid: their ions move to the solution next to them, and the flow around them stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import as_node, where
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import CATHODE, FLUID
from minga.models.electrodeposition.race import neighbours, room_beside
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.state import State
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Vacating"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Vacating:
    """The change of the cells that have been drawn: `turning` is 1 there. No two of them are neighbours.

    Attributes
    ----------
    rates
        Fields of dc/dt of each species; they move with the ions.
    shares
        What each volume of solution receives from a cell: concentrations now and before, and rates.
    """

    state: State
    lengths: Lengths
    rates: Sequence[Field]
    turning: Field
    shares: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid = self.lengths.grid
        names = ("share", "older share", "share of rate")
        object.__setattr__(self, "shares", tuple(Field(name, grid, boundary=fixed(0.0)) for name in names))

    def record(self, program: Program) -> None:
        """Record that the cells become part of the cathode."""
        state, lengths, grid = self.state, self.lengths, self.lengths.grid
        for ions, rate in zip(state.concentration, self.rates, strict=True):
            levels = [ions.now, ions.previous, rate.now]
            program.apply(offer(lengths), state.kind, self.turning, levels, lengths.fields, self.shares)
            program.apply(accept(grid), state.kind, self.turning, self.shares, levels)
        for axis, velocity in enumerate(state.velocity):
            program.apply(hold(grid.ndim, axis), self.turning, velocity.now, velocity.previous)
        program.apply(settle, self.turning, state.kind, state.potential.now, state.potential.previous)


def offer(lengths: Lengths) -> Kernel:
    """Return the kernel of what the solution beside a cell receives from it, evenly by volume."""
    here = (0,) * lengths.ndim

    @kernel
    def offer_ions(kind: CellReader, turning: CellReader, values: Readers, widths: Readers, shares: Readers) -> None:
        room, solid = room_beside(lengths, kind, widths), turning[here] > 0
        quotient = where(solid, volume(lengths, widths), 0.0) / where(solid, room, 1.0)
        for value, share in zip(values, shares, strict=True):
            share[here] = quotient * value[here]

    return offer_ions


def accept(grid: Grid) -> Kernel:
    """Return the kernel that adds to the solution what the cells beside it offer, and empties these."""
    here = (0,) * grid.ndim

    @kernel
    def accept_ions(kind: CellReader, turning: CellReader, shares: Readers, values: Readers) -> None:
        fluid, solid = kind[here] == FLUID, turning[here] > 0
        for share, value in zip(shares, values, strict=True):
            received = as_node(0.0)
            for _, offset in neighbours(grid):
                received = received + share[offset]
            value[here] = where(solid, 0.0, where(fluid, value[here] + received, value[here]))

    return accept_ions


def hold(ndim: int, axis: int) -> Kernel:
    """Return the kernel that stops the flow through the faces of a cell turning solid."""
    here, down = (0,) * ndim, step(ndim, axis, -1)

    @kernel
    def hold_velocity(turning: CellReader, now: CellReader, previous: CellReader) -> None:
        solid = (turning[here] > 0) | (turning[down] > 0)
        now[here] = where(solid, 0.0, now[here])
        previous[here] = where(solid, 0.0, previous[here])

    return hold_velocity


@kernel
def settle(turning: CellReader, kind: CellReader, phi: CellReader, previous: CellReader) -> None:
    """Make the cells that turned solid a part of the cathode."""
    here = (0,) * len(kind.axes)
    solid = turning[here] > 0
    phi[here] = where(solid, 0.0, phi[here])
    previous[here] = where(solid, 0.0, previous[here])
    kind[here] = where(solid, CATHODE, kind[here])
