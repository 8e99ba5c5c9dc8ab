"""Kernels of multigrid for coupled unknowns: lines along the first axis, pairs of them along the second.

Kernels that go from one level to the next, and those that take every other line, run over the cells of the next one,
where fields of the finer one are read and stored with a stride of 2 along the second axis: line 2 j + colour. What is
stored beyond the last line of an odd number is stored nowhere, and what is read there is 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.solve.block_tridiagonal import Pattern, arranged, backward, forward

__all__ = [
    "cleared",
    "coarse_diagonal",
    "coarse_free",
    "coarse_inner",
    "coarse_outer",
    "free_cells",
    "line_elimination",
    "line_substitution",
    "matrix_product",
    "only_free",
    "prolonged",
    "restricted",
    "scaled_copy",
    "scattered",
]  # fmt: skip

Readers = Sequence[CellReader]
HERE, WEST, EAST, BELOW, ABOVE = (0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)
"""Offsets of the cell, of its neighbours along the first axis, and along the second."""
PAIRS = (1, 2)


# The finest level ----------------------------------------------------------------------------------------------------
def _scaled_copy(source: CellReader, target: CellReader, *, weight: Node) -> None:
    target[HERE] = weight * source[HERE]


scaled_copy = Kernel(_scaled_copy, name="scaled copy")
"""Store target = weight * source."""


def _free_cells(held: CellReader, free: CellReader) -> None:
    free[HERE] = where(held[HERE] == 0, 1.0, 0.0)


free_cells = Kernel(_free_cells, name="cells that are not held")
"""Store free = 1, or 0 in cells whose unknowns are held."""


@functools.cache
def only_free(count: int) -> Kernel:
    """Return the kernel that removes rows and columns of held cells, whose unknowns are 0; their diagonal becomes 1.

    lower, upper   of both axes, `count` fields each
    """

    def without_held(lower: Readers, diagonal: Readers, upper: Readers, free: CellReader) -> None:
        own = free[HERE]
        for fields, neighbours in ((lower, (WEST, BELOW)), (upper, (EAST, ABOVE))):
            for number, item in enumerate(fields):
                kept = own * free[neighbours[number // count]]
                # What lies beyond the grid may be anything.
                item[HERE] = where(kept > 0.0, item[HERE], 0.0)
        k = math.isqrt(len(diagonal))
        for number, item in enumerate(diagonal):
            item[HERE] = where(own > 0.0, item[HERE], 1.0 if number % (k + 1) == 0 else 0.0)

    return Kernel(without_held, name="matrix of free cells")


# On one level --------------------------------------------------------------------------------------------------------
def product(
    pattern: Pattern, lower: Sequence[Readers], diagonal: Readers, upper: Sequence[Readers], x: Readers,
    at: tuple[int, int],
) -> list[Node]:  # fmt: skip
    """Return A x in the cell at an offset, 0 or along the second axis; `x` and the matrix have the same stride."""
    k = len(pattern)
    low, high = ([arranged(part, pattern) for part in parts] for parts in (lower, upper))
    found: list[Node] = []
    for i in range(k):
        value = diagonal[i * k][at] * x[0][at]
        for j in range(1, k):
            value = value + diagonal[i * k + j][at] * x[j][at]
        for axis in range(2):
            for part, shift in ((low[axis], -1), (high[axis], 1)):
                there = (at[0] + shift, at[1]) if axis == 0 else (at[0], at[1] + shift)
                for j in range(k):
                    entry = part[i][j]
                    if entry is not None:
                        value = value + entry[at] * x[j][there]
        found.append(value)
    return found


@functools.cache
def matrix_product(pattern: Pattern) -> Kernel:
    """Store image = A x."""
    count = sum(map(sum, pattern))

    def multiply(lower: Readers, diagonal: Readers, upper: Readers, x: Readers, image: Readers) -> None:
        values = product(pattern, _axes(lower, count), diagonal, _axes(upper, count), x, HERE)
        for item, value in zip(image, values, strict=True):
            item[HERE] = value

    return Kernel(multiply, name="block matrix product")


def _axes(fields: Readers, count: int) -> tuple[Readers, Readers]:
    """Return the fields of both axes."""
    return fields[:count], fields[count:]


def _cleared(x: Readers) -> None:
    for item in x:
        item[HERE] = 0.0


cleared = Kernel(_cleared, name="clear coupled unknowns")
"""Kernel that stores x = 0."""


@functools.cache
def line_elimination(pattern: Pattern, colour: int) -> Kernel:
    """Return the kernel that eliminates every other line's right side, less the neighbours' terms, along +axis 0."""
    k, count, at = len(pattern), sum(map(sum, pattern)), (0, colour)

    def eliminate(
        lower: Readers, upper: Readers, factors: Readers, f: Readers, x: Readers, partial: Readers
    ) -> None:  # fmt: skip
        (low, below), (_, above) = (_axes(_strided(part), count) for part in (lower, upper))
        inner, before, after = (arranged(part, pattern) for part in (low, below, above))
        known, right = _strided(x), _strided(f)
        factor = [[item[at] for item in _strided(factors)[i * k : i * k + k]] for i in range(k)]
        column: list[Node] = []
        for i in range(k):
            value = right[i][at]
            for j in range(k):
                for part, shift in ((before, -1), (after, 1)):
                    entry = part[i][j]
                    if entry is not None:
                        value = value - entry[at] * known[j][0, colour + shift]
            for j in range(k):
                own = inner[i][j]
                if own is not None:
                    value = value - own[at] * partial[j][WEST]
            column.append(value)
        for item, value in zip(partial, backward(factor, forward(factor, column)), strict=True):
            item[HERE] = value

    return Kernel(eliminate, order={0: 1}, name=f"elimination of lines, colour {colour}")


@functools.cache
def line_substitution(k: int, colour: int) -> Kernel:
    """Return the kernel that computes the unknowns of these lines, along -first axis."""

    def substitute(ratio: Readers, partial: Readers, line: Readers) -> None:
        ratios = _strided(ratio)
        beyond = [line[j][EAST] for j in range(k)]
        for i in range(k):
            value = partial[i][HERE]
            for j in range(k):
                value = value - ratios[i * k + j][0, colour] * beyond[j]
            line[i][HERE] = value

    return Kernel(substitute, order={0: -1}, name=f"substitution of lines, colour {colour}")


@functools.cache
def scattered(colour: int) -> Kernel:
    """Return the kernel that stores lines at their places."""

    def scatter(line: Readers, x: Readers) -> None:
        for item, value in zip(_strided(x), line, strict=True):
            item[0, colour] = value[HERE]

    return Kernel(scatter, name=f"scattered lines, colour {colour}")


def _strided(fields: Readers) -> list[CellReader]:
    return [item.strided(*PAIRS) for item in fields]


# Between two levels --------------------------------------------------------------------------------------------------
@functools.cache
def restricted(pattern: Pattern) -> Kernel:
    """Return the kernel of the residual summed over pairs: lines of colour 1 were solved last and have no residual."""
    count = sum(map(sum, pattern))

    def restrict(
        lower: Readers, diagonal: Readers, upper: Readers, free: CellReader, f: Readers, x: Readers, sums: Readers
    ) -> None:  # fmt: skip
        low, high = (_axes(_strided(part), count) for part in (lower, upper))
        values = product(pattern, low, _strided(diagonal), high, _strided(x), HERE)
        mask = free.strided(*PAIRS)[HERE]
        for item, right, value in zip(sums, _strided(f), values, strict=True):
            item[HERE] = mask * (right[HERE] - value)

    return Kernel(restrict, name="restriction of coupled unknowns")


def _prolonged(coarse: Readers, free: CellReader, x: Readers) -> None:
    mask = free.strided(*PAIRS)
    for item, value in zip(_strided(x), coarse, strict=True):
        for colour in (0, 1):
            item[0, colour] = item[0, colour] + mask[0, colour] * value[HERE]


prolonged = Kernel(_prolonged, name="prolongation of coupled unknowns")
"""Kernel that adds the pair's correction to x, except in held cells."""


def _coarse_free(free: CellReader, coarse: CellReader) -> None:
    mask = free.strided(*PAIRS)
    coarse[HERE] = mg.max(mask[0, 0], mask[0, 1])


coarse_free = Kernel(_coarse_free, name="pairs that are not held")
"""Kernel that stores 1, or 0 for pairs of held cells."""


@functools.cache
def coarse_diagonal(pattern: Pattern) -> Kernel:
    """Return the kernel of the pairs' diagonal with the coupling of both lines, along axis 1; 1 for held pairs."""
    k = len(pattern)

    def pair_diagonal(
        lower: Readers, diagonal: Readers, upper: Readers, free: CellReader, coarse: Readers
    ) -> None:  # fmt: skip
        low, high = arranged(_strided(lower), pattern), arranged(_strided(upper), pattern)
        own, mask = _strided(diagonal), free.strided(*PAIRS)
        either = mg.max(mask[0, 0], mask[0, 1])
        for i in range(k):
            for j in range(k):
                entry = own[i * k + j]
                value = mask[0, 0] * entry[0, 0] + mask[0, 1] * entry[0, 1]
                for part, at in ((high[i][j], (0, 0)), (low[i][j], (0, 1))):
                    value = value if part is None else value + part[at]
                coarse[i * k + j][HERE] = value if i != j else where(either > 0.0, value, 1.0)

    return Kernel(pair_diagonal, name="diagonal of pairs")


def _coarse_inner(fine: Readers, coarse: Readers) -> None:
    for item, target in zip(_strided(fine), coarse, strict=True):
        target[HERE] = item[0, 0] + item[0, 1]


coarse_inner = Kernel(_coarse_inner, name="couplings along lines of pairs")
"""Kernel of couplings along the first axis: those of both lines."""


@functools.cache
def coarse_outer(colour: int) -> Kernel:
    """Return the kernel of couplings of pairs along the second axis: those of the outer line."""

    def couple(fine: Readers, coarse: Readers) -> None:
        for item, target in zip(_strided(fine), coarse, strict=True):
            target[HERE] = item[0, colour]

    return Kernel(couple, name=f"couplings across lines of pairs, colour {colour}")
