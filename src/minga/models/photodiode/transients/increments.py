"""Kernels of a step in time, for increments of the state since the beginning of the step.

Densities and the charge of Poisson's equation follow from the increments alone: n - n0 = n0 expm1(rise of ln n). A
density of 1e18 has 5e-14 of rounding if it is computed from a potential of 190 kT/q; over a step of 1e-14 s that would
be more than the current. The increments have no such error, and charge is conserved to their last digit.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.lang.math import exp, expm1, log1p
from minga.models.photodiode.solver.coefficient_values import ANODE
from minga.models.photodiode.solver.densities import dopants_at, held_row, neutral_dopants
from minga.models.photodiode.solver.fermi import activity
from minga.models.photodiode.solver.newton import clipped
from minga.solve.laplacian import step as step_along

__all__ = [
    "bordered",
    "corrected",
    "defects",
    "errors",
    "in_time",
    "kept",
    "predicted",
    "risen",
    "steady_rates",
]

Readers = Sequence[CellReader]
POTENTIAL, ELECTRONS, HOLES = range(3)
FALL: Final = -0.99
"""Smallest relative change of a density by a correction."""
SLIGHT: Final = 1e-4
"""Relative change of a density up to which corrections are those of levels: its square hardly counts."""
SMALL: Final = 1e-5
"""Rise of a level, kT/q, up to which ln gamma rises by its slope half-way, with an error of third order."""


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
        here = _here(theta_n)
        potential, electron, hole = (item[here] for item in state)
        levels = (potential + theta_n[here] - electron, (hole - theta_p[here]) + (bias - potential))
        phi, n, p = (item[here] for item in change)
        rises = [phi - n, (p + rise) - phi]
        starts: list[Node] = []
        more: list[Node] = []
        for k in range(2):
            grown, start = rises[k], before[k][here]
            if degenerate:
                eta = levels[k] - states[k][here]
                level = eta + rises[k]
                behind, earlier = activity(level), activity(eta)
                activities[k][here] = behind
                activities[2 + k][here] = 1.0 + derivative(behind, level)
                middle = eta + 0.5 * rises[k]
                # The difference of both would lose the digits of a small rise, and a majority moves by 1e-18 kT/q.
                small = derivative(activity(middle), middle) * rises[k]
                grown = grown + where(mg.abs(rises[k]) <= SMALL, small, behind - earlier)
                start = start * exp(-earlier)
            starts.append(start)
            more.append(before[k][here] * expm1(grown))
            after[k][here] = before[k][here] + more[k]
        if dopants:
            gained = dopants_at(dopants, here).gained(starts[0], starts[1], [expm1(item) for item in rises])
            more = [free + kept for free, kept in zip(more, gained, strict=True)]
        for item, value in zip(stored, more, strict=True):
            item[here] = value

    return Kernel(densities, name="densities after increments")


def _here(field: CellReader) -> tuple[int, ...]:
    """Return the place of a node itself."""
    return (0,) * len(field.axes)


def _held(contact: CellReader, free: Readers) -> list[Node]:
    """Return whether a contact holds each unknown; equations of potentials that follow barriers stay out."""
    kind, here = contact[_here(contact)], _here(contact)
    return [as_node(kind != 0), *(held_row(kind, free, row, here) for row in (ELECTRONS, HOLES))]


def _in_time(
    contact: CellReader, free: Readers, volume: CellReader, generation: CellReader, couplings: Readers,
    change: Readers, stored: Readers, after: Readers, activities: Readers, dopants: Readers, early: Readers,
    inner: Readers, rates: Readers, right: Readers, diagonal: Readers, *, light: Node, lit: Node, first: Node,
    second: Node, scale: Node,
) -> dict[str, Reduced]:  # fmt: skip
    """Add the time terms to the equations of a steady state without light, and store their rates.

    `couplings` has one field per axis. `light` is that of the stage, `lit` the weighted sum of the earlier ones;
    `first` and `second` weight earlier rates, and `scale` is the inverse of the weight of the stage's own.
    """
    here = _here(contact)
    held, v = _held(contact, free), volume[here]
    made = v * generation[here]
    rates[0][here] = where(held[ELECTRONS], 0.0, -right[ELECTRONS][here])
    rates[1][here] = where(held[HOLES], 0.0, right[HOLES][here])
    more = [item[here] for item in stored]
    known = [first * early[k][here] + second * inner[k][here] + made * lit for k in range(2)]
    left = [
        _displaced(couplings, change[POTENTIAL]) + v * (more[1] - more[0]),
        (-right[ELECTRONS][here] + made * light) - (v * more[0] - known[0]) * scale,
        (-right[HOLES][here] - made * light) + (v * more[1] - known[1]) * scale,
    ]
    slope = [(activities[2 + k][here] if activities else 1.0) * after[k][here] for k in range(2)]
    if dopants:
        behind = [item[here] for item in activities[:2]]
        captured = neutral_dopants(dopants, here, after[0][here], after[1][here], behind)[1:]
        slope = [item + kept for item, kept in zip(slope, captured, strict=True)]
    slope = [item * (v * scale) for item in slope]
    added = {
        (ELECTRONS, POTENTIAL): -slope[0], (ELECTRONS, ELECTRONS): slope[0],
        (HOLES, POTENTIAL): -slope[1], (HOLES, HOLES): slope[1],
    }  # fmt: skip
    own = {(i, j): where(held[i], 0.0, value) + diagonal[3 * i + j][here] for (i, j), value in added.items()}
    for (i, j), value in own.items():
        diagonal[3 * i + j][here] = value
    pivots = (diagonal[0][here], own[ELECTRONS, ELECTRONS], own[HOLES, HOLES])
    worst = None
    for i in range(3):
        right[i][here] = where(held[i], 0.0, -left[i])
        share = where(held[i], 0.0, mg.abs(left[i] / pivots[i]))
        worst = share if worst is None else mg.max(worst, share)
    assert worst is not None
    return {"largest": mg.max(worst), "place": mg.argmax(worst)}


in_time = Kernel(_in_time, name="equations in time")


def _displaced(couplings: Readers, potential: CellReader) -> Node:
    """Return the charge that a change of the potential displaces out of a node, 1/cm2 with one axis."""
    here, found = _here(potential), None
    for axis, coupling in enumerate(couplings):
        above, below = step_along(len(here), axis, 1), step_along(len(here), axis, -1)
        up = coupling[above] * (potential[above] - potential[here])
        part = up - coupling[here] * (potential[here] - potential[below])
        found = part if found is None else found + part
    assert found is not None
    return found


def _predicted(
    contact: CellReader, free: Readers, now: Readers, last: Readers, inside: Readers, change: Readers, then: Readers, *,
    from_last: Node, from_inside: Node, from_change: Node, rise: Node,
) -> None:  # fmt: skip
    """Store the first guess of a stage: a sum of the last step's increments and of the first stage's."""
    here = _here(contact)
    anode = contact[here] == ANODE
    moved = where(anode, rise, 0.0)
    fixed = (moved, moved, where(anode, 0.0, -rise))
    for k in range(3):
        # The increments of an attempt that failed may be anything.
        own = where(from_change > 0.0, from_change * change[k][here], 0.0)
        guessed = own + (from_last * last[k][here] + from_inside * inside[k][here])
        value = where(held_row(contact[here], free, k, here), fixed[k], guessed)
        change[k][here] = value
        then[k][here] = now[k][here] + value


predicted = Kernel(_predicted, name="guess of increments")


def _bordered(contact: CellReader, free: Readers, right: Readers) -> None:
    """Store the right side of the response to the voltage: that of the unknowns which the anode holds."""
    here = _here(contact)
    for held, item in zip(_held(contact, free), right, strict=True):
        item[here] = where((contact[here] == ANODE) & held, 1.0, 0.0)


bordered = Kernel(_bordered, name="response to the voltage")


def _combined(change: Readers, border: Readers, step: Node) -> list[Node]:
    """Return corrections that include the voltage's; hole levels are relative to the anode's."""
    here = _here(change[0])
    found = [change[k][here] + (step * border[k][here] if border else 0.0) for k in range(2)]
    hole = change[HOLES][here] + (step * (border[HOLES][here] - 1.0) if border else 0.0)
    return [*found, hole]


@functools.cache
def corrected(by_density: bool) -> Kernel:
    """Return the kernel that adds corrections to the increments; `step` is that of the voltage, kT/q.

    `by_density`: densities change as the linearised equations say. Otherwise levels do, which takes more corrections;
    those of an iterative solver, which are not exact, then become small together with their errors.
    """

    def correct(
        correction: Readers, border: Readers, now: Readers, change: Readers, then: Readers, *, step: Node
    ) -> dict[str, Reduced]:
        here, worst = _here(now[0]), None
        found = _combined(correction, border, step)
        applied = _taken(found, step) if by_density else [clipped(value) for value in found]
        for k, (value, taken) in enumerate(zip(found, applied, strict=True)):
            size = mg.abs(value)
            grown = change[k][here] + taken
            change[k][here] = grown
            then[k][here] = now[k][here] + grown
            worst = size if worst is None else mg.max(worst, size)
        assert worst is not None
        return {"largest": mg.max(worst), "place": mg.argmax(worst)}

    return Kernel(correct, name="correction of increments")


def _taken(found: Sequence[Node], step: Node) -> list[Node]:
    """Return the corrections that are applied: densities change as the linearised equations say, n to n (1 + r).

    Rates are almost linear in densities, and exponential in levels. A density falls to a hundredth at most. Slight
    changes remain those of levels: where these carry a current, they are known far better than densities.
    """
    potential, electron, hole = found
    moved = clipped(potential)
    shift = moved - potential
    rises = [potential - electron, (hole + step) - potential]
    # What the logarithm of a density rises less than its linear change; small differences, which keep all digits.
    less = [where(mg.abs(rise) > SLIGHT, rise - log1p(mg.max(rise, FALL)), 0.0) for rise in rises]
    return [moved, electron + (shift + less[0]), hole + ((shift - less[1]) - (clipped(step) - step))]


def _defects(
    contact: CellReader, free: Readers, volume: CellReader, generation: CellReader, early: Readers, inner: Readers,
    late: Readers, right: Readers, *, first: Node, second: Node, third: Node, lit: Node, scale: Node,
) -> None:  # fmt: skip
    """Store the right side of the filtered error of a step."""
    here = _here(contact)
    held, made = _held(contact, free), volume[here] * generation[here] * lit
    found = [first * early[k][here] + second * inner[k][here] + third * late[k][here] + made for k in range(2)]
    right[POTENTIAL][here] = 0.0 * found[0]
    right[ELECTRONS][here] = where(held[ELECTRONS], 0.0, -scale * found[0])
    right[HOLES][here] = where(held[HOLES], 0.0, scale * found[1])


defects = Kernel(_defects, name="defect of a step")


def _errors(
    error: Readers, border: Readers, slopes: Readers, after: Readers, *, step: Node, floor: Node
) -> dict[str, Reduced]:
    """Return the largest error, kT/q of the potential or relative error of a density, and its node."""
    here = _here(after[0])
    potential, electron, hole = _combined(error, border, step)
    rises = (potential - electron, (hole + step) - potential)
    worst = mg.abs(potential)
    for k, rise in enumerate(rises):
        slope, density = (slopes[k][here] if slopes else 1.0), after[k][here]
        worst = mg.max(worst, mg.abs(slope * rise) * (density / (density + floor)))
    return {"largest": mg.max(worst), "place": mg.argmax(worst)}


errors = Kernel(_errors, name="error of a step")


def _steady_rates(right: Readers, rates: Readers) -> None:
    """Store the increase of the carriers without light, from the right sides of the equations of a steady state."""
    here = _here(rates[0])
    rates[0][here], rates[1][here] = -right[0][here], right[1][here]


steady_rates = Kernel(_steady_rates, name="rates of a steady state")


def _kept(source: Readers, target: Readers) -> None:
    """Copy fields."""
    here = _here(target[0])
    for item, other in zip(source, target, strict=True):
        other[here] = item[here]


kept = Kernel(_kept, name="copy of fields")
