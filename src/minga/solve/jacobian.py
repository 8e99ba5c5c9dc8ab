"""Jacobian of the rates of change of coupled fields: its products with vectors, and linear systems with it.

The product J v is a kernel: the derivative of the traced rates in the direction v, exact and without a matrix. Beyond
walls v obeys the homogeneous forms of the conditions of the fields, whatever values those prescribe.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader
from minga.lang.derivative import derivative, directional_derivatives
from minga.lang.expr import Node, as_node, where
from minga.solve.biconjugate import Vectors, coupled_bicgstab
from minga.solve.krylov import Solution, clear
from minga.solve.rates import Rates, rates_kernel
from minga.space.boundary import homogeneous
from minga.space.field import TIME, Field, Register, Slot

__all__ = ["Jacobian", "differences", "krylov_vectors"]

Vector = tuple[Slot, ...]
Scale = float | Register | Node


def differences(fields: Sequence[Field], name: str) -> tuple[Field, ...]:
    """Declare fields for differences of two states, which obey the homogeneous forms of the fields' conditions.

    Parameters
    ----------
    fields
        The fields of the state, f8.
    name
        The end of the names of the new fields.

    Returns
    -------
    tuple of Field
        One field for each.

    Raises
    ------
    LayoutError
        If a condition cannot be linearised.
    ProgramError
        If a field is not f8.
    """
    for item in fields:
        if item.dtype != "f8":
            raise ProgramError(
                f"field {item.name!r} is {item.dtype}, and linear systems need f8",
                remedy='declare it as f8, or complex fields as "c16"',
            )
    return tuple(
        Field(
            f"{item.name}@{name}", item.grid, item.dtype, on=item.on, boundary=homogeneous(item),
            centre=tuple(axis for axis, bit in enumerate(item.centre) if bit), unit=item.unit,
            description=f"workspace of the solver for {item.name}",
        )
        for item in fields
    )  # fmt: skip


def krylov_vectors(fields: Sequence[Field], name: str = "krylov") -> Vectors:
    """Declare the vectors of a Krylov solve for changes of some fields.

    Parameters
    ----------
    fields
        The fields of the state, f8.
    name
        The beginning of the names of the vectors.

    Returns
    -------
    Vectors
        The vectors, which successive solves may share.
    """
    words = ("r", "shadow", "p", "v", "t", "y")
    return Vectors(*(tuple(item.now for item in differences(fields, f"{name} {word}")) for word in words))


@dataclass(frozen=True)
class Jacobian:
    """Derivative of the rates of change by the fields, at a state.

    Parameters
    ----------
    rates
        The rates of change.
    state
        The slots of the fields at which the rates are linearised. The time is that of `mg.TIME` when a product is
        computed.
    """

    rates: Rates
    state: Vector

    def product(self, program: Program, source: Vector, target: Vector) -> None:
        """Record target = J source.

        Parameters
        ----------
        program
            The Program to record into.
        source, target
            Slots of one field for each of the state; `source` with homogeneous conditions, as `differences` declares.
        """
        self._apply(program, source, target, "jacobian", lambda v, jv, scale: jv, None)

    def shifted(self, scale: Scale) -> Callable[[Program, Vector, Vector], None]:
        """Return the operator 1 - scale J.

        Parameters
        ----------
        scale
            A number, a register, or an expression of registers.

        Returns
        -------
        callable
            ``operator(program, source, target)`` records target = source - scale J source.
        """

        def operator(program: Program, source: Vector, target: Vector) -> None:
            self._apply(program, source, target, "shifted-jacobian", lambda v, jv, scale: v - scale * jv, scale)

        return operator

    def block_jacobi(self, scale: Scale) -> Callable[[Program, Vector, Vector], None]:
        """Return the inverse of the part of 1 - scale J that couples the fields of one cell, as a preconditioner.

        Parameters
        ----------
        scale
            A number, a register, or an expression of registers.

        Returns
        -------
        callable
            ``preconditioner(program, source, target)`` records its application.
        """
        rates = self.rates

        def compute(
            state: list[Any], source: list[Any], constants: list[Any], target: list[Any], **scalars: Any
        ) -> None:
            here = _here(state)
            h = as_node(scalars.pop("dt"))
            cells = [item[here] for item in state]
            found = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
            rows = [[_entry(value, cell, h, i == j) for j, cell in enumerate(cells)] for i, value in enumerate(found)]
            for item, value in zip(target, _eliminated(rows, [item[here] for item in source]), strict=True):
                item[here] = value

        kernel = rates_kernel(compute, "block-jacobi", rates)

        def preconditioner(program: Program, source: Vector, target: Vector) -> None:
            program.apply(kernel, self.state, source, rates.constants, target, dt=scale, **rates.scalars)

        return preconditioner

    def solve(
        self,
        program: Program,
        scale: Scale,
        x: Vector,
        b: Vector,
        vectors: Vectors,
        *,
        tolerance: float | Register = 1e-8,
        limit: int = 500,
        name: str = "krylov",
        unsolved: Register | None = None,
        preconditioner: Callable[[Program, Vector, Vector], None] | None = None,
    ) -> Solution:
        """Record the solution of (1 - scale J) x = b by BiCGStab, starting from 0.

        Parameters
        ----------
        program
            The Program to record into.
        scale
            A number, a register, or an expression of registers.
        x, b
            Slots of one field for each of the state; `x` with homogeneous conditions, as `differences` declares.
        vectors
            The vectors of the solve, as `krylov_vectors` declares.
        tolerance
            The iteration ends when |b - A x| <= tolerance |b|.
        limit
            The most iterations.
        name
            The beginning of the names of all registers.
        unsolved
            An i8 register, which grows by 1 where the limit is reached or the residual is no number. None: the run then
            ends with "limit" or "not finite".
        preconditioner
            Records the application of an approximate inverse; by default that of `block_jacobi`.

        Returns
        -------
        Solution
            Registers of the iteration.
        """
        for item in x:
            program.apply(clear, item)
        return coupled_bicgstab(
            program, self.shifted(scale), x, b, vectors, preconditioner=preconditioner or self.block_jacobi(scale), tolerance=tolerance,
            limit=limit, name=name, unsolved=unsolved,
        )  # fmt: skip

    def _apply(
        self, program: Program, source: Vector, target: Vector, name: str, combine: Callable[[Any, Node, Any], Node],
        scale: Scale | None,
    ) -> None:  # fmt: skip
        """Record a kernel that stores a combination of a vector and its product."""
        rates = self.rates

        def compute(
            state: list[Any], source: list[Any], constants: list[Any], target: list[Any], **scalars: Any
        ) -> None:
            here = _here(state)
            h = scalars.pop("dt", None)
            found = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
            products = directional_derivatives(found, _direction(state, source))
            for vector, product, item in zip(source, products, target, strict=True):
                item[here] = combine(vector[here], product, h)

        kernel = rates_kernel(compute, name, rates, step=scale is not None)
        scalars = dict(rates.scalars) if scale is None else {"dt": scale, **rates.scalars}
        program.apply(kernel, self.state, source, rates.constants, target, **scalars)


def _here(readers: Sequence[CellReader]) -> tuple[int, ...]:
    return (0,) * len(readers[0].axes)


def _direction(state: Sequence[CellReader], change: Sequence[CellReader]) -> Callable[[Node], Node | None]:
    """Return the function that gives for a read of the state the read of its change at the same cell."""
    other = {item.parameter: each for item, each in zip(state, change, strict=True)}

    def direction(read: Node) -> Node | None:
        number, strides, offsets = read.data
        return (
            Node("read", other[number].dtype, data=(other[number].parameter, strides, offsets))
            if number in other
            else None
        )

    return direction


def _entry(value: Node, cell: Node, scale: Node, diagonal: bool) -> Node | float:
    """Return one entry of 1 - scale J for the fields of one cell."""
    slope = derivative(value, cell)
    unit = 1.0 if diagonal else 0.0
    return unit if slope.op == "const" and slope.data == 0 else unit - scale * slope


def _eliminated(rows: list[list[Node | float]], right: list[Node]) -> list[Node]:
    """Return the solution of a small linear system by elimination, in which a pivot of 0 counts as 1."""
    count = len(right)
    pivots: list[Node] = []
    for k in range(count):
        pivot = as_node(rows[k][k])
        pivots.append(where(pivot == 0.0, 1.0, pivot) if pivot.op != "const" else pivot)
        for i in range(k + 1, count):
            if _is_zero(rows[i][k]):
                continue
            factor = rows[i][k] / pivots[k]
            rows[i] = [
                a if j <= k or _is_zero(b) else a - factor * b
                for j, (a, b) in enumerate(zip(rows[i], rows[k], strict=True))
            ]
            right[i] = right[i] - factor * right[k]
    found: list[Node] = []
    for k in reversed(range(count)):
        terms = [rows[k][j] * found[count - 1 - j] for j in range(k + 1, count) if not _is_zero(rows[k][j])]
        found.append(functools.reduce(lambda a, b: a - b, terms, right[k]) / pivots[k])
    return found[::-1]


def _is_zero(entry: Node | float) -> bool:
    return isinstance(entry, float) and entry == 0.0
