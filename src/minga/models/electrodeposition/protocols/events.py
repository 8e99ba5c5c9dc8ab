"""Limits that end a segment: the step that passes one is repeated with the length that ends at the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.charges import Charges
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.reference import Reference
from minga.models.electrodeposition.protocols.segments import LIMITS, Limit, Segment, segments_of
from minga.models.electrodeposition.state import State
from minga.space.field import Register

__all__ = ["Events"]

FAR: Final = 1e300
"""Distance from limits that a segment does not have."""
CLOSE: Final = 1e-7
"""Distance beyond a limit, relative to the limit, at which a step ends there."""
LEAST: Final = 1e-7
"""Shortest step, as a fraction of the first step, that is tried to end nearer to a limit."""
UNKNOWN: Final = -1e-30
"""Excess at the beginning of a segment, which may jump: a first step beyond a limit is repeated with ever shorter ones.
"""
NARROW: Final = 0.02
"""Least fraction by which a step is shortened at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Registers of a limit, which is reached where `sign * value >= bound`.

    Attributes
    ----------
    sign, bound
        Direction (1 or -1; 0 if the segment has no such limit) and bound.
    size
        Flag: the absolute value counts.
    slack
        Distance beyond the limit that is accepted.
    before, now
        The excess over the bound at the last accepted step and in the last attempt.
    """

    sign: Register
    bound: Register
    size: Register
    slack: Register
    before: Register
    now: Register

    @staticmethod
    def declare(limit: str) -> Watched:
        """Declare the registers."""
        return Watched(
            Register(f"{limit} limit sign"), Register(f"{limit} limit"), Register(f"{limit} limit of size", "bool"),
            Register(f"{limit} limit slack"), Register(f"{limit} excess before"), Register(f"{limit} excess"),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Events:
    """The limits of the present segment.

    Attributes
    ----------
    reached
        0, or 1 + the number in `LIMITS` of the limit that the last accepted step has reached.
    at_once
        0, or 1 + the number in `LIMITS` of the first limit that ended a segment in its first moment.
    at_once_in
        The number of that segment.
    ends
        How often each limit has ended its segment, by the number of the segment and the limit.
    factor
        Fraction of the attempted step after which a limit is passed; 1 if none is, or if the step is good.
    """

    problem: Problem
    state: State
    charges: Charges
    plane: float
    reference: Reference | None
    watched: dict[Limit, Watched] = field(init=False)
    since: Register = field(default_factory=lambda: Register("charge at segment's beginning"))
    passing: Register = field(default_factory=lambda: Register("limit passed", "i8"))
    reached: Register = field(default_factory=lambda: Register("limit reached", "i8"))
    at_once: Register = field(default_factory=lambda: Register("limit passed at once", "i8"))
    at_once_in: Register = field(default_factory=lambda: Register("segment that a limit ended at once", "i8"))
    ends: dict[tuple[int, Limit], Register] = field(init=False)
    factor: Register = field(default_factory=lambda: Register("step until limit", initial=1.0))

    def __post_init__(self) -> None:
        segments = list(segments_of(self.problem.protocol))
        used = {limit for segment in segments for limit in segment.until}
        ends = {
            (n, limit): Register(f"ends of segment {n} by its {limit}", "i8")
            for n, s in enumerate(segments)
            for limit in s.until
        }
        object.__setattr__(self, "ends", ends)
        watched = {limit: Watched.declare(limit) for limit in LIMITS if limit in used}
        object.__setattr__(self, "watched", watched)

    def load(self, program: Program, segment: Segment) -> None:
        """Record the limits of a segment that begins."""
        program.let(self.since, self.charges.charge("whole"))
        program.let(self.reached, 0)
        for limit, item in self.watched.items():
            sign, bound, size = _direction(segment, limit, -1.0 if self.reference is not None else 1.0)
            program.let(item.sign, sign)
            program.let(item.bound, bound)
            program.let(item.size, as_node(size))
            program.let(item.slack, CLOSE * abs(bound))
            program.let(item.before, UNKNOWN)

    def watch(self, program: Program, accepted: Register, lows: Sequence[Any], voltage: Node) -> None:
        """Record the excess of an attempt over the limits, and refuse it if a shorter one ends nearer to one."""
        program.let(self.passing, 0)
        program.let(self.factor, 1.0)
        for limit, item in self.watched.items():
            value = self._value(program, limit, lows, voltage)
            program.let(item.now, item.sign * where(item.size, mg.abs(value), value) - item.bound)
            passed = as_node(item.now) >= 0.0
            program.let(self.passing, where((self.passing == 0) & passed, 1 + LIMITS.index(limit), self.passing))
            far = passed & (item.now > item.slack) & (item.before < 0.0)
            span = where(far, item.now - item.before, 1.0)
            part = mg.max((0.5 * item.slack - item.before) / span, NARROW)
            program.let(self.factor, where(far, mg.min(self.factor, part), self.factor))
        floor = LEAST * self.problem.steps.first
        shorter = accepted & (self.factor < 1.0) & (self.state.dt > floor)
        program.let(self.factor, where(shorter, self.factor, 1.0))
        program.let(accepted, accepted & ~shorter)

    def commit(self, program: Program, number: Register, begun: Register) -> None:
        """Record the acceptance of an attempt, in a segment of this number that has begun at this time."""
        program.let(self.reached, self.passing)
        brief = self.state.time - begun <= 2.0 * LEAST * self.problem.steps.first
        with program.when((self.reached > 0) & (self.at_once == 0) & brief):
            program.let(self.at_once, self.reached)
            program.let(self.at_once_in, number)
        with program.when(self.reached > 0):
            self.count(program, number, self.reached)
        for item in self.watched.values():
            program.let(item.before, item.now)

    def count(self, program: Program, number: Register, reached: Register | int) -> None:
        """Record that a limit, given as in `reached`, has ended the segment of this number."""
        for (segment, limit), register in self.ends.items():
            ended = (as_node(number) == segment) & (as_node(reached) == 1 + LIMITS.index(limit))
            program.let(register, register + where(ended, 1, 0))

    def shorten(self, program: Program, proposal: Register, careful: Register) -> None:
        """Record the length of the next attempt, where the last one was refused only because it passed a limit."""
        with program.when(self.factor < 1.0):
            program.let(proposal, self.factor * self.state.dt)
            program.let(careful, 0)

    def _value(self, program: Program, limit: Limit, lows: Sequence[Any], voltage: Node) -> Node:
        """Record a quantity at the end of the attempt; return it."""
        match limit:
            case "voltage":
                if self.reference is None:
                    return voltage
                return -self.reference.potential(program, self.state.potential.next)
            case "current":
                return self.charges.charge("rate") * (1.0 / self.plane)
            case "charge":
                passed = self.charges.charge("whole") - self.since + self.charges.charge("attempted")
                return passed * (1.0 / self.plane)
            case "concentration":
                return as_node(lows[self._metal])

    @property
    def _metal(self) -> int:
        names = [s.name for s in self.problem.species]
        return names.index(self.problem.metal or names[0])


def _direction(segment: Segment, limit: Limit, side: float) -> tuple[float, float, bool]:
    """Return the sign and the bound of a limit, and whether the size of the quantity counts.

    A positive current raises the voltage (`side` 1), but lowers the cathode's potential against a reference (-1).
    """
    if limit not in segment.until:
        return 0.0, FAR, False
    value = segment.until[limit]
    match limit:
        case "voltage":
            final = segment.level + (segment.slope * segment.duration if segment.slope else 0.0)
            if final == 0.0 and segment.level == 0.0:
                return -1.0, -abs(value), True
            sign = side if final + segment.level >= 0.0 else -side
            return sign, sign * value, False
        case "current":
            return (1.0, value, True) if segment.slope else (-1.0, -value, True)
        case "charge":
            return 1.0, value, True
        case "concentration":
            return -1.0, -value, False
