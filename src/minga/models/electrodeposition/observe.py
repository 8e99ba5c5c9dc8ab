"""Observables of a cell: currents, amounts of ions, voltage, and the effort of the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.currents import electrode_currents, middle_current
from minga.models.electrodeposition.disturbances import largest_velocity
from minga.models.electrodeposition.groups import limiting_current
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import FLUID, Problem
from minga.models.electrodeposition.protocols.segments import segments_of
from minga.models.electrodeposition.rows import volume
from minga.models.electrodeposition.stepping import Stepping
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
        at_cathode, at_anode = electrode_currents(program, problem, lengths, iteration)
    scale = 1.0 / iteration.plane
    value("current", at_anode * scale)
    value("current_cathode", at_cathode * scale)
    value("current_middle", _middle(program, problem, lengths, stepping) * scale)
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
        seen |= stepping.charges.observe(program, iteration.plane, iteration.at_rest)
    if stepping.charges is not None and stepping.growing is None:
        seen |= stepping.charges.thickness(program, iteration.plane)
    if stepping.course is not None:
        seen |= stepping.course.observe(program)
    seen["steps_taken"] = counters.taken
    seen["steps_rejected"] = counters.rejected
    limits = any(segment.until for segment in segments_of(problem.protocol))
    seen |= counters.reasons.observables(cutoff=problem.cutoff < math.inf, limits=limits)
    seen["passes"] = iteration.all_passes
    seen["potential_iterations"] = iteration.poisson_iterations
    seen["species_iterations"] = iteration.transport.iterations
    return seen


def _middle(program: Program, problem: Problem, lengths: Lengths, stepping: Stepping) -> Node | Register:
    """Return the current half way along y, A; once the deposit touches the anode, that before cells turned solid."""
    found: Node | Register = middle_current(program, problem, lengths, stepping.iteration)
    if stepping.growing is None:
        return found
    return where(stepping.growing.reached > 0, stepping.middle, found)


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
