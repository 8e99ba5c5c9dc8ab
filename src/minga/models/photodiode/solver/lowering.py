"""Schottky contacts whose barriers depend on the field: the potential at the contact follows the lowering.

At such a contact the potential is not fixed but obeys, in kT/q,

    phi = neutral + bias + s,   s = image sqrt|E| + ln(1 + Gamma(E)), towards the potential of the next node,

with E the field between both nodes. The image force lowers the barrier that the field drives carriers against, of
electrons or of holes. Tunnelling through a triangular barrier of height b multiplies the emitted flux by 1 + Gamma,
Gamma = b int_0^1 exp(b u - (F/E) u^1.5) du, the sum of the Boltzmann weights and probabilities of tunnelling of all
energies below the top, which a barrier lower by ln(1 + Gamma) would emit as well.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.lang.math import log1p
from minga.models.photodiode.solver.coefficient_values import ANODE, CATHODE
from minga.models.photodiode.solver.physics import filled
from minga.models.photodiode.solver.tunnelling import enhancement
from minga.models.photodiode.structure.barrier import Barrier, Heights
from minga.solve.laplacian import step
from minga.space.box import Box

__all__ = [
    "lowered_equations",
    "lowered_increments",
    "lowered_oscillation",
    "lowered_potential",
    "lowering",
    "row_of",
    "taken",
]

Readers = Sequence[CellReader]

SMOOTH: Final = 10.0
"""Field, V/cm, below which the lowering by the image force is linear in the field."""


def lowering(heights: Heights, drop: Node) -> Node:
    """Return s in kT for the potential of the next node minus that of the contact, kT/q."""
    field = drop * heights.slope
    square = field * field
    found: Any = 0.0
    if isinstance(heights.image, Node) or heights.image:
        found = heights.image * field / mg.sqrt(mg.sqrt(square + SMOOTH * SMOOTH))
    falling = field < 0.0
    # Electrons are driven against the barrier if the potential rises away from the metal.
    sides = [side or (0.0, 1.0) for side in (heights.electrons, heights.holes)]
    if heights.electrons or heights.holes:
        depth, strength = (where(falling, holes, electrons) for electrons, holes in zip(*sides, strict=True))
        more = log1p(enhancement(depth, strength, square))
        found = found + where(falling, -more, more)
    return as_node(found)


def row_of(barrier: Barrier, shape: Sequence[int]) -> Box:
    """Return the row of nodes of a contact."""
    return Box((barrier.row, *([0] * (len(shape) - 1))), (barrier.row + 1, *shape[1:]))


def _at(
    barrier: Barrier, numbers: Readers, potential: CellReader, neutral: CellReader, contact: CellReader, bias: Node
) -> Any:
    """Return whether a node belongs to the contact, the potential it would have without s, s, and ds/d(drop)."""
    ndim = len(potential.axes)
    here, inner = (0,) * ndim, step(ndim, 0, barrier.inward)
    number = ANODE if barrier.terminal == "anode" else CATHODE
    drop = potential[inner] - potential[here]
    found = lowering(filled(barrier.heights, list(numbers), here), drop)
    base = neutral[here] + bias if number == ANODE else neutral[here]
    return contact[here] == number, base, found, derivative(found, drop)


def lowered_equations(barrier: Barrier) -> Kernel:
    """Return the kernel that replaces the equations of the potential at a contact; `beside` couples to the next node.

    `numbers` has the fields of its heights. It yields the largest residual, kT/q.
    """

    def equations(
        potential: CellReader, neutral: CellReader, contact: CellReader, numbers: Readers, right: CellReader,
        diagonal: CellReader, beside: CellReader, *, bias: Node,
    ) -> Reduced:  # fmt: skip
        here = (0,) * len(potential.axes)
        mine, base, found, slope = _at(barrier, numbers, potential, neutral, contact, bias)
        left = (base - potential[here]) + found
        right[here] = where(mine, left, right[here])
        diagonal[here] = where(mine, 1.0 + slope, diagonal[here])
        beside[here] = where(mine, -slope, beside[here])
        return mg.max(where(mine, mg.abs(left / (1.0 + slope)), 0.0))

    return Kernel(equations, name=f"potential at the {barrier.terminal}")


def lowered_potential(barrier: Barrier) -> Kernel:
    """Return the kernel of the potential at a contact in the present field; other nodes of its row keep theirs."""

    def follow(
        potential: CellReader,
        neutral: CellReader,
        contact: CellReader,
        numbers: Readers,
        out: CellReader,
        *,
        bias: Node,
    ) -> None:
        here = (0,) * len(potential.axes)
        mine, base, found, slope = _at(barrier, numbers, potential, neutral, contact, bias)
        left = (base - potential[here]) + found
        out[here] = where(mine, potential[here] + left / (1.0 + slope), potential[here])

    return Kernel(follow, name=f"lowered potential at the {barrier.terminal}")


def lowered_oscillation(barrier: Barrier) -> Kernel:
    """Return the kernel of the right sides of the potential at a contact, for a correction of an oscillation.

    `high` and `low` are its potentials and what is left of them, real and imaginary parts.
    """

    def missing(
        potential: CellReader, neutral: CellReader, contact: CellReader, high: Readers, low: Readers, right: Readers,
        *, bias: Node, voltage: Node,
    ) -> None:  # fmt: skip
        ndim = len(potential.axes)
        here, inner = (0,) * ndim, step(ndim, 0, barrier.inward)
        mine, _, _, slope = _at(barrier, (), potential, neutral, contact, bias)
        for part, (whole, rest, out) in enumerate(zip(high, low, right, strict=True)):
            driven = voltage if part == 0 and barrier.terminal == "anode" else 0.0
            moved = (whole[inner] - whole[here]) + (rest[inner] - rest[here])
            left = ((driven - whole[here]) - rest[here]) + slope * moved
            out[here] = where(mine, left, out[here])

    return Kernel(missing, name=f"oscillating potential at the {barrier.terminal}")


def lowered_increments(barrier: Barrier) -> Kernel:
    """Return the kernel of the right sides of the potential at a contact for increments of a step in time.

    It yields the largest residual, kT/q; `rise` is the increment of the voltage, kT/q.
    """

    def equations(
        before: CellReader, change: CellReader, contact: CellReader, right: CellReader, *, rise: Node
    ) -> Reduced:  # fmt: skip
        ndim = len(before.axes)
        here, inner = (0,) * ndim, step(ndim, 0, barrier.inward)
        start = before[inner] - before[here]
        drop = start + (change[inner] - change[here])
        found = lowering(barrier.heights, drop)
        number = ANODE if barrier.terminal == "anode" else CATHODE
        left = ((rise if number == ANODE else 0.0) - change[here]) + (found - lowering(barrier.heights, start))
        mine = contact[here] == number
        right[here] = where(mine, left, right[here])
        return mg.max(where(mine, mg.abs(left / (1.0 + derivative(found, drop))), 0.0))

    return Kernel(equations, name=f"potential at the {barrier.terminal} in time")


@functools.cache
def taken(ndim: int) -> Kernel:
    """Return the kernel that stores a potential."""

    def take(found: CellReader, potential: CellReader) -> None:
        potential[(0,) * ndim] = found[(0,) * ndim]

    return Kernel(take, name="potential of a row")
