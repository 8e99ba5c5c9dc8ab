"""Corrections of the potential that make the implicit step of ions and field consistent.

Given a potential, the concentrations of the step follow (`transport`); the aim is the potential for which the charge
they carry is that of Poisson's equation. With a the inverse of the time formula's rate and f its known part,

    r = a F sum z_i f_i V - sum over the faces of (a I + D),      D = -eps grad(phi) A, I the current of the ions

is the residual in a cell. Its response to the potential, at fixed concentrations, is the symmetric operator

    A = -div (eps + a s) grad,      s = -dI/d(grad phi) > 0

(the semi-implicit Poisson equation; Ventzek, Sommerer, Hoekstra and Kushner, Appl. Phys. Lett. 63, 1993, for plasmas),
which for eps -> 0 requires div I = 0. Concentrations respond as well: a wave of wavenumber k changes the charge by
only 1/(1 + a D k2) of that. So that steps much longer than a cell's diffusion time also converge, the correction is

    delta = (1 - m D a lap)^-1 (1 - a D lap) A^-1 r,      m = eps / (eps + a s),

which is exact where coefficients are constant. Then m D a is the square of the Debye length, or that of the diffusion
length if that is shorter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.charge_balance import charge_at_metal, charge_cells, charge_faces
from minga.models.electrodeposition.faces import has_metal
from minga.models.electrodeposition.formula import Formula
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, Problem
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.state import State
from minga.solve.elliptic import Elliptic
from minga.solve.krylov import axpy
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot

__all__ = ["Poisson", "Sums"]

Readers = Sequence[CellReader]
Solver = Callable[[Program, Elliptic, Field, Field], None]
"""Function that records the solution of an elliptic system: program, operator, right-hand side, and the unknown, which
the solver sets."""
Choice = Callable[[Program, Node, Field, Field], Node]
"""Function that chooses the correction of the anode's potential."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Registers with sums over each whole electrode.

    Attributes
    ----------
    carried
        a I + D from the anode into the solution, C.
    charge
        D from the anode into the solution, C.
    conductance
        Derivative of `carried` with respect to the anode's potential, F.
    at_cathode, at_anode
        Flux into the solution of a species that balances there what the other electrode removes, mol/m2/s.
    film
        Error of the potential differences that films take, V.
    """

    carried: Register
    charge: Register
    conductance: Register
    at_cathode: Register
    at_anode: Register
    film: Register

    @staticmethod
    def declare() -> Sums:
        """Declare the registers."""
        names = (
            "anode carried",
            "anode charge",
            "anode conductance",
            "balance at cathode",
            "balance at anode",
            "film error",
        )
        return Sums(*map(Register, names))


@dataclass(frozen=True, eq=False)
class Poisson:
    """The operators of the corrections and their coefficients.

    Attributes
    ----------
    first
        The operator A; its faces and diagonal follow from the state.
    second
        The operator 1 - m D a lap, times the volume.
    walls
        Conductance of the faces of metals, by axis.
    carried
        a I + D, by axis, C.
    spread
        a D times area over distance, by axis, for the right-hand side of the second system; also at metals.
    """

    problem: Problem
    state: State
    lengths: Lengths
    drive: Mapping[str, Any]
    formula: Formula
    solver: Solver
    assembled: Callable[[Program, Elliptic], None]
    first: Elliptic = field(init=False)
    second: Elliptic = field(init=False)
    walls: tuple[Field, ...] = field(init=False)
    carried: tuple[Field, ...] = field(init=False)
    spread: tuple[Field, ...] = field(init=False)
    thin: tuple[Field, ...] = field(init=False)
    residual: Field = field(init=False)
    delta: Field = field(init=False)
    unit: Field | None = field(init=False)
    sums: Sums = field(init=False)

    def __post_init__(self) -> None:
        grid, zero, put = self.problem.grid, fixed(0.0), object.__setattr__

        def on_faces(word: str) -> tuple[Field, ...]:
            return tuple(Field(f"{word} {a}", grid, centre=a, boundary=zero) for a in grid.axes)

        put(self, "first", Elliptic(grid, "charge"))
        put(self, "second", Elliptic(grid, "screening"))
        put(self, "walls", on_faces("wall conductance"))
        put(self, "carried", on_faces("carried"))
        put(self, "spread", on_faces("spread"))
        put(self, "thin", on_faces("thin wall"))
        put(self, "residual", Field("charge residual", grid, boundary=zero))
        put(self, "delta", Field("charge correction", grid, boundary=zero))
        put(self, "unit", Field("unit potential", grid, boundary=zero) if self.problem.voltage is None else None)
        put(self, "sums", Sums.declare())

    def assemble(
        self,
        program: Program,
        potential: Slot,
        concentration: Sequence[Slot],
        up: Sequence[Sequence[Field]],
        down: Sequence[Sequence[Field]],
        gain: Sequence[Mapping[int, Field]],
        film: Sequence[Sequence[Field]],
        bent: Sequence[Field],
        equilibrium: Sequence[Field],
    ) -> None:
        """Record the operators, the residual and the sums at the electrodes for a state of the iteration.

        Parameters
        ----------
        program
            The program to record in.
        potential, concentration
            Slots of the state.
        up, down, gain
            Coefficients of the fluxes, by axis and species, with which the concentrations were solved for. Where a bath
            is neutral, coefficients recomputed from the resulting concentrations would differ. They would differ only
            by the square of the last change, but relative to one-way fluxes, which in narrow cells are much larger than
            the net flux.
        film
            Potential differences that films take, by axis.
        bent
            The curvature of the deposit's surface, if its surface has an energy.
        equilibrium
            Fields of the local equilibrium, where the solution has one.
        """
        state, problem, sums = self.state, self.problem, self.sums
        velocity = [v.now for v in state.velocity], [v.previous for v in state.velocity]
        inverse = Register("formula inverse")
        program.let(inverse, 1.0 / self.formula.rate)
        totals: dict[str, Any] = {}
        for axis in range(problem.grid.ndim):
            found = program.apply(
                charge_faces(problem, self.lengths, axis), state.kind, potential, list(concentration), *velocity,
                self.lengths.fields, self.first.faces[axis], self.walls[axis], self.carried[axis],
                self.second.faces[axis], self.thin[axis], self.spread[axis], list(up[axis]), list(down[axis]),
                list(gain[axis].values()), list(film[axis]), bent, list(equilibrium),
                **self.drive, ratio=self.formula.ratio, inverse=inverse,
            )  # fmt: skip
            if found is not None:
                totals = {n: totals.get(n, 0.0) + value for n, value in vars(found).items()}
        for name in ("carried", "charge", "conductance"):
            program.let(getattr(sums, name), totals[name])
        program.let(sums.film, totals.get("film", 0.0))
        for here, there in (("cathode", "anode"), ("anode", "cathode")):
            if f"into_{there}" in totals:
                area = totals[f"{here}_area"]
                shared = where(area > 0.0, totals[f"into_{there}"] / where(area > 0.0, area, 1.0), 0.0)
                program.let(getattr(sums, f"at_{here}"), shared)
        now, before = [c.now for c in state.concentration], [c.previous for c in state.concentration]
        program.apply(
            charge_cells(problem, self.lengths), state.kind, now, before, self.carried, self.walls, self.thin,
            self.lengths.fields, self.first.diagonal, self.second.diagonal, self.residual,
            inverse=inverse, h0=self.formula.now, h1=self.formula.before,
        )  # fmt: skip
        for operator in (self.first, self.second):
            self.assembled(program, operator)

    def metal_charge(self, program: Program, potential: Slot, *, cathode: bool = False) -> object:
        """Record D from a metal (by default the anode) into the solution; return it, in C, in terms of registers."""
        result: object = 0.0
        for axis in range(self.problem.grid.ndim):
            if has_metal(self.problem, axis):
                made = charge_at_metal(self.problem, self.lengths, axis, cathode=cathode)
                found = program.apply(made, self.state.kind, potential, self.lengths.fields, self.carried[axis],
                                      voltage=self.drive["voltage"])  # fmt: skip
                result = found + result  # type: ignore[operator]
        return result

    def correct(self, program: Program, shift: Register, wanted: Register | None, chosen: Choice | None = None) -> None:
        """Record the computation of the correction `delta` of the potential.

        Parameters
        ----------
        program
            The program to record in.
        shift
            Register that receives the correction of the anode's potential, V.
        wanted
            Target value of `carried`, where the current is given and the voltage is sought; otherwise None.
        chosen
            Function of the correction of the anode's potential that the current needs, and of the corrections of all
            potentials, without and per that of the anode; it records and returns the correction that is made.
        """
        kind, axes = self.state.kind, self.problem.grid.ndim
        self.solver(program, self.first, self.residual, self.delta)
        if wanted is None or self.unit is None:
            program.let(shift, 0.0)
        else:
            program.apply(from_anode(axes), kind, self.walls, self.residual)
            self.solver(program, self.first, self.residual, self.unit)
            found = program.apply(at_anode(axes), kind, self.walls, self.delta, self.unit)
            gain = self.sums.conductance - found.unit  # type: ignore[union-attr]
            value = (wanted - self.sums.carried + found.delta) / gain  # type: ignore[union-attr]
            program.let(shift, value if chosen is None else chosen(program, value, self.delta, self.unit))
            program.apply(axpy, self.unit, self.delta, alpha=shift)
        made = spread_out(self.lengths)
        program.apply(made, kind, self.delta, self.spread, self.thin, self.lengths.fields, self.residual, shift=shift)
        self.solver(program, self.second, self.residual, self.delta)


@functools.cache
def from_anode(ndim: int) -> Kernel:
    """Return the kernel of the right-hand side due to a unit of potential at the anode."""
    here = (0,) * ndim

    @kernel
    def unit_at_anode(kind: CellReader, walls: Readers, b: CellReader) -> None:
        b[here] = where(kind[here] == FLUID, _beside_anode(kind, walls), 0.0)

    return unit_at_anode


def _beside_anode(kind: CellReader, walls: Readers) -> Node:
    ndim, total = len(walls), as_node(0.0)
    for axis in range(ndim):
        up = step(ndim, axis, 1)
        total = total + where(kind[up] == ANODE, walls[axis][up], 0.0)
        total = total + where(kind[step(ndim, axis, -1)] == ANODE, walls[axis][(0,) * ndim], 0.0)
    return total


@functools.cache
def at_anode(ndim: int) -> Kernel:
    """Return the kernel of the sums of two potentials, weighted by the conductance of the cells' faces at the anode."""
    here = (0,) * ndim

    @kernel
    def seen_by_anode(kind: CellReader, walls: Readers, delta: CellReader, unit: CellReader) -> dict[str, Reduced]:
        held = where(kind[here] == FLUID, _beside_anode(kind, walls), 0.0)
        return {"delta": mg.sum(held * delta[here]), "unit": mg.sum(held * unit[here])}

    return seen_by_anode


def spread_out(lengths: Lengths) -> Kernel:
    """Return the kernel of (1 - a D lap) delta, times the volume, with the shift of the anode in the second system."""
    ndim = lengths.ndim
    here = (0,) * ndim

    @kernel
    def spread_correction(
        kind: CellReader, delta: CellReader, spread: Readers, thin: Readers, widths: Readers, result: CellReader, *,
        shift: Node,
    ) -> None:  # fmt: skip
        value = volume(lengths, widths) * delta[here]
        for axis in range(ndim):
            up, down = step(ndim, axis, 1), step(ndim, axis, -1)
            for beyond, face in ((down, here), (up, up)):
                there = where(kind[beyond] == ANODE, shift, where(kind[beyond] == CATHODE, 0.0, delta[beyond]))
                value = (
                    value
                    + spread[axis][face] * (delta[here] - there)
                    + thin[axis][face] * where(kind[beyond] == ANODE, shift, 0.0)
                )
        result[here] = where(kind[here] == FLUID, value, 0.0)

    return spread_correction


@kernel
def advance(kind: CellReader, before: CellReader, phi: CellReader, *, voltage: Node) -> None:
    """Set phi to the potential of the metals inside them, and to 0 in glass."""
    here = (0,) * len(phi.axes)
    value = where(kind[here] == CATHODE, 0.0, where(kind[here] == ANODE, voltage, before[here]))
    phi[here] = where(kind[here] > ANODE, 0.0, value)
