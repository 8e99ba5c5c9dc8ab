"""Peaks of voltammograms: the largest current of each ramp of the voltage that has a maximum inside the ramp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.protocols.segments import Segment
from minga.space.field import Register

__all__ = ["Peaks"]

NOTHING: Final = math.nan
"""Value of a peak that a ramp does not have."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """Peaks of the ramps of a program, in the order of its segments; those of the last round where ramps are repeated.

    A peak is the vertex of the parabola through the largest current and its neighbours.

    Attributes
    ----------
    segments
        All segments of the program.
    referred
        Flag: voltages are potentials of the cathode against a reference electrode, so that falling ones reduce.
    steps
        Number of accepted steps in the present segment.
    points
        Voltage and current at the last two steps of the segment.
    found
        Potential and current at the peak of each ramp; a current of 0 where there is none.
    """

    segments: Sequence[Segment]
    referred: bool
    steps: Register = field(default_factory=lambda: Register("steps of ramp", "i8"))
    points: tuple[Register, ...] = field(
        default_factory=lambda: tuple(Register(f"{n} of ramp {w}") for w in ("before", "now") for n in ("V", "current"))
    )
    found: tuple[tuple[Register, Register], ...] = field(init=False)

    def __post_init__(self) -> None:
        names = ("peak potential", "peak current")
        found = tuple(tuple(Register(f"{name} {n}") for name in names) for n in range(len(self.ramps)))
        object.__setattr__(self, "found", found)

    @property
    def ramps(self) -> list[int]:
        """Numbers of the segments that are ramps of the voltage."""
        return [n for n, s in enumerate(self.segments) if s.control == "voltage" and s.slope]

    def begin(self, program: Program, number: Register) -> None:
        """Record the beginning of a segment: its peak is not known any more."""
        program.let(self.steps, 0)
        for (_, current), ramp in zip(self.found, self.ramps, strict=True):
            program.let(current, where(as_node(number) == ramp, 0.0, current))

    def add(self, program: Program, number: Register, voltage: Node, current: Node) -> None:
        """Record an accepted step of a segment: its voltage (V) and current (A/m2) may complete a peak."""
        v, i = Register("V of ramp"), Register("current of ramp")
        program.let(v, voltage)
        program.let(i, current)
        with program.when(self.steps >= 2):
            for place, ramp in enumerate(self.ramps):
                with program.when(as_node(number) == ramp):
                    self._peak(program, place, self.segments[ramp].slope, v, i)
        before, now = self.points[:2], self.points[2:]
        for older, newer, value in zip(before, now, (v, i), strict=True):
            program.let(older, newer)
            program.let(newer, value)
        program.let(self.steps, self.steps + 1)

    def _peak(self, program: Program, place: int, slope: float, v: Register, i: Register) -> None:
        """Record the peak of the last three steps, if it is one and exceeds the one before."""
        sign = 1.0 if (slope > 0.0) != self.referred else -1.0
        first, low, middle, high = self.points
        falls, rises = (i - high) / (v - middle), (high - low) / (middle - first)
        curvature = (falls - rises) / (v - first)
        at = rises + curvature * (middle - first)
        there = (sign * (high - low) > 0.0) & (sign * (high - i) >= 0.0) & (sign * high > 0.0)
        safe = where(there, curvature, 1.0)
        top = high - at * at / (4.0 * safe)
        potential, best = self.found[place]
        better = there & (sign * top > sign * best)
        program.let(potential, where(better, middle - at / (2.0 * safe), potential))
        program.let(best, where(better, top, best))

    def observe(self, program: Program) -> dict[str, tuple[Register, ...]]:
        """Record the observables, lists over the ramps and over the pairs of neighbours, and return their registers."""
        known = [as_node(current) != 0.0 for _, current in self.found]
        values = {
            "peak_potential": [where(k, v, NOTHING) for k, (v, _) in zip(known, self.found, strict=True)],
            "peak_current": [where(k, i, NOTHING) for k, (_, i) in zip(known, self.found, strict=True)],
            "peak_separation": [
                where(known[n] & known[n + 1], mg.abs(self.found[n + 1][0] - self.found[n][0]), NOTHING)
                for n in range(len(known) - 1)
            ],
        }
        seen = {}
        for name, items in values.items():
            if items:
                seen[name] = tuple(Register(f"observed {name} {n}") for n in range(len(items)))
                for register, value in zip(seen[name], items, strict=True):
                    program.let(register, value)
        return seen
