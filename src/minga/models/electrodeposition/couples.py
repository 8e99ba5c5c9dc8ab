"""Linear systems of two species that a reaction at a metal turns into one another, solved together.

The rows are those of `systems`, with `gain` times the partner's concentration on the right of cells beside metals. In
one dimension the elimination has blocks of 2 x 2; otherwise BiCGStab solves for both fields at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import FLUID, Problem, largest_given
from minga.models.electrodeposition.rows import arriving, diagonal, from_neighbours, volume
from minga.solve.biconjugate import Vectors, coupled_bicgstab
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Slot

if TYPE_CHECKING:
    from minga.models.electrodeposition.transport import Transport

__all__ = ["Couples", "from_partner", "gains"]

Readers = Sequence[CellReader]


def gains(problem: Problem) -> tuple[dict[int, Field], ...]:
    """Return the fields of what metals give of each ion that has a partner, by axis."""
    grid, names = problem.grid, [s.name for s in problem.species]
    return tuple(
        {n: Field(f"gain {names[n]} {a}", grid, centre=a, unit="m3/s") for n in sorted(problem.partners)}
        for a in grid.axes
    )


@dataclass(frozen=True, eq=False)
class Couples:
    """Solution for the species of a problem, some of which have partners.

    Attributes
    ----------
    groups
        Numbers of the species that are solved for together, one or two.
    work
        Fields of one dimension by group: the upper blocks row by row, and the partial results. Of others: right-hand
        sides and unknowns of two species, which groups share.
    vectors
        Vectors of BiCGStab for one species and for two; None in one dimension.
    """

    problem: Problem
    groups: tuple[tuple[int, ...], ...] = field(init=False)
    work: tuple[tuple[Field, ...], ...] = field(init=False)
    vectors: dict[int, Vectors] | None = field(init=False)

    def __post_init__(self) -> None:
        problem, put, zero = self.problem, object.__setattr__, fixed(0.0)
        partners, grid = problem.partners, problem.grid
        numbers = range(len(problem.species))
        put(self, "groups", tuple((n, partners[n]) if n in partners else (n,) for n in numbers
                                  if partners.get(n, n) >= n))  # fmt: skip

        def fields(names: Sequence[str]) -> tuple[Field, ...]:
            return tuple(Field(name, grid, boundary=zero) for name in names)

        if grid.ndim == 1:
            put(self, "vectors", None)
            put(self, "work", tuple(
                fields([f"couple {g} {w} {n}" for w, count in (("upper", len(g) ** 2), ("partial", len(g)))
                        for n in range(count)])
                for g in self.groups
            ))  # fmt: skip
            return
        put(
            self,
            "work",
            (fields(["couple right 0", "couple right 1"]), fields(["couple unknown 0", "couple unknown 1"])),
        )
        pairs = [fields([f"couple {word} {n}" for n in (0, 1)]) for word in ("r", "shadow", "p", "v", "t", "y")]
        put(self, "vectors", {
            size: Vectors(*(tuple(item.now for item in pair[:size]) for pair in pairs)) for size in (1, 2)
        })  # fmt: skip

    def solve(self, program: Program, transport: Transport) -> None:
        """Record the next concentrations."""
        if self.vectors is None:
            self._eliminate(program, transport)
            return
        for group in self.groups:
            self._iterate(program, transport, group, self.vectors[len(group)])

    def _eliminate(self, program: Program, transport: Transport) -> None:
        state, formula, lengths = transport.state, transport.formula, transport.lengths
        for group, work in zip(self.groups, self.work, strict=True):
            size = len(group)
            upper, partial = work[: size * size], work[size * size :]
            ions = [state.concentration[n] for n in group]
            program.apply(
                eliminate_together(lengths), state.kind, [c.now for c in ions], [c.previous for c in ions],
                [transport.up[0][n] for n in group], [transport.down[0][n] for n in group],
                [transport.gain[0][n] for n in group if size > 1], lengths.fields, list(upper), list(partial),
                rate=formula.rate, h0=formula.now, h1=formula.before,
            )  # fmt: skip
            program.apply(SUBSTITUTE, list(upper), list(partial), [c.next for c in ions])

    def _iterate(self, program: Program, transport: Transport, group: tuple[int, ...], vectors: Vectors) -> None:
        state, formula, lengths = transport.state, transport.formula, transport.lengths
        size = len(group)
        right, unknown = (list(part[:size]) for part in self.work)
        ions = [state.concentration[n] for n in group]
        ups, downs = ([axis[n] for n in group for axis in word] for word in (transport.up, transport.down))
        crossed = [axis[n] for n in group if size > 1 for axis in transport.gain]
        faces = (state.kind, ups, downs, crossed, lengths.fields)
        program.apply(
            right_sides(lengths), [c.now for c in ions], [c.previous for c in ions], [c.next for c in ions], *faces,
            right, unknown, rate=formula.rate, h0=formula.now, h1=formula.before,
        )  # fmt: skip

        def operator(program: Program, source: tuple[Slot, ...], target: tuple[Slot, ...]) -> None:
            program.apply(rows_together(lengths), list(source), *faces, list(target), rate=formula.rate)

        names = " and ".join(self.problem.species[n].name for n in group)
        found = coupled_bicgstab(
            program, operator, tuple(x.now for x in unknown), tuple(b.now for b in right), vectors,
            tolerance=transport.tolerance, limit=transport.limit, name=f"solve {names}", unsolved=transport.unsolved,
        )  # fmt: skip
        program.let(transport.iterations, transport.iterations + found.iterations)
        slack = transport.slack * max(largest_given(self.problem, n) for n in group)
        program.apply(
            positive_together(lengths, slack), unknown, right, *faces, [c.next for c in ions], rate=formula.rate
        )


def from_partner(gains: Readers) -> Node:
    """Return what the metals beside a cell give of an ion over the concentration of its partner, m3/s."""
    ndim, total = len(gains), as_node(0.0)
    for axis in range(ndim):
        total = total + (gains[axis][(0,) * ndim] + gains[axis][step(ndim, axis, 1)])
    return total


def eliminate_together(lengths: Lengths) -> Kernel:
    """Return the kernel of the upward elimination for one species or two."""

    def elimination_together(
        kind: CellReader, now: Readers, before: Readers, up: Readers, down: Readers, gain: Readers, widths: Readers,
        upper: Readers, partial: Readers, *, rate: Node, h0: Node, h1: Node,
    ) -> None:  # fmt: skip
        size, fluid = volume(lengths, widths), kind[0] == FLUID
        count = len(now)
        lows, highs, rights, matrix = [], [], [], []
        for n in range(count):
            low = where(kind[-1] == FLUID, up[n][0], 0.0)
            high = where(kind[1] == FLUID, down[n][1], 0.0)
            given = (up[n][0] - low) + (down[n][1] - high)
            lows.append(low)
            highs.append(high)
            rights.append(size * (h0 * now[n][0] - h1 * before[n][0]) + given + low * partial[n][-1])
            row = [as_node(0.0) - low * upper[count * n + m][-1] for m in range(count)]
            row[n] = (size * rate + (up[n][1] + down[n][0])) + row[n]
            if count > 1:
                row[1 - n] = row[1 - n] - (gain[n][0] + gain[n][1])
            matrix.append(row)
        inverse = _inverted(matrix)
        for n in range(count):
            for m in range(count):
                upper[count * n + m][0] = where(fluid, inverse[n][m] * highs[m], 0.0)
            solved = inverse[n][0] * rights[0]
            if count > 1:
                solved = solved + inverse[n][1] * rights[1]
            partial[n][0] = where(fluid, solved, 0.0)

    return Kernel(elimination_together, order={0: 1})


def _inverted(matrix: Sequence[Sequence[Node]]) -> list[list[Node]]:
    """Return the inverse of a matrix of one row or two; 1 / 0 is left to cells that are not fluid."""
    if len(matrix) == 1:
        return [[1.0 / matrix[0][0]]]
    (a, b), (c, d) = matrix
    share = c / a
    low = 1.0 / (d - share * b)
    across = b / a
    return [[1.0 / a + across * low * share, as_node(0.0) - across * low], [as_node(0.0) - low * share, low]]


def _substitute(upper: Readers, partial: Readers, x: Readers) -> None:
    count = len(x)
    found = []
    for n in range(count):
        value = partial[n][0] + upper[count * n][0] * x[0][1]
        if count > 1:
            value = value + upper[count * n + 1][0] * x[1][1]
        found.append(value)
    for c, value in zip(x, found, strict=True):
        c[0] = value


SUBSTITUTE = Kernel(_substitute, order={0: -1}, name="substitution_together")


def _own(faces: Readers, number: int, ndim: int) -> Readers:
    """Return the readers of one species among those of the faces, all axes of one species after another."""
    return faces[number * ndim : (number + 1) * ndim]


def right_sides(lengths: Lengths) -> Kernel:
    """Return the kernel of the right-hand sides of rows divided by their diagonals, and of the first guesses."""
    ndim, here = lengths.ndim, (0,) * lengths.ndim

    @kernel
    def right_sides_together(
        now: Readers, before: Readers, guess: Readers, kind: CellReader, ups: Readers, downs: Readers, gains: Readers,
        widths: Readers, b: Readers, x: Readers, *, rate: Node, h0: Node, h1: Node,
    ) -> None:  # fmt: skip
        size, fluid = volume(lengths, widths), kind[here] == FLUID
        for n in range(len(now)):
            up, down = _own(ups, n, ndim), _own(downs, n, ndim)
            value = size * (h0 * now[n][here] - h1 * before[n][here]) + arriving(kind, up, down)
            b[n][here] = where(fluid, value / diagonal(up, down, size, rate), 0.0)
            x[n][here] = where(fluid, guess[n][here], 0.0)

    return right_sides_together


def rows_together(lengths: Lengths) -> Kernel:
    """Return the kernel of the matrix with rows divided by their diagonals."""
    ndim, here = lengths.ndim, (0,) * lengths.ndim

    @kernel
    def rows_of_couple(
        c: Readers, kind: CellReader, ups: Readers, downs: Readers, gains: Readers, widths: Readers, result: Readers,
        *, rate: Node,
    ) -> None:  # fmt: skip
        size = volume(lengths, widths)
        for n in range(len(c)):
            up, down = _own(ups, n, ndim), _own(downs, n, ndim)
            value = from_neighbours(c[n], kind, up, down)
            if len(c) > 1:
                value = value + from_partner(_own(gains, n, ndim)) * c[1 - n][here]
            value = c[n][here] - value / diagonal(up, down, size, rate)
            result[n][here] = where(kind[here] == FLUID, value, 0.0)

    return rows_of_couple


def positive_together(lengths: Lengths, slack: float) -> Kernel:
    """Return the kernel that makes the solution nonnegative, as `systems.positive` does for one species."""
    ndim, here = lengths.ndim, (0,) * lengths.ndim

    @kernel
    def positive_couple(
        x: Readers, b: Readers, kind: CellReader, ups: Readers, downs: Readers, gains: Readers, widths: Readers,
        result: Readers, *, rate: Node,
    ) -> None:  # fmt: skip
        size = volume(lengths, widths)
        for n in range(len(x)):
            up, down = _own(ups, n, ndim), _own(downs, n, ndim)
            swept = from_neighbours(x[n], kind, up, down, least=0.0)
            if len(x) > 1:
                swept = swept + from_partner(_own(gains, n, ndim)) * mg.max(x[1 - n][here], 0.0)
            swept = b[n][here] + swept / diagonal(up, down, size, rate)
            swept = where(swept >= -slack, mg.max(swept, 0.0), swept)
            result[n][here] = where((kind[here] == FLUID) & (x[n][here] < 0.0), swept, x[n][here])

    return positive_couple
