"""Impedance: the response to a small sine, by the Fourier coefficients of voltage and current in its last period.

The coefficients are sums over the samples of the last period, at which time steps end. Sums over the equally spaced
samples of a whole period do not see a constant, so that a bias of any size leaves nothing. A response that still drifts
does not end the period where it began; its straight part d j/N contributes d/2 to the sum with the cosine and
-(d/2) cot(pi/N) to that with the sine, which the weights of the period's two ends take away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.elementary import atan2, floor
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
"""Fraction of the time between samples by which the end of a step may differ from a sample and still be there."""


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
        Sums of voltage and current times cosine and sine over the samples of the last period.
    results
        Registers by observable; 0 until a frequency is complete.
    """

    segments: Sequence[Segment]
    numbers: dict[int, int] = field(init=False)
    sums: tuple[Register, ...] = field(init=False)
    results: dict[str, tuple[Register, ...]] = field(init=False)

    def __post_init__(self) -> None:
        put, names = object.__setattr__, ("voltage cosine", "voltage sine", "current cosine", "current sine")
        measured = [n for n, segment in enumerate(self.segments) if segment.measured]
        put(self, "numbers", {n: place for place, n in enumerate(measured)})
        put(self, "sums", tuple(Register(f"{name} sum") for name in names))
        put(self, "results", {name: tuple(Register(f"{name} {n}") for n in range(len(measured))) for name in NAMES})

    def begin(self, program: Program) -> None:
        """Record the beginning of a segment."""
        for register in self.sums:
            program.let(register, 0.0)

    def add(
        self, program: Program, number: Register, passed: Node, voltage: Node, current: Node, pulsatance: Register
    ) -> None:
        """Record the contribution of an accepted step that ends `passed` after the beginning of its segment."""
        wave = cos(pulsatance * passed), sin(pulsatance * passed)
        for place, segment in enumerate(self.segments):
            if place not in self.numbers:
                continue
            samples = passed * (segment.frequency * segment.points)
            since = floor(samples + 0.5) - float(round((segment.duration * segment.frequency - 1.0) * segment.points))
            at_sample = mg.abs(samples - floor(samples + 0.5)) < SMALL
            starts, ends = mg.abs(since) < 0.5, mg.abs(since - float(segment.points)) < 0.5
            half = as_node(math.pi / segment.points)
            slant = 0.5 * cos(half) / sin(half)
            cosine = where(starts | ends, 0.5, wave[0])
            sine = where(starts, -slant, where(ends, slant, wave[1]))
            with program.when((as_node(number) == place) & at_sample & (since > -0.5)):
                products = [quantity * part for quantity in (voltage, current) for part in (cosine, sine)]
                for total, product in zip(self.sums, products, strict=True):
                    program.let(total, total + product)

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
