"""Equations of a device linearised about a solution, for small oscillations: kernels over edges and nodes.

An oscillation multiplies exp(i w t). Its amplitudes are complex: three unknowns at each node, in kT/q, as in
`minga.models.photodiode.solver.physics`; fields hold the three real parts, then the three imaginary ones, and then what
is left of each beyond the digits of the first six. With the equations F(u, V, G) - dQ/dt = 0, the charge Q being n V in
the electron balance and -p V in that of holes, they are

    (F_u - i w Q_u) du = -(F_V - i w Q_V) dV - F_G dG

The bias enters through the hole level alone, which is measured from the anode, and through the contacts. Contacts store
nothing. Sums over an edge, whose terms are large and nearly cancel, are as if in twice the precision (T. Ogita,
S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26, 2005), so that the current is the same on all edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.elementary import exact_product
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.assembly import ELECTRONS, HOLES, POTENTIAL, Block, sources
from minga.models.photodiode.solver.coefficients import ANODE, CATHODE, NodeCoefficients
from minga.models.photodiode.solver.physics import EdgeValues, Flux

__all__ = ["PLACES", "applied", "corrected", "edge_currents", "residual", "slopes", "terminal_current"]

Readers = Sequence[CellReader]
Sum = tuple[Any, Any]
"""A number as the unevaluated sum of two."""

PLACES = ((ELECTRONS, POTENTIAL), (ELECTRONS, ELECTRONS), (HOLES, POTENTIAL), (HOLES, HOLES))
"""Entries of -Q_u in the block of a node."""


def _slopes(
    state: Readers, n: CellReader, p: CellReader, activities: Readers, numbers: Readers, storage: Readers,
    net: Readers, *, bias: Node, light: Node,
) -> None:  # fmt: skip
    node = NodeCoefficients(*(item[0] for item in numbers))
    own = Block()
    split = (state[HOLES][0] - state[ELECTRONS][0]) + bias
    balance: list[Any] = []
    sources(own, balance, node, split, n[0], p[0], light, [item[0] for item in activities])
    free = node.contact == 0
    for (row, column), item in zip(PLACES, storage, strict=True):
        stored = own.get(POTENTIAL, row)
        item[0] = where(free, stored if row == column else -stored, 0.0)
    for column in range(3):
        net[column][0] = own.get(HOLES, column)
    net[3][0] = where(free, balance[-1], 0.0)


slopes = Kernel(_slopes, name="slopes of a node")
"""Kernel of the entries of -Q_u at `PLACES`, of V (R - G), and of its derivatives by the three unknowns."""


def unknowns(x: Readers, part: int, at: int) -> list[Sum]:
    """Return the three unknowns of a node, real parts (0) or imaginary ones (1)."""
    return [(x[3 * part + k][at], x[6 + 3 * part + k][at]) for k in range(3)]


def exact_sum(terms: Sequence[tuple[Any, Sum]], factors: Sequence[Any] = (), by: Any = None) -> Any:
    """Return the sum of numbers times unknowns, and of `factors` times `by`, in twice the precision, then rounded."""
    (first, (value, small)), *rest = terms
    total, lost = exact_product(first, value)
    lost = lost + first * small
    for a, (high, low) in [*rest, *((a, (by, None)) for a in factors)]:
        product, error = exact_product(a, high)
        total, rounded = two_sum(total, product)
        lost = lost + (rounded + error)
        if low is not None:
            lost = lost + a * low
    return total + lost


def two_sum(a: Node, b: Node) -> Sum:
    """Return a sum and its rounding error (D. E. Knuth)."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def minus(a: Sum, b: Sum) -> Any:
    """Return the difference of two unknowns, which may be large and nearly equal."""
    return (a[0] - b[0]) + (a[1] - b[1])


def _edge_currents(x: Readers, edges: Readers, coupling: CellReader, out: Readers, *, voltage: Node) -> None:
    values = EdgeValues.of([item[0] for item in edges])
    count = len(out) // 2
    for part in range(2):
        low, high = unknowns(x, part, -1), unknowns(x, part, 0)
        by = voltage if part == 0 else None
        found = [
            varied(values.electrons, low, high, ELECTRONS, None),
            varied(values.holes, low, high, HOLES, by),
            -coupling[0] * minus(high[POTENTIAL], low[POTENTIAL]),
        ]
        if values.pairs:
            slopes = values.pairs[1:]
            moved = (slopes[HOLES], slopes[3 + HOLES]) if by is not None else ()
            found.append(exact_sum(list(zip(slopes, (*low, *high), strict=True)), moved, by))
        for k, value in enumerate(found):
            out[part * count + k][0] = value


def varied(flux: Flux, low: Sequence[Sum], high: Sequence[Sum], carrier: int, voltage: Node | None) -> Any:
    """Return the variation of a flux with the unknowns of both nodes and, for holes, with the bias."""
    terms = [
        (flux.potential_low, low[POTENTIAL]), (flux.potential_high, high[POTENTIAL]),
        (flux.fermi_low, low[carrier]), (flux.fermi_high, high[carrier]),
    ]  # fmt: skip
    return exact_sum(terms, () if voltage is None else (flux.fermi_low, flux.fermi_high), voltage)


edge_currents = Kernel(_edge_currents, name="oscillating currents")
"""Kernel of the oscillations on the inner edges: electron and hole flux over q, displacement over q, pairs."""


def _residual(
    x: Readers, currents: Readers, storage: Readers, net: Readers, generation: CellReader, volume: CellReader,
    contact: CellReader, right: Readers, *, frequency: Node, voltage: Node, light: Node,
) -> None:  # fmt: skip
    count, held = len(currents) // 2, contact[0] != 0
    stored_n, stored_p = storage[1][0], storage[3][0]
    # Charges: of holes with the bias first, which the potential nearly cancels on the side of the anode.
    electrons, holes, recombinations = [], [], []
    for part, bias in enumerate((voltage, 0.0 * voltage)):
        phi, n, p = unknowns(x, part, 0)
        electrons.append(stored_n * minus(phi, n))
        holes.append(stored_p * (((bias - phi[0]) + p[0]) + (p[1] - phi[1])))
        level = (p[0] + bias) + p[1]
        recombinations.append(net[0][0] * (phi[0] + phi[1]) + net[1][0] * (n[0] + n[1]) + net[2][0] * level)
    rising_n, rising_p = ((-frequency * im, frequency * re) for re, im in (electrons, holes))
    for part, recombined in enumerate(recombinations):
        through, back = ([item[at] for item in currents[part * count : (part + 1) * count]] for at in (1, 0))
        if part == 0:
            recombined = recombined - volume[0] * generation[0] * light
        if count > 3:
            recombined = recombined - (through[3] + back[3])
        balance = (
            (back[2] - through[2]) + (holes[part] - electrons[part]),
            (through[0] - back[0]) - recombined - rising_n[part],
            (through[1] - back[1]) + recombined + rising_p[part],
        )
        for k in range(3):
            right[3 * part + k][0] = where(held, 0.0, -balance[k])


residual = Kernel(_residual, name="residual of an oscillation")
"""Kernel of the right sides for a correction of the oscillation; they are 0 at contacts."""


def _applied(x: Readers, contact: CellReader, *, voltage: Node) -> None:
    anode, cathode = contact[0] == ANODE, contact[0] == CATHODE
    x[POTENTIAL][0] = where(anode, voltage, 0.0)
    x[ELECTRONS][0] = where(anode, voltage, 0.0)
    x[HOLES][0] = where(cathode, -voltage, 0.0)
    for item in x[3:]:
        item[0] = 0.0 * voltage


applied = Kernel(_applied, name="oscillating contacts")
"""Kernel of the first guess: contacts follow the voltage, and nothing else moves."""


def _corrected(x: Readers, change: Readers) -> None:
    for high, low, by in zip(x[:6], x[6:], change, strict=True):
        total, error = two_sum(high[0], by[0])
        high[0], low[0] = two_sum(total, low[0] + error)


corrected = Kernel(_corrected, name="correction of an oscillation")
"""Kernel that adds a correction."""


def _terminal_current(currents: Readers, coupling: CellReader, *, frequency: Node) -> dict[str, Reduced]:
    count, found = len(currents) // 2, {}
    (n_re, p_re, d_re), (n_im, p_im, d_im) = ([item[0] for item in currents[k * count : k * count + 3]] for k in (0, 1))
    share = 1.0 / coupling[0]
    whole = {"re": (n_re + p_re) - frequency * d_im, "im": (n_im + p_im) + frequency * d_re}
    for part, carried in (("re", n_re + p_re), ("im", n_im + p_im)):
        found[part] = mg.sum(share * carried)
        found[f"least_{part}"], found[f"most_{part}"] = mg.min(whole[part]), mg.max(whole[part])
    return found | {"length": mg.sum(share)}


terminal_current = Kernel(_terminal_current, name="oscillating terminal current")
"""Kernel of the sums of Ramo and Shockley over the inner edges, and of the extremes of the whole current."""
