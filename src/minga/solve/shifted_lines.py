"""Block-tridiagonal systems along one axis with an imaginary part in the diagonal blocks: small oscillations.

    L_i x_{i-1} + (D_i + i w S_i) x_i + U_i x_{i+1} = b_i,      L, D, S, U real, of k x k; x and b complex, of k numbers

The method is that of :mod:`minga.solve.block_tridiagonal`, whose matrix the system shares. Each w takes a factorisation
of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node
from minga.lang.kernel import Kernel
from minga.solve.block_tridiagonal import BlockLines, Pattern, arranged, backward, decomposed, forward
from minga.solve.complex_numbers import Complex
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Slot

__all__ = ["ShiftedLines"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class ShiftedLines:
    """Solver for the matrix of `lines` with an imaginary part in its diagonal blocks; declares its own fields.

    Complex fields are pairs: k fields of real parts, then k of imaginary parts.

    Parameters
    ----------
    lines
        The fields of the real matrix, which the caller writes.
    places
        Rows and columns in a block of the entries that S has.
    name
        The beginning of the names of all fields.

    Attributes
    ----------
    storage
        The entries of S, in the order of `places`, which the caller writes.
    factors
        Factors of the pivot blocks, as those of `lines`.
    ratio
        The inverse of the pivot blocks times U.
    partial
        The right side after elimination.
    """

    lines: BlockLines
    places: tuple[tuple[int, int], ...]
    name: str = "shifted lines"
    storage: tuple[Field, ...] = field(init=False)
    factors: tuple[Field, ...] = field(init=False)
    ratio: tuple[Field, ...] = field(init=False)
    partial: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        k, put = self.lines.unknowns, object.__setattr__

        def declare(what: str, count: int) -> tuple[Field, ...]:
            return tuple(Field(f"{self.name} {what} {n}", self.lines.grid, boundary=fixed(0.0)) for n in range(count))

        put(self, "storage", declare("storage", len(self.places)))
        put(self, "factors", declare("factor", 2 * k * k))
        put(self, "ratio", declare("ratio", 2 * k * k))
        put(self, "partial", declare("partial", 2 * k))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model, without those of `lines`."""
        return *self.storage, *self.factors, *self.ratio, *self.partial

    @property
    def _form(self) -> tuple[int, int, Pattern]:
        assert self.lines.coupling is not None
        return self.lines.grid.ndim, self.lines.along, self.lines.coupling

    def setup(self, program: Program, factor: Any) -> None:
        """Record the factorisation; it has to be repeated whenever the matrix or the factor has changed.

        Parameters
        ----------
        program
            The Program to record into.
        factor
            The number w that multiplies S, such as a register.
        """
        made = factorisation(*self._form, self.places)
        program.apply(made, *self.lines.matrix, self.storage, self.factors, self.ratio, factor=factor)

    def solve(self, program: Program, b: Sequence[Field | Slot], x: Sequence[Field | Slot]) -> None:
        """Record the solution for one right side.

        Parameters
        ----------
        program
            The Program to record into.
        b, x
            2 k fields or slots of the right side and of the solution, which may be the same. Beyond the ends of the
            axis those of the solution need a finite value: boundary=mg.fixed(0.0).
        """
        program.apply(elimination(*self._form), self.lines.matrix[0], self.factors, b, self.partial)
        program.apply(substitution(*self._form), self.ratio, self.partial, x)


# Kernels -------------------------------------------------------------------------------------------------------------
def _numbers(readers: Readers, at: tuple[int, ...]) -> list[Any]:
    """Return the complex numbers of fields of real parts and as many of imaginary ones."""
    half = len(readers) // 2
    return [Complex(readers[n][at], readers[half + n][at]) for n in range(half)]


def _store(values: Sequence[Any], readers: Readers, at: tuple[int, ...]) -> None:
    for n, value in enumerate(values):
        readers[n][at], readers[len(values) + n][at] = value.re, value.im


@functools.cache
def factorisation(ndim: int, axis: int, pattern: Pattern, places: tuple[tuple[int, int], ...]) -> Kernel:
    """Return the kernel of pivot blocks and ratios, along +axis."""
    here, below, k = (0,) * ndim, step(ndim, axis, -1), len(pattern)

    def factorise_shifted(
        lower: Readers, diagonal: Readers, upper: Readers, storage: Readers, factors: Readers, ratio: Readers,
        *, factor: Node,
    ) -> None:  # fmt: skip
        low, high = arranged(lower, pattern), arranged(upper, pattern)
        before = _numbers(ratio, below)
        zero = diagonal[0][here] * 0.0
        block: list[list[Any]] = [[Complex(diagonal[i * k + j][here], zero) for j in range(k)] for i in range(k)]
        for (i, j), item in zip(places, storage, strict=True):
            block[i][j] = block[i][j] + Complex(zero, factor * item[here])
        for i in range(k):
            for m, entry in enumerate(low[i]):
                if entry is not None:
                    for j in range(k):
                        if any(row[j] for row in pattern):
                            block[i][j] = block[i][j] - before[m * k + j] * entry[here]
        made: list[list[Any]] = decomposed(block)
        _store([made[i][j] for i in range(k) for j in range(k)], factors, here)
        found: list[list[Any]] = []
        for j in range(k):
            column: list[Any] = [
                Complex(zero, zero) if entry is None else Complex(entry[here], zero)
                for entry in (row[j] for row in high)
            ]
            found.append(backward(made, forward(made, column)))
        _store([found[j][i] for i in range(k) for j in range(k)], ratio, here)

    return Kernel(factorise_shifted, order={axis: 1}, name="shifted line factorisation")


@functools.cache
def elimination(ndim: int, axis: int, pattern: Pattern) -> Kernel:
    """Return the kernel that eliminates the unknowns below from the right side, along +axis."""
    here, below, k = (0,) * ndim, step(ndim, axis, -1), len(pattern)

    def eliminate_shifted(lower: Readers, factors: Readers, b: Readers, partial: Readers) -> None:
        low, before, flat = arranged(lower, pattern), _numbers(partial, below), _numbers(factors, here)
        factor = [flat[i * k : (i + 1) * k] for i in range(k)]
        column = _numbers(b, here)
        for i in range(k):
            for m, entry in enumerate(low[i]):
                if entry is not None:
                    column[i] = column[i] - before[m] * entry[here]
        _store(backward(factor, forward(factor, column)), partial, here)

    return Kernel(eliminate_shifted, order={axis: 1}, name="shifted line elimination")


@functools.cache
def substitution(ndim: int, axis: int, pattern: Pattern) -> Kernel:
    """Return the kernel that computes the unknowns, along -axis."""
    here, above, k = (0,) * ndim, step(ndim, axis, 1), len(pattern)

    def substitute_shifted(ratio: Readers, partial: Readers, x: Readers) -> None:
        beyond, flat, found = _numbers(x, above), _numbers(ratio, here), _numbers(partial, here)
        for i in range(k):
            for j in range(k):
                found[i] = found[i] - flat[i * k + j] * beyond[j]
        _store(found, x, here)

    return Kernel(substitute_shifted, order={axis: -1}, name="shifted line substitution")
