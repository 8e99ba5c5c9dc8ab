"""Observables of a cell: currents, amounts of ions, voltage, and the effort of the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.curvature import curved
from minga.models.electrodeposition.disturbances import largest_velocity
from minga.models.electrodeposition.faces import displacement, face_values, has_metal, moving, species_flux
from minga.models.electrodeposition.film import behind
from minga.models.electrodeposition.groups import limiting_current
from minga.models.electrodeposition.iteration import Iteration
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import FLUID, Problem
from minga.models.electrodeposition.stepping import Stepping
from minga.models.electrodeposition.transport import driving, volume
from minga.space.box import Box
from minga.space.field import Register

__all__ = ["amounts", "record_observables"]

Readers = Sequence[CellReader]


def record_observables(
    program: Program, problem: Problem, lengths: Lengths, stepping: Stepping
) -> dict[str, Register | tuple[Register, ...]]:
    """Record the observables, and return their registers by name.

    Currents are in A/m2 of the cathode's plane, positive where cations move to the cathode, and include the
    displacement current of the last step. Where the deposit grows, its cells may already differ from those of that
    step, so that those at the electrodes are the ones that the step found.
    """
    state, iteration, counters = stepping.state, stepping.iteration, stepping.counters
    seen: dict[str, Register | tuple[Register, ...]] = {
        "time": state.time, "dt": state.last, "voltage": state.voltage,
    }  # fmt: skip

    def value(name: str, expression: object) -> None:
        register = Register(f"observed {name}")
        program.let(register, expression)
        seen[name] = register

    iteration.transport.equilibrate(program, [c.now for c in state.concentration])
    if stepping.growing is not None and stepping.charges is not None:
        at_cathode, at_anode = stepping.charges.current(0), -stepping.charges.current(1)
    else:
        at_cathode, at_anode = _electrode_currents(program, problem, lengths, iteration)
    scale = 1.0 / iteration.plane
    value("current", at_anode * scale)
    value("current_cathode", at_cathode * scale)
    value("current_middle", _middle_current(program, problem, lengths, iteration) * scale)
    limit = limiting_current(problem)
    if limit is not None:
        value("J_over_Jlim", at_anode * (scale / limit))
    concentrations = [c.now for c in state.concentration]
    found = vars(program.apply(amounts(problem, lengths), state.kind, concentrations, lengths.fields))
    for number, species in enumerate(problem.species):
        seen[f"total_{species.name}"] = found[f"total{number}"]
    seen["least_concentration"] = found["least"]
    seen["greatest_concentration"] = found["greatest"]
    value("charge_imbalance", found["charge"] / where(found["salt"] > 0.0, found["salt"], 1.0))
    if state.velocity:
        value("largest_velocity", largest_velocity(program, state))
    if stepping.growing is not None:
        seen |= stepping.growing.observe(program)
    if stepping.charges is not None and problem.competing:
        seen |= stepping.charges.observe(program, iteration.plane)
    if stepping.charges is not None and stepping.growing is None:
        seen |= stepping.charges.thickness(program, iteration.plane)
    if stepping.course is not None:
        seen |= stepping.course.observe(program)
    seen["steps_taken"] = counters.taken
    seen["steps_rejected"] = counters.rejected
    seen |= counters.reasons.observables(cutoff=problem.cutoff < math.inf)
    seen["passes"] = iteration.all_passes
    seen["potential_iterations"] = iteration.poisson_iterations
    seen["species_iterations"] = iteration.transport.iterations
    return seen


def _electrode_currents(program: Program, problem: Problem, lengths: Lengths, iteration: Iteration) -> tuple[Any, Any]:
    """Return the currents from the solution into the cathode and from the anode into the solution, A."""
    cathode: Any = 0.0
    anode: Any = 0.0
    for axis in range(problem.grid.ndim):
        if has_metal(problem, axis):
            found = _currents(program, problem, lengths, iteration, axis, None)
            cathode = found.cathode + cathode
            anode = found.anode + anode
    return cathode, anode


def _middle_current(program: Program, problem: Problem, lengths: Lengths, iteration: Iteration) -> Any:
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
        drive = driving(voltage, at_cathode, at_anode)
        face = curved(problem, face_values(problem, lengths, axis, kind, phi, widths, drive), bent)
        once = face_values(problem, lengths, axis, kind, before, widths, driving(voltage1, at_cathode, at_anode))
        then = face_values(problem, lengths, axis, kind, earlier, widths, driving(voltage2, at_cathode, at_anode))
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


def amounts(problem: Problem, lengths: Lengths) -> Kernel:
    """Return the kernel of the amount of every ion (mol), extreme concentrations (mol/m3), and the charge (mol)."""
    here = (0,) * problem.grid.ndim

    @kernel
    def amounts_of_ions(kind: CellReader, c: Readers, widths: Readers) -> dict[str, Reduced]:
        size, fluid = volume(lengths, widths), kind[here] == FLUID
        charge, salt, greatest, least = as_node(0.0), as_node(0.0), as_node(0.0), None
        found = {}
        for number, species in enumerate(problem.species):
            value = c[number][here]
            found[f"total{number}"] = mg.sum(size * value)
            charge = charge + species.charge * value
            salt = salt + abs(species.charge) * value
            least = value if least is None else mg.min(least, value)
            greatest = mg.max(greatest, value)
        assert least is not None
        lowest = mg.min(where(fluid, least, 1e300))
        sums = {"charge": mg.sum(size * charge), "salt": mg.sum(size * salt)}
        return {**found, **sums, "least": lowest, "greatest": mg.max(where(fluid, greatest, 0.0))}

    return amounts_of_ions
