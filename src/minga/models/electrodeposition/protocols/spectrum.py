"""Impedance: the response to a small sine, by the Fourier coefficients of voltage and current in its last period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.elementary import atan2
from minga.lang.expr import Node, as_node, where
from minga.lang.math import cos, sin
from minga.models.electrodeposition.protocols.segments import Segment
from minga.space.field import Register

__all__ = ["Spectrum"]

DEGREES: Final = 57.29577951308232
"""Degrees in a radian."""
NAMES: Final = ("f", "Z_re", "Z_im", "Z_im_negative", "Z_size", "Z_phase")
"""Observables of impedances, lists over the frequencies."""
SMALL: Final = 1e-6
"""Fraction of a period by which its beginning may differ and still be the same."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Impedances at the frequencies of a program, in the order of its segments.

    Attributes
    ----------
    segments
        All segments of the program.
    numbers
        Number of the impedance by the number of the segment.
    sums
        Integrals of voltage and current times cosine and sine over the last period.
    before
        The four integrands at the last step.
    results
        Registers by observable; 0 until a frequency is complete.
    """

    segments: Sequence[Segment]
    numbers: dict[int, int] = field(init=False)
    sums: tuple[Register, ...] = field(init=False)
    before: tuple[Register, ...] = field(init=False)
    results: dict[str, tuple[Register, ...]] = field(init=False)

    def __post_init__(self) -> None:
        put, words = object.__setattr__, ("voltage cosine", "voltage sine", "current cosine", "current sine")
        measured = [n for n, segment in enumerate(self.segments) if segment.measured]
        put(self, "numbers", {n: place for place, n in enumerate(measured)})
        put(self, "sums", tuple(Register(f"{word} sum") for word in words))
        put(self, "before", tuple(Register(f"{word} before") for word in words))
        put(self, "results", {name: tuple(Register(f"{name} {n}") for n in range(len(measured))) for name in NAMES})

    def begin(self, program: Program) -> None:
        """Record the beginning of a segment."""
        for register in (*self.sums, *self.before):
            program.let(register, 0.0)

    def add(
        self, program: Program, number: Register, passed: Node, step: Register, voltage: Node, current: Node,
        pulsatance: Register,
    ) -> None:  # fmt: skip
        """Record the contribution of an accepted step that ends `passed` after the beginning of its segment."""
        wave = [f(pulsatance * passed) for f in (cos, sin)]
        values = [quantity * part for quantity in (voltage, current) for part in wave]
        for place, segment in enumerate(self.segments):
            if place not in self.numbers:
                continue
            period = 1.0 / segment.frequency
            within = (as_node(number) == place) & (passed > segment.duration - (1.0 - SMALL) * period)
            with program.when(within):
                for total, old, new in zip(self.sums, self.before, values, strict=True):
                    program.let(total, total + 0.5 * step * (old + new))
        for old, new in zip(self.before, values, strict=True):
            program.let(old, new)

    def finish(self, program: Program, number: Register) -> None:
        """Record the impedance of a segment that has ended."""
        v_cos, v_sin, i_cos, i_sin = map(as_node, self.sums)
        # Fourier coefficients are those of exp(-i w t); the quotient of voltage and current is the impedance.
        size = i_cos * i_cos + i_sin * i_sin
        there = size > 0.0
        safe = where(there, size, 1.0)
        real = where(there, (v_cos * i_cos + v_sin * i_sin) / safe, 0.0)
        negative = where(there, (v_sin * i_cos - v_cos * i_sin) / safe, 0.0)
        for place, count in self.numbers.items():
            values = (
                as_node(self.segments[place].frequency), real, -negative, negative,
                mg.sqrt(real * real + negative * negative), -DEGREES * atan2(negative, real),
            )  # fmt: skip
            with program.when(as_node(number) == place):
                for name, value in zip(NAMES, values, strict=True):
                    program.let(self.results[name][count], value)
