"""Small-signal analysis about a solution: admittance and photoresponse at any frequency.

The linearised equations of `linearised` are solved by block elimination or, with two axes, sparse factors, and refined
with residuals in twice the precision until the current is the same on all edges. With two axes the answer is the whole
current that leaves the anode. With one axis it follows from the currents of the edges by the theorem of Ramo and
Shockley, which holds exactly for the discrete equations:

    dJ = sum of w_e d(Jn + Jp)_e + i w Cg d(drop),     w_e = Cg h_e / eps_e,     Cg = 1 / sum of h_e / eps_e

The drop of the potential between the contacts is the voltage, less what the field lowers barriers by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.models.photodiode.solver.assembly import pattern
from minga.models.photodiode.solver.biasing import Track
from minga.models.photodiode.solver.linearised import (
    PLACES,
    applied,
    contact_currents,
    corrected,
    drop,
    edge_currents,
    residual,
    slopes,
    terminal_current,
)
from minga.models.photodiode.solver.lowering import lowered_oscillation, row_of
from minga.models.photodiode.solver.newton import Newton, row
from minga.models.photodiode.structure.constants import CHARGE
from minga.solve.block_tridiagonal import BlockLines
from minga.solve.shifted_lines import ShiftedLines
from minga.solve.shifted_planes import ShiftedPlanes
from minga.space.boundary import fixed
from minga.space.field import Field, Register

__all__ = ["Answer", "SmallSignal"]

UNIFORM: Final = 1e-13
"""Relative variation of the current along the device from which on nothing is refined."""
REFINEMENTS: Final = 8
"""Largest number of solutions of the linear system, corrections included."""
PATIENCE: Final = 3
"""Number of solutions from which on each has to be more uniform than the one before."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Current of the terminals for an oscillation of unit amplitude, and its variation along the device.

    Attributes
    ----------
    re, im
        Parts of the current: S/cm2 for a voltage; A/cm2 for the whole light.
    uniformity
        (largest - smallest) / |value| over all edges, of the real or the imaginary part, whichever varies more.
    """

    name: str
    re: Register = field(init=False)
    im: Register = field(init=False)
    uniformity: Register = field(init=False)

    def __post_init__(self) -> None:
        for item in ("re", "im", "uniformity"):
            object.__setattr__(self, item, Register(f"{self.name} {item}"))


@dataclass(frozen=True, eq=False)
class SmallSignal:
    """Recorder of small-signal solutions about the present solution of a curve, with the fields that they need.

    Attributes
    ----------
    x, right
        Oscillation, as `linearised` has it, and right side: real parts, then imaginary ones.
    currents
        Oscillating currents of the edges along each axis: electrons, holes, displacement and, with ionisation, pairs;
        both parts.
    net
        Derivatives of V (R - G) with respect to the three unknowns, and V (R - G).
    beside
        With tunnelling, its derivatives with respect to the unknowns of the neighbours.
    frequency
        Angular frequency, 1/s.
    admittance, response
        Answers to a voltage and to light.
    """

    track: Track
    lines: ShiftedLines | ShiftedPlanes = field(init=False)
    x: tuple[Field, ...] = field(init=False)
    right: tuple[Field, ...] = field(init=False)
    currents: tuple[Field, ...] = field(init=False)
    net: tuple[Field, ...] = field(init=False)
    beside: tuple[Field, ...] = field(init=False)
    frequency: Register = field(init=False)
    admittance: Answer = field(init=False)
    response: Answer = field(init=False)

    def __post_init__(self) -> None:
        equations, name, put = self.track.equations, f"{self.track.name} oscillation", object.__setattr__
        grid = self.track.state.grid
        count = 8 if equations.ionisation else 6
        put(self, "lines", _solver(equations, f"{name} lines"))
        put(self, "x", tuple(Field(f"{name} {k}", grid, boundary=fixed(0.0)) for k in range(12)))
        put(self, "right", tuple(Field(f"{name} right {k}", grid, boundary=fixed(0.0)) for k in range(6)))
        put(self, "currents", tuple(
            Field(f"{name} current {axis}{k}", grid, centre=axis) for axis in grid.axes for k in range(count)
        ))  # fmt: skip
        put(self, "net", tuple(Field(f"{name} net {k}", grid) for k in range(4)))
        sides = 6 * grid.ndim if equations.coefficients.tunnelling else 0
        put(self, "beside", tuple(Field(f"{name} beside {k}", grid) for k in range(sides)))
        put(self, "frequency", Register(f"{name} frequency"))
        put(self, "admittance", Answer(f"{name} admittance"))
        put(self, "response", Answer(f"{name} response"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return *self.lines.fields, *self.x, *self.right, *self.currents, *self.net, *self.beside

    def linearise(self, program: Program) -> None:
        """Record the linearisation about the present solution."""
        track, c = self.track, self.track.equations.coefficients
        state, light = track.state, 1.0 if track.curve == "lit" else 0.0
        track.equations.evaluate(program, state.now, state.bias, light)
        program.apply(
            slopes(c.device.grid.ndim, c.tunnelling), state.now, track.equations.n, track.equations.p,
            track.equations.activities, row(c.nodes), c.tunnelling_fields, c.gradients, c.surface, c.dopants, c.free,
            self.lines.storage, self.net, self.beside, bias=state.bias, light=light,
        )  # fmt: skip

    def factorise(self, program: Program, frequency: Any) -> None:
        """Record the elimination at a frequency in Hz; it has to follow `linearise`."""
        program.let(self.frequency, 6.283185307179586 * frequency)
        self.lines.setup(program, self.frequency)

    def solve(self, program: Program, answer: Answer) -> None:
        """Record the answer `admittance` or `response` at the frequency of the last factorisation."""
        c = self.track.equations.coefficients
        ndim = c.device.grid.ndim
        by_light = answer is self.response
        voltage, light = (0.0, 1.0) if by_light else (1.0, 0.0)
        unit = CHARGE if by_light else CHARGE / c.device.thermal_voltage
        count, over, before = Register("solutions", "i8"), Register("refined", "i8"), Register("uniformity before")
        program.apply(applied(ndim), self.x, c.nodes.contact, voltage=voltage)
        program.let(count, 0)
        program.let(over, 0)
        program.let(before, 1e300)
        with program.repeat(until=over > 0):
            self._look(program, answer, voltage, unit)
            better = (count < PATIENCE) | (answer.uniformity < 0.5 * before)
            enough = ((count > 0) & (answer.uniformity <= UNIFORM)) | (count >= REFINEMENTS) | ~better
            program.let(over, where(enough, 1, 0))
            program.let(before, answer.uniformity)
            with program.when(over == 0):
                program.apply(
                    residual(ndim), self.x, self.currents, self.lines.storage, self.net, self.beside,
                    c.nodes.generation, c.nodes.volume, c.nodes.contact, c.free, self.right, frequency=self.frequency,
                    voltage=voltage, light=light,
                )  # fmt: skip
                self._lower(program, voltage)
                self.lines.solve(program, self.right, self.right)
                program.apply(corrected(ndim), self.x, self.right)
                program.let(count, count + 1)

    def _lower(self, program: Program, voltage: float) -> None:
        """Record the right sides of the potential at contacts whose barriers depend on the field."""
        state, c = self.track.state, self.track.equations.coefficients
        for barrier in c.barriers:
            program.apply(
                lowered_oscillation(barrier), state.potential.now, c.nodes.neutral, c.nodes.contact, self.x[:4:3],
                self.x[6:10:3], self.right[::3], bias=state.bias, voltage=voltage,
                region=row_of(barrier, c.device.grid.shape),
            )  # fmt: skip

    def _look(self, program: Program, answer: Answer, voltage: float, unit: float) -> None:
        """Record the currents of the edges, and the answer."""
        equations = self.track.equations
        c, size = equations.coefficients, len(self.currents) // len(equations.edges)
        for axis, edge in enumerate(c.edges):
            program.apply(
                edge_currents(c.device.grid.ndim, axis), self.x, list(equations.edges[axis].all), edge.coupling,
                self.currents[axis * size : (axis + 1) * size], voltage=voltage, region=equations.inner(axis),
            )  # fmt: skip
        if c.device.grid.ndim == 1:
            spreads = self._ramo(program, answer, unit)
        else:
            spreads = self._contacts(program, answer, unit)
        parts = [_variation(spread, value) for spread, value in zip(spreads, (answer.re, answer.im), strict=True)]
        program.let(answer.uniformity, mg.max(*parts))

    def _ramo(self, program: Program, answer: Answer, unit: float) -> list[Any]:
        """Record the answer of a device with one axis; return how its parts vary along the device."""
        equations = self.track.equations
        found: Any = program.apply(
            terminal_current, self.currents, equations.coefficients.edges[0].coupling, frequency=self.frequency,
            region=equations.inner(0),
        )  # fmt: skip
        moved: Any = program.apply(drop, self.x, equations.coefficients.nodes.contact)
        along = equations.coefficients.device.direction
        program.let(answer.re, unit * ((along * found.re - self.frequency * moved.im) / found.length))
        program.let(answer.im, unit * ((along * found.im + self.frequency * moved.re) / found.length))
        return [unit * (found.most_re - found.least_re), unit * (found.most_im - found.least_im)]

    def _contacts(self, program: Program, answer: Answer, unit: float) -> list[Any]:
        """Record the answer of a device with two axes, per width; return how its parts differ between contacts."""
        c = self.track.equations.coefficients
        found: Any = program.apply(contact_currents, self.currents, c.nodes.contact, frequency=self.frequency)
        each = unit / float(c.device.areas[0][1].sum())
        program.let(answer.re, each * found.anode_re)
        program.let(answer.im, each * found.anode_im)
        return [mg.abs(each * (found.anode_re + found.cathode_re)), mg.abs(each * (found.anode_im + found.cathode_im))]


def _solver(equations: Newton, name: str) -> ShiftedLines | ShiftedPlanes:
    """Return the solver for oscillations with the matrix of Newton's method."""
    grid, lines = equations.coefficients.device.grid, equations.lines
    if isinstance(lines, BlockLines):
        return ShiftedLines(lines, PLACES, name)
    return ShiftedPlanes(
        grid, lines.matrix, pattern(equations.ionisation, equations.coefficients.tunnelling), PLACES, name
    )


def _variation(spread: Any, value: Register) -> Node:
    size = mg.abs(as_node(value))
    return where(size > 0.0, spread / where(size > 0.0, size, 1.0), 0.0)
