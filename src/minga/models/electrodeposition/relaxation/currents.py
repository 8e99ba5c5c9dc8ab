"""Currents and ion fluxes at the electrodes, summed over all faces of metals."""

from __future__ import annotations

from minga.compile.explain import kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.lengths import Lengths, Number
from minga.models.electrodeposition.problem import FLUID, Flux, Problem
from minga.models.electrodeposition.relaxation.ions import Readers, faces, passing


def balances(problem: Problem) -> bool:
    """Return whether the flux of any ion at an electrode balances that at the other electrode."""
    surfaces = (*problem.cathode.surfaces.values(), *problem.anode.surfaces.values())
    return any(isinstance(s, Flux) and s.density is None for s in surfaces)


def electrode_sums(problem: Problem, lengths: Lengths) -> Kernel:
    """Return the kernel of the sums over each electrode, whose fields are kind, ions, potential and widths.

    For each electrode, the kernel returns the current from the solution into the metal (A, per metre of each direction
    that the grid has no axis for), the flux into the metal of ions that balance the other electrode (mol/s), and the
    area of the electrode.
    """
    faraday = problem.constants.faraday
    here = (0,) * lengths.ndim

    def add(
        kind: CellReader,
        ions: Readers,
        phi: CellReader,
        widths: Readers,
        *,
        voltage: Node,
        at_cathode: Node,
        at_anode: Node,
    ) -> dict[str, Reduced]:
        fluid = kind[here] == FLUID
        volume: Number = 1.0
        for axis in range(lengths.ndim):
            volume = lengths.width(widths, axis) * volume
        sums = {(what, metal): as_node(0.0) for what in ("current", "ions", "area") for metal in ("cathode", "anode")}
        for face in faces(problem, lengths, kind, phi, (), widths, voltage):
            if face.metal is None:
                continue
            sides = {"cathode": fluid & face.metal & face.cathode, "anode": fluid & face.metal & ~face.cathode}
            for metal, there in sides.items():
                area = volume * face.per * face.distance
                sums["area", metal] += where(there, area, 0.0)
            for number, ion in enumerate(problem.species):
                if not (ion.name in problem.cathode.surfaces or ion.name in problem.anode.surfaces):
                    continue
                passed = passing(problem, number, face, phi[here], ions, (at_cathode, at_anode))
                flux = volume * (passed.leaving * ions[number][here] - passed.entering)
                for metal, there in sides.items():
                    sums["current", metal] += where(there, faraday * ion.charge * flux, 0.0)
                    other = problem.anode if metal == "cathode" else problem.cathode
                    if other.surfaces.get(ion.name) == Flux(None):
                        sums["ions", metal] += where(there, flux, 0.0)
        return {f"{what}_{metal}": mg.sum(value) for (what, metal), value in sums.items()}

    return kernel(add)
