"""Node equations: the linear system that Newton's method solves for a correction of all unknowns.

At node i, with its adjacent edges and its volume V:

    potential   sum of eps Vt/(q h) (phi_j - phi_i) + V (p - n + doping) = 0
    electrons   Jn/q(above) - Jn/q(below) - V (R - G) + pairs of both edges = 0
    holes       Jp/q(above) - Jp/q(below) + V (R - G) - pairs of both edges = 0

At contacts the unknowns are fixed, so that their corrections are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.coefficient_fields import NodeCoefficients
from minga.models.photodiode.solver.densities import neutral_dopants
from minga.models.photodiode.solver.node_models import BandTunnelling, TrapTunnelling
from minga.models.photodiode.solver.physics import COUPLING, IONISING, EdgeValues
from minga.models.photodiode.solver.tunnelling import Local, local_models, recombined
from minga.solve.laplacian import step

__all__ = ["node_equations", "pattern"]

Readers = Sequence[CellReader]
Tunnelling = BandTunnelling | TrapTunnelling
POTENTIAL, ELECTRONS, HOLES = range(3)


def pattern(ionising: bool, tunnelling: Sequence[Tunnelling] = ()) -> tuple[tuple[bool, ...], ...]:
    """Return which unknowns of a neighbour enter which equation."""
    return IONISING if ionising or tunnelling else COUPLING


class Block:
    """Expressions of a 3 x 3 block; entries to which nothing was added are 0."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, int], Node] = {}

    def add(self, row: int, column: int, value: Node) -> None:
        """Add a value to an entry."""
        known = self.entries.get((row, column))
        self.entries[row, column] = value if known is None else known + value

    def get(self, row: int, column: int) -> Node | float:
        """Return an entry."""
        return self.entries.get((row, column), 0.0)


def node_equations(ndim: int, ionising: bool, tunnelling: Sequence[Tunnelling] = ()) -> Kernel:
    """Return the kernel of right sides, blocks, and the largest residual over its coefficients (kT/q) with its place.

    The arguments are sequences of fields: `couplings` has one per axis; `edges` has the fields of EdgeValues for each
    axis; `lower` and `upper` have the entries selected by `pattern` for each axis, row by row; `diagonal` has nine,
    `right` three. `models` has the fields of `tunnelling`, and `weights` those of gradients; these,
    `surface` and `dopants` may be empty.
    """
    here, shape = (0,) * ndim, pattern(ionising, tunnelling)
    places = [(i, j) for i in range(3) for j in range(3) if shape[i][j]]

    def equations(
        state: Readers, n: CellReader, p: CellReader, activities: Readers, numbers: Readers, couplings: Readers,
        edges: Readers, models: Readers, weights: Readers, surface: Readers, dopants: Readers, lower: Readers,
        diagonal: Readers, upper: Readers, right: Readers, *, bias: Node, light: Node,
    ) -> dict[str, Reduced]:  # fmt: skip
        node = NodeCoefficients(*(item[here] for item in numbers))
        answers = [item[here] for item in activities]
        bound = neutral_dopants(dopants, here, n[here], p[here], answers[:2])
        doping = node.doping - bound[0] if dopants else node.doping
        own, balance = Block(), [node.volume * (p[here] - n[here] + doping)]
        split = (state[HOLES][here] - state[ELECTRONS][here]) + bias
        local = local_models(node, tunnelling, models, weights, surface, state, ndim)
        held = [local.held(i) for i in range(3)]
        slopes = sources(own, balance, local, split, n[here], p[here], light, answers, bound[1:] if dopants else ())
        size = len(edges) // ndim
        for axis in range(ndim):
            above, below = step(ndim, axis, 1), step(ndim, axis, -1)
            values = edges[axis * size : (axis + 1) * size]
            up, down = (EdgeValues.of([v[at] for v in values]) for at in (above, here))
            potential, coupling = state[POTENTIAL], couplings[axis]
            # Differences come first: neighbouring potentials are large and nearly equal.
            balance[POTENTIAL] = balance[POTENTIAL] + (
                coupling[above] * (potential[above] - potential[here])
                - coupling[here] * (potential[here] - potential[below])
            )
            low, high = Block(), Block()
            own.add(POTENTIAL, POTENTIAL, -(coupling[above] + coupling[here]))
            low.add(POTENTIAL, POTENTIAL, coupling[here])
            high.add(POTENTIAL, POTENTIAL, coupling[above])
            for row, through, back in ((ELECTRONS, up.electrons, down.electrons), (HOLES, up.holes, down.holes)):
                balance[row] = balance[row] + (through.value - back.value)
                own.add(row, POTENTIAL, through.potential_low - back.potential_high)
                own.add(row, row, through.fermi_low - back.fermi_high)
                high.add(row, POTENTIAL, through.potential_high)
                high.add(row, row, through.fermi_high)
                low.add(row, POTENTIAL, -back.potential_low)
                low.add(row, row, -back.fermi_low)
            for column, square in enumerate(local.squares):
                for block, by in ((low, square.below[axis]), (high, square.above[axis])):
                    block.add(ELECTRONS, column, -slopes[column] * by)
                    block.add(HOLES, column, slopes[column] * by)
            if ionising:
                add_pairs(balance, own, low, high, up.pairs, down.pairs)
            for entry, (i, j) in enumerate(places):
                lower[axis * len(places) + entry][here] = where(held[i], 0.0, low.get(i, j))
                upper[axis * len(places) + entry][here] = where(held[i], 0.0, high.get(i, j))
        worst = None
        for i in range(3):
            right[i][here] = where(held[i], 0.0, -balance[i])
            for j in range(3):
                diagonal[3 * i + j][here] = where(held[i], 1.0 if i == j else 0.0, own.get(i, j))
            # Over the whole row: pairs made by a current of many carriers round to as many digits as the current.
            row_sum = sum((mg.abs(value) for (k, _), value in own.entries.items() if k == i), as_node(0.0))
            share = where(held[i], 0.0, mg.abs(balance[i]) / row_sum)
            worst = share if worst is None else mg.max(worst, share)
        assert worst is not None
        return {"largest": mg.max(worst), "place": mg.argmax(worst)}

    return Kernel(equations, name="node equations")


def sources(
    own: Block, balance: list[Any], local: Local, split: Node, n: Node, p: Node, light: Node,
    activities: Sequence[Node], captured: Sequence[Node] = (),
) -> list[Node]:  # fmt: skip
    """Add the derivatives of the charge, and recombination and light, which enter the electron and hole balances.

    `captured` has the changes of neutral donors and acceptors per kT of the level of electrons and holes. Returns the
    derivatives of the recombination in the node's volume with respect to the squares of `local`.
    """
    node = local.node
    rate, by_squares = recombined(local, n, p, split, activities[0] + activities[1] if activities else None)
    by_n, by_p, by_split = (derivative(rate, variable) for variable in (n, p, split))
    net = node.volume * (rate - node.generation * light)
    balance += [-net, net]
    v = node.volume
    # Change of a density per kT/q of its level.
    n_slope, p_slope = (activities[2] * n, activities[3] * p) if activities else (n, p)
    own.add(POTENTIAL, POTENTIAL, -v * (n_slope + p_slope))
    own.add(POTENTIAL, ELECTRONS, v * n_slope)
    own.add(POTENTIAL, HOLES, v * p_slope)
    if captured:
        changes = [v * item for item in captured]
        for column, value in enumerate((-changes[0] - changes[1], *changes)):
            own.add(POTENTIAL, column, value)
    to_n, to_p = by_n * n_slope, by_p * p_slope
    if activities:
        to_n, to_p = to_n + rate * (activities[2] - 1.0), to_p + rate * (activities[3] - 1.0)
    slopes = (to_n - to_p, -to_n - by_split, to_p + by_split)
    for column, slope in enumerate(slopes):
        own.add(ELECTRONS, column, -v * slope)
        own.add(HOLES, column, v * slope)
    found = [v * item for item in by_squares]
    for column, (slope, square) in enumerate(zip(found, local.squares, strict=True)):
        own.add(ELECTRONS, column, -slope * square.own)
        own.add(HOLES, column, slope * square.own)
    return found


def add_pairs(
    balance: list[Any], own: Block, low: Block, high: Block, up: Sequence[Node], down: Sequence[Node]
) -> None:
    """Add the pairs that ionisation on the edges above and below generates at a node."""
    total = up[0] + down[0]
    for row, sign in ((ELECTRONS, 1), (HOLES, -1)):
        balance[row] = balance[row] + total if sign > 0 else balance[row] - total
        for column in range(3):
            by_own = up[1 + column] + down[4 + column]
            by_low, by_high = down[1 + column], up[4 + column]
            own.add(row, column, by_own if sign > 0 else -by_own)
            low.add(row, column, by_low if sign > 0 else -by_low)
            high.add(row, column, by_high if sign > 0 else -by_high)
