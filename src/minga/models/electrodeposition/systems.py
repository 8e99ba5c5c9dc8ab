"""Kernels of the linear systems of the concentrations, one species by itself.

In one dimension a system is solved by two sweeps for all species at once; otherwise its rows are divided by their
diagonals.
"""

from __future__ import annotations

from collections.abc import Sequence

from minga.compile.explain import Kernel, kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.models.electrodeposition.couples import from_partner
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID
from minga.models.electrodeposition.rows import arriving, diagonal, from_neighbours, volume
from minga.solve.laplacian import step

__all__ = ["SUBSTITUTE", "balance", "eliminate", "positive", "right_side", "rows"]

Readers = Sequence[CellReader]


def eliminate(lengths: Lengths) -> Kernel:
    """Return the kernel of the upward elimination, for all species."""

    def species_elimination(
        kind: CellReader, now: Readers, before: Readers, up: Readers, down: Readers, widths: Readers, upper: Readers,
        partial: Readers, *, rate: Node, h0: Node, h1: Node,
    ) -> None:  # fmt: skip
        size = volume(lengths, widths)
        fluid = kind[0] == FLUID
        for number in range(len(now)):
            low = where(kind[-1] == FLUID, up[number][0], 0.0)
            high = where(kind[1] == FLUID, down[number][1], 0.0)
            given = (up[number][0] - low) + (down[number][1] - high)
            b = size * (h0 * now[number][0] - h1 * before[number][0]) + given
            whole = size * rate + (up[number][1] + down[number][0])
            pivot = where(fluid, whole - low * upper[number][-1], 1.0)
            upper[number][0] = where(fluid, high / pivot, 0.0)
            partial[number][0] = where(fluid, (b + low * partial[number][-1]) / pivot, 0.0)

    return Kernel(species_elimination, order={0: 1})


def _substitute(upper: Readers, partial: Readers, x: Readers) -> None:
    for u, p, c in zip(upper, partial, x, strict=True):
        c[0] = p[0] + u[0] * c[1]


SUBSTITUTE = Kernel(_substitute, order={0: -1}, name="species_substitution")


def balance(lengths: Lengths) -> Kernel:
    """Return the kernel of both sides of the sum of all rows.

    They are the previous amount plus what the metals give, and the present amount plus what goes into the metals; what
    the metals give of it from its partner is a sum of its own.
    """
    ndim = lengths.ndim
    here = (0,) * ndim

    @kernel
    def species_balance(
        now: CellReader, before: CellReader, c: CellReader, kind: CellReader, ups: Readers, downs: Readers,
        gains: Readers, partner: Readers, widths: Readers, *, rate: Node, h0: Node, h1: Node,
    ) -> dict[str, Reduced]:  # fmt: skip
        size, fluid = volume(lengths, widths), kind[here] == FLUID
        answer = size * rate
        for axis in range(ndim):
            low, high = kind[step(ndim, axis, -1)], kind[step(ndim, axis, 1)]
            answer = answer + where((low == CATHODE) | (low == ANODE), downs[axis][here], 0.0)
            answer = answer + where((high == CATHODE) | (high == ANODE), ups[axis][step(ndim, axis, 1)], 0.0)
        given = size * (h0 * now[here] - h1 * before[here]) + arriving(kind, ups, downs)
        sums = {"given": mg.sum(where(fluid, given, 0.0)), "answer": mg.sum(where(fluid, answer * c[here], 0.0))}
        for other in partner:
            sums["gained"] = mg.sum(where(fluid, from_partner(gains) * other[here], 0.0))
        return sums

    return species_balance


def right_side(lengths: Lengths) -> Kernel:
    """Return the kernel of the right-hand side b of rows divided by their diagonals, and of the first guess."""
    here = (0,) * lengths.ndim

    @kernel
    def species_right_side(
        now: CellReader, before: CellReader, guess: CellReader, kind: CellReader, ups: Readers, downs: Readers,
        widths: Readers, b: CellReader, x: CellReader, *, rate: Node, h0: Node, h1: Node,
    ) -> None:  # fmt: skip
        size = volume(lengths, widths)
        value = size * (h0 * now[here] - h1 * before[here]) + arriving(kind, ups, downs)
        fluid = kind[here] == FLUID
        b[here] = where(fluid, value / diagonal(ups, downs, size, rate), 0.0)
        x[here] = where(fluid, guess[here], 0.0)

    return species_right_side


def rows(lengths: Lengths) -> Kernel:
    """Return the kernel of the matrix with rows divided by their diagonals."""
    here = (0,) * lengths.ndim

    @kernel
    def species_rows(
        c: CellReader, kind: CellReader, ups: Readers, downs: Readers, widths: Readers, result: CellReader, *,
        rate: Node,
    ) -> None:  # fmt: skip
        pivot = diagonal(ups, downs, volume(lengths, widths), rate)
        value = c[here] - from_neighbours(c, kind, ups, downs) / pivot
        result[here] = where(kind[here] == FLUID, value, 0.0)

    return species_rows


def positive(lengths: Lengths, slack: float) -> Kernel:
    """Return the kernel that makes the solution of a system nonnegative.

    Where the remaining residual leaves a value below 0, it takes one Jacobi sweep, which yields no negative value from
    nonnegative concentrations and a nonnegative right-hand side. That of BDF2 is negative where a concentration falls
    to a small fraction in one step: a value down to -`slack` then becomes 0, and `Transport.restore` makes up for the
    amount.
    """
    here = (0,) * lengths.ndim

    @kernel
    def species_positive(
        x: CellReader, b: CellReader, kind: CellReader, ups: Readers, downs: Readers, widths: Readers,
        result: CellReader, *, rate: Node,
    ) -> None:  # fmt: skip
        pivot = diagonal(ups, downs, volume(lengths, widths), rate)
        swept = b[here] + from_neighbours(x, kind, ups, downs, least=0.0) / pivot
        swept = where(swept >= -slack, mg.max(swept, 0.0), swept)
        result[here] = where((kind[here] == FLUID) & (x[here] < 0.0), swept, x[here])

    return species_positive
