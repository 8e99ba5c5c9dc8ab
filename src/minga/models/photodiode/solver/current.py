"""Search for the voltage that drives an imposed current, by attempts at trial voltages.

The current increases with the voltage. The search therefore moves in one direction until the target is bracketed, and
then to the voltage at which a line through both ends predicts it, in a scale in which the curves of diodes are
straight. The distance of an end that stays twice is halved (the Illinois form of regula falsi).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, where
from minga.lang.math import log1p
from minga.space.field import Register

__all__ = ["Search"]

FAR: Final = 1e7
"""Stands for a bias that is never reached, kT/q."""
LINEAR: Final = 1e-3
"""Fraction of the goal below which a current is scaled linearly; beyond it is scaled logarithmically."""
TINY: Final = 1e-30
"""Current density that counts as zero, A/cm2."""


@dataclass(frozen=True, eq=False)
class Search:
    """Registers of a search.

    Attributes
    ----------
    goal
        Current density to reach, A/cm2.
    low, high
        Biases with too little and too much current, kT/q; `below` and `above` are their (scaled) deviations.
    known_low, known_high
        1 once the end is known.
    last
        End that was renewed last: 1 low, 2 high.
    floor
        Current density that counts as zero, A/cm2.
    """

    name: str
    tolerance: float
    floor: float = TINY
    goal: Register = field(init=False)
    low: Register = field(init=False)
    high: Register = field(init=False)
    below: Register = field(init=False)
    above: Register = field(init=False)
    known_low: Register = field(init=False)
    known_high: Register = field(init=False)
    last: Register = field(init=False)

    def __post_init__(self) -> None:
        for item in ("goal", "low", "high", "below", "above"):
            object.__setattr__(self, item, Register(f"{self.name} {item}"))
        for item in ("known_low", "known_high", "last"):
            object.__setattr__(self, item, Register(f"{self.name} {item}", "i8"))

    def begin(self, program: Program, goal: Node) -> None:
        """Record the beginning of a search."""
        program.let(self.goal, goal)
        for item in (self.known_low, self.known_high, self.last):
            program.let(item, 0)

    def aim(self, program: Program, bias: Register, current: Any, target: Register, limit: Any = None) -> None:
        """Record the evaluation of the last solution, and the next trial voltage: `target`.

        `limit` is a bias, kT/q, that is tried before anything beyond it.
        """
        scale = LINEAR * mg.abs(self.goal) + self.floor
        off = _scaled(current / scale) - _scaled(self.goal / scale)
        # Twice on the same side: halve the distance of the other end.
        too_low = off < 0.0
        with program.when(too_low):
            program.let(self.above, where(self.last == 1, 0.5 * self.above, self.above))
            program.let(self.low, bias)
            program.let(self.below, off)
            program.let(self.known_low, 1)
            program.let(self.last, 1)
        with program.when(~too_low):
            program.let(self.below, where(self.last == 2, 0.5 * self.below, self.below))
            program.let(self.high, bias)
            program.let(self.above, off)
            program.let(self.known_high, 1)
            program.let(self.last, 2)
        width = where(self.above > self.below, self.above - self.below, 1.0)
        share = mg.min(mg.max(-self.below / width, 1e-3), 1.0 - 1e-3)
        between = self.low + share * (self.high - self.low)
        both = (self.known_low > 0) & (self.known_high > 0)
        far: Any = where(self.known_low > 0, FAR, -FAR)
        if limit is not None:
            far = where((limit > bias) == (self.known_low > 0), limit, far)
        program.let(target, where(both, between, far))

    def met(self, current: Any) -> Node:
        """Return whether the goal is met, or no voltage is left between the ends."""
        size = mg.abs(self.goal)
        near = mg.abs(current - self.goal) <= self.tolerance * size + self.floor
        both = (self.known_low > 0) & (self.known_high > 0)
        return near | (both & ((self.high - self.low) <= 4e-16 * mg.abs(self.high)))


def _scaled(value: Any) -> Node:
    """Return an odd function that is linear near 0 and logarithmic beyond."""
    size = log1p(mg.abs(value))
    return where(value < 0.0, -size, size)
