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

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import as_node, cast
from minga.lang.table import lookup
from minga.models.photodiode.solver.biasing import Biasing
from minga.models.photodiode.solver.transposed import Transposed
from minga.models.photodiode.structure.depletion import photocurrent_sign
from minga.models.photodiode.structure.illumination import Spectrum
from minga.models.photodiode.structure.optics import photon_energy
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
    adjoint
        Adjoint of the current.
    efficiency
        Quantum efficiency at the wavelength of the step.
    """

    biasing: Biasing
    spectrum: Spectrum
    probability: Field = field(init=False)
    adjoint: Transposed = field(init=False)
    efficiency: Register = field(default_factory=lambda: Register("quantum efficiency"))

    def __post_init__(self) -> None:
        grid, put = self.biasing.coefficients.device.grid, object.__setattr__
        put(self, "probability", Field("collection", grid, unit="1", description="charges collected per pair"))
        put(self, "adjoint", Transposed(self.biasing.tracks[0].equations, self.biasing.problem.linear))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields but the output field, for a Model."""
        return self.adjoint.fields

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
        state, device = track.state, coefficients.device
        sign = photocurrent_sign(device) * device.direction
        self.adjoint.record(program, state.now, state.bias, 1.0 if track.curve == "lit" else 0.0, sign)
        self.adjoint.effects(program, self.probability)

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
