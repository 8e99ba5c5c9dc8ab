"""The two stages of a step by TR-BDF2, each solved by Newton's method for increments and the device's voltage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.models.photodiode.solver.lowering import lowered_increments, row_of
from minga.models.photodiode.solver.newton import NEVER, ROUND_OFF, STILL, WILD, Newton, clipped
from minga.models.photodiode.solver.state import State
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.circuit import Loop
from minga.models.photodiode.transients.currents import Currents
from minga.models.photodiode.transients.increments import (
    bordered,
    corrected,
    defects,
    errors,
    in_time,
    kept,
    predicted,
    risen,
    steady_rates,
)
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Source
from minga.solve.integrators.tr_bdf2 import ERROR, IMPLICIT, INNER, OUTER
from minga.solve.iterative import Iterative
from minga.space.boundary import fixed
from minga.space.field import Field, Register

__all__ = ["Stages"]

LIMIT: Final = 30
"""Number of corrections after which a stage is given up."""
END: Final = 2
"""Number of stages."""
CLOSE: Final = 0.01
"""Part of the tolerance below which the last correction of a stage is, so that its charge is conserved to rounding."""
FLOOR: Final = 1.0
"""Density whose relative error no longer matters, 1/cm3."""
SLIGHT: Final = 1e-3 / (CHARGE * 1e7)
"""The same per A/cm2: of carriers that at 1e7 cm/s carry a thousandth of the current of the device or of its light."""


@dataclass(frozen=True, eq=False)
class Stages:
    """Recorder of an attempt: increments of the state since the beginning of the step, and the device's voltage.

    Attributes
    ----------
    change, last
        Increments of potential, electron and hole level in the attempt, and those of the last accepted step, kT/q.
    inside
        The same at the inner points of both.
    before
        Densities of electrons and holes at the beginning of the step, 1/cm3.
    stored
        Their increase in the attempt, with that of the carriers that neutral dopants keep, 1/cm3.
    early, inner, late
        Increase of the carriers of each node without the light, 1/cm2 s, at the beginning, the inner point and the end.
    border
        Response of the unknowns to the device's voltage, kT/q per kT/q.
    currents
        Currents of the edges and of the terminals.
    loop
        The circuit, or None if the source determines the voltage.
    rise, rise_before
        Increment of the voltage in the attempt and in the last accepted step, kT/q.
    rise_inside
        The same at the inner points of both.
    bias
        Voltage of the attempt, kT/q.
    conduction, conduction_before
        Conduction current of the terminals in the attempt and at its beginning, A/cm2.
    drop, drop_inside
        Increment of the drop of the potential in the device at the end of the attempt and at its inner point, kT/q:
        that of the voltage, unless barriers follow the field.
    source
        Source voltage at the present stage, V.
    own
        Weight of a stage's own rates, s.
    h_before
        Length of the last accepted step, s; 0 if its increments predict nothing.
    bright, bright_before
        Light at the end and at the beginning of the step, relative to that of the device.
    solved, iterations, place
        1 if all stages were solved; corrections in all; node of the largest correction or error.
    """

    transient: Transient
    newton: Newton
    state: State
    voltage: Source
    light: Source
    h: Register
    start: Register
    change: tuple[Field, ...] = field(init=False)
    last: tuple[Field, ...] = field(init=False)
    inside: tuple[Field, ...] = field(init=False)
    before: tuple[Field, ...] = field(init=False)
    stored: tuple[Field, ...] = field(init=False)
    early: tuple[Field, ...] = field(init=False)
    inner: tuple[Field, ...] = field(init=False)
    late: tuple[Field, ...] = field(init=False)
    border: tuple[Field, ...] = field(init=False)
    currents: Currents = field(init=False)
    loop: Loop | None = field(init=False)
    rise: Register = field(default_factory=lambda: Register("rise"))
    rise_before: Register = field(default_factory=lambda: Register("rise before"))
    rise_inside: tuple[Register, Register] = field(
        default_factory=lambda: (Register("rise inside"), Register("rise inside before"))
    )
    bias: Register = field(default_factory=lambda: Register("voltage of the attempt"))
    conduction: Register = field(default_factory=lambda: Register("conduction current"))
    conduction_before: Register = field(default_factory=lambda: Register("conduction current before"))
    drop: Register = field(default_factory=lambda: Register("drop of the attempt"))
    drop_inside: Register = field(default_factory=lambda: Register("drop inside"))
    h_before: Register = field(default_factory=lambda: Register("length of the last step"))
    own: Register = field(default_factory=lambda: Register("weight of own rates"))
    source: Register = field(default_factory=lambda: Register("source voltage"))
    bright: Register = field(default_factory=lambda: Register("brightness"))
    bright_before: Register = field(default_factory=lambda: Register("brightness before"))
    bright_inside: Register = field(default_factory=lambda: Register("brightness inside"))
    stage: Register = field(default_factory=lambda: Register("stage", "i8"))
    solved: Register = field(default_factory=lambda: Register("stages solved", "i8"))
    iterations: Register = field(default_factory=lambda: Register("corrections", "i8"))
    place: Register = field(default_factory=lambda: Register("node of the attempt", "i8"))

    def __post_init__(self) -> None:
        grid, put = self.state.grid, object.__setattr__

        def declare(what: str, count: int) -> tuple[Field, ...]:
            return tuple(Field(f"{what} {k}", grid, boundary=fixed(0.0)) for k in range(count))

        for name, count in (
            ("change", 3),
            ("last", 3),
            ("inside", 6),
            ("before", 2),
            ("stored", 2),
            ("early", 2),
            ("inner", 2),
            ("late", 2),
        ):
            put(self, name, declare(f"transient {name}", count))
        put(self, "border", declare("transient border", 3) if self.transient.drive.external else ())
        put(self, "currents", Currents(self.newton))
        storage = self.currents.capacitance + self.transient.drive.capacitance
        put(self, "loop", Loop(self.transient.drive, storage) if self.transient.drive.external else None)

    @property
    def device(self) -> Device:
        """The device."""
        return self.newton.coefficients.device

    @property
    def thermal(self) -> float:
        """Thermal voltage, V."""
        return self.device.thermal_voltage

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return (
            *self.change, *self.last, *self.inside, *self.before, *self.stored, *self.early, *self.inner, *self.late,
            *self.border, *self.currents.fields,
        )  # fmt: skip

    @property
    def slopes(self) -> tuple[Field, ...]:
        """Fields of d ln n / d eta of both carriers; empty with Boltzmann statistics."""
        return self.newton.activities[2:]

    # Before the first step -----------------------------------------------------------------------------------------
    def begin(self, program: Program) -> None:
        """Record what a step needs of the steady state that is present."""
        newton, state, bias = self.newton, self.state, self.state.bias
        newton.evaluate(program, state.now, bias, 0.0)
        program.apply(kept, (newton.n, newton.p), self.before)
        program.apply(steady_rates, newton.right[1:], self.early)
        program.let(self.conduction, self.currents.conducted(program))
        self.currents.keep(program, 0)
        program.let(self.conduction_before, self.conduction)
        program.let(self.bias, bias)

    # An attempt ----------------------------------------------------------------------------------------------------
    def attempt(self, program: Program) -> None:
        """Record both stages of a step of length `h` from `start`; `solved` becomes 1 if they were solved."""
        stage, h = self.stage, self.h
        program.let(stage, 0)
        program.let(self.solved, 1)
        program.let(self.iterations, 0)
        program.let(self.own, IMPLICIT * h)
        program.let(self.bright_before, self.light.at(self.start))
        if self.loop is not None:
            volts = self.state.bias * self.thermal
            self.loop.begin(program, self.voltage.at(self.start), volts, self.conduction_before)
        with program.repeat(until=(stage == END) | (self.solved == 0), expected=END), program.unchecked():
            self._stage(program)
            with program.when((stage == 0) & (self.solved > 0)):
                program.apply(kept, (*self.late, *self.change), (*self.inner, *self.inside[:3]))
                program.let(self.rise_inside[0], self.rise)
                self.currents.keep(program, 1)
                program.let(self.bright_inside, self.bright)
                program.let(self.drop_inside, self.drop)
                if self.loop is not None:
                    self.loop.inside(
                        program, self.source, self.bias * self.thermal, self.rise * self.thermal, self.conduction
                    )
            program.let(stage, stage + 1)

    def _stage(self, program: Program) -> None:
        """Record the sources of a stage, its first guess and its solution."""
        first, h = self.stage == 0, self.h
        time, lit = Register("time of the stage"), Register("earlier light")
        early, inner = Register("weight of early rates"), Register("weight of inner rates")
        program.let(time, where(first, self.start + INNER * h, self.start + h))
        program.let(self.source, self.voltage.at(time))
        program.let(self.bright, self.light.at(time))
        program.let(early, where(first, IMPLICIT, OUTER) * h)
        program.let(inner, where(first, 0.0, OUTER) * h)
        program.let(lit, early * self.bright_before + inner * self.bright_inside)
        if self.loop is not None:
            self.loop.prepare(program, self.source, self.state.bias * self.thermal, self.own, early, inner)
        self._guess(program)
        self._solve(program, early, inner, lit)

    def _guess(self, program: Program) -> None:
        """Record the first guess of a stage: parabolas in time through the increments of this step and the last."""
        first, state, c = self.stage == 0, self.state, self.newton.coefficients
        ratio, ahead, bent = (Register(name) for name in ("ratio of steps", "time ahead", "weight of the first stage"))
        known = self.h_before > 0.0
        program.let(ratio, where(known, self.h / where(known, self.h_before, 1.0), 0.0))
        program.let(ahead, INNER * ratio)
        program.let(bent, ahead * (1.0 + ahead) / (1.0 - INNER))
        own, last, inside = (Register(f"weight of {name}") for name in ("the attempt", "the last step", "its inside"))
        program.let(own, where(first, 0.0, (1.0 + ratio) / (INNER * (1.0 + ahead))))
        program.let(last, where(first, ahead + bent, ratio * (1.0 - INNER * own)))
        program.let(inside, where(first, -bent / INNER, 0.0))
        if self.loop is None:
            program.let(self.rise, self.source / self.thermal - state.bias)
        else:
            guessed = where(first, 0.0, own * self.rise)
            program.let(self.rise, guessed + (last * self.rise_before + inside * self.rise_inside[1]))
        program.let(self.bias, state.bias + self.rise)
        program.apply(
            predicted, c.nodes.contact, c.free, state.now, self.last, self.inside[3:], self.change, state.next,
            from_last=last, from_inside=inside, from_change=own, rise=self.rise,
        )  # fmt: skip

    def _solve(self, program: Program, early: Register, inner: Register, lit: Register) -> None:
        """Record Newton's method for a stage, from the first guess in the increments."""
        newton, over, count = self.newton, Register("stage over", "i8"), Register("corrections of the stage", "i8")
        still = Register("corrections by round-off", "i8")
        program.let(over, 0)
        program.let(count, 0)
        program.let(still, 0)
        program.let(newton.change, NEVER)
        direct = not isinstance(newton.lines, Iterative)
        found = (newton.change <= (CLOSE if direct else 1.0) * newton.tolerance) & (newton.residual <= newton.tolerance)
        # Levels that hardly matter are known to fewer digits, as in a steady state.
        found = found | ((still >= STILL) & (newton.change <= newton.tolerance))
        lost = (count >= LIMIT) | ~(newton.change <= NEVER) | ~(newton.residual < WILD)
        with program.repeat(until=over > 0, expected=3):
            self._evaluate(program, early, inner, lit)
            program.let(still, where(newton.residual <= ROUND_OFF, still + 1, 0))
            program.let(over, where(found | lost, 1, 0))
            with program.when(over == 0):
                newton.lines.setup(program)
                newton.lines.solve(program, newton.right, newton.right)
                step: Any = 0.0
                if self.loop is not None:
                    residual = self.loop.gap(self.rise * self.thermal, self.conduction, self.own, early, inner)
                    if newton.coefficients.barriers:
                        residual = residual + self.currents.capacitance * self.thermal * (self.drop - self.rise)
                    step = self._voltage_step(program, residual)
                    program.let(self.rise, self.rise + clipped(step))
                    program.let(self.bias, self.state.bias + self.rise)
                program.apply(
                    corrected(direct), newton.right, self.border, self.state.now, self.change, self.state.next,
                    step=step, into={"largest": newton.change, "place": self.place},
                )  # fmt: skip
                program.let(count, count + 1)
        program.let(self.iterations, self.iterations + count)
        program.let(self.solved, where(found, 1, 0))

    def _evaluate(self, program: Program, early: Register, inner: Register, lit: Register) -> None:
        """Record the equations of a stage: residual and matrix."""
        newton, state, c = self.newton, self.state, self.newton.coefficients
        nodes = c.nodes
        after = (newton.n, newton.p)
        program.apply(
            risen(bool(c.states)), self.change, state.now, nodes.theta_n, nodes.theta_p, c.states, c.dopants,
            self.before, self.stored, after, newton.activities, bias=state.bias, rise=self.rise,
        )  # fmt: skip
        newton.through_edges(program, state.now, self.change)
        newton.assemble(program, state.next, self.bias, 0.0)
        program.apply(
            in_time, nodes.contact, c.free, nodes.volume, nodes.generation, [edge.coupling for edge in c.edges],
            self.change, self.stored, after, newton.activities, c.dopants, self.early, self.inner, self.late,
            newton.right, newton.lines.matrix[1], light=self.bright, lit=lit, first=early, second=inner,
            scale=1.0 / self.own,
            into={"largest": newton.residual, "place": newton.worst},
        )  # fmt: skip
        for barrier in c.barriers:
            found = program.apply(
                lowered_increments(barrier), state.potential.now, self.change[0], nodes.contact, newton.right[0],
                rise=self.rise, region=row_of(barrier, c.device.grid.shape),
            )  # fmt: skip
            program.let(newton.residual, mg.max(newton.residual, found))
        program.let(self.drop, self.currents.drop(program, self.change[0]) if c.barriers else self.rise)
        program.let(self.conduction, self.currents.conducted(program))

    def _voltage_step(self, program: Program, residual: Any) -> Register:
        """Record the correction of the voltage, kT/q, which couples to the corrections in `newton.right`."""
        newton, loop = self.newton, self.loop
        assert loop is not None
        program.apply(bordered, newton.coefficients.nodes.contact, newton.coefficients.free, self.border)
        newton.lines.solve(program, self.border, self.border)
        alone, coupled = (self.currents.responses(program, part) for part in (newton.right, self.border))
        step = Register("correction of the voltage")
        slope = loop.storage * self.thermal + self.own * (loop.share * self.thermal + coupled)
        moved = self.own * alone
        if newton.coefficients.barriers:
            stored = self.currents.capacitance * self.thermal
            moved = moved + stored * self.currents.drop(program, newton.right[0])
            slope = slope + stored * (self.currents.drop(program, self.border[0]) - 1.0)
        program.let(step, -(residual + moved) / slope)
        return step

    # After an attempt ----------------------------------------------------------------------------------------------
    def estimate(self, program: Program, error: Register) -> None:
        """Record the error of a solved attempt: the largest of the potential, kT/q, and of ln n and ln p."""
        newton, c, h = self.newton, self.newton.coefficients, self.h
        lights = (self.bright_before, self.bright_inside, self.bright)
        lit = sum((weight * light for weight, light in zip(ERROR, lights, strict=True)), start=as_node(0.0))
        first, second, third = (weight * h for weight in ERROR)
        program.apply(
            defects, c.nodes.contact, c.free, c.nodes.volume, c.nodes.generation, self.early, self.inner, self.late,
            newton.right, first=first, second=second, third=third, lit=h * lit, scale=1.0 / self.own,
        )  # fmt: skip
        newton.lines.solve(program, newton.right, newton.right)
        step: Any = 0.0
        if self.loop is not None:
            volts, grown = self.bias * self.thermal, self.rise * self.thermal
            defect = self.loop.defect(self.source, volts, grown, self.conduction, self.own, ERROR, h)
            step = self._voltage_step(program, -defect)
        program.apply(
            errors, newton.right, self.border, self.slopes, (newton.n, newton.p), step=step, floor=self._floor(),
            into={"largest": error, "place": self.place},
        )  # fmt: skip

    def _floor(self) -> Node:
        """Return the density whose relative error no longer matters, 1/cm3.

        Carriers spread from node to node, so that far from where they are generated their first density rises with a
        high power of time, and its relative error is large for any step.
        """
        device = self.device
        made = CHARGE * float((device.generation * device.volumes).sum() / device.areas[0][1].sum())
        currents = (self.conduction_before, self.conduction, made * self.bright_before, made * self.bright)
        return FLOOR + SLIGHT * mg.max(*(mg.abs(as_node(item)) for item in currents))

    def falling(self) -> Node:
        """Return the rate of the drop at the end of an attempt, V/s, with the accuracy of the method."""
        return self.thermal * ((self.drop - (OUTER / IMPLICIT) * self.drop_inside) / self.own)

    def accept(self, program: Program) -> Any:
        """Record that the attempt becomes the present state; return the charge that passed, C/cm2, with extremes."""
        state, newton = self.state, self.newton
        passed = self.currents.passed(program, self.change[0], OUTER * self.h, self.own)
        program.apply(
            kept,
            (*state.next, newton.n, newton.p, *self.late, *self.change, *self.inside[:3]),
            (*state.now, *self.before, *self.early, *self.last, *self.inside[3:]),
        )
        self.currents.keep(program, 0)
        if self.loop is not None:
            program.let(self.loop.before, self.loop.at(self.rise * self.thermal))
        program.let(self.rise_before, self.rise)
        program.let(self.rise_inside[1], self.rise_inside[0])
        program.let(self.conduction_before, self.conduction)
        program.let(self.h_before, self.h)
        program.let(state.bias, self.bias)
        return passed
