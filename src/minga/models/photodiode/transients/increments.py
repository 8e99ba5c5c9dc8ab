"""Kernels of a step in time, for increments of the state since the beginning of the step.

Densities and the charge of Poisson's equation follow from the increments alone: n - n0 = n0 expm1(rise of ln n). A
density of 1e18 has 5e-14 of rounding if it is computed from a potential of 190 kT/q; over a step of 1e-14 s that would
be more than the current. The increments have no such error, and charge is conserved to their last digit.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.lang.math import exp, expm1
from minga.models.photodiode.solver.coefficients import ANODE, CATHODE
from minga.models.photodiode.solver.fermi import activity
from minga.models.photodiode.solver.newton import clipped
from minga.models.photodiode.solver.physics import EdgeValues, dopants_at, held_row, neutral_dopants

__all__ = [
    "bordered",
    "corrected",
    "defects",
    "errors",
    "fallen",
    "flows",
    "in_time",
    "kept",
    "moved",
    "predicted",
    "responses",
    "risen",
    "steady_rates",
]

Readers = Sequence[CellReader]
POTENTIAL, ELECTRONS, HOLES = range(3)


@functools.cache
def risen(degenerate: bool) -> Kernel:
    """Return the kernel of densities, 1/cm3, and of their increase since the beginning of the step.

    The increase includes the carriers that neutral dopants keep. With Fermi-Dirac statistics `activities` receive the
    same values as in `physics.carriers`.
    """

    def densities(
        change: Readers, state: Readers, theta_n: CellReader, theta_p: CellReader, states: Readers, dopants: Readers,
        before: Readers, stored: Readers, after: Readers, activities: Readers, *, bias: Node, rise: Node,
    ) -> None:  # fmt: skip
        potential, electron, hole = (item[0] for item in state)
        levels = (potential + theta_n[0] - electron, (hole - theta_p[0]) + (bias - potential))
        rises = [change[POTENTIAL][0] - change[ELECTRONS][0], (change[HOLES][0] + rise) - change[POTENTIAL][0]]
        starts: list[Node] = []
        more: list[Node] = []
        for k in range(2):
            grown, start = rises[k], before[k][0]
            if degenerate:
                eta = levels[k] - states[k][0]
                level = eta + rises[k]
                behind = activity(level)
                activities[k][0] = behind
                activities[2 + k][0] = 1.0 + derivative(behind, level)
                grown = grown + (behind - activity(eta))
                start = start * exp(-activity(eta))
            starts.append(start)
            more.append(before[k][0] * expm1(grown))
            after[k][0] = before[k][0] + more[k]
        if dopants:
            gained = dopants_at(dopants, (0,)).gained(starts[0], starts[1], [expm1(item) for item in rises])
            more = [free + kept for free, kept in zip(more, gained, strict=True)]
        for item, value in zip(stored, more, strict=True):
            item[0] = value

    return Kernel(densities, name="densities after increments")


def _held(contact: CellReader, free: Readers) -> list[Node]:
    """Return whether a contact holds each unknown; equations of potentials that follow barriers stay out."""
    return [as_node(contact[0] != 0), *(held_row(contact[0], free, row, (0,)) for row in (ELECTRONS, HOLES))]


def _in_time(
    contact: CellReader, free: Readers, volume: CellReader, generation: CellReader, coupling: CellReader,
    change: Readers, stored: Readers, after: Readers, activities: Readers, dopants: Readers, early: Readers,
    inner: Readers, rates: Readers, right: Readers, diagonal: Readers, *, light: Node, lit: Node, first: Node,
    second: Node, scale: Node,
) -> dict[str, Reduced]:  # fmt: skip
    """Add the time terms to the equations of a steady state without light, and store their rates.

    `light` is that of the stage, `lit` the weighted sum of the earlier ones; `first` and `second` weight earlier rates,
    and `scale` is the inverse of the weight of the stage's own.
    """
    held, v = _held(contact, free), volume[0]
    made = v * generation[0]
    rates[0][0] = where(held[ELECTRONS], 0.0, -right[ELECTRONS][0])
    rates[1][0] = where(held[HOLES], 0.0, right[HOLES][0])
    potential = change[POTENTIAL]
    moved = coupling[1] * (potential[1] - potential[0]) - coupling[0] * (potential[0] - potential[-1])
    more = [item[0] for item in stored]
    known = [first * early[k][0] + second * inner[k][0] + made * lit for k in range(2)]
    left = [
        moved + v * (more[1] - more[0]),
        (-right[ELECTRONS][0] + made * light) - (v * more[0] - known[0]) * scale,
        (-right[HOLES][0] - made * light) + (v * more[1] - known[1]) * scale,
    ]
    slope = [(activities[2 + k][0] if activities else 1.0) * after[k][0] for k in range(2)]
    if dopants:
        behind = [item[0] for item in activities[:2]]
        captured = neutral_dopants(dopants, (0,), after[0][0], after[1][0], behind)[1:]
        slope = [item + kept for item, kept in zip(slope, captured, strict=True)]
    slope = [item * (v * scale) for item in slope]
    added = {
        (ELECTRONS, POTENTIAL): -slope[0], (ELECTRONS, ELECTRONS): slope[0],
        (HOLES, POTENTIAL): -slope[1], (HOLES, HOLES): slope[1],
    }  # fmt: skip
    own = {(i, j): where(held[i], 0.0, value) + diagonal[3 * i + j][0] for (i, j), value in added.items()}
    for (i, j), value in own.items():
        diagonal[3 * i + j][0] = value
    pivots = (diagonal[0][0], own[ELECTRONS, ELECTRONS], own[HOLES, HOLES])
    worst = None
    for i in range(3):
        right[i][0] = where(held[i], 0.0, -left[i])
        share = where(held[i], 0.0, mg.abs(left[i] / pivots[i]))
        worst = share if worst is None else mg.max(worst, share)
    assert worst is not None
    return {"largest": mg.max(worst), "place": mg.argmax(worst)}


in_time = Kernel(_in_time, name="equations in time")


def _predicted(
    contact: CellReader, free: Readers, now: Readers, last: Readers, change: Readers, then: Readers, *, from_last: Node,
    from_change: Node, rise: Node,
) -> None:  # fmt: skip
    """Store the first guess of a stage: multiples of the last step's increments or of the first stage's."""
    anode = contact[0] == ANODE
    moved = where(anode, rise, 0.0)
    fixed = (moved, moved, where(anode, 0.0, -rise))
    for k in range(3):
        # The increments of an attempt that failed may be anything.
        guessed = where(from_change > 0.0, from_change * change[k][0], from_last * last[k][0])
        value = where(held_row(contact[0], free, k, (0,)), fixed[k], guessed)
        change[k][0] = value
        then[k][0] = now[k][0] + value


predicted = Kernel(_predicted, name="guess of increments")


def _bordered(contact: CellReader, free: Readers, right: Readers) -> None:
    """Store the right side of the response to the voltage: that of the unknowns which the anode holds."""
    for held, item in zip(_held(contact, free), right, strict=True):
        item[0] = where((contact[0] == ANODE) & held, 1.0, 0.0)


bordered = Kernel(_bordered, name="response to the voltage")


def _combined(change: Readers, border: Readers, step: Node) -> list[Node]:
    """Return corrections that include the voltage's; hole levels are relative to the anode's."""
    found = [change[k][0] + (step * border[k][0] if border else 0.0) for k in range(2)]
    hole = change[HOLES][0] + (step * (border[HOLES][0] - 1.0) if border else 0.0)
    return [*found, hole]


def _corrected(
    correction: Readers, border: Readers, now: Readers, change: Readers, then: Readers, *, step: Node
) -> dict[str, Reduced]:
    """Add clipped corrections to the increments; `step` is that of the voltage, kT/q."""
    worst = None
    for k, value in enumerate(_combined(correction, border, step)):
        size = mg.abs(value)
        grown = change[k][0] + clipped(value)
        change[k][0] = grown
        then[k][0] = now[k][0] + grown
        worst = size if worst is None else mg.max(worst, size)
    assert worst is not None
    return {"largest": mg.max(worst), "place": mg.argmax(worst)}


corrected = Kernel(_corrected, name="correction of increments")


def _defects(
    contact: CellReader, free: Readers, volume: CellReader, generation: CellReader, early: Readers, inner: Readers,
    late: Readers, right: Readers, *, first: Node, second: Node, third: Node, lit: Node, scale: Node,
) -> None:  # fmt: skip
    """Store the right side of the filtered error of a step."""
    held, made = _held(contact, free), volume[0] * generation[0] * lit
    found = [first * early[k][0] + second * inner[k][0] + third * late[k][0] + made for k in range(2)]
    right[POTENTIAL][0] = 0.0 * found[0]
    right[ELECTRONS][0] = where(held[ELECTRONS], 0.0, -scale * found[0])
    right[HOLES][0] = where(held[HOLES], 0.0, scale * found[1])


defects = Kernel(_defects, name="defect of a step")


def _errors(
    error: Readers, border: Readers, slopes: Readers, after: Readers, *, step: Node, floor: Node
) -> dict[str, Reduced]:
    """Return the largest error, kT/q of the potential or relative error of a density, and its node."""
    potential, electron, hole = _combined(error, border, step)
    rises = (potential - electron, (hole + step) - potential)
    worst = mg.abs(potential)
    for k, rise in enumerate(rises):
        slope, density = (slopes[k][0] if slopes else 1.0), after[k][0]
        worst = mg.max(worst, mg.abs(slope * rise) * (density / (density + floor)))
    return {"largest": mg.max(worst), "place": mg.argmax(worst)}


errors = Kernel(_errors, name="error of a step")


def _flows(edges: Readers, weight: CellReader, out: CellReader) -> Reduced:
    """Store the flux of charge through each edge, and return their weighted mean, 1/cm2 s."""
    values = EdgeValues.of([item[0] for item in edges])
    total = values.electrons.value + values.holes.value
    out[0] = total
    return mg.sum(weight[0] * total)


flows = Kernel(_flows, name="conduction current")


def _fallen(potential: CellReader, contact: CellReader) -> Reduced:
    """Return the potential of the anode less that of the cathode."""
    return mg.sum(where(contact[0] == ANODE, potential[0], where(contact[0] == CATHODE, -potential[0], 0.0)))


fallen = Kernel(_fallen, name="drop of the potential")


def _responses(edges: Readers, weight: CellReader, change: Readers) -> Reduced:
    """Return the change of the conduction current due to corrections, 1/cm2 s."""
    values = EdgeValues.of([item[0] for item in edges])
    found = None
    for k, flux in ((ELECTRONS, values.electrons), (HOLES, values.holes)):
        part = (flux.potential_low * change[POTENTIAL][-1] + flux.potential_high * change[POTENTIAL][0]) + (
            flux.fermi_low * change[k][-1] + flux.fermi_high * change[k][0]
        )
        found = part if found is None else found + part
    assert found is not None
    return mg.sum(weight[0] * found)


responses = Kernel(_responses, name="response of the conduction current")


def _moved(
    early: CellReader, inner: CellReader, late: CellReader, coupling: CellReader, weight: CellReader,
    potential: CellReader, *, outer: Node, own: Node,
) -> dict[str, Reduced]:  # fmt: skip
    """Return the charge that passed the edges in a step, displacement included, 1/cm2: mean and extremes."""
    passed = outer * (early[0] + inner[0]) + own * late[0]
    passed = passed - coupling[0] * (potential[0] - potential[-1])
    return {"mean": mg.sum(weight[0] * passed), "least": mg.min(passed), "most": mg.max(passed)}


moved = Kernel(_moved, name="charge that passed")


def _steady_rates(right: Readers, rates: Readers) -> None:
    """Store the increase of the carriers without light, from the right sides of the equations of a steady state."""
    rates[0][0], rates[1][0] = -right[0][0], right[1][0]


steady_rates = Kernel(_steady_rates, name="rates of a steady state")


def _kept(source: Readers, target: Readers) -> None:
    """Copy fields."""
    for item, other in zip(source, target, strict=True):
        other[0] = item[0]


kept = Kernel(_kept, name="copy of fields")
