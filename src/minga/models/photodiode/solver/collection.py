"""Collection of carriers: the change of the current for a pair generated at each node, and quantum efficiencies.

About a solution, the equations A du + V dG (e_n - e_p) = 0 give the change of all unknowns for additional pairs dG in a
node's volume V, where A is the matrix of Newton's method and e_n, e_p are the unit vectors of the node's balances of
electrons and holes. The current changes by g du, where g is its gradient. With A^T lambda = g, one solution yields all
nodes: each pair contributes lambda_n - lambda_p charges to the photocurrent, which flows from the cathode to the anode,
or from the anode to the cathode if the n side of the diode is at the anode. That is the probability that the pair is
collected, or, with ionisation, a gain. It holds for weak light, added to whatever light the solution includes.

The quantum efficiency at a wavelength is its sum over the nodes, weighted with the fraction of the incident photons
that each absorbs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.kernel import Kernel
from minga.lang.table import lookup
from minga.models.photodiode.solver.assembly import ELECTRONS, HOLES, POTENTIAL, pattern
from minga.models.photodiode.solver.biasing import Biasing
from minga.models.photodiode.solver.linear import LinearSolver, chosen, linear_solver
from minga.models.photodiode.solver.physics import EdgeValues
from minga.models.photodiode.solver.terminal import QUIET, charge_with_noise, inner_edges
from minga.models.photodiode.structure.depletion import photocurrent_sign
from minga.models.photodiode.structure.illumination import Spectrum
from minga.models.photodiode.structure.optics import photon_energy
from minga.solve.block_tridiagonal import Pattern, arranged
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import STEP, Field, Register

__all__ = ["Collection"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Collection:
    """Recorder of the collection of carriers and of quantum efficiencies, for one curve of a device.

    Attributes
    ----------
    probability
        Charges collected per pair generated at each node; an output field.
    noise
        Round-off of the fluxes through the edges along x.
    weights
        Weight of the current through each plane normal to x: the inverse square of its round-off, and 1 in sum.
    lines
        Solver for the transposed matrix.
    efficiency
        Quantum efficiency at the wavelength of the step.
    """

    biasing: Biasing
    spectrum: Spectrum
    probability: Field = field(init=False)
    noise: Field = field(init=False)
    weights: Field = field(init=False)
    lines: LinearSolver = field(init=False)
    solution: tuple[Field, ...] = field(init=False)
    efficiency: Register = field(default_factory=lambda: Register("quantum efficiency"))

    def __post_init__(self) -> None:
        coefficients, put = self.biasing.coefficients, object.__setattr__
        grid, linear = coefficients.device.grid, self.biasing.problem.linear
        if grid.ndim > 1 and chosen(linear, grid) == "krylov":
            linear = "sparse"  # a preconditioner of the transposed matrix is not worth its while
        turned: Pattern = tuple(zip(*self._pattern))
        put(self, "probability", Field("collection", grid, unit="1", description="charges collected per pair"))
        put(self, "noise", Field("round-off of fluxes", grid, centre="x"))
        put(self, "weights", Field("weight of a plane", grid, centre="x"))
        put(self, "lines", linear_solver(linear, grid, turned, coefficients.held, "transposed lines"))
        put(self, "solution", tuple(Field(f"adjoint {k}", grid, boundary=fixed(0.0)) for k in range(3)))

    @property
    def _pattern(self) -> Pattern:
        return pattern(self.biasing.tracks[0].ionisation, self.biasing.coefficients.tunnelling)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields but the output field, for a Model."""
        return self.noise, self.weights, *self.lines.fields, *self.solution

    def record(self, program: Program) -> None:
        """Record the collection at each new voltage, and the quantum efficiency: NaN where `biasing` has failed."""
        number, track = self._number(program), self.biasing.tracks[0]
        program.let(self.efficiency, math.nan)
        with program.when((track.failed == 0) & (track.broken == 0)):
            self._efficiency(program, number)

    def _efficiency(self, program: Program, number: Register) -> None:
        with program.when(number == 0):
            self._collect(program)
        absorbed = [item.nodes for item in self.spectrum.illuminations]

        def efficiency(at: float, probability: np.ndarray) -> float:
            return math.fsum((absorbed[int(at)].reshape(probability.shape) * probability).ravel().tolist())

        program.call_global(efficiency, reads=[number, self.probability], writes=[self.efficiency])

    def _collect(self, program: Program) -> None:
        """Record the collection at the present solution."""
        track, coefficients = self.biasing.tracks[0], self.biasing.coefficients
        newton, state, device = track.equations, track.state, coefficients.device
        ndim = device.grid.ndim
        newton.evaluate(program, state.now, state.bias, 1.0 if track.curve == "lit" else 0.0)
        edges = list(newton.edges[0].all)
        program.apply(noises(ndim), state.now, edges, self.noise, region=inner_edges(device.grid.shape, 0))
        program.call_global(weights_of, reads=[self.noise], writes=[self.weights])
        sign = photocurrent_sign(device) * device.direction
        program.apply(gradient(ndim), edges, self.weights, self.solution, scale=sign)
        program.apply(transposed(ndim, self._pattern), *newton.lines.matrix, *self.lines.matrix)
        self.lines.setup(program)
        self.lines.solve(program, self.solution, self.solution)
        program.apply(
            collected(ndim), self.solution, coefficients.nodes.contact, coefficients.surface[2:], self.probability
        )

    def _number(self, program: Program) -> Register:
        """Record the number of the wavelength of a step that has ended."""
        number = Register("number of the wavelength", "i8")
        return program.let(number, (cast(as_node(STEP), "i8") - 1) % len(self.spectrum.wavelengths))

    def observe(self, program: Program, layers: Sequence[str]) -> dict[str, Register]:
        """Record the observables at the wavelength of a step; `layers` are the names of the layers."""
        spectrum, number = self.spectrum, self._number(program)
        found = spectrum.illuminations
        columns: dict[str, list[float]] = {
            "wavelength": list(spectrum.wavelengths),
            "R": [item.reflected for item in found],
            "T": [item.transmitted for item in found],
            "A": [math.fsum(item.layers) for item in found],
        }
        if found[0].coatings:
            columns["A_coatings"] = [math.fsum(item.coatings) for item in found]
        if any(item.substrate for item in found):
            columns["A_substrate"] = [item.substrate for item in found]
        columns |= {f"A_{name}": [item.layers[k] for item in found] for k, name in enumerate(layers)}
        seen = {}
        for name, values in columns.items():
            seen[name] = program.let(Register(f"observed {name}"), lookup(np.array(values), number))
        seen["QE"] = self.efficiency
        per_photon = lookup(np.array([1.0 / photon_energy(w) for w in spectrum.wavelengths]), number)
        seen["responsivity"] = program.let(Register("observed responsivity"), self.efficiency * per_photon)
        return seen


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
