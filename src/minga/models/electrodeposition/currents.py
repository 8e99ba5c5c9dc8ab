"""Currents through the electrodes and half way between them, by the fields of the last step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.models.electrodeposition.curvature import curved
from minga.models.electrodeposition.faces import Drive, displacement, face_values, has_metal, moving
from minga.models.electrodeposition.film import behind
from minga.models.electrodeposition.iteration import Iteration
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.species_flux import species_flux
from minga.space.box import Box

__all__ = ["electrode_currents", "middle_current"]

Readers = Sequence[CellReader]


def electrode_currents(program: Program, problem: Problem, lengths: Lengths, iteration: Iteration) -> tuple[Any, Any]:
    """Return the currents from the solution into the cathode and from the anode into the solution, A."""
    cathode: Any = 0.0
    anode: Any = 0.0
    for axis in range(problem.grid.ndim):
        if has_metal(problem, axis):
            found = _currents(program, problem, lengths, iteration, axis, None)
            cathode = found.cathode + cathode
            anode = found.anode + anode
    return cathode, anode


def middle_current(program: Program, problem: Problem, lengths: Lengths, iteration: Iteration) -> Any:
    """Return the current towards the cathode through the plane half way along y, A."""
    grid = problem.grid
    axis, half = grid.axis("y"), grid.shape[grid.axis("y")] // 2
    points = iteration.poisson.carried[axis].points
    low, high = list(points.lo), list(points.hi)
    low[axis], high[axis] = half, half + 1
    return _currents(program, problem, lengths, iteration, axis, Box(tuple(low), tuple(high))).through


def _currents(
    program: Program, problem: Problem, lengths: Lengths, iteration: Iteration, axis: int, region: Box | None
) -> Any:
    state, phi, formula = iteration.state, iteration.state.potential, iteration.formula
    return program.apply(
        currents(problem, lengths, axis), state.kind, phi.now, phi.previous, phi.next,
        [c.now for c in state.concentration], [v.previous for v in state.velocity], [v.next for v in state.velocity],
        iteration.poisson.carried[axis], lengths.fields, list(iteration.transport.film[axis]),
        iteration.transport.bent, list(iteration.transport.equilibrium),
        region=region, voltage=state.voltage, voltage1=iteration.voltages[0], voltage2=iteration.voltages[1],
        at_cathode=iteration.drive["at_cathode"], at_anode=iteration.drive["at_anode"],
        rate=formula.rate, h0=formula.now, h1=formula.before, ratio=formula.ratio,
    )  # fmt: skip


def currents(problem: Problem, lengths: Lengths, axis: int) -> Kernel:
    """Return the kernel of the ionic and displacement currents through the faces across an axis.

    The displacement current comes from three time levels. Convection uses the two velocities before the last step, as
    that step did. The currents are also stored in a scratch field, which the iteration writes before it reads it.
    """
    here = (0,) * problem.grid.ndim

    @kernel
    def currents_through_faces(
        kind: CellReader, phi: CellReader, before: CellReader, earlier: CellReader, c: Readers, velocity: Readers,
        previous: Readers, result: CellReader, widths: Readers, film: Readers, bent: Readers, equilibrium: Readers, *,
        voltage: Node, voltage1: Node, voltage2: Node, at_cathode: Node, at_anode: Node, rate: Node, h0: Node,
        h1: Node, ratio: Node,
    ) -> dict[str, Reduced]:  # fmt: skip
        drive = Drive(voltage, at_cathode, at_anode)
        face = curved(problem, face_values(problem, lengths, axis, kind, phi, widths, drive), bent)
        once = face_values(problem, lengths, axis, kind, before, widths, Drive(voltage1, at_cathode, at_anode))
        then = face_values(problem, lengths, axis, kind, earlier, widths, Drive(voltage2, at_cathode, at_anode))
        change = rate * face.difference - (h0 * once.difference - h1 * then.difference)
        v = moving(velocity, previous, axis, ratio)
        total = -displacement(problem, face) * change
        crossed = behind(problem, face, film, equilibrium)
        for number, species in enumerate(problem.species):
            item = species_flux(problem, crossed, number, c, v, drive)
            total = total + (problem.constants.faraday * species.charge) * item.amount
        result[here] = total
        if face.above is None or face.below is None or face.cathode is None:
            return {"through": mg.sum(-total)}
        metal = face.above | face.below
        outwards = where(face.above, -1.0, 1.0)
        return {
            "through": mg.sum(-total),
            "cathode": mg.sum(where(metal & face.cathode, -outwards * total, 0.0)),
            "anode": mg.sum(where(metal & ~face.cathode, outwards * total, 0.0)),
        }

    return currents_through_faces
