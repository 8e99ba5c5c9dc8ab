"""Excess noise of a curve after each voltage, from the profile of its solution or the adjoint of its current.

F and the gain are those of the photocurrent without ionisation at the same field (`minga.models.photodiode.solver.
primaries`). With the profile (`minga.models.photodiode.noise`) its pairs drift. The noise of the whole current follows
with all pairs that are generated, by light or traps, less those that recombine, and with the minority carriers that
contacts emit or take up. It is that of reverse-biased devices, whose carriers are collected before they recombine. With
the adjoint (`minga.models.photodiode.solver.fluctuations`) it holds at any voltage. The responsivity of the
noise-equivalent power is that of a small change of the light about the solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.biasing import Track
from minga.models.photodiode.solver.coefficient_fields import Pieces
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.fluctuations import Fluctuations
from minga.models.photodiode.solver.noise_profile import NoiseProfile
from minga.models.photodiode.solver.physics import WEAKEST, fields_of, filled, ionisation_coefficient
from minga.models.photodiode.solver.primaries import Primaries
from minga.models.photodiode.solver.problem import NoiseMethod, Problem, suffix
from minga.models.photodiode.solver.small_signal import SmallSignal
from minga.models.photodiode.solver.transposed import Transposed
from minga.models.photodiode.structure.constants import BOLTZMANN, CHARGE
from minga.space.field import Field, Register
from minga.space.grid import Grid

__all__ = ["Noise", "noise_method"]

Floats = NDArray[np.float64]

REVERSE: Final = 4.0
"""Reverse bias in kT/q from which on few carriers cross the device against the current: 2 q J lacks 4 % there."""


@dataclass(frozen=True, eq=False)
class Noise:
    """Recorder of the noise of a curve.

    Attributes
    ----------
    power
        Power of the light, W/cm2; 0 if it is not known.
    primaries
        The collection of pairs without ionisation.
    rates
        Ionisation coefficients of electrons and holes on the edges, 1/cm, for the profile; else empty.
    fluctuations
        Noise by the adjoint; None: by the profile.
    gained
        With dead space, the adjoint of the current, and its change for a pair at each node; else None.
    found
        Registers by the name of the observable.
    """

    track: Track
    problem: Problem
    power: float
    signal: SmallSignal = field(init=False)
    primaries: Primaries = field(init=False)
    rates: tuple[Field, ...] = field(init=False)
    fluctuations: Fluctuations | None = field(init=False)
    gained: tuple[Transposed, Field] | None = field(init=False)
    found: dict[str, Register] = field(init=False)

    def __post_init__(self) -> None:
        name, grid, put = self.track.name, self.track.state.grid, object.__setattr__
        put(self, "signal", SmallSignal(self.track))
        put(self, "primaries", Primaries(self.track, self.problem))
        by_profile = noise_method(self.problem, grid) == "profile"
        carriers = ("electrons", "holes") if by_profile else ()
        put(self, "rates", tuple(Field(f"{name} rate of {c}", grid, centre="x") for c in carriers))
        put(self, "fluctuations", None if by_profile else Fluctuations(self.track, self.problem, self.signal))
        past = self.track.equations.history is not None and self.problem.circuit is not None and self.power > 0.0
        put(self, "gained", (
            Transposed(self.track.equations, self.problem.linear, f"{name} noise "), Field(f"{name} gained", grid)
        ) if past else None)  # fmt: skip
        names = ["F", "M_local", "collected"]
        if self.problem.circuit is not None:
            names += ["S_shot", "S_thermal", *(["NEP"] if self.power > 0.0 else [])]
        put(self, "found", {item: Register(f"{name} noise {item}") for item in names})

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        others = () if self.fluctuations is None else self.fluctuations.fields
        gained = () if self.gained is None else (*self.gained[0].fields, self.gained[1])
        return *self.signal.fields, *self.primaries.fields, *self.rates, *others, *gained

    @property
    def observed(self) -> dict[str, Register]:
        """Registers by the name of the observable, with the suffix of the curve."""
        return {f"{name}{suffix(self.track.curve)}": register for name, register in self.found.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """Observables in the table of the mode."""
        return tuple(self.observed)

    @property
    def _results(self) -> tuple[Register, Register, Register]:
        """Gain, excess noise factor and collection of the light."""
        return self.found["M_local"], self.found["F"], self.found["collected"]

    def record(self, program: Program) -> None:
        """Record the analysis of the present solution; without one, all quantities are NaN."""
        for register in self.found.values():
            program.let(register, math.nan)
        with program.when((self.track.failed == 0) & (self.track.broken == 0)):
            self._record(program)

    def _record(self, program: Program) -> None:
        signal, c = self.signal, self.track.equations.coefficients
        self.primaries.record(program)
        signal.linearise(program)
        intensity = Register(f"{self.track.name} noise intensity")
        counts: Any = True
        if self.fluctuations is None:
            counts = self._profile(program, c, intensity)
        else:
            self.fluctuations.record(program, self.primaries.collected, *self._results, intensity)
        circuit = self.problem.circuit
        if circuit is None:
            return
        shot = where(counts, 2.0 * CHARGE * CHARGE * circuit.area * intensity, math.nan)
        heat = 4.0 * BOLTZMANN * c.device.temperature / circuit.load if circuit.load > 0.0 else math.nan
        program.let(self.found["S_shot"], shot)
        program.let(self.found["S_thermal"], heat)
        if "NEP" in self.found:
            responsivity = mg.abs(self._photocurrent(program)) / self.power
            program.let(self.found["NEP"], mg.sqrt(self.found["S_shot"] + heat) / responsivity)

    def _photocurrent(self, program: Program) -> Node:
        """Record and return the photocurrent of weak light in units of the whole light, A/cm2."""
        signal, track = self.signal, self.track
        if self.gained is None:
            signal.factorise(program, as_node(0.0))
            signal.solve(program, signal.response)
            return as_node(signal.response.re)
        # The oscillations of `signal` do not know the history of carriers.
        (adjoint, effects), nodes = self.gained, track.equations.coefficients.nodes
        adjoint.record(program, track.state.now, track.state.bias, 1.0 if track.curve == "lit" else 0.0)
        adjoint.effects(program, effects)
        found = program.apply(_PHOTOCURRENT, nodes.generation, nodes.volume, effects)
        assert isinstance(found, Register)
        return CHARGE * as_node(found)

    def _profile(self, program: Program, c: Coefficients, intensity: Register) -> Node:
        """Record the noise by the profile; return whether the intensity is that of the whole current."""
        signal, equations = self.signal, self.track.equations
        self._rates(program, c)
        direction = Register(f"{self.track.name} noise direction")
        program.call_global(
            NoiseProfile.of(c.device, equations.space).noise,
            reads=[
                *self.rates, c.nodes.generation, c.nodes.volume, equations.edges[0].electrons.value,
                equations.edges[0].holes.value, signal.net[3], self.track.state.potential.now, self.primaries.collected,
            ],
            writes=[*self._results, intensity, direction],
        )  # fmt: skip
        # In equilibrium and forward bias, currents of both directions cancel, but their noise does not.
        return as_node(-self.track.state.bias * (c.device.direction * direction) >= REVERSE)

    def _rates(self, program: Program, c: Coefficients) -> None:
        """Record the ionisation coefficients on the edges; 0 without ionisation."""
        if not self.track.ionisation:
            return
        pieces = c.ionising[0]
        models = [item for part in pieces for item in fields_of(part)]
        edges = self.track.equations.inner(0)
        program.apply(
            _coefficients(pieces), self.track.state.potential.now, c.edges[0].slope, models, self.rates, region=edges
        )


def noise_method(problem: Problem, grid: Grid) -> NoiseMethod:
    """Return the method of a problem's noise on a grid."""
    return problem.noise_method or ("profile" if grid.ndim == 1 else "adjoint")


def _coefficients(pieces: tuple[Pieces, Pieces]) -> Kernel:
    """Return the kernel of ionisation coefficients."""

    def coefficients(potential: CellReader, slope: CellReader, models: Sequence[CellReader], out: Any) -> None:
        strength = mg.max(mg.abs(potential[0] - potential[-1]) * slope[0], WEAKEST)
        rest = list(models)
        for template, item in zip(pieces, out, strict=True):
            own = filled(template, rest, (0,))
            item[0] = ionisation_coefficient(own, strength) if own.a else strength * 0.0

    return Kernel(coefficients, name="ionisation coefficients")


def _photocurrent(generation: CellReader, volume: CellReader, effects: CellReader) -> Reduced:
    return mg.sum(generation[0] * volume[0] * effects[0])


_PHOTOCURRENT: Final = Kernel(_photocurrent, name="photocurrent of weak light")
