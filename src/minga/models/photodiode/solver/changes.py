"""Changes of currents for changes of a device's coefficients, from the adjoint of each curve's solution.

The equations F(u, x) = 0 of the unknowns u hold for each value of a parameter x. With the current J(u, x), the matrix
A = F_u and the adjoint A^T lambda = J_u,

    dJ/dx = J_x - lambda F_x

so that only F and J at the same state are needed for other devices. Contacts have no equations: their unknowns are
those of the other device. As A^T lambda = J_u, a change of the state in between does not matter in first order, and
potentials follow those of the contacts: all fields change by about the same factor. If the potentials stayed, the field
beside a contact would change its sign where it is weak, and mobilities depend on its absolute value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import SerialComm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import RunError
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.biasing import Biasing, Track, Trial, contact_potentials
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.curves import biasing_of
from minga.models.photodiode.solver.failures import explainer
from minga.models.photodiode.solver.linear import hierarchies_of
from minga.models.photodiode.solver.physics import EdgeValues
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.solver.terminal import inner_edges
from minga.models.photodiode.solver.transposed import Transposed
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device
from minga.space.field import Field, Register, Slot

__all__ = ["Changes", "Correction", "Linearised", "Solution"]

Readers = Sequence[CellReader]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Linearised:
    """Recorder of a curve's adjoint, and of the current that it predicts for other coefficients.

    Attributes
    ----------
    flux, change
        At the same state, current over q through the planes of the other device, and the change of the current over q
        that its balances cause.
    """

    biasing: Biasing
    track: Track
    adjoint: Transposed = field(init=False)
    flux: Register = field(init=False)
    change: Register = field(init=False)

    def __post_init__(self) -> None:
        name, put = self.track.name, object.__setattr__
        put(self, "adjoint", Transposed(self.track.equations, self.biasing.problem.linear, f"{name} "))
        put(self, "flux", Register(f"{name} flux of another device"))
        put(self, "change", Register(f"{name} change by another device"))

    @property
    def _light(self) -> float:
        return 1.0 if self.track.curve == "lit" else 0.0

    def solve(self, program: Program) -> None:
        """Record the adjoint at the present solution."""
        self.adjoint.record(program, self.track.state.now, self.track.state.bias, self._light)

    def solve_near(self, program: Program, trial: Trial) -> None:
        """Record the adjoint at a state that is no solution: the present one, with the contacts at a bias."""
        self.biasing.start(program, self.track, trial, straight=False)
        self.adjoint.record(program, self.track.state.next, trial.bias, self._light)

    def evaluate(self, program: Program, trial: Trial) -> None:
        """Record the current that the present coefficients have at the solution and adjoint found before.

        `trial` has the bias in kT/q of the other device, and no change.
        """
        newton, state = self.track.equations, self.track.state
        grid, contact = newton.coefficients.device.grid, newton.coefficients.nodes.contact
        self.biasing.start(program, self.track, trial, straight=False)
        ends: list[Any] = [
            program.apply(contact_potentials(grid.ndim), item, contact)
            for item in (state.potential.now, state.potential.next)
        ]
        program.apply(
            followed(grid.ndim), state.potential.next, contact, anode=ends[0].anode, cathode=ends[0].cathode,
            by_anode=ends[1].anode - ends[0].anode, by_cathode=ends[1].cathode - ends[0].cathode,
        )  # fmt: skip
        newton.evaluate(program, state.next, trial.bias, self._light)
        program.apply(
            through(grid.ndim), list(newton.edges[0].all), self.adjoint.weights, into={"flux": self.flux},
            region=inner_edges(grid.shape, 0),
        )  # fmt: skip
        program.apply(caused(grid.ndim), self.adjoint.solution, newton.right, into={"change": self.change})


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Current of a curve, A/cm2, and its unknowns in kT/q, f8 of the shape of the device."""

    current: float
    state: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Parts of the current of a solution, by linearisation about a state nearby, A/cm2.

    Attributes
    ----------
    weights
        Weight of each plane normal to x in the mean current, f8 of shape (N + 1,).
    through
        Current at the state through the edges along x, f8 of their shape; the sums over each plane have that weight.
    nodes
        Change of the current that the balance of each node causes, f8 of the shape of the device.
    """

    weights: Floats
    through: Floats
    nodes: Floats


class Changes:
    """Solved curves of a device, and the currents that other devices with the same nodes would have.

    Parameters
    ----------
    device
        The device.
    problem
        Voltages, curves and physics.
    """

    def __init__(self, device: Device, problem: Problem) -> None:
        self.coefficients = Coefficients(device, varied=True)
        self.problem = problem
        self.biasing = biasing_of(self.coefficients, problem)
        self.curves = [Linearised(self.biasing, track) for track in self.biasing.tracks]
        self.trial = Trial()
        self.step = Program("step")
        self.biasing.record(self.step)
        self.model = Model(
            name="photodiode",
            grid=device.grid,
            fields=(
                *self.biasing.fields,
                *(item for curve in self.curves for item in curve.adjoint.fields),
                *self.coefficients.fields,
            ),
            step=self.step,
            initial=dict(self.coefficients.values),
            registers=self.biasing.registers,
            hierarchies=tuple(item for newton in self.biasing.newtons for item in hierarchies_of(newton.lines)),
        )

    @functools.cached_property
    def _linear(self) -> tuple[Program, Program]:
        """The adjoint of each curve, and the evaluation of its current for other coefficients."""
        solve, evaluate = Program("adjoints"), Program("evaluation")
        for curve in self.curves:
            curve.solve(solve)
            curve.evaluate(evaluate, self.trial)
        return solve, evaluate

    @functools.cached_property
    def _near(self) -> list[Program]:
        """The adjoint of each curve at a state that is no solution."""
        found = [Program(f"adjoint near the {curve.track.name} solution") for curve in self.curves]
        for curve, program in zip(self.curves, found, strict=True):
            curve.solve_near(program, self.trial)
        return found

    def currents(self, others: Sequence[Coefficients]) -> tuple[Floats, Floats]:
        """Return the currents of the device and those predicted for others, A/cm2.

        Parameters
        ----------
        others
            Coefficients of other devices, with fields of the same names and shapes.

        Returns
        -------
        currents
            f8 of shape (voltages, curves).
        predicted
            f8 of shape (voltages, curves, others), by linearisation about the device's solution; its round-off is
            relative to the change.
        """
        count = len(self.problem.bias), len(self.curves)
        own, predicted = np.empty(count), np.empty((*count, len(others)))
        with self._engine() as engine:
            for k, bias in enumerate(self.problem.bias):
                self._step(engine, bias)
                engine.run(self._linear[0])
                own[k] = [engine.read(curve.track.current) for curve in self.curves]
                for j, other in enumerate(others):
                    predicted[k, :, j] = self._evaluated(engine, other, bias)
                if others:
                    self._set(engine, self.coefficients)
        return own, predicted

    def solution(self) -> list[Solution]:
        """Return the solution of each curve at the last voltage."""
        with self._engine() as engine:
            for bias in self.problem.bias:
                self._step(engine, bias)
            return [
                Solution(engine.read(t.current), tuple(_whole(engine, item.now) for item in t.state.fields))
                for t in self.biasing.tracks
            ]

    def corrections(self, guesses: Sequence[Solution]) -> list[Correction]:
        """Return the parts of the current of each curve at the last voltage, from a guess of its solution.

        Parameters
        ----------
        guesses
            Unknowns of each curve, close to a solution.
        """
        found = []
        scale = CHARGE / float(self.coefficients.device.areas[0][1].sum())
        with self._engine() as engine:
            engine.write(self.trial.bias, self.problem.bias[-1] / self.coefficients.device.thermal_voltage)
            engine.write(self.trial.change, 0.0)
            for curve, program, guess in zip(self.curves, self._near, guesses, strict=True):
                state, newton = curve.track.state, curve.track.equations
                for item, value in zip(state.fields, guess.state, strict=True):
                    engine.set(item.now, value)
                engine.write(state.begun, 1)
                engine.run(program)
                flux = sum(_whole(engine, part.value) for part in (newton.edges[0].electrons, newton.edges[0].holes))
                adjoint = zip(curve.adjoint.solution, newton.right, strict=True)
                changes = sum(_whole(engine, factor) * _whole(engine, value) for factor, value in adjoint)
                weights = _whole(engine, curve.adjoint.weights)
                planes = weights.reshape(weights.shape[0], -1)[:, 0]
                found.append(Correction(planes, scale * np.asarray(flux), scale * np.asarray(changes)))
        return found

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        with Engine(self.model.layouts("slabs", 1), comm=SerialComm(), threads=1) as engine:
            for slot, value in self.model.start_values():
                engine.set(slot, value)
            for register, number in self.model.registers.items():
                engine.write(register, number)
            yield engine

    def _step(self, engine: Engine, bias: float) -> None:
        if not engine.run(self.step).ok:
            raise explainer(self.biasing)(engine) or RunError(f"the currents at {bias:g} V could not be solved for")
        for track in self.biasing.tracks:
            if engine.read(track.broken):
                raise RunError(
                    f"breakdown at {engine.read(track.breakdown):.4g} V, before the voltage {bias:g} V",
                    remedy="choose voltages at which the device does not break down",
                )

    def _set(self, engine: Engine, other: Coefficients) -> None:
        for mine, theirs in zip(self.coefficients.fields, other.fields, strict=True):
            engine.set(mine, other.values[theirs])

    def _evaluated(self, engine: Engine, other: Coefficients, bias: float) -> list[float]:
        """Return the current of each curve predicted for another device, A/cm2."""
        self._set(engine, other)
        engine.write(self.trial.bias, bias / other.device.thermal_voltage)
        engine.write(self.trial.change, 0.0)
        engine.run(self._linear[1])
        area, own = (float(device.areas[0][1].sum()) for device in (other.device, self.coefficients.device))
        return [CHARGE * (engine.read(c.flux) / area + engine.read(c.change) / own) for c in self.curves]


def _whole(engine: Engine, item: Field | Slot) -> Floats:
    found = engine.gather(item)
    assert found is not None
    return np.array(found)


# Kernels -------------------------------------------------------------------------------------------------------------
@functools.cache
def followed(ndim: int) -> Kernel:
    """Return the kernel that shifts potentials with those of the contacts, in proportion to their distance from both.

    Between contacts whose potentials differ by less than kT/q, they follow the contact that is nearer in potential.
    """
    here = (0,) * ndim

    def follow(
        potential: CellReader, contact: CellReader, *, anode: Node, cathode: Node, by_anode: Node, by_cathode: Node
    ) -> None:
        own, drop = potential[here], cathode - anode
        nearer = where(mg.abs(own - anode) < mg.abs(own - cathode), 0.0, 1.0)
        apart = mg.abs(drop) > 1.0
        share = where(apart, mg.min(mg.max((own - anode) / where(apart, drop, 1.0), 0.0), 1.0), nearer)
        shift = by_anode + share * (by_cathode - by_anode)
        potential[here] = own + where(contact[here] == 0, shift, 0.0)

    return Kernel(follow, name="potentials that follow the contacts")


@functools.cache
def through(ndim: int) -> Kernel:
    """Return the kernel of the weighted mean of the fluxes through the planes normal to x."""
    here = (0,) * ndim

    def mean(edges: Readers, weights: CellReader) -> dict[str, Reduced]:
        values = EdgeValues.of([item[here] for item in edges])
        return {"flux": mg.sum(weights[here] * (values.electrons.value + values.holes.value))}

    return Kernel(mean, name="mean flux through planes")


@functools.cache
def caused(ndim: int) -> Kernel:
    """Return the kernel of the change of the current that balances cause; `right` has their negative values."""
    here = (0,) * ndim

    def change(adjoint: Readers, right: Readers) -> dict[str, Reduced]:
        total: Any = 0.0
        for factor, value in zip(adjoint, right, strict=True):
            total = total + factor[here] * value[here]
        return {"change": mg.sum(total)}

    return Kernel(change, name="change of the current")
