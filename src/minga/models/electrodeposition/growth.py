"""Growth of the deposit: cells of solution turn solid as the charge that has passed fills them.

After every accepted step, the amount of metal that entered the cathode, as recorded by the transport, is added to a
pending volume. Before the next step, as long as that volume fills a cell, a cell is drawn among the cells of solution
next to the cathode, with probabilities proportional to (flux into the metal / volume)**eta: eta = 1 is the
dielectric-breakdown model in the field of the ions, eta = 0 Eden's model (Niemeyer, Pietronero and Wiesmann, Phys. Rev.
Lett. 52, 1984). The draw is an exponential race (`race`): reductions without ordered sums, so that the same cells win
however the grid is cut. Its random numbers are keyed by the seed, the cell and the number of cells that have grown
before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

import numpy as np

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, cast, where
from minga.models.electrodeposition.charges import Charges, Passed
from minga.models.electrodeposition.deposits import first_deposit, measure_deposit
from minga.models.electrodeposition.dissolve import Dissolving
from minga.models.electrodeposition.groups import Salt, resolves_charge
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import CATHODE, FLUID, Growth, Problem
from minga.models.electrodeposition.race import NOBODY, Race
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.transport import Transport
from minga.models.electrodeposition.vacate import Vacating
from minga.solve.laplacian import step
from minga.space.field import STEP, Field, Register
from minga.space.grid import Grid

__all__ = ["DepositGrowth"]

Readers = Sequence[CellReader]

HIGH: Final = 1e300
"""Concentration that stands for cells that are not beside the cathode."""
COURANT: Final = 0.3
"""Fraction of its own volume that the fastest cell may deposit in one step; steps settle at a third of it."""
AT_ONCE: Final = 0.15
"""Fraction of the cells on the cathode's plane that one step may fill at most; steps settle at a third of it."""


@dataclass(frozen=True, eq=False)
class DepositGrowth:
    """Growth of the deposit, recorded around each step.

    Attributes
    ----------
    charges
        The ions that pass the electrodes.
    rates
        Fields of dc/dt of each species; they move with the ions.
    flux
        Flux of the ion from each cell into the cathode in the last step, mol/s.
    race, vacating, dissolving
        The draw of cells, and what happens to those that are drawn to turn solid, or to dissolve.
    owed
        Volume of deposited metal that no cell has taken yet, m3; negative if a reverse current has taken more.
    cells, volume
        Number of cells that have turned solid or dissolved, and the volume of the deposit, m3.
    fastest
        Largest fraction of its volume that a cell beside the cathode deposited in the last step.
    added
        Number of cells that have turned solid or dissolved since the last step.
    reached
        1 once the deposit touches the anode.
    compact
        Volume of the cells that are compact metal, m3, where a deposit begins compact.
    started, began
        1 once a deposit that begins compact has become porous, and the time when it did, s.
    beside
        The lowest concentration at the cathode after the last step, mol/m3, where a deposit begins compact.
    """

    problem: Problem
    state: State
    lengths: Lengths
    transport: Transport
    charges: Charges
    rates: Sequence[Field]
    flux: Field = field(init=False)
    race: Race = field(init=False)
    vacating: Vacating = field(init=False)
    dissolving: Dissolving = field(init=False)
    owed: Register = field(default_factory=lambda: Register("owed volume"))
    cells: Register = field(default_factory=lambda: Register("cells grown", "i8"))
    volume: Register = field(default_factory=lambda: Register("grown volume"))
    fastest: Register = field(default_factory=lambda: Register("largest part of a cell"))
    added: Register = field(default_factory=lambda: Register("cells added", "i8"))
    reached: Register = field(default_factory=lambda: Register("reached", "i8"))
    compact: Register = field(default_factory=lambda: Register("compact volume"))
    started: Register = field(default_factory=lambda: Register("porous", "i8"))
    began: Register = field(default_factory=lambda: Register("onset time"))
    beside: Register = field(default_factory=lambda: Register("concentration at cathode"))

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "flux", Field("flux into deposit", self.problem.grid, unit="mol/s"))
        put(self, "race", Race(self.lengths, self.growth.exponent, self.growth.radius, self.growth.grain))
        put(self, "vacating", Vacating(self.state, self.lengths, self.rates, self.race.turning))
        parts = self.problem, self.state, self.lengths, self.transport
        put(self, "dissolving", Dissolving(*parts, self.number, self.rates, self.race))

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
    def passed(self) -> Passed:
        """Amounts of the ion that enter the cathode."""
        return self.charges.passed[self.number][0]

    @property
    def per_mol(self) -> Node | float:
        """Volume of deposit per mole of the ion, m3/mol; that of metal before the onset, and if only that is left."""
        porous = self.growth.volume / (1.0 - self.growth.porosity)
        if self.growth.onset is None:
            return porous
        taken = (self.passed.lately < 0.0) & (self.volume <= self.compact)
        return where((self.started > 0) & ~taken, porous, self.growth.volume)

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
            "deposit_charge": ion.charge * problem.constants.faraday * as_node(self.passed.whole),
            "deposit_height": as_node(found.height),
            "front_speed": where(passed, (found.height - first.height) / where(passed, self.state.time, 1.0), 0.0),
        }
        seen = {name: Register(f"observed {name}", value.dtype) for name, value in values.items()}
        for name, register in seen.items():
            program.let(register, values[name])
        if self.growth.onset is not None:
            seen["onset_time"] = self.began
        return seen

    @property
    def at_once(self) -> float:
        """Volume that one step may deposit, m3: limited, because cells that turn solid together ignore one another."""
        grid = self.problem.grid
        return smallest_cell(grid) * max(2.0, AT_ONCE * grid.size / grid.shape[grid.axis("y")])

    @property
    def amount(self) -> Node:
        """Volume that the last accepted step deposited, on the whole or in one cell, as a fraction of its limit."""
        return mg.max(mg.abs(self.passed.lately) * (self.per_mol / self.at_once), self.fastest * (1.0 / COURANT))

    @property
    def fills(self) -> Node:
        """Condition that what was deposited may fill a cell."""
        return (self.owed >= smallest_cell(self.problem.grid)) & (self.reached == 0)

    def fill(self, program: Program) -> None:
        """Record the solidification of cells for the volume that was deposited."""
        kind = self.state.kind
        program.let(self.added, 0)
        more = Register("more to grow", "bool")
        program.let(more, self.fills)
        with program.when(more):
            self._keyed(program, lambda program: self.race.start(program, kind, self.flux))
            with program.repeat(until=~more):
                drawn = self.race.draw(program, kind)
                program.let(more, (drawn.time < NOBODY) & (self.owed >= drawn.size))
                with program.when(more):
                    # The last cell of solution before the anode stays: its ions have nowhere to go, and the run ends.
                    with program.when(drawn.room > 0.0):
                        self.race.mark(program, drawn.place)
                        program.let(self.owed, self.owed - drawn.size)
                        program.let(self.volume, self.volume + drawn.size)
                        if self.growth.onset is not None:
                            program.let(self.compact, where(self.started > 0, self.compact, self.volume))
                        program.let(self.cells, self.cells + 1)
                        program.let(self.added, self.added + 1)
                    program.let(self.reached, where(drawn.touches > 0, 1, 0))
                    program.let(more, self.fills)
            with program.when(self.added > 0):
                self.vacating.record(program)
        self._dissolve(program, more)

    def _dissolve(self, program: Program, more: Register) -> None:
        """Record the dissolution of cells for the volume that a reverse current has taken."""
        smallest = smallest_cell(self.problem.grid)
        program.let(more, (self.owed <= -smallest) & (self.volume > 0.0))
        with program.when(more):
            self._keyed(program, self.dissolving.start)
            with program.repeat(until=~more):
                drawn = self.race.draw(program, self.state.kind)
                program.let(more, (drawn.time < NOBODY) & (self.owed <= -drawn.size))
                with program.when(more):
                    self.race.mark(program, drawn.place)
                    program.let(self.owed, self.owed + drawn.size)
                    program.let(self.volume, self.volume - drawn.size)
                    if self.growth.onset is not None:
                        self._reach_compact(program, drawn.size)
                    program.let(self.cells, self.cells + 1)
                    program.let(self.added, self.added + 1)
                    program.let(more, self.owed <= -smallest)
            with program.when(self.added > 0):
                self.dissolving.record(program)

    def _reach_compact(self, program: Program, size: Node) -> None:
        """Record that compact metal follows after the last porous cell; what is owed beyond it is less of it."""
        porous = (self.started > 0) & (self.volume + size > self.compact)
        last = porous & (self.volume <= self.compact)
        program.let(self.owed, where(last, self.owed * (1.0 - self.growth.porosity), self.owed))
        program.let(self.compact, mg.min(self.compact, self.volume))

    def _keyed(self, program: Program, start: Callable[[Program], None]) -> None:
        """Record the start of a race; the number of cells, or blocks, that have changed takes the place of the step."""
        kept = Register("step of run", "u8")
        program.let(kept, STEP)
        changed = as_node(self.cells)
        program.let(STEP, cast(changed // math.prod(self.race.block) if self.growth.grain else changed, "u8"))
        start(program)
        program.let(STEP, kept)

    def book(self, program: Program) -> None:
        """Record the volume and the fluxes of an accepted step, whose charges are committed."""
        ups, downs = ([axis[self.number] for axis in side] for side in (self.transport.up, self.transport.down))
        ions = self.state.concentration[self.number].now
        fastest = program.apply(
            into_cathode(self.lengths), self.state.kind, ions, ups, downs, self.lengths.fields, self.flux
        )
        program.let(self.fastest, as_node(fastest) * self.state.dt * self.per_mol)
        if self.growth.onset is not None:
            self._watch(program, self.growth.onset)
        program.let(self.owed, self.owed + self.passed.lately * self.per_mol)

    def _watch(self, program: Program, onset: float) -> None:
        """Record whether the concentration at the cathode has fallen so far that the deposit becomes porous."""
        transport, salt = self.transport, Salt.of(self.problem.species)
        ion = self.problem.species[self.number]
        ups, downs = ([axis[self.number] for axis in side] for side in (transport.up, transport.down))
        # In a neutral salt the current through the half cell is carried by migration, too.
        alone = salt is None or resolves_charge(self.problem)
        share = 1.0 if alone or salt is None else 1.0 + ion.charge / abs(salt.anion.charge)
        made = at_cathode(self.lengths, share * ion.diffusivity)
        ions = self.state.concentration[self.number].now
        found = program.apply(made, self.state.kind, ions, ups, downs, self.lengths.fields)
        assert isinstance(found, Register)
        starts = Register("deposit becomes porous", "bool")
        program.let(starts, (self.started == 0) & (found < onset * ion.bulk))
        # The concentration is taken to fall linearly in the last step; the bath is the first one's beginning.
        before = where(self.state.time > self.state.dt, self.beside, ion.bulk)
        late = where(before > found, (onset * ion.bulk - found) / where(before > found, before - found, 1.0), 0.0)
        program.let(self.began, where(starts, self.state.time - mg.min(late, 1.0) * self.state.dt, self.began))
        program.let(self.beside, found)
        program.let(self.started, where(starts, 1, self.started))


def smallest_cell(grid: Grid) -> float:
    """Return the volume of the smallest cell, m3."""
    return float(np.prod([grid.widths(axis).min() for axis in range(grid.ndim)]))


# In kernels ----------------------------------------------------------------------------------------------------------
def into_cathode(lengths: Lengths) -> Kernel:
    """Return the kernel of the flux of an ion from each cell into the cathode next to it, mol/s.

    It returns the largest flux per volume of the cell, mol/m3/s.
    """
    ndim = lengths.ndim
    here = (0,) * ndim

    @kernel
    def flux_into_cathode(
        kind: CellReader, c: CellReader, ups: Readers, downs: Readers, widths: Readers, flux: CellReader
    ) -> Reduced:
        total = as_node(0.0)
        for axis in range(ndim):
            up, down = step(ndim, axis, 1), step(ndim, axis, -1)
            total = total + where(kind[down] == CATHODE, downs[axis][here] * c[here] - ups[axis][here], 0.0)
            total = total + where(kind[up] == CATHODE, ups[axis][up] * c[here] - downs[axis][up], 0.0)
        total = where(kind[here] == FLUID, total, 0.0)
        flux[here] = total
        return mg.max(mg.abs(total) / volume(lengths, widths))

    return flux_into_cathode


def at_cathode(lengths: Lengths, diffusivity: float) -> Kernel:
    """Return the kernel of the lowest concentration at the cathode, half a cell from where the fluxes begin."""
    ndim = lengths.ndim
    here = (0,) * ndim

    @kernel
    def concentration_at_cathode(
        kind: CellReader, c: CellReader, ups: Readers, downs: Readers, widths: Readers
    ) -> Reduced:
        least, size = as_node(HIGH), volume(lengths, widths)
        for axis in range(ndim):
            up, down, width = step(ndim, axis, 1), step(ndim, axis, -1), lengths.width(widths, axis)
            across = width * width / (2.0 * diffusivity * size)
            below = c[here] - across * (downs[axis][here] * c[here] - ups[axis][here])
            above = c[here] - across * (ups[axis][up] * c[here] - downs[axis][up])
            least = mg.min(least, where(kind[down] == CATHODE, below, HIGH))
            least = mg.min(least, where(kind[up] == CATHODE, above, HIGH))
        return mg.min(where(kind[here] == FLUID, least, HIGH))

    return concentration_at_cathode
