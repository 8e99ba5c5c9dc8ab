"""Quasi-static capacitance: the holes that enter through the anode for a small, slow change of the voltage.

C = q d(integral of p)/dV, from steady states slightly below and above each voltage. The same number of electrons enters
through the cathode, so that no net charge builds up. The holes that neutral acceptors keep are part of p. In reverse
bias, where depletion dominates, this is also the low-frequency small-signal capacitance. In forward bias it is not:
some of the carriers stored in a diode return through the contact by which they entered, so that dQ/dV is larger, by a
factor of two in a long diode and of many in a short one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.densities import neutral_acceptors
from minga.models.photodiode.structure.constants import CHARGE
from minga.space.field import Field, Register

if TYPE_CHECKING:
    from minga.models.photodiode.solver.biasing import Track

__all__ = ["Capacitance"]

STEP: Final = 0.02
"""Distance of the two voltages from the present one, kT/q."""

Solve = Callable[[Program, Any], Register]
"""Recorder of the solution at a voltage (kT/q) near the present one, in the next slots; returns success (1)."""


@dataclass(frozen=True, eq=False)
class Capacitance:
    """Recorder of the quasi-static capacitance of curves.

    Attributes
    ----------
    p, n
        Densities at the lower voltage.
    values
        Capacitance of each curve, F/cm2; NaN if a solution was not found.
    """

    tracks: tuple[Track, ...]
    p: Field = field(init=False)
    n: Field = field(init=False)
    values: dict[str, Register] = field(init=False)

    def __post_init__(self) -> None:
        grid, put = self.tracks[0].state.grid, object.__setattr__
        put(self, "p", Field("p below", grid))
        put(self, "n", Field("n below", grid))
        put(self, "values", {track.name: Register(f"{track.name} capacitance") for track in self.tracks})

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.p, self.n

    def record(self, program: Program, track: Track, volume: Field, width: float, thermal: float, solve: Solve) -> None:
        """Record the capacitance at the present solution of a curve; `width` is the cross section normal to x, cm2."""
        equations, state = track.equations, track.state
        found = Register("both found", "i8")
        program.let(found, solve(program, state.bias - STEP))
        equations.densities(program, state.next, state.bias - STEP, self.n, self.p)
        self._keep(program, track, self.n, self.p)
        program.let(found, found * solve(program, state.bias + STEP))
        equations.densities(program, state.next, state.bias + STEP)
        self._keep(program, track, equations.n, equations.p)
        stored = program.apply(difference(state.grid.ndim), equations.p, self.p, volume)
        per_volt = CHARGE / (2.0 * STEP * thermal * width)
        program.let(self.values[track.name], where(found > 0, per_volt * stored, math.nan))  # type: ignore[operator]

    def _keep(self, program: Program, track: Track, n: Field, p: Field) -> None:
        """Record the addition of the holes of neutral acceptors to p."""
        equations, dopants = track.equations, track.equations.coefficients.dopants
        if dopants:
            program.apply(with_acceptors(track.state.grid.ndim), n, p, equations.activities[:2], dopants)


@functools.cache
def difference(ndim: int) -> Kernel:
    """Return the kernel of the increase of stored carriers."""
    here = (0,) * ndim

    def more(now: CellReader, before: CellReader, volume: CellReader) -> Reduced:
        return mg.sum(volume[here] * (now[here] - before[here]))

    return Kernel(more, name="stored carriers")


@functools.cache
def with_acceptors(ndim: int) -> Kernel:
    """Return the kernel that adds the holes of neutral acceptors to those of the band."""
    here = (0,) * ndim

    def keep(
        n: CellReader, p: CellReader, activities: Sequence[CellReader], dopants: Sequence[CellReader]
    ) -> None:  # fmt: skip
        acceptors = neutral_acceptors(dopants, here, n[here], p[here], [item[here] for item in activities])
        p[here] = p[here] + acceptors

    return Kernel(keep, name="holes with those of acceptors")
