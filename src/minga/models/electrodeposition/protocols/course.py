"""The course of a program: the segment that is being carried out, its level, its corners and its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.elementary import floor
from minga.lang.expr import Node, as_node, where
from minga.lang.math import sin
from minga.models.electrodeposition.charges import Charges
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.events import Events
from minga.models.electrodeposition.protocols.peaks import Peaks
from minga.models.electrodeposition.protocols.reference import Reference
from minga.models.electrodeposition.protocols.segments import LIMITS, Segment, flattened, segments_of
from minga.models.electrodeposition.protocols.spectrum import Spectrum
from minga.models.electrodeposition.state import State
from minga.space.field import Field, Register

__all__ = ["Course"]

NEVER: Final = 1e300
"""Time of corners that are not known, and the longest step where it is not limited."""
START: Final = 0.01
"""First step after a corner, as a fraction of the segment's duration; it is not longer than the first step of a run."""
BRIEF: Final = 1e-7
"""Step, as a fraction of the first step, at or below which a step that fails ends its segment."""
AT_POINT: Final = 1e-6
"""Fraction of the time between points of a sine by which a time may lie before a point and still be there."""
SNAP: Final = 1e-9
"""Fraction of the shortest time of a program by which times may differ and still be the same."""


@dataclass(frozen=True, eq=False)
class Course:
    """The course of a program through its segments.

    Attributes
    ----------
    charges
        The charges that pass the electrodes.
    reference
        The reference electrode, where there is one.
    number
        Number of the present segment, from 0.
    opened
        Number of segments that have begun, those that are repeated counted once.
    done
        1 once the program is over.
    exhausted
        1 once no voltage can drive the current of a segment that has no limit of the voltage.
    by_current
        Flag: the current is given, and the voltage is sought.
    level
        Value of the given quantity at the end of the step that is attempted: A/m2 or V.
    longest
        Longest step of the segment, s.
    corner
        Time at which the segment ends, s.
    steps
        Number of accepted steps in the segment.
    """

    problem: Problem
    state: State
    charges: Charges
    plane: float
    reference: Reference | None = field(init=False)
    segments: tuple[Segment, ...] = field(init=False)
    events: Events = field(init=False)
    spectrum: Spectrum | None = field(init=False)
    peaks: Peaks | None = field(init=False)
    number: Register = field(default_factory=lambda: Register("segment", "i8"))
    opened: Register = field(default_factory=lambda: Register("segments begun", "i8"))
    exhausted: Register = field(default_factory=lambda: Register("current lost", "i8"))
    done: Register = field(default_factory=lambda: Register("program done", "i8"))
    waiting: Register = field(default_factory=lambda: Register("segment begun", "i8"))
    by_current: Register = field(default_factory=lambda: Register("current given", "bool"))
    level: Register = field(default_factory=lambda: Register("level"))
    begun: Register = field(default_factory=lambda: Register("segment since"))
    corner: Register = field(default_factory=lambda: Register("corner", initial=NEVER))
    steps: Register = field(default_factory=lambda: Register("steps in segment", "i8"))
    longest: Register = field(default_factory=lambda: Register("longest step", initial=NEVER))
    formula: tuple[Register, ...] = field(
        default_factory=lambda: tuple(Register(f"level {w}") for w in ("start", "slope", "amplitude", "pulsatance"))
    )
    rounds: tuple[Register, ...] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        place = self.problem.reference
        put(self, "reference", None if place is None else Reference(self.problem.grid, self.state, place))
        put(self, "segments", tuple(segments_of(self.problem.protocol)))
        put(self, "events", Events(self.problem, self.state, self.charges, self.plane, self.reference))
        measured = any(segment.measured for segment in self.segments)
        put(self, "spectrum", Spectrum(self.segments) if measured else None)
        peaks = Peaks(self.segments, place is not None)
        put(self, "peaks", peaks if peaks.ramps else None)
        put(self, "rounds", tuple(Register(f"rounds {n}", "i8") for n in range(len(flattened(self.problem.protocol)))))

    @property
    def shortest(self) -> float:
        """The difference of times that counts as none, s."""
        steps = self.problem.steps
        times = [s.duration for s in self.segments if s.duration < math.inf]
        times += [1.0 / (s.frequency * s.points) for s in self.segments if s.points]
        return SNAP * min(steps.every, steps.first, *times)

    def begin(self, program: Program, proposal: Register) -> None:
        """Record the beginning of a segment, where the last one has ended; the next step is its first."""
        with program.when(self.waiting == 0):
            for number, segment in enumerate(self.segments):
                with program.when(self.number == number):
                    self._load(program, segment, proposal)
            program.let(self.opened, mg.max(self.opened, self.number + 1))
            program.let(self.state.last, 0.0)
            program.let(self.waiting, 1)
            program.let(self.steps, 0)
            if self.spectrum is not None:
                self.spectrum.begin(program)
            if self.peaks is not None:
                self.peaks.begin(program, self.number)

    def _load(self, program: Program, segment: Segment, proposal: Register) -> None:
        first, longest = self.problem.steps.first, NEVER
        if segment.duration < math.inf:
            first = min(first, START * segment.duration)
        if segment.points:
            first = longest = 1.0 / (segment.frequency * segment.points)
        values = segment.level, segment.slope, segment.amplitude, 2.0 * math.pi * segment.frequency
        for register, value in zip(self.formula, values, strict=True):
            program.let(register, value)
        program.let(self.by_current, as_node(segment.control == "current"))
        program.let(self.longest, longest)
        program.let(proposal, first)
        program.let(self.corner, NEVER if math.isinf(segment.duration) else self.begun + segment.duration)
        self.events.load(program, segment)

    def goal(self, program: Program, target: Register) -> Register:
        """Record the time that the next step must not pass: the corner, or the end of the run's step before it.

        Within a sine, the next of its points is a corner, too.
        """
        found, corner = Register("goal"), as_node(self.corner)
        if any(segment.points for segment in self.segments):
            points = floor((self.state.time - self.begun) / self.longest + AT_POINT)
            corner = mg.min(corner, self.begun + (points + 1.0) * self.longest)
        program.let(found, where(corner < target - self.shortest, corner, target))
        return found

    @property
    def seeks(self) -> Node:
        """Flag: the anode's voltage is sought, because the current or a potential against the reference is given."""
        return as_node(True) if self.reference is not None else as_node(self.by_current)

    def shift(self, program: Program, by_current: Node, delta: Field, unit: Field) -> Node:
        """Record the correction of the anode's potential; `by_current` is the one for a given current.

        The fields are the correction of the potential at a given voltage, and its change per volt of the anode.
        """
        if self.reference is None:
            return where(self.by_current, by_current, 0.0)
        return where(self.by_current, by_current, self.reference.shift(program, -as_node(self.level), delta, unit))

    def misses(self, program: Program) -> Node:
        """Record whether an attempt has not found the given potential against the reference; return it."""
        if self.reference is None:
            return as_node(False)
        return ~as_node(self.by_current) & self.reference.misses(program, -as_node(self.level), self.problem.beta)

    def set_level(self, program: Program, proposed: Register | Node) -> None:
        """Record the level at the end of a step of this length."""
        start, slope, amplitude, pulsatance = self.formula
        passed = (self.state.time + proposed) - self.begun
        value = start + slope * passed
        if any(segment.amplitude for segment in self.segments):
            value = value + amplitude * sin(pulsatance * passed)
        program.let(self.level, value)

    def watch(self, program: Program, accepted: Register, lows: Sequence[Any], voltage: Node) -> None:
        """Record the search for limits that an attempt passes; the attempt is refused if a shorter one ends nearer."""
        self.events.watch(program, accepted, lows, voltage)

    def commit(self, program: Program) -> None:
        """Record the acceptance of an attempt, and the end of the segment."""
        program.let(self.steps, self.steps + 1)
        self.events.commit(program, self.number, self.begun)
        if self.spectrum is not None or self.peaks is not None:
            self._measure(program)
        over = Register("segment over", "bool")
        timed = as_node(self.corner) <= self.state.time + self.shortest
        program.let(over, timed | (self.events.reached > 0))
        with program.when(over):
            # Corners do not accumulate the rounding of the times at which steps happen to end.
            program.let(self.begun, where(timed, self.corner, self.state.time))
            if self.spectrum is not None:
                self.spectrum.finish(program, self.number)
            self._advance(program)
            program.let(self.waiting, 0)

    def _measure(self, program: Program) -> None:
        """Record what an accepted step adds to an impedance or a peak: the voltage or potential, and the current."""
        voltage = as_node(self.state.voltage)
        if self.reference is not None:
            voltage = self.reference.potential(program, self.state.potential.now)
        passed = self.state.time - self.begun
        current = self.charges.current() * (1.0 / self.plane)
        if self.spectrum is not None:
            self.spectrum.add(program, self.number, passed, voltage, current, self.formula[-1])
        if self.peaks is not None:
            self.peaks.add(program, self.number, voltage if self.reference is None else -voltage, current)

    def exhaust(self, program: Program, accepted: Register) -> None:
        """Record the end of a segment whose current or potential no voltage can bring, as even the shortest steps show.

        A cathode that runs out of ions passes any limit of the voltage within less than such a step.
        """
        brief = BRIEF * min(self.problem.steps.every, self.problem.steps.first)
        tried = (self.state.dt <= brief) & (self.events.factor >= 1.0)
        with program.when(~accepted & self.seeks & tried & (self.waiting > 0)):
            program.let(self.exhausted, 1)
            if "voltage" in self.events.watched:
                # A limit of the voltage is reached, which ends the segment only.
                with program.when(self.events.watched["voltage"].sign != 0.0):
                    program.let(self.exhausted, 0)
                    program.let(self.begun, self.state.time)
                    self.events.count(program, self.number, 1 + LIMITS.index("voltage"))
                    self._advance(program)
                    program.let(self.waiting, 0)

    def _advance(self, program: Program) -> None:
        """Record the choice of the next segment."""
        ended, following = Register("segment ended", "i8"), Register("segment next", "i8")
        program.let(ended, self.number)
        program.let(following, self.number + 1)
        for closing, rounds in zip(flattened(self.problem.protocol), self.rounds, strict=True):
            # An outer repetition ends only if the inner ones that end with the same segment have ended.
            leaves = (as_node(ended) == closing.last) & (as_node(following) == closing.last + 1)
            with program.when(leaves):
                program.let(rounds, rounds + 1)
                again = as_node(rounds) < closing.times
                program.let(following, where(again, closing.first, following))
                program.let(rounds, where(again, rounds, 0))
        program.let(self.number, following)
        program.let(self.done, where(as_node(following) >= len(self.segments), 1, 0))

    def observe(self, program: Program) -> dict[str, Any]:
        """Record the observables of a program, and return their registers by name."""
        seen: dict[str, Any] = {"segment": Register("observed segment", "i8"), "charge": Register("observed charge")}
        program.let(seen["segment"], mg.min(self.number + 1, len(self.segments)))
        if self.reference is not None:
            seen["cathode_potential"] = Register("observed cathode potential")
            program.let(seen["cathode_potential"], -self.reference.potential(program, self.state.potential.now))
        if self.spectrum is not None:
            seen |= self.spectrum.results
        if self.peaks is not None:
            seen |= self.peaks.observe(program)
        program.let(seen["charge"], self.charges.charge("whole") * (1.0 / self.plane))
        return seen
