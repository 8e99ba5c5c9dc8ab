"""Continuation in the bias: attempts that are accepted, or repeated with a shorter step, in one Program.

An attempt starts from the straight line through the last two solutions or, if there is only one, from that solution
with the potential and the minority carriers of each side shifted along with the nearer contact. It works on next slots
only, so that a failed attempt leaves nothing behind but a shorter proposed step.

Towards breakdown the steps become shorter by themselves: with M the current divided by the current that remains
without ionisation, no step covers more than half of the distance to the voltage at which 1/M, extrapolated linearly,
becomes 0. That voltage is the breakdown voltage.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.capacitance import Capacitance
from minga.models.photodiode.solver.coefficient_values import ANODE, POTENTIAL
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.current import Search
from minga.models.photodiode.solver.gummel import Gummel
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.solver.probes import layer_field
from minga.models.photodiode.solver.problem import Curve, Problem
from minga.models.photodiode.solver.state import State
from minga.models.photodiode.solver.terminal import Seen, Terminal
from minga.models.photodiode.solver.thresholds import LONGEST_SPACE
from minga.space.box import Box
from minga.space.field import STEP, Field, Register, Slot

__all__ = ["Biasing", "Track", "Trial", "contact_potentials"]

Readers = Sequence[CellReader]

QUICK: Final = 8
"""Number of iterations up to which an attempt lengthens the next step."""
LONGEST: Final = 4.0
"""Longest step relative to the last one; the line through two solutions is not extrapolated farther."""
FIRST_LIGHT: Final = 1e-6
"""Fraction of the light at which its ramp starts."""
STUBBORN: Final = 3
"""Number of successive failed attempts after which the Gummel iteration runs first."""
CLOSE: Final = 0.1
"""Longest step across punch-through, V."""
SHORT: Final = 0.2
"""Length of a step relative to the last one, below which it does not define a new previous state."""
CURRENT_TOLERANCE: Final = 1e-8
"""Relative tolerance of an imposed current."""
SOURCE_TOLERANCE: Final = 1e-13
"""Tolerance of the voltage of a source behind a resistance, relative and in V."""
DEEPEST: Final = 0.2
"""Fraction of 1/M that an attempt must retain; if less is left, the step was too long."""


@dataclass(frozen=True, eq=False)
class Track:
    """One curve, solved with or without ionisation, and its results.

    Attributes
    ----------
    current, uniformity
        Current, A/cm2, and (largest - smallest)/|current| over all edges.
    inverse
        1/M: the current without the contribution of ionisation over the current; 1 without ionisation.
    slope
        Derivative of `inverse` with respect to the bias in kT/q.
    brightening
        Factor by which the next attempt increases the light.
    strongest
        Largest field, V/cm.
    iterations, attempts
        Totals of the last step of the run.
    broken
        1 once breakdown is reached, at the voltage `breakdown` (V; 0 until then).
    rescue
        Gummel iteration that precedes Newton's method if attempts keep failing, or None.
    rejected
        Number of successive rejected attempts.
    failed
        1 once an attempt failed with the shortest step, at node `place`.
    """

    curve: Curve
    ionisation: bool
    newton: Newton | Gummel
    state: State
    rescue: Gummel | None = None
    current: Register = field(init=False)
    uniformity: Register = field(init=False)
    inverse: Register = field(init=False)
    slope: Register = field(init=False)
    brightening: Register = field(init=False)
    strongest: Register = field(init=False)
    breakdown: Register = field(init=False)
    iterations: Register = field(init=False)
    attempts: Register = field(init=False)
    broken: Register = field(init=False)
    failed: Register = field(init=False)
    rejected: Register = field(init=False)
    place: Register = field(init=False)

    def __post_init__(self) -> None:
        for name in ("current", "uniformity", "inverse", "slope", "brightening", "strongest", "breakdown"):
            initial = {"inverse": 1.0, "brightening": 1e3}.get(name, 0.0)
            object.__setattr__(self, name, Register(f"{self.name} {name}", initial=initial))
        for name in ("iterations", "attempts", "broken", "failed", "rejected", "place"):
            object.__setattr__(self, name, Register(f"{self.name} {name}", "i8"))

    @property
    def equations(self) -> Newton:
        """Newton object that evaluates the equations."""
        return self.newton.newton if isinstance(self.newton, Gummel) else self.newton

    @property
    def name(self) -> str:
        """Name of the curve as shown to users."""
        return self.state.name


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An attempt: bias and its change (kT/q), light, and whether it was accepted (1)."""

    bias: Register = field(default_factory=lambda: Register("bias tried"))
    change: Register = field(default_factory=lambda: Register("change tried"))
    light: Register = field(default_factory=lambda: Register("light tried"))
    accepted: Register = field(default_factory=lambda: Register("accepted", "i8"))


@dataclass(frozen=True, eq=False)
class Biasing:
    """Recorder of the step of a run.

    Attributes
    ----------
    middle
        Number of the edge in the middle of the illuminated layer; None without light.
    capacitance
        Recorder of the quasi-static capacitances of the selected curves, or None.
    reached
        Bias, V, at which the field reached that layer (punch-through); 0 until then.
    absorber
        Field there, V/cm; `strength` is that of an attempt.
    brightness
        Fraction of the light of all curves; None: that of each curve.
    resistance
        Resistance times area, ohm cm2, between the device and a source whose voltages are those of the problem.
    target
        Bias that a step goes to, kT/q; `asked` is the same value in V as stated by the case.
    """

    coefficients: Coefficients
    problem: Problem
    tracks: tuple[Track, ...]
    middle: int | None = None
    capacitance: Capacitance | None = None
    brightness: float | None = None
    resistance: float = 0.0
    terminal: Terminal = field(init=False)
    strength: Register = field(default_factory=lambda: Register("field there"))
    reached: Register = field(default_factory=lambda: Register("punch-through"))
    absorber: Register = field(default_factory=lambda: Register("field in the absorber"))
    target: Register = field(default_factory=lambda: Register("target"))
    asked: Register = field(default_factory=lambda: Register("voltage asked for"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "terminal", Terminal(self.coefficients))

    @property
    def thermal(self) -> float:
        """Thermal voltage kT/q, V."""
        return self.coefficients.device.thermal_voltage

    @property
    def main(self) -> tuple[Track, ...]:
        """Curves with all of the problem's physics; with gain, there are others without ionisation."""
        return tuple(track for track in self.tracks if track.ionisation == self.problem.ionisation)

    @property
    def newtons(self) -> tuple[Newton, ...]:
        """Newton objects of all curves, each once."""
        return tuple(dict.fromkeys(track.equations for track in self.tracks))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields but the coefficients, for a Model."""
        found = [f for track in self.tracks for f in track.state.fields]
        for track in self.tracks:
            solver = track.newton if isinstance(track.newton, Gummel) else track.rescue
            found += [] if solver is None else solver.fields
        return *dict.fromkeys(found), *self.terminal.sums, *(self.capacitance.fields if self.capacitance else ())

    @property
    def registers(self) -> dict[Register, float]:
        """Initial values of the registers that depend on the problem, for a Model."""
        return {track.state.proposal: self.problem.first_step / self.thermal for track in self.tracks}

    @property
    def _limited(self) -> bool:
        """True if something else than the device limits the current, so that breakdown does not end a run."""
        return bool(self.problem.current) or self.resistance > 0.0

    def volts(self, bias: Any) -> Any:
        """Convert a bias from kT/q to V; the target is returned exactly as the case states it, to the last digit."""
        converted = bias * self.thermal
        return converted if self.problem.current else where(bias == self.target, self.asked, converted)

    def record(self, program: Program) -> None:
        """Record one step of the run: all curves at the next voltage."""
        target = self.target
        at = cast(as_node(STEP), "i8") // self.problem.repeats
        search: Search | None = None
        if self.problem.current:
            search = Search("search", CURRENT_TOLERANCE)
            search.begin(program, mg.lookup(np.array(self.problem.current), at))
        elif self.resistance > 0.0:
            search = Search("search", SOURCE_TOLERANCE, SOURCE_TOLERANCE)
            search.begin(program, mg.lookup(np.array(self.problem.bias), at))
        else:
            program.let(target, mg.lookup(np.array(self.problem.bias) / self.thermal, at))
            program.let(self.asked, mg.lookup(np.array(self.problem.bias), at))
        for track in self.tracks:
            program.let(track.iterations, 0)
            program.let(track.attempts, 0)
        for track in self.tracks:
            self._walk(program, track, target, search)
        if self.capacitance is not None:
            for track in self.capacitance.tracks:
                program.let(self.capacitance.values[track.name], math.nan)
                with program.when((track.failed == 0) & (track.broken == 0)):
                    self._capacitance(program, track, self.capacitance)
        self._end(program)
        program.let(STEP, STEP + 1)

    def _capacitance(self, program: Program, track: Track, capacitance: Capacitance) -> None:
        device, light = self.coefficients.device, 1.0 if track.curve == "lit" else 0.0

        def solve(program: Program, bias: Any) -> Register:
            beside = Trial()
            program.let(beside.bias, bias)
            program.let(beside.change, beside.bias - track.state.bias)
            self.start(program, track, beside, straight=False)
            with program.unchecked():
                track.newton.solve(program, track.state.next, beside.bias, light)
            program.let(beside.accepted, track.newton.converged)
            return beside.accepted

        width = float(device.areas[0][1].sum())
        capacitance.record(program, track, self.coefficients.nodes.volume, width, self.thermal, solve)

    def _end(self, program: Program) -> None:
        """Record the end of a run after a failure: a loop that reaches its limit, which the model then explains."""
        failed: Any = self.tracks[0].failed
        for track in self.tracks[1:]:
            failed = failed + track.failed
        lost = Register("failed", "i8")
        program.let(lost, failed)
        with program.when(lost > 0), program.repeat(until=lost == 0, limit=0):
            program.let(lost, lost)

    def _keep(self, program: Program, track: Track, change: Register) -> None:
        """Record that the next state becomes the present one, as a copy: rotated slots would be bound anew each time.

        The present state becomes the previous one unless the step was tiny: a line needs two points that are apart.
        """
        state = track.state
        apart = mg.abs(as_node(change)) >= SHORT * mg.abs(state.step)
        program.apply(kept(state.grid.ndim), state.next, state.now, state.previous, apart=where(apart, 1.0, 0.0))
        with program.when(mg.abs(as_node(change)) > 0.0):
            program.let(state.step, where(apart, change, state.step + change))

    # Attempts ------------------------------------------------------------------------------------------------------
    def _walk(self, program: Program, track: Track, target: Register, search: Search | None) -> None:
        """Record a curve's way to the next voltage, at first from neutral layers to equilibrium, then into light."""
        state, trial = track.state, Trial()
        full = self._full(track)
        goal, limit = self._sought(track)
        there = (state.bias == target) if search is None else search.met(goal)
        done = (state.begun > 0) & (state.light == full) & there
        over = (track.failed > 0) | (track.broken > 0)
        program.let(track.failed, 0)
        with program.repeat(until=done | over):
            if search is not None:
                with program.when((state.begun > 0) & (state.light == full)):
                    search.aim(program, state.bias, goal, target, limit)
            self._choose(program, track, target, trial)
            self.start(program, track, trial)
            with program.unchecked():
                if track.rescue is not None:
                    with program.when(track.rejected >= STUBBORN):
                        track.rescue.solve(program, state.next, trial.bias, trial.light)
                track.newton.solve(program, state.next, trial.bias, trial.light)
                seen = self._look(program, track)
            program.let(track.iterations, track.iterations + track.newton.iterations)
            program.let(track.attempts, track.attempts + 1)
            fine = track.newton.converged > 0
            if track.ionisation:
                fine = fine & ((seen.inverse >= DEEPEST * track.inverse) | self._beyond(track))
            if self.middle is not None and track is self.tracks[0]:
                # The approach to the illuminated layer is resolved with short steps.
                long = mg.abs(as_node(trial.change)) * self.thermal > CLOSE
                fine = fine & ~(self._crosses(self.strength) & long)
            program.let(trial.accepted, where(fine, 1, 0))
            with program.when(trial.accepted > 0):
                self._accept(program, track, seen, trial)
            with program.when(trial.accepted == 0):
                self._reject(program, track, trial)
            if (history := track.equations.history) is not None:
                # A shorter step does not help.
                with program.when((track.newton.converged > 0) & (history.longest >= LONGEST_SPACE)):
                    program.let(track.failed, 1)

    def _full(self, track: Track) -> float:
        """Return the fraction of the light at which a curve is solved."""
        return (1.0 if track.curve == "lit" else 0.0) if self.brightness is None else self.brightness

    def _sought(self, track: Track) -> tuple[Any, Any]:
        """Return the quantity that a search brings to its goal, and the bias, kT/q, that limits the search at first."""
        if self.problem.current:
            return track.current, None
        source = self.problem.bias[0]
        return track.state.bias * self.thermal + self.resistance * track.current, source / self.thermal

    def _choose(self, program: Program, track: Track, target: Register, trial: Trial) -> None:
        """Record the goal of the next attempt: more light, or a voltage that is a step or half of the rest away."""
        state = track.state
        left = mg.abs(target - state.bias)
        most: Any = where(state.step == 0.0, state.proposal, mg.min(state.proposal, LONGEST * mg.abs(state.step)))
        if track.ionisation:
            falling = track.slope * (target - state.bias) < 0.0
            steep = mg.max(mg.abs(track.slope), 1e-300)
            most = where(falling & ~self._beyond(track), mg.min(most, 0.5 * track.inverse / steep), most)
        size = where(left <= most, left, where(left <= 2.0 * most, 0.5 * left, most))
        ready: Any = state.begun > 0
        program.let(trial.light, 0.0)
        if (full := self._full(track)) > 0.0:
            ready = ready & (state.light == full)
            brighter = where(state.light > 0.0, mg.min(state.light * track.brightening, full), FIRST_LIGHT * full)
            program.let(trial.light, where(state.begun > 0, brighter, 0.0))
        program.let(trial.change, where(ready, where(target < state.bias, -size, size), 0.0))
        program.let(trial.bias, where(ready & (left <= most), target, state.bias + trial.change))

    def _beyond(self, track: Track) -> Node:
        """Return whether, with a limited current, multiplication is exhausted and space charge limits the current."""
        return (track.inverse < self.problem.breakdown) if self._limited else as_node(track.inverse) < 0.0

    def start(self, program: Program, track: Track, trial: Trial, *, straight: bool = True) -> None:
        """Record an initial guess; `straight`: on the line through the last two solutions, if there are two."""
        state, nodes = track.state, self.coefficients.nodes
        ndim = self.coefficients.device.grid.ndim
        ends = program.apply(contact_potentials(ndim), state.potential.now, nodes.contact)
        line = (state.step != 0.0) & (trial.change != 0.0) & straight
        program.apply(
            guess(ndim), state.now, state.previous, state.next, nodes.contact, nodes.neutral,
            self.coefficients.free,
            bias=trial.bias, change=trial.change, begun=where(state.begun > 0, 1.0, 0.0), known=where(line, 1.0, 0.0),
            ratio=where(line, trial.change / where(line, state.step, 1.0), 0.0),
            anode=ends.anode, cathode=ends.cathode,  # type: ignore[union-attr]
        )  # fmt: skip

    def _reject(self, program: Program, track: Track, trial: Trial) -> None:
        """Record a shorter step, or less light; the way to equilibrium cannot be shortened."""
        state = track.state
        moved = mg.abs(as_node(trial.change))
        program.let(track.place, track.newton.place)
        # On the way to equilibrium there is nothing shorter to try.
        program.let(track.rejected, track.rejected + where(state.begun > 0, 1, STUBBORN))
        with program.when(moved > 0.0):
            program.let(state.proposal, 0.5 * moved)
            program.let(track.failed, where(state.proposal * self.thermal < self.problem.smallest_step, 1, 0))
        with program.when(moved == 0.0):
            program.let(track.brightening, mg.sqrt(track.brightening))
            again = STUBBORN if track.rescue is not None else 0
            hopeless = (
                ((state.begun == 0) & (track.rejected > again))
                | ((state.begun > 0) & (trial.light == 0.0))
                | (track.brightening < 1.01)
            )
            program.let(track.failed, where(hopeless, 1, 0))

    def _look(self, program: Program, track: Track) -> Seen:
        """Record the observables of the solved state."""
        seen = self.terminal.record(
            program, track.state.next, track.equations.edges, by_density=isinstance(track.newton, Gummel)
        )
        if self.middle is not None and track is self.tracks[0]:
            program.let(self.strength, self.layer_field(program, track.state.potential.next, self.middle))
        return seen

    def layer_field(self, program: Program, potential: Slot, edge: int) -> Register:
        """Record the field on an edge along x, in the middle of the other axes, V/cm."""
        shape = self.coefficients.device.grid.shape
        low = (edge, *(n // 2 for n in shape[1:]))
        region = Box(low, tuple(n + 1 for n in low))
        found = program.apply(layer_field(len(shape), 0), potential, self.coefficients.edges[0].slope, region=region)
        assert isinstance(found, Register)
        return found

    def _accept(self, program: Program, track: Track, seen: Seen, trial: Trial) -> None:
        state, change = track.state, trial.change
        self._keep(program, track, change)
        moved = mg.abs(as_node(change))
        quick = where(track.newton.iterations <= QUICK, 2.0, 1.0) * moved
        # A step that was short only because the target was near does not argue against longer ones.
        longer = where(track.newton.iterations <= 2 * QUICK, mg.max(quick, state.proposal), quick)
        with program.when(moved > 0.0):
            program.let(state.proposal, mg.min(longer, self.problem.largest_step / self.thermal))
        if track is self.tracks[0] and self.middle is not None:
            self._punch_through(program, self.strength, trial.bias, change)
        if track.ionisation:
            self._multiply(program, track, seen.inverse, trial.bias, change)
        program.let(state.bias, trial.bias)
        program.let(state.light, trial.light)
        program.let(state.begun, 1)
        program.let(track.rejected, 0)
        for name in ("current", "uniformity", "inverse", "strongest"):
            program.let(getattr(track, name), getattr(seen, name))

    def _multiply(self, program: Program, track: Track, inverse: Register, tried: Register, change: Register) -> None:
        """Record the slope of 1/M, and the voltage at which it would be 0."""
        moved = mg.abs(as_node(change)) > 0.0
        slope = where(moved, (inverse - track.inverse) / where(moved, change, 1.0), 0.0)
        program.let(track.slope, slope)
        if self._limited:
            return
        with program.when(inverse < self.problem.breakdown):
            program.let(track.broken, 1)
            program.let(track.breakdown, (tried - inverse / where(track.slope == 0.0, 1.0, track.slope)) * self.thermal)

    def _punch_through(self, program: Program, strength: Register, tried: Register, change: Register) -> None:
        """Record the voltage at which the field crosses the threshold, on the line between two solutions."""
        now, before = mg.abs(as_node(strength)), mg.abs(as_node(self.absorber))
        with program.when(self._crosses(strength) & (mg.abs(as_node(change)) > 0.0)):
            share = (self.problem.punch_through - before) / (now - before)
            program.let(self.reached, (tried - change * (1.0 - share)) * self.thermal)
        program.let(self.absorber, strength)

    def _crosses(self, strength: Register) -> Node:
        """Return whether the field in the illuminated layer grows beyond the threshold."""
        threshold = self.problem.punch_through
        return (mg.abs(as_node(self.absorber)) < threshold) & (mg.abs(as_node(strength)) >= threshold)


# Kernels -------------------------------------------------------------------------------------------------------------
@functools.cache
def kept(ndim: int) -> Kernel:
    """Return the kernel that makes the next state present, and the present one previous where `apart` is 1."""
    here = (0,) * ndim

    def keep(then: Readers, now: Readers, before: Readers, *, apart: Node) -> None:
        for new, present, old in zip(then, now, before, strict=True):
            old[here] = where(apart > 0.0, present[here], old[here])
            present[here] = new[here]

    return Kernel(keep, name="acceptance of a state")


@functools.cache
def contact_potentials(ndim: int) -> Kernel:
    """Return the kernel of the potentials of both contacts, kT/q; the largest one of each contact."""
    here, lowest = (0,) * ndim, -1e300

    def contacts(potential: CellReader, contact: CellReader) -> dict[str, Any]:
        value, kind = potential[here], contact[here]
        return {
            "anode": mg.max(where(kind == ANODE, value, lowest)),
            "cathode": mg.max(where((kind != 0) & (kind != ANODE), value, lowest)),
        }

    return Kernel(contacts, name="contact potentials")


@functools.cache
def guess(ndim: int) -> Kernel:
    """Return the kernel of the initial guess of an attempt; neutral layers if there is no solution yet.

    `known` is 1 if there is a state before the present one; `ratio` is then the new step over the last one. `free` is
    `Coefficients.free`.
    """
    here = (0,) * ndim

    def start(
        now: Readers, before: Readers, then: Readers, contact: CellReader, neutral: CellReader,
        free: Readers, *, bias: Node, change: Node, begun: Node, known: Node, ratio: Node, anode: Node,
        cathode: Node,
    ) -> None:  # fmt: skip
        at, line, own = contact[here], known > 0.0, neutral[here]
        potential, electron, hole = (
            where(line, new[here] + ratio * (new[here] - old[here]), new[here])
            for new, old in zip(now, before, strict=True)
        )
        # Nodes closer to the anode's potential are shifted with it, and so are minority carriers.
        side = mg.abs(now[0][here] - anode) < mg.abs(now[0][here] - cathode)
        shift = where(line, 0.0, change)
        potential = where(begun > 0.0, where(side, potential + shift, potential), own)
        electron = where(side, electron + shift, electron)
        hole = where(side, hole, hole - shift)
        fixed = where(at == 0, potential, where(at == ANODE, own + bias, own))
        then[0][here] = where((free[0][here] == POTENTIAL) & (begun > 0.0), potential, fixed) if free else fixed
        loose = [(at == 0) | (free[0][here] == carrier) if free else at == 0 for carrier in (1, 2)]
        then[1][here] = where(loose[0], electron, where(at == ANODE, bias, 0.0))
        then[2][here] = where(loose[1], hole, where(at == ANODE, 0.0, -bias))

    return Kernel(start, name="first guess")
