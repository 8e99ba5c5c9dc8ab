"""The step of a run: at first the steady state, then one accepted step in time each.

A step ends exactly at the next corner of a wave form; after a corner the steps begin small again. The error of a step
decides on the length of the next one, see `minga.solve.integrators.step_control`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.elementary import clip, pow
from minga.lang.expr import Node, as_node, where
from minga.models.photodiode.solver.biasing import Biasing
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.stages import Stages
from minga.solve.integrators.step_control import StepControl
from minga.space.field import STEP, TIME, Register

__all__ = ["Stepping"]

ORDER: Final = 3.0
"""Order of the estimated error of a step."""
GROWTH: Final = 2.0
"""Largest ratio of two steps."""
BRIEF: Final = 0.01
"""Length of a segment of a wave form over the duration below which steps begin with this part of the segment."""
UNSOLVED: Final = 0.25
"""Factor by which a step whose equations were not solved is shortened."""


@dataclass(frozen=True, eq=False)
class Stepping:
    """Recorder of the step of a run.

    Attributes
    ----------
    goal
        Time that the run asks a step not to pass, s.
    begun
        1 once the steady state is found.
    over
        1 once the duration is reached.
    failed
        1 if a step became shorter than the smallest one.
    current, displacement
        Current of the device and its displacement part, A/cm2.
    charge
        Charge that has passed the device, C/cm2.
    uniformity
        Difference of the charges that passed the edges in the last step over the largest of them.
    taken, rejected
        Numbers of accepted and rejected steps.
    """

    transient: Transient
    biasing: Biasing
    stages: Stages
    goal: Register = field(default_factory=lambda: Register("time goal", initial=math.inf))
    begun: Register = field(default_factory=lambda: Register("transient begun", "i8"))
    over: Register = field(default_factory=lambda: Register("transient over", "i8"))
    failed: Register = field(default_factory=lambda: Register("transient failed", "i8"))
    current: Register = field(default_factory=lambda: Register("device current"))
    displacement: Register = field(default_factory=lambda: Register("displacement current"))
    charge: Register = field(default_factory=lambda: Register("charge passed"))
    uniformity: Register = field(default_factory=lambda: Register("uniformity of the charge"))
    taken: Register = field(default_factory=lambda: Register("steps taken", "i8"))
    rejected: Register = field(default_factory=lambda: Register("steps rejected", "i8"))
    error: Register = field(default_factory=lambda: Register("step error"))

    def record(self, program: Program) -> None:
        """Record one step of the run."""
        ready = Register("transient ready", "i8")
        program.let(ready, self.begun)
        with program.when(ready > 0):
            self._advance(program)
            program.let(STEP, STEP + 1)
        with program.when(ready == 0):
            self._begin(program)

    def _begin(self, program: Program) -> None:
        """Record the steady state."""
        stages, loop = self.stages, self.stages.loop
        track = self.biasing.tracks[0]
        self.biasing.record(program)
        with program.when(track.broken > 0), program.repeat(until=track.broken == 0, limit=0):
            program.let(track.broken, track.broken)
        stages.begin(program)
        program.let(stages.source, self.transient.voltage.beginning)
        program.let(stages.bright, self.transient.light.beginning)
        if loop is not None:
            program.let(loop.before, stages.conduction)
        program.let(self.current, stages.conduction)
        program.let(self.begun, 1)

    def _advance(self, program: Program) -> None:
        """Record one accepted step."""
        stages, sources = self.stages, (self.stages.voltage, self.stages.light)
        first, largest, smallest = self.transient.lengths
        target, corner = Register("end of the segment"), Register("time of the corner")
        control = StepControl(program, stages.h, first, target)
        program.let(stages.start, TIME)
        program.let(control.start, TIME)
        with program.when(corner <= TIME):
            for source in sources:
                source.advance(program)
            program.let(corner, mg.min(sources[0].end, sources[1].end))
            # Many close points describe a smooth function: steps need not begin at the smallest scale after each.
            segment = corner - TIME
            begin = where(segment < BRIEF * self.transient.until, mg.max(first, BRIEF * segment), first)
            program.let(control.wish, where(control.wish > 0.0, mg.min(begin, control.wish), first))
            program.let(control.last, 1.0)
            program.let(stages.h_before, 0.0)
        program.let(target, mg.min(corner, self.goal, self.transient.until))
        control.begin(0.0, 1.0)
        with control.attempts():
            with program.unchecked():
                stages.attempt(program)
                program.let(control.error, math.inf)
                with program.when(stages.solved > 0):
                    stages.estimate(program, self.error)
                    program.let(control.error, self.error * (1.0 / self.transient.tolerance))
            control.decide(0.7 / ORDER, 0.4 / ORDER, GROWTH, self._reduced)
            program.let(control.wish, mg.min(control.wish, largest))
            with program.when(control.done == 0):
                program.let(self.rejected, self.rejected + 1)
                program.let(self.failed, where(stages.h < smallest, 1, 0))
                # A loop that reaches its limit ends the run; `explain` of the model gives the reason.
                with program.when(self.failed > 0), program.repeat(until=self.failed == 0, limit=0):
                    program.let(self.failed, self.failed)
        self._see(program)
        program.let(self.taken, self.taken + 1)
        control.end()
        program.let(self.over, where(self.transient.until <= TIME, 1, 0))

    def _reduced(self, error: Node) -> Node:
        """Return the factor by which a rejected attempt is shortened."""
        return where(self.stages.solved > 0, clip(0.9 * pow(error, -1.0 / ORDER), 0.1, 0.9), UNSOLVED)

    def _see(self, program: Program) -> None:
        """Record the acceptance of an attempt, with the current at its end and the charge that passed in it."""
        stages, loop = self.stages, self.stages.loop
        slope: Any = stages.voltage.slope(stages.start + stages.h)
        if stages.newton.coefficients.barriers:
            slope = stages.falling()
        elif loop is not None:
            slope = (loop.at(stages.bias * stages.thermal) - stages.conduction) / loop.storage
        program.let(self.displacement, stages.currents.capacitance * slope)
        program.let(self.current, stages.conduction + self.displacement)
        passed = stages.accept(program)
        size = mg.max(mg.abs(as_node(passed.least)), mg.abs(as_node(passed.most)))
        program.let(
            self.uniformity, where(size > 0.0, (passed.most - passed.least) / where(size > 0.0, size, 1.0), 0.0)
        )
        program.let(self.charge, self.charge + passed.mean)
