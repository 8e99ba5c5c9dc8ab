"""Implicit step of the concentrations in a given potential: coefficients of the faces, and the linear systems.

    g V c + sum over the faces of the outward flux = V (h0 c_now - h1 c_previous)

with g, h0, h1 those of the time formula and V the cell's volume. The matrix of each species is an M-matrix for any
step, so that concentrations stay positive where the right-hand side is. In one dimension the systems are solved
directly, by two sweeps for all species at once; otherwise by BiCGStab on rows divided by their diagonals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.couples import Couples, gains
from minga.models.electrodeposition.curvature import Curvature, curved
from minga.models.electrodeposition.electrodes import surfaces
from minga.models.electrodeposition.equilibrium import NAMES, Equilibrium, speciate
from minga.models.electrodeposition.faces import Drive, face_values, moving
from minga.models.electrodeposition.film import behind, film_fields
from minga.models.electrodeposition.formula import Formula
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import Problem, largest_given
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.species_flux import species_flux
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.systems import SUBSTITUTE, balance, eliminate, positive, right_side, rows
from minga.solve.biconjugate import Vectors, bicgstab, bicgstab_vectors
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot

__all__ = ["Transport"]

Readers = Sequence[CellReader]

CLIPPED: Final = 1e-3
"""Fraction of the error of a time step up to which a negative concentration becomes 0."""


@dataclass(frozen=True, eq=False)
class Transport:
    """Coefficients and linear systems of the concentrations.

    Attributes
    ----------
    drive
        Registers that drive the faces, by name: the arguments of `Drive`.
    tolerance
        Relative tolerance of the residual of a system.
    limit
        Largest number of iterations of a system.
    unsolved
        Register that counts systems that were not solved within `limit` iterations.
    exactness
        The tolerance of the next systems.
    up, down
        Coefficients by axis and species: the upward flux through a face is `up * low - down * high`, mol/s, where the
        concentration of a metal counts as 1.
    gain
        Coefficients by axis and species of what a metal gives of an ion, over the concentration of its partner beside
        the metal, m3/s; without those that no reaction forms from another.
    film
        Potential differences that films take, by axis.
    curvature
        Curvature of the deposit's surface, where it has a surface energy.
    equilibrium
        Fields of the local equilibrium, where the solution has one.
    """

    problem: Problem
    state: State
    lengths: Lengths
    drive: Mapping[str, Any]
    formula: Formula
    tolerance: float
    limit: int
    unsolved: Register
    up: tuple[tuple[Field, ...], ...] = field(init=False)
    down: tuple[tuple[Field, ...], ...] = field(init=False)
    gain: tuple[dict[int, Field], ...] = field(init=False)
    film: tuple[tuple[Field, ...], ...] = field(init=False)
    curvature: Curvature | None = field(init=False)
    equilibrium: tuple[Field, ...] = field(init=False)
    work: tuple[Field, ...] = field(init=False)
    vectors: Vectors | None = field(init=False)
    couples: Couples | None = field(init=False)
    iterations: Register = field(init=False)
    exactness: Register = field(default_factory=lambda: Register("tolerance of concentrations"))
    amounts: tuple[Register, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid = self.problem.grid

        def on_faces(word: str) -> tuple[tuple[Field, ...], ...]:
            return tuple(
                tuple(Field(f"{word} {s.name} {a}", grid, centre=a, unit="m3/s") for s in self.problem.species)
                for a in grid.axes
            )

        put = object.__setattr__
        put(self, "up", on_faces("up"))
        put(self, "down", on_faces("down"))
        put(self, "gain", gains(self.problem))
        put(self, "film", film_fields(self.problem))
        put(self, "curvature", Curvature.of(self.problem))
        zero = fixed(0.0)
        mixed = isinstance(self.problem.solution, Equilibrium)
        put(self, "equilibrium", tuple(Field(n, grid, boundary=zero) for n in NAMES) if mixed else ())
        names = [f"{s.name} {w}" for w in ("upper", "partial") for s in self.problem.species]
        if grid.ndim > 1:
            names = ["species right side", "species unknown"]
        put(self, "work", tuple(Field(n, grid, boundary=zero) for n in names))
        put(self, "vectors", bicgstab_vectors(self.work[1], name="species") if grid.ndim > 1 else None)
        put(self, "couples", Couples(self.problem) if self.problem.partners else None)
        put(self, "amounts", tuple(Register(f"amount of {s.name}") for s in self.problem.species))
        put(self, "iterations", Register("species iterations", "i8"))

    def set_faces(self, program: Program, potential: Slot, concentration: Sequence[Slot]) -> None:
        """Record the coefficients in a given potential; in a neutral bath they depend on the concentrations."""
        velocity = [v.now for v in self.state.velocity], [v.previous for v in self.state.velocity]
        self.equilibrate(program, concentration)
        for axis in range(self.problem.grid.ndim):
            program.apply(
                coefficients(self.problem, self.lengths, axis), self.state.kind, potential, list(concentration),
                *velocity, self.lengths.fields, self.up[axis], self.down[axis], list(self.gain[axis].values()),
                list(self.film[axis]), self.bent, list(self.equilibrium),
                **self.drive, ratio=self.formula.ratio,
            )  # fmt: skip

    def equilibrate(self, program: Program, concentration: Sequence[Slot]) -> None:
        """Record the local equilibrium at these concentrations, where the solution has one."""
        if isinstance(self.problem.solution, Equilibrium):
            made = speciate(self.problem.solution, self.problem.grid.ndim)
            program.apply(made, list(concentration), list(self.equilibrium))

    def solve(self, program: Program) -> None:
        """Record the next concentrations."""
        state, formula = self.state, self.formula
        numbers: dict[str, Any] = {"rate": formula.rate, "h0": formula.now, "h1": formula.before}
        now = [c.now for c in state.concentration]
        then = [c.next for c in state.concentration]
        before = [c.previous for c in state.concentration]
        if self.couples is not None:
            self.couples.solve(program, self)
            return
        if self.problem.grid.ndim == 1:
            half = len(self.work) // 2
            upper, partial = self.work[:half], self.work[half:]
            program.apply(
                eliminate(self.lengths), state.kind, now, before, self.up[0], self.down[0], self.lengths.fields, upper,
                partial, **numbers,
            )  # fmt: skip
            program.apply(SUBSTITUTE, upper, partial, then)
            return
        b, x = self.work
        for number in range(len(now)):
            ups = [axis[number] for axis in self.up]
            downs = [axis[number] for axis in self.down]
            shared = (state.kind, ups, downs, self.lengths.fields)
            program.apply(right_side(self.lengths), now[number], before[number], then[number], *shared, b, x, **numbers)

            def operator(program: Program, source: Slot, target: Slot, shared: tuple[object, ...] = shared) -> None:
                program.apply(rows(self.lengths), source, *shared, target, rate=formula.rate)  # type: ignore[arg-type]

            name = f"solve {self.problem.species[number].name}"
            found = bicgstab(
                program, operator, x, b, tolerance=self.exactness, limit=self.limit, name=name, work=self.vectors,
                unsolved=self.unsolved,
            )  # fmt: skip
            program.let(self.iterations, self.iterations + found.iterations)
            slack = self.slack * largest_given(self.problem, number)
            program.apply(positive(self.lengths, slack), x, b, *shared, then[number], rate=formula.rate)

    @property
    def bent(self) -> list[Field]:
        """The field of the curvature, if there is one."""
        return [] if self.curvature is None else [self.curvature.value]

    @property
    def slack(self) -> float:
        """Fraction of the largest concentration up to which a negative one becomes 0."""
        return CLIPPED * self.problem.steps.tolerance

    @property
    def kept(self) -> list[int]:
        """Indices of the species that pass neither electrode, whose amount stays constant."""
        return [n for n, s in enumerate(self.problem.species) if surfaces(self.problem, s) == (None, None)]

    def measure(self, program: Program) -> None:
        """Record the amounts that must stay constant, and the curvature of the surface."""
        if self.curvature is not None:
            self.curvature.measure(program, self.state.kind)
        for number in self.kept:
            source = self.state.concentration[number].now
            program.apply(amount(self.lengths), source, self.lengths.fields, into=self.amounts[number])

    def restore(self, program: Program) -> None:
        """Record the correction of all amounts to the last bits.

        Linear systems are solved to a tolerance only, and rounding errors add up over many steps. The correction keeps
        the amounts of ions that stay in the cell, and makes those of other ions change by exactly what passes the
        electrodes. Its factors differ from 1 by no more than the tolerance.
        """
        for number in range(len(self.state.concentration)):
            if number in self.kept:
                target = self.state.concentration[number].next
                found = program.apply(amount(self.lengths), target, self.lengths.fields)
                assert isinstance(found, Register)
                program.apply(scale, target, factor=_quotient(self.amounts[number], found))
            elif self.problem.grid.ndim > 1:
                partner = self.problem.partners.get(number, number)
                if number <= partner:
                    self._balance(program, number, partner)

    def gained(self, number: int) -> tuple[list[Field], list[Slot]]:
        """Return the coefficients of what metals give of an ion from its partner, by axis, and the partner, if any."""
        partner = self.problem.partners.get(number)
        if partner is None:
            return [], []
        return [axis[number] for axis in self.gain], [self.state.concentration[partner].next]

    def _balance(self, program: Program, number: int, partner: int) -> None:
        """Record the correction that makes the amounts of an ion and its partner change by what passes the metals.

        Without a partner, that is the ion itself. The factors f of both balance f answer = given + (other f) gained.
        """
        formula, found = self.formula, []
        for ion in dict.fromkeys((number, partner)):
            c = self.state.concentration[ion]
            ups, downs = ([axis[ion] for axis in side] for side in (self.up, self.down))
            found.append(vars(program.apply(
                balance(self.lengths), c.now, c.previous, c.next, self.state.kind, ups, downs, *self.gained(ion),
                self.lengths.fields, rate=formula.rate, h0=formula.now, h1=formula.before,
            )))  # fmt: skip
        if len(found) == 1:
            program.apply(
                scale, self.state.concentration[number].next, factor=_quotient(found[0]["given"], found[0]["answer"])
            )
            return
        one, two = found
        whole = one["answer"] * two["answer"] - one["gained"] * two["gained"]
        for ion, own, other in ((number, one, two), (partner, two, one)):
            wanted = own["given"] * other["answer"] + own["gained"] * other["given"]
            program.apply(scale, self.state.concentration[ion].next, factor=_quotient(wanted, whole))


def _quotient(wanted: Register | Node, found: Register | Node) -> Node:
    there = found > 0.0
    return where(there, wanted / where(there, found, 1.0), 1.0)


def coefficients(problem: Problem, lengths: Lengths, axis: int) -> Kernel:
    """Return the kernel of the flux coefficients at the faces across an axis."""
    here = (0,) * problem.grid.ndim

    @kernel
    def species_faces(
        kind: CellReader, phi: CellReader, c: Readers, velocity: Readers, previous: Readers, widths: Readers,
        up: Readers, down: Readers, gain: Readers, film: Readers, bent: Readers, equilibrium: Readers, *, voltage: Node,
        at_cathode: Node, at_anode: Node, ratio: Node,
    ) -> None:  # fmt: skip
        drive = Drive(voltage, at_cathode, at_anode)
        face = behind(problem, face_values(problem, lengths, axis, kind, phi, widths, drive), film, equilibrium)
        face = curved(problem, face, bent)
        v = moving(velocity, previous, axis, ratio)
        gains = iter(gain)
        for number in range(len(c)):
            found = species_flux(problem, face, number, c, v, drive)
            up[number][here] = found.up
            down[number][here] = found.down
            if number in problem.partners:
                next(gains)[here] = as_node(found.gain)

    return species_faces


@kernel
def scale(c: CellReader, *, factor: Node) -> None:
    """Multiply c by a factor."""
    here = (0,) * len(c.axes)
    c[here] = factor * c[here]


def amount(lengths: Lengths) -> Kernel:
    """Return the kernel of the amount of a species, mol."""
    here = (0,) * lengths.ndim

    @kernel
    def amount_of_species(c: CellReader, widths: Readers) -> Reduced:
        return mg.sum(c[here] * volume(lengths, widths))

    return amount_of_species
