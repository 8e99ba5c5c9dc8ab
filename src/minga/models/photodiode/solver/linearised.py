"""Equations of a device linearised about a solution, for small oscillations: kernels over edges and nodes.

An oscillation multiplies exp(i w t). Its amplitudes are complex: three unknowns at each node, in kT/q, as in
`minga.models.photodiode.solver.physics`; fields hold the three real parts, then the three imaginary ones, and then what
is left of each beyond the digits of the first six. With the equations F(u, V, G) - dQ/dt = 0, the charge Q being n V in
the electron balance and -p V in that of holes, they are

    (F_u - i w Q_u) du = -(F_V - i w Q_V) dV - F_G dG

The bias enters through the hole level alone, which is measured from the anode, and through the contacts. These store
nothing but the carriers whose density they do not hold. Dopants follow the carriers at once, and n and p in Q include
those that neutral dopants keep, as the charge in Poisson's equation does, so that no charge is lost.

Sums over an edge, whose terms are large and nearly cancel, are as if in twice the precision (T. Ogita, S. M. Rump,
S. Oishi, SIAM J. Sci. Comput. 26, 2005), so that the current is the same on all edges.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.elementary import exact_product
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.assembly import ELECTRONS, HOLES, POTENTIAL, Block, Tunnelling, sources
from minga.models.photodiode.solver.coefficient_fields import NodeCoefficients
from minga.models.photodiode.solver.coefficient_values import ANODE, CATHODE
from minga.models.photodiode.solver.densities import held_row, neutral_dopants
from minga.models.photodiode.solver.physics import EdgeValues, Flux
from minga.models.photodiode.solver.tunnelling import local_models
from minga.solve.laplacian import step

__all__ = [
    "PLACES", "applied", "contact_currents", "corrected", "drop", "edge_currents", "residual", "slopes",
    "terminal_current",
]  # fmt: skip

Readers = Sequence[CellReader]
Sum = tuple[Any, Any]
"""A number as the unevaluated sum of two."""

PLACES = ((ELECTRONS, POTENTIAL), (ELECTRONS, ELECTRONS), (HOLES, POTENTIAL), (HOLES, HOLES))
"""Entries of -Q_u in the block of a node."""


def slopes(ndim: int, tunnelling: Sequence[Tunnelling] = ()) -> Kernel:
    """Return the kernel of the entries of -Q_u at `PLACES`, of V (R - G), and of its derivatives by the unknowns.

    With `tunnelling`, `beside` receives the derivatives by the unknowns of the neighbours below and above along each
    axis, which tunnelling depends on. `free` is `Coefficients.free`.
    """
    here = (0,) * ndim

    def slopes_of(
        state: Readers, n: CellReader, p: CellReader, activities: Readers, numbers: Readers, models: Readers,
        weights: Readers, surface: Readers, dopants: Readers, free: Readers, storage: Readers, net: Readers,
        beside: Readers, *, bias: Node, light: Node,
    ) -> None:  # fmt: skip
        node = NodeCoefficients(*(item[here] for item in numbers))
        own = Block()
        split = (state[HOLES][here] - state[ELECTRONS][here]) + bias
        balance: list[Any] = []
        answers = [item[here] for item in activities]
        captured = neutral_dopants(dopants, here, n[here], p[here], answers[:2])[1:] if dopants else ()
        local = local_models(node, tunnelling, models, weights, surface, state, ndim)
        by_squares = sources(own, balance, local, split, n[here], p[here], light, answers, captured)
        for (row, column), item in zip(PLACES, storage, strict=True):
            stored = own.get(POTENTIAL, row)
            item[here] = where(held_row(node.contact, free, row, here), 0.0, stored if row == column else -stored)
        for column in range(3):
            net[column][here] = own.get(HOLES, column)
        net[3][here] = where(node.contact == 0, balance[-1], 0.0)
        found = [
            by * side
            for axis in range(ndim)
            for sides in zip(*((item.below[axis], item.above[axis]) for item in local.squares), strict=True)
            for by, side in zip(by_squares, sides, strict=True)
        ]
        for item, value in zip(beside, found, strict=True):
            item[here] = value

    return Kernel(slopes_of, name="slopes of a node")


def unknowns(x: Readers, part: int, at: tuple[int, ...]) -> list[Sum]:
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


@functools.cache
def edge_currents(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the oscillations on the inner edges along an axis.

    Its results are electron and hole flux and displacement over q and, with ionisation, pairs: real parts first.
    """
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def currents(x: Readers, edges: Readers, coupling: CellReader, out: Readers, *, voltage: Node) -> None:
        values = EdgeValues.of([item[here] for item in edges])
        count = len(out) // 2
        for part in range(2):
            low, high = unknowns(x, part, below), unknowns(x, part, here)
            by = voltage if part == 0 else None
            found = [
                varied(values.electrons, low, high, ELECTRONS, None),
                varied(values.holes, low, high, HOLES, by),
                -coupling[here] * minus(high[POTENTIAL], low[POTENTIAL]),
            ]
            if values.pairs:
                slopes = values.pairs[1:]
                moved = (slopes[HOLES], slopes[3 + HOLES]) if by is not None else ()
                found.append(exact_sum(list(zip(slopes, (*low, *high), strict=True)), moved, by))
            for k, value in enumerate(found):
                out[part * count + k][here] = value

    return Kernel(currents, name=f"oscillating currents across axis {axis}")


def varied(flux: Flux, low: Sequence[Sum], high: Sequence[Sum], carrier: int, voltage: Node | None) -> Any:
    """Return the variation of a flux with the unknowns of both nodes and, for holes, with the bias."""
    terms = [
        (flux.potential_low, low[POTENTIAL]), (flux.potential_high, high[POTENTIAL]),
        (flux.fermi_low, low[carrier]), (flux.fermi_high, high[carrier]),
    ]  # fmt: skip
    return exact_sum(terms, () if voltage is None else (flux.fermi_low, flux.fermi_high), voltage)


@functools.cache
def residual(ndim: int) -> Kernel:
    """Return the kernel of the right sides for a correction of the oscillation, 0 for unknowns that contacts hold.

    `currents` are those of all axes, one after the other; `free` is `Coefficients.free`.
    """
    here = (0,) * ndim

    def missing(
        x: Readers, currents: Readers, storage: Readers, net: Readers, beside: Readers, generation: CellReader,
        volume: CellReader, contact: CellReader, free: Readers, right: Readers, *, frequency: Node, voltage: Node,
        light: Node,
    ) -> None:  # fmt: skip
        stored_n, stored_p = storage[1][here], storage[3][here]
        held = [contact[here] != 0, *(held_row(contact[here], free, row, here) for row in (ELECTRONS, HOLES))]
        sides = [step(ndim, axis, side) for axis in range(ndim) for side in (-1, 1)]
        # Charges: of holes with the bias first, which the potential nearly cancels on the side of the anode.
        electrons, holes, lost = [], [], []
        for part, bias in enumerate((voltage, 0.0 * voltage)):
            phi, n, p = unknowns(x, part, here)
            electrons.append(stored_n * minus(phi, n))
            holes.append(stored_p * (((bias - phi[0]) + p[0]) + (p[1] - phi[1])))
            lost.append(_weighted(net[:3], here, x, part, here, bias))
            for k, at in enumerate(sides if beside else ()):
                lost[part] = lost[part] + _weighted(beside[3 * k : 3 * k + 3], here, x, part, at, bias)
        rising_n, rising_p = ((-frequency * im, frequency * re) for re, im in (electrons, holes))
        lost[0] = lost[0] - volume[here] * generation[here] * light
        size = len(currents) // ndim
        for part in range(2):
            leaving: list[Any] = [0.0, 0.0, 0.0]
            for axis in range(ndim):
                own = currents[axis * size : (axis + 1) * size][part * size // 2 : (part + 1) * size // 2]
                through, back = ([item[at] for item in own] for at in (step(ndim, axis, 1), here))
                leaving = [one + (a - b) for one, a, b in zip(leaving, through, back, strict=False)]
                if size > 6:
                    lost[part] = lost[part] - (through[3] + back[3])
            balance = (
                (holes[part] - electrons[part]) - leaving[2],
                leaving[0] - lost[part] - rising_n[part],
                leaving[1] + lost[part] + rising_p[part],
            )
            for k in range(3):
                right[3 * part + k][here] = where(held[k], 0.0, -balance[k])

    return Kernel(missing, name="residual of an oscillation")


def _weighted(weights: Readers, here: tuple[int, ...], x: Readers, part: int, at: tuple[int, ...], bias: Node) -> Any:
    """Return the sum of weights times the unknowns of a node, with the hole level absolute."""
    phi, n, p = unknowns(x, part, at)
    level = (p[0] + bias) + p[1]
    return weights[0][here] * (phi[0] + phi[1]) + weights[1][here] * (n[0] + n[1]) + weights[2][here] * level


def _drop(x: Readers, contact: CellReader) -> dict[str, Reduced]:
    found = {}
    for part, name in enumerate(("re", "im")):
        high, low = unknowns(x, part, (0,))[POTENTIAL]
        signed = where(contact[0] == ANODE, high + low, where(contact[0] == CATHODE, -(high + low), 0.0))
        found[name] = mg.sum(signed)
    return found


drop = Kernel(_drop, name="oscillating drop")
"""Kernel of the potential of the anode less that of the cathode, with one axis."""


@functools.cache
def applied(ndim: int) -> Kernel:
    """Return the kernel of the first guess: contacts follow the voltage, and nothing else moves."""
    here = (0,) * ndim

    def apply(x: Readers, contact: CellReader, *, voltage: Node) -> None:
        anode, cathode = contact[here] == ANODE, contact[here] == CATHODE
        x[POTENTIAL][here] = where(anode, voltage, 0.0)
        x[ELECTRONS][here] = where(anode, voltage, 0.0)
        x[HOLES][here] = where(cathode, -voltage, 0.0)
        for item in x[3:]:
            item[here] = 0.0 * voltage

    return Kernel(apply, name="oscillating contacts")


@functools.cache
def corrected(ndim: int) -> Kernel:
    """Return the kernel that adds a correction."""
    here = (0,) * ndim

    def correct(x: Readers, change: Readers) -> None:
        for high, low, by in zip(x[:6], x[6:], change, strict=True):
            total, error = two_sum(high[here], by[here])
            high[here], low[here] = two_sum(total, low[here] + error)

    return Kernel(correct, name="correction of an oscillation")


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
"""Kernel of the sums of Ramo and Shockley over the inner edges of one axis, and of extremes of the whole current."""


def _contact_currents(currents: Readers, contact: CellReader, *, frequency: Node) -> dict[str, Reduced]:
    size = len(currents) // 2
    count, here = size // 2, (0, 0)
    parts: list[Any] = [0.0, 0.0]
    for axis in range(2):
        own = currents[axis * size : (axis + 1) * size]
        for at, sign in ((step(2, axis, 1), 1.0), (here, -1.0)):
            (n_re, p_re, d_re), (n_im, p_im, d_im) = (
                [item[at] for item in own[k * count : k * count + 3]] for k in (0, 1)
            )
            parts[0] = parts[0] + sign * ((n_re + p_re) - frequency * d_im)
            parts[1] = parts[1] + sign * ((n_im + p_im) + frequency * d_re)
    return {
        f"{name}_{part}": mg.sum(where(contact[here] == kind, value, 0.0))
        for name, kind in (("anode", ANODE), ("cathode", CATHODE))
        for part, value in zip(("re", "im"), parts, strict=True)
    }


contact_currents = Kernel(_contact_currents, name="oscillating currents of contacts")
"""Kernel of the whole current that leaves each contact, with two axes."""
