"""Adjoint of the terminal current: the solution of the transposed linear system with the gradient of the current.

About a solution, a change b of the equations' balances changes the unknowns by du with A du = -b, where A is the matrix
of Newton's method, and the current over q by g du. With A^T lambda = g, the current changes by -lambda b for any b, so
that one solution serves all. The current is the mean over all planes normal to x, weighted with the inverse square of
their round-off. With dead space, whose derivatives A lacks, the solution is repeated until it includes them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.assembly import ELECTRONS, HOLES, POTENTIAL, pattern
from minga.models.photodiode.solver.history_adjoint import MOST_ROUNDS, STEADY, HistoryAdjoint
from minga.models.photodiode.solver.linear import LinearSolver, chosen, linear_solver
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.solver.physics import EdgeValues
from minga.models.photodiode.solver.problem import Linear
from minga.models.photodiode.solver.terminal import QUIET, charge_with_noise, inner_edges
from minga.solve.block_tridiagonal import Pattern, arranged
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Slot

__all__ = ["Transposed", "collected"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Transposed:
    """Recorder of the adjoint of the current through a device with contacts on opposite sides.

    Attributes
    ----------
    newton
        Evaluates the equations and their matrix.
    noise
        Round-off of the fluxes through the edges along x.
    weights
        Weight of the current through each plane normal to x: the inverse square of its round-off, and 1 in sum.
    lines
        Solver for the transposed matrix.
    solution
        The adjoint: change of the current over q for a change of the balances of potential, electrons and holes.
    history
        Derivatives of ionisation with dead space, or None.
    """

    newton: Newton
    linear: Linear
    name: str = ""
    noise: Field = field(init=False)
    weights: Field = field(init=False)
    lines: LinearSolver = field(init=False)
    solution: tuple[Field, ...] = field(init=False)
    history: HistoryAdjoint | None = field(init=False)

    def __post_init__(self) -> None:
        coefficients, put = self.newton.coefficients, object.__setattr__
        device, linear = coefficients.device, self.linear
        grid = device.grid
        if grid.ndim > 1 and chosen(linear, device) == "krylov":
            linear = "sparse"  # a preconditioner of the transposed matrix is not worth its while
        turned: Pattern = tuple(zip(*self._pattern))
        held, name = coefficients.held, self.name
        put(self, "noise", Field(f"{name}round-off of fluxes", grid, centre="x"))
        put(self, "weights", Field(f"{name}weight of a plane", grid, centre="x"))
        put(self, "lines", linear_solver(linear, device, turned, held, f"{name}transposed lines"))
        put(self, "solution", tuple(Field(f"{name}adjoint {k}", grid, boundary=fixed(0.0)) for k in range(3)))
        past = self.newton.history
        put(self, "history", None if past is None else HistoryAdjoint(past, name))

    @property
    def _pattern(self) -> Pattern:
        return pattern(self.newton.ionisation, self.newton.coefficients.tunnelling)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        past = () if self.history is None else self.history.fields
        return self.noise, self.weights, *self.lines.fields, *self.solution, *past

    def record(self, program: Program, state: Sequence[Slot], bias: Any, light: Any, sign: float = 1.0) -> None:
        """Record the adjoint at a state; `sign` multiplies the current."""
        newton = self.newton
        device = newton.coefficients.device
        ndim = device.grid.ndim
        newton.evaluate(program, state, bias, light)
        edges = list(newton.edges[0].all)
        program.apply(noises(ndim), state, edges, self.noise, region=inner_edges(device.grid.shape, 0))
        program.call_global(weights_of, reads=[self.noise], writes=[self.weights])
        program.apply(transposed(ndim, self._pattern), *newton.lines.matrix, *self.lines.matrix)
        self.lines.setup(program)
        if self.history is None:
            program.apply(gradient(ndim), edges, self.weights, self.solution, scale=sign)
            self.lines.solve(program, self.solution, self.solution)
            return
        past = self.history
        past.begin(program, state)
        with program.repeat(until=past.change <= STEADY, limit=MOST_ROUNDS):
            program.apply(gradient(ndim), edges, self.weights, self.solution, scale=sign)
            past.correct(program, newton.edges[0], self.solution)
            self.lines.solve(program, self.solution, self.solution)
            self.effects(program, past.effects)
            past.update(program, newton.edges[0])

    def effects(self, program: Program, found: Field) -> None:
        """Record the change of the current over q for a pair at each node, from the solution."""
        c = self.newton.coefficients
        program.apply(collected(c.device.grid.ndim), self.solution, c.nodes.contact, c.surface[2:], found)


def weights_of(noise: np.ndarray) -> np.ndarray:
    """Return the weights of planes from the round-off of the fluxes through their edges; 0 outside the device."""
    planes = [math.fsum(row) for row in noise.reshape(noise.shape[0], -1).tolist()]
    inverse = [1.0 / (plane * plane) if plane > 0.0 else 0.0 for plane in planes]
    total = math.fsum(inverse)
    found = np.array([weight / total for weight in inverse])
    return np.broadcast_to(found.reshape(-1, *[1] * (noise.ndim - 1)), noise.shape).copy()


# Kernels -------------------------------------------------------------------------------------------------------------
@functools.cache
def noises(ndim: int) -> Kernel:
    """Return the kernel of the round-off of the fluxes through edges along x."""
    here = (0,) * ndim

    def find(state: Readers, edges: Readers, noise: CellReader) -> None:
        values = EdgeValues.of([item[here] for item in edges])
        noise[here] = charge_with_noise(values, state, 0, False)[1] + QUIET

    return Kernel(find, name="round-off of fluxes")


@functools.cache
def gradient(ndim: int) -> Kernel:
    """Return the kernel of the gradient of the planes' mean current over q, by potential and levels."""
    here, above = (0,) * ndim, step(ndim, 0, 1)

    def slopes(edges: Readers, weights: CellReader, out: Readers, *, scale: Node) -> None:
        up, down = (EdgeValues.of([item[at] for item in edges]) for at in (above, here))
        high, low = weights[above] * scale, weights[here] * scale
        out[POTENTIAL][here] = high * (up.electrons.potential_low + up.holes.potential_low) + low * (
            down.electrons.potential_high + down.holes.potential_high
        )
        out[ELECTRONS][here] = high * up.electrons.fermi_low + low * down.electrons.fermi_high
        out[HOLES][here] = high * up.holes.fermi_low + low * down.holes.fermi_high

    return Kernel(slopes, name="gradient of the current")


@functools.cache
def transposed(ndim: int, coupling: Pattern) -> Kernel:
    """Return the kernel that transposes a matrix of blocks, with this coupling, between neighbours."""
    here, k = (0,) * ndim, len(coupling)
    turned: Pattern = tuple(zip(*coupling))
    size = sum(entry for row in coupling for entry in row)

    def transpose(
        lower: Readers, diagonal: Readers, upper: Readers, low: Readers, middle: Readers, high: Readers
    ) -> None:
        for i in range(k):
            for j in range(k):
                middle[i * k + j][here] = diagonal[j * k + i][here]
        for axis in range(ndim):
            part = slice(axis * size, (axis + 1) * size)
            for targets, sources, side in ((low, upper, -1), (high, lower, 1)):
                at = step(ndim, axis, side)
                target, source = arranged(targets[part], turned), arranged(sources[part], coupling)
                for i in range(k):
                    for j in range(k):
                        entry, value = target[i][j], source[j][i]
                        if entry is not None and value is not None:
                            entry[here] = value[at]

    return Kernel(transpose, name="transposed matrix")


@functools.cache
def collected(ndim: int) -> Kernel:
    """Return the kernel of the charges collected per pair; carriers that a contact holds recombine there."""
    here = (0,) * ndim

    def collect(solution: Readers, contact: CellReader, free: Readers, probability: CellReader) -> None:
        charges: list[Node] = []
        for row in (ELECTRONS, HOLES):
            held = contact[here] != 0
            if free:  # 1 and 2, as the rows
                held = held & (free[0][here] != row)
            charges.append(where(held, 0.0, solution[row][here]))
        probability[here] = charges[0] - charges[1]

    return Kernel(collect, name="collection of carriers")
