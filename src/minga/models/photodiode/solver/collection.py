"""Collection of carriers: the change of the current for a pair generated at each node, and quantum efficiencies.

About a solution, the equations A du + V dG (e_n - e_p) = 0 give the change of all unknowns for additional pairs dG in a
node's volume V, where A is the matrix of Newton's method and e_n, e_p are the unit vectors of the node's balances of
electrons and holes. The current changes by g du, where g is its gradient. With A^T lambda = g, one solution yields all
nodes: each pair contributes lambda_n - lambda_p charges to the photocurrent, which flows from the cathode to the anode.
That is the probability that the pair is collected, or, with ionisation, a gain. It holds for weak light, added to
whatever light the solution includes.

The quantum efficiency at a wavelength is its sum over the nodes, weighted with the fraction of the incident photons
that each absorbs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.kernel import Kernel
from minga.lang.table import lookup
from minga.models.photodiode.solver.assembly import ELECTRONS, HOLES, POTENTIAL, pattern
from minga.models.photodiode.solver.biasing import Biasing
from minga.models.photodiode.solver.physics import EdgeValues
from minga.models.photodiode.solver.terminal import QUIET, carried_with_noise, inner_edges
from minga.models.photodiode.structure.illumination import Spectrum
from minga.models.photodiode.structure.optics import photon_energy
from minga.solve.block_tridiagonal import BlockLines, Pattern, arranged
from minga.space.boundary import fixed
from minga.space.field import STEP, Field, Register

__all__ = ["Collection"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Collection:
    """Recorder of the collection of carriers and of quantum efficiencies of a device with one axis and one curve.

    Attributes
    ----------
    probability
        Charges collected per pair generated at each node; an output field.
    weights
        Weight of each plane's current, the inverse square of its round-off.
    lines
        Solver for the transposed matrix.
    efficiency
        Quantum efficiency at the wavelength of the step.
    """

    biasing: Biasing
    spectrum: Spectrum
    probability: Field = field(init=False)
    weights: Field = field(init=False)
    lines: BlockLines = field(init=False)
    solution: tuple[Field, ...] = field(init=False)
    efficiency: Register = field(default_factory=lambda: Register("quantum efficiency"))

    def __post_init__(self) -> None:
        grid, put = self.biasing.coefficients.device.grid, object.__setattr__
        put(self, "probability", Field("collection", grid, unit="1", description="charges collected per pair"))
        put(self, "weights", Field("weight of a plane", grid, centre="x"))
        put(self, "lines", BlockLines(grid, "x", 3, "transposed lines", self._transposed))
        put(self, "solution", tuple(Field(f"adjoint {k}", grid, boundary=fixed(0.0)) for k in range(3)))

    @property
    def _pattern(self) -> Pattern:
        return pattern(self.biasing.tracks[0].ionisation)

    @property
    def _transposed(self) -> Pattern:
        return tuple(zip(*self._pattern))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields but the output field, for a Model."""
        return self.weights, *self.lines.fields, *self.solution

    def record(self, program: Program) -> None:
        """Record the collection at the present solution, and the quantum efficiency, after a step of `biasing`."""
        track, coefficients = self.biasing.tracks[0], self.biasing.coefficients
        newton, state, device = track.equations, track.state, coefficients.device
        newton.evaluate(program, state.now, state.bias, 1.0 if track.curve == "lit" else 0.0)
        edges = list(newton.edges[0].all)
        total: Any = program.apply(weighted(), state.now, edges, self.weights, region=inner_edges(device.grid.shape, 0))
        sign = 1.0 if device.terminal("anode").nodes[0] else -1.0
        program.apply(gradient(), edges, self.weights, self.solution, scale=sign / total)
        assert isinstance(newton.lines, BlockLines)
        program.apply(transposed(self._pattern), *newton.lines.matrix, *self.lines.matrix)
        self.lines.setup(program)
        self.lines.solve(program, self.solution, self.solution)
        program.apply(collected(), self.solution, coefficients.nodes.contact, self.probability)
        absorbed = np.array([item.nodes for item in self.spectrum.illuminations])

        def efficiency(at: float, probability: np.ndarray) -> float:
            return math.fsum((absorbed[int(at)] * probability).tolist())

        program.call_global(efficiency, reads=[self._number(program), self.probability], writes=[self.efficiency])

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


# Kernels -------------------------------------------------------------------------------------------------------------
@functools.cache
def weighted() -> Kernel:
    """Return the kernel of the weights of the planes and of their sum."""

    def weigh(state: Readers, edges: Readers, weights: CellReader) -> Reduced:
        values = EdgeValues.of([item[0] for item in edges])
        _, noise, _ = carried_with_noise(values, state, 0, False)
        quiet = noise + QUIET
        weights[0] = 1.0 / (quiet * quiet)
        return mg.sum(1.0 / (quiet * quiet))

    return Kernel(weigh, name="weights of planes")


@functools.cache
def gradient() -> Kernel:
    """Return the kernel of the gradient of the planes' mean current over q, by potential and levels."""

    def slopes(edges: Readers, weights: CellReader, out: Readers, *, scale: Node) -> None:
        up, down = (EdgeValues.of([item[at] for item in edges]) for at in (1, 0))
        above, below = weights[1] * scale, weights[0] * scale
        out[POTENTIAL][0] = above * (up.electrons.potential_low + up.holes.potential_low) + below * (
            down.electrons.potential_high + down.holes.potential_high
        )
        out[ELECTRONS][0] = above * up.electrons.fermi_low + below * down.electrons.fermi_high
        out[HOLES][0] = above * up.holes.fermi_low + below * down.holes.fermi_high

    return Kernel(slopes, name="gradient of the current")


@functools.cache
def transposed(coupling: Pattern) -> Kernel:
    """Return the kernel that transposes a block-tridiagonal matrix with this coupling."""
    k = len(coupling)

    def transpose(
        lower: Readers, diagonal: Readers, upper: Readers, low: Readers, middle: Readers, high: Readers
    ) -> None:
        before, after = arranged(lower, coupling), arranged(upper, coupling)
        turned: Pattern = tuple(zip(*coupling))
        targets = arranged(low, turned), arranged(high, turned)
        for i in range(k):
            for j in range(k):
                middle[i * k + j][0] = diagonal[j * k + i][0]
                for target, source, at in ((targets[0], after, -1), (targets[1], before, 1)):
                    entry, value = target[i][j], source[j][i]
                    if entry is not None and value is not None:
                        entry[0] = value[at]

    return Kernel(transpose, name="transposed matrix")


@functools.cache
def collected() -> Kernel:
    """Return the kernel of the charges collected per pair; pairs at a contact recombine there."""

    def collect(solution: Readers, contact: CellReader, probability: CellReader) -> None:
        probability[0] = where(contact[0] != 0, 0.0, solution[ELECTRONS][0] - solution[HOLES][0])

    return Kernel(collect, name="collection of carriers")
