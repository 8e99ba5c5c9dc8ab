"""Pointwise scheme: potential and densities, each from a scalar equation at one node after the other, until converged.

After C. E. Korman and I. D. Mayergoyz, J. Appl. Phys. 68, 1324 (1990), as used by Bounanos, Fleury, Nicolas and
Vickers. An iteration has five sub-cycles: reset (the new values become the old ones), phi, u, v and field. It converges
from any start and needs no linear algebra, but takes as many iterations as a relaxation of Laplace's equation, N^2
for N depleted nodes. It serves as a workload for parallel machines; for computing currents, use Newton's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import CaseError, RunError
from minga.lang import functions as mg
from minga.lang.graph import RUN
from minga.lang.math import exp
from minga.lang.table import lookup
from minga.models.photodiode.pointwise import kernels
from minga.models.photodiode.pointwise.setup import Pointwise, Setup
from minga.models.photodiode.solver.coefficient_values import neutral_potential
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.physics import fields_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.units import units_of
from minga.space.boundary import fixed
from minga.space.field import Field, Register

__all__ = ["Curve", "Pointwise", "Setup", "check_supported", "pointwise"]

Floats = NDArray[np.float64]


def pointwise(device: Device, problem: Problem, how: Pointwise | None = None) -> Model:
    """Return the model of a device solved node by node; each step of a run moves to the next voltage of the problem.

    Parameters
    ----------
    device
        Device to solve.
    problem
        Voltages and curves to solve for.
    how
        Options of the scheme; by default one sweep of each equation per iteration, without segments.

    Raises
    ------
    CaseError
        For a device or problem that the scheme does not support: two axes, Fermi-Dirac statistics, field-dependent
        mobilities, thermionic emission, tunnelling, surfaces, gain, capacitance, imposed currents and their parts.
    """
    how = how or Pointwise()
    check_supported(device, how)
    for there, what, remedy in (
        (problem.gain, "gain", "write gain = false"),
        (problem.quasistatic_capacitance, "quasi-static capacitance", "write quasistatic_capacitance = false"),
        (problem.current, "for an imposed current", "write bias instead of current"),
        (problem.current_parts, "for the parts of a current", "write current_parts = false"),
    ):
        if there:
            raise _not_here(what, remedy)
    coefficients = Coefficients(device)
    setup = Setup.of(device, how)
    step = Program("voltages")
    bias = Register("bias")
    before = Register("bias before")
    number = Register("voltage number", "i8")
    step.let(before, bias)
    step.let(bias, lookup(np.asarray(problem.bias, np.float64), number))
    step.let(number, number + 1)
    observables: dict[str, Register | tuple[Register, ...]] = {"V": bias}
    curves = []
    for name in problem.curves:
        curve = Curve.of(name, device, coefficients, setup, problem.ionisation, how)
        curve.solve(step, (bias - before) / device.thermal_voltage)
        curve.see_volts(step, bias, device.thermal_voltage)
        observables |= curve.observables
        curves.append(curve)
    fields = (*coefficients.fields, *setup.fields, *(item for curve in curves for item in curve.fields))
    values: dict[Any, Any] = {**coefficients.values, **setup.values}
    for curve in curves:
        values |= curve.initial(device)
    return Model(
        "photodiode",
        device.grid,
        fields,
        step,
        initial=values,
        output=tuple(item.name for curve in curves for item in curve.shown),
        observe=Program("observe"),
        observables=observables,
        units=units_of(observables),
        registers={bias: 0.0, number: 0, **{curve.total: 0 for curve in curves}},
        parameters={"scheme": "pointwise", "bias": list(problem.bias), "curves": list(problem.curves)},
        steps=len(problem.bias),
        explain=lambda engine: _unsettled(engine, device, curves, how),
        cuts=_cuts(device, how),
        notes=_notes(how),
        tables={"iv": ("V", *(name for name in observables if name in ("J", "J_lit")))},
    )


def _cuts(device: Device, how: Pointwise) -> dict[str, tuple[int, ...]]:
    """Return the only rows at which layouts may cut: the ends of segments, if blocks do not wait for one another.

    There the neighbours' values from before the iteration are used in any case. The test "paper" sums floating-point
    numbers, so that groups of rows must stay whole as well.
    """
    if how.across == "exact" or how.segments is None:
        return {}
    run = RUN if how.test == "paper" else 1
    return {device.grid.axes[0]: tuple(end for end in how.segments[1:-1] if end % run == 0)}


def _notes(how: Pointwise) -> tuple[tuple[str, str], ...]:
    """Return notes to be shown before the run."""
    if how.across == "exact" or how.segments is not None:
        return ()
    return (
        (
            "layout",
            'across = "block" without segments: the number of iterations and the last digits depend on the layout',
        ),
    )


def check_supported(device: Device, how: Pointwise) -> None:
    """Raise CaseError for devices and options that the scheme does not support."""
    nodes = device.grid.shape[0]
    if device.grid.ndim != 1:
        raise _not_here("devices with two axes", "leave the width of the device out")
    if device.statistics != "boltzmann":
        raise _not_here(f"{device.statistics} statistics", 'write statistics = "boltzmann"')
    if device.field_mobility:
        raise _not_here("field-dependent mobilities", 'write mobility = "constant" or "doping"')
    if device.emission:
        raise _not_here("thermionic emission", "write emission = false")
    if device.tunnelling is not None:
        raise _not_here("tunnelling", "leave [photodiode.tunnelling] out")
    if device.dopants is not None:
        raise _not_here("incomplete ionisation", "write incomplete_ionisation = false")
    if any(t.image_force or t.tunnelling_mass is not None for t in device.terminals):
        raise _not_here("barriers that depend on the field", "leave image_force and tunnelling of contacts out")
    if device.surface is not None:
        raise _not_here("recombination at surfaces", "leave surfaces and recombination velocities of contacts out")
    ends = how.segments
    if ends is not None and (ends[0] != 0 or ends[-1] != nodes or any(b <= a for a, b in pairwise(ends))):
        raise CaseError(
            f"segments end at {list(ends[:4])} ... {ends[-1]}; the device has {nodes} nodes",
            key="photodiode.pointwise.segments",
            remedy=f"give ascending ends from 0 to {nodes}",
        )
    if not 0 <= how.heavy[0] <= how.heavy[1] <= nodes:
        raise CaseError(
            f"heavy nodes {how.heavy[0]} to {how.heavy[1]} of a device with {nodes} nodes",
            key="photodiode.pointwise.heavy",
            remedy=f"choose some between 0 and {nodes}",
        )


def _unsettled(engine: Engine, device: Device, curves: Sequence[Curve], how: Pointwise) -> RunError | None:
    """Return the error for a voltage without convergence, naming the layer with the largest change; else None."""
    for curve in curves:
        iterations, change = engine.read(curve.iterations), engine.read(curve.change)
        if iterations < how.limit or change < how.tolerance:
            continue
        now, before = (engine.gather(slot) for slot in (curve.state[0].now, curve.state[0].next))
        layer = "the device"
        if now is not None and before is not None:
            place = int(np.abs(now - before).argmax())
            layer = f"layer {device.layers[int(device.layer[place])].name!r}"
        return RunError(
            f"the pointwise scheme did not converge in {iterations} iterations: the last one changed the solution by "
            f"{change:.3g}; potentials changed most in {layer}",
            remedy='allow more iterations, use fewer rows, or write scheme = "newton"',
        )
    return None


def _not_here(what: str, remedy: str) -> CaseError:
    return CaseError(
        f"the pointwise scheme does not solve {what}",
        key="photodiode.scheme",
        remedy=f'{remedy}, or write scheme = "newton"',
    )


@dataclass(frozen=True, eq=False)
class Curve:
    """State of one curve, dark or lit, and the recording of its iterations.

    Attributes
    ----------
    state
        phi (kT/q), n and p (1/cm3), with slots for the values before (now) and after an iteration (next).
    volts
        Potential, and quasi-Fermi potentials of electrons relative to the cathode's and of holes relative to the
        anode's, V.
    field
        Field on the edges along x, V/cm.
    steps
        Newton steps at each node over the run.
    waste
        Result of synthetic work, unused.
    pairs, made
        Pairs generated by ionisation on edges and at nodes, 1/cm2 s; only with ionisation.
    current_density, noise
        Current through the edges, and its rounding error.
    spread, uneven
        (Jmax - Jmin)/|J|, with and without the part that may be due to rounding.
    iterations, total
        Iterations at this voltage, and at all voltages so far.
    """

    name: str
    lit: bool
    coefficients: Coefficients
    setup: Setup
    ionising: bool
    how: Pointwise
    state: tuple[Field, Field, Field]
    volts: tuple[Field, ...]
    field: Field
    steps: Field
    waste: Field
    pairs: tuple[Field, ...]
    made: tuple[Field, ...]
    current_density: Field
    noise: Field
    change: Register
    iterations: Register
    total: Register
    current: Register
    spread: Register
    uneven: Register

    @classmethod
    def of(
        cls, name: str, device: Device, coefficients: Coefficients, setup: Setup, ionisation: bool, how: Pointwise
    ) -> Curve:
        """Return a curve with its fields and registers."""
        grid, mark = device.grid, "" if name == "dark" else f"_{name}"
        ionising = ionisation and any(own.a for own in coefficients.ionising[0])

        def made(label: str, **more: Any) -> Field:
            return Field(label + mark, grid, boundary=fixed(0.0), **more)

        return cls(
            name,
            name == "lit",
            coefficients,
            setup,
            ionising,
            how,
            (
                made("phi", slots=2, unit="kT/q"),
                made("electrons", slots=2, unit="1/cm3"),
                made("holes", slots=2, unit="1/cm3"),
            ),
            tuple(Field(name + mark, grid, unit="V") for name in ("potential", "electron_level", "hole_level")),
            Field("field" + mark, grid, centre="x", unit="V/cm"),
            Field("newton_steps" + mark, grid, "i8"),
            Field("waste" + mark, grid),
            (Field("pairs" + mark, grid, centre="x"),) if ionising else (),
            (Field("pairs at nodes" + mark, grid),) if ionising else (),
            Field("current density" + mark, grid, centre="x", unit="A/cm2"),
            Field("rounding of the current" + mark, grid, centre="x", unit="A/cm2"),
            Register("change" + mark),
            Register("iterations" + mark, "i8"),
            Register("iterations in all" + mark, "i8"),
            Register("J" + mark),
            Register("uniformity" + mark),
            Register("unevenness" + mark),
        )

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the curve."""
        seen = (*self.volts, self.field, self.steps, self.current_density, self.noise)
        return (*self.state, *seen, *self.pairs, *self.made, self.waste)

    @property
    def shown(self) -> tuple[Field, ...]:
        """Fields written to frames."""
        return (*self.volts, *self.state[1:], self.field, self.steps)

    @property
    def observables(self) -> dict[str, Register | tuple[Register, ...]]:
        """Observables of the curve, by name."""
        mark = "" if self.name == "dark" else f"_{self.name}"
        return {
            f"J{mark}": self.current,
            f"uniformity{mark}": self.spread,
            f"iterations{mark}": self.iterations,
            f"change{mark}": self.change,
        }

    def initial(self, device: Device) -> dict[Any, Any]:
        """Return the initial values: charge neutrality everywhere, at zero voltage."""
        potential = neutral_potential(device)
        densities = (
            REFERENCE_DENSITY * portable.exp(potential + device.theta_n),
            REFERENCE_DENSITY * portable.exp(-potential - device.theta_p),
        )
        found: dict[Any, Any] = {}
        for item, values in zip(self.state, (potential, *densities), strict=True):
            found[item.now] = found[item.next] = values
        return found

    # Programs --------------------------------------------------------------------------------------------------------
    def solve(self, program: Program, change: Any) -> None:
        """Record the solution at the next voltage."""
        how = self.how
        program.apply(kernels.ramp(), self.state[0].now, self.setup.share, change=change)
        program.let(self.iterations, 0)
        program.let(self.change, float("inf"))
        with program.repeat(until=self.change < how.tolerance, limit=how.limit):
            self.iteration(program)
            program.let(self.iterations, self.iterations + 1)
        self.see_current(program)

    def see_volts(self, program: Program, bias: Any, thermal: float) -> None:
        """Record the potentials in V."""
        program.apply(
            kernels.volts(), [item.now for item in self.state], self.setup.theta, self.volts,
            bias=bias / thermal, thermal=thermal,
        )  # fmt: skip

    def iteration(self, program: Program) -> None:
        """Record one iteration: its sub-cycles, the convergence test, and the exchange of old and new values."""
        how, setup, nodes, edges = self.how, self.setup, self.coefficients.nodes, self.coefficients.edges[0]
        old, new = [item.now for item in self.state], [item.next for item in self.state]
        place = (nodes.contact, setup.first, setup.last)
        synthetic = how.cost == "synthetic" or how.labour > 1
        for sweep in range(how.inner_sweeps):
            program.apply(
                kernels.poisson(how.directions[0], how.across, sweep > 0, how.weight, synthetic),
                old,
                new,
                *place,
                nodes.volume,
                nodes.doping,
                edges.coupling,
                self.steps,
                setup.heavy,
                self.waste,
                labour=float(how.labour),
                multiple=self.multiple if how.cost == "synthetic" else 1.0,
            )
        for carrier, theta, mobile, numbers, direction in (
            ("u", setup.theta[0], edges.mobile_n, self.numbers[0], how.directions[1]),
            ("v", setup.theta[1], edges.mobile_p, self.numbers[1], how.directions[2]),
        ):
            kernel = kernels.continuity(carrier, direction, how.across, self.ionising)
            for _ in range(how.inner_sweeps):
                program.apply(
                    kernel,
                    old,
                    new,
                    *place,
                    theta,
                    mobile,
                    numbers,
                    nodes.generation,
                    list(self.made),
                    lit=1.0 if self.lit else 0.0,
                )
        self.see_field(program, old, new)
        self.test(program, old, new)
        program.rotate(*self.state)
        program.let(self.total, self.total + 1)

    @property
    def multiple(self) -> Any:
        """Multiple of the work in heavy nodes during this iteration."""
        later = 2.0 * self.total / self.how.expected - 1.0
        return exp(self.how.growth * mg.min(mg.max(later, 0.0), 1.0))

    def see_field(self, program: Program, old: list[Any], new: list[Any]) -> None:
        """Record the sub-cycle field."""
        edges = self.coefficients.edges[0]
        pieces = self.coefficients.ionising[0] if self.ionising else None
        program.apply(
            kernels.edge_field(pieces),
            old,
            new,
            self.setup.first,
            list(self.setup.theta),
            [edges.mobile_n, edges.mobile_p, edges.slope, edges.half],
            [] if pieces is None else [item for own in pieces for item in fields_of(own)],
            self.field,
            list(self.pairs),
        )
        if self.ionising:
            program.apply(kernels.made_at_nodes(), self.pairs[0], self.made[0])

    def test(self, program: Program, old: list[Any], new: list[Any]) -> None:
        """Record the quantity that is compared with the tolerance."""
        if self.how.test == "residual":
            program.let(self.change, self.residual(program, new))
            return
        found: Any = program.apply(kernels.changes("paper" if self.how.test == "paper" else "max"), old, new)
        if self.how.test == "paper":
            found = mg.max(mg.abs(found.phi), mg.max(mg.abs(found.u), mg.abs(found.v)))
        elif self.how.test == "current":
            self.see_current(program, new)
            found = mg.max(found, self.uneven * (self.how.tolerance / EVEN))
        program.let(self.change, found)

    def residual(self, program: Program, state: list[Any]) -> Any:
        """Record the residual of the equations."""
        nodes, edges = self.coefficients.nodes, self.coefficients.edges[0]
        electrons, holes = self.numbers
        return program.apply(
            kernels.residual(self.ionising),
            state,
            nodes.contact,
            nodes.doping,
            edges.coupling,
            list(self.setup.theta),
            [edges.mobile_n, edges.mobile_p],
            electrons,
            holes,
            nodes.generation,
            list(self.made),
            lit=1.0 if self.lit else 0.0,
        )

    @property
    def numbers(self) -> tuple[list[Field], list[Field]]:
        """Parameters of recombination at a node, for electrons and for holes; those of the own carrier come first."""
        nodes = self.coefficients.nodes
        common = [nodes.volume, nodes.intrinsic]
        own = [nodes.rate_n, nodes.rate_p, nodes.radiative, nodes.auger_n, nodes.auger_p]
        other = [nodes.rate_p, nodes.rate_n, nodes.radiative, nodes.auger_p, nodes.auger_n]
        return [*common, *own], [*common, *other]

    def see_current(self, program: Program, state: list[Any] | None = None) -> None:
        """Record the current on the edges with the smallest rounding errors, and its uniformity there."""
        edges = self.coefficients.edges[0]
        least: Any = program.apply(
            kernels.currents(),
            [item.now for item in self.state] if state is None else state,
            list(self.setup.theta),
            [edges.mobile_n, edges.mobile_p],
            self.current_density,
            self.noise,
        )
        seen: Any = program.apply(
            kernels.evenness(), self.current_density, self.noise, edges.mobile_n, noise=NOISE * least
        )
        middle = 0.5 * (seen.least + seen.largest)
        size = mg.max(mg.abs(middle), LEAST)
        program.let(self.current, middle)
        program.let(self.spread, (seen.largest - seen.least) / size)
        program.let(self.uneven, mg.max(seen.above - seen.below, 0.0) / size)


EVEN: Final = 1e-3
"""Largest (Jmax - Jmin)/|J|, apart from rounding errors, accepted by the test "current"."""

LEAST: Final = 1e-300
"""Current density that stands for zero, A/cm2."""

NOISE: Final = 1e6
"""Edges are ignored if their rounding error exceeds the smallest one by more than this factor."""
