"""Definition of a product, C = alpha op(A) op(B) + beta C0, which is validated before anything is computed."""

from __future__ import annotations

import cmath
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from minga.errors import CaseError
from minga.models.matmul.operands import Operand, operand_of

__all__ = ["Problem", "problem_of"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A product; ``c`` is C0, or None if there is none or beta is 0."""

    a: Operand
    b: Operand
    c: Operand | None
    alpha: complex
    beta: complex

    @property
    def rows(self) -> int:
        """Number of rows of op(A) and C."""
        return self.a.shape[0]

    @property
    def columns(self) -> int:
        """Number of columns of op(B) and C."""
        return self.b.shape[1]

    @property
    def depth(self) -> int:
        """Number of columns of op(A) and of rows of op(B)."""
        return self.a.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements of all matrices."""
        return self.a.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.a.dtype.itemsize

    @property
    def multiply_adds(self) -> float:
        """Number of multiply-adds of elements."""
        return float(self.rows) * self.columns * self.depth

    @property
    def flops_each(self) -> int:
        """Number of floating-point operations of a multiply-add: 2 of real elements, 8 of complex ones."""
        return 8 if self.dtype.kind == "c" else 2

    @property
    def trivial(self) -> bool:
        """Flag that is set if there is nothing to multiply."""
        return self.rows * self.columns * self.depth == 0

    def hidden(self) -> Problem:
        """Return the product as on a rank that cannot see the operands."""
        c = None if self.c is None else self.c.hidden()
        return Problem(self.a.hidden(), self.b.hidden(), c, self.alpha, self.beta)

    @property
    def operands(self) -> dict[str, Operand]:
        """Operands by name."""
        return {"a": self.a, "b": self.b, **({} if self.c is None else {"c": self.c})}

    def fingerprints(self) -> str:
        """Return hashes of the operands, which are equal on ranks that see the same matrices."""
        return " ".join(operand.fingerprint() for operand in self.operands.values())

    def identity(self) -> dict[str, Any]:
        """Return plain data that distinguish this product from others."""
        return {
            "shape": [self.rows, self.columns, self.depth],
            "dtype": self.dtype.str[1:],
            "alpha": _plain(self.alpha),
            "beta": _plain(self.beta),
            "operands": {name: [operand.fingerprint(), _age(operand)] for name, operand in self.operands.items()},
        }


def problem_of(
    a: ArrayLike | Path | str,
    b: ArrayLike | Path | str,
    *,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    c: ArrayLike | Path | str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Problem:
    """Return the product of some operands, see :func:`minga.models.matmul.product.matmul`.

    Raises
    ------
    CaseError
        If an operand or a factor is invalid, or the operands do not fit together.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not cmath.isfinite(value):
            raise CaseError(f"{name} is {value}", key=name, remedy="give a finite number")
    left, right = operand_of("a", a, transpose_a), operand_of("b", b, transpose_b)
    if left.dtype != right.dtype:
        raise CaseError(
            f"{left.name} is {left.dtype.str[1:]} and {right.name} is {right.dtype.str[1:]}",
            remedy="convert one of them to the type of the other",
        )
    if left.shape[1] != right.shape[0]:
        raise CaseError(
            f"{_says(left)} and {_says(right)} cannot be multiplied: {left.shape[1]} columns do not match "
            f"{right.shape[0]} rows",
            remedy=_transposes(left, right),
        )
    for name, value in (("alpha", alpha), ("beta", beta)):
        if value.imag and left.dtype.kind != "c":
            raise CaseError(
                f"{name} is {value}, but the matrices are real", key=name, remedy="convert the matrices to c8 or c16"
            )
    if beta and c is None:
        raise CaseError(f"beta is {_plain(beta)}, but there is no c to multiply with it", key="beta", remedy="give c")
    added = None
    if c is not None and beta:
        added = operand_of("c", c)
        if added.dtype != left.dtype:
            raise CaseError(f"{added.name} is {added.dtype.str[1:]}, but the product is {left.dtype.str[1:]}", key="c")
        if added.shape != (left.shape[0], right.shape[1]):
            raise CaseError(
                f"{added.name} has shape {_by(added.shape)}, but the product has shape "
                f"{_by((left.shape[0], right.shape[1]))}",
                key="c",
            )
    return Problem(left, right, added, _real(alpha), _real(beta))


def _real(factor: complex) -> complex:
    """Return a factor as a float if it is real."""
    return factor if factor.imag else float(factor.real)


def _plain(factor: complex) -> float | str:
    return str(factor) if factor.imag else float(factor.real)


def _says(operand: Operand) -> str:
    return f"{operand.name} ({_by(operand.shape)})"


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _transposes(left: Operand, right: Operand) -> str | None:
    """Suggest a transposition, if transposing one of the operands makes them fit."""
    if left.shape[0] == right.shape[0]:
        return f"transpose {left.name}, if that is intended"
    if left.shape[1] == right.shape[1]:
        return f"transpose {right.name}, if that is intended"
    return None


def _age(operand: Operand) -> int:
    """Return the time at which the file of an operand was last changed, in ns; 0 if the operand is not a file."""
    file = getattr(operand.stored, "filename", None)
    return Path(file).stat().st_mtime_ns if file is not None else 0
