"""What is to be computed: C = alpha op(A) op(B) + beta C0, checked before anything is done."""

from __future__ import annotations

import math
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
    """A product. ``c`` is C0; None where there is none, or where beta is 0."""

    a: Operand
    b: Operand
    c: Operand | None
    alpha: float
    beta: float

    @property
    def rows(self) -> int:
        """Of op(A) and C."""
        return self.a.shape[0]

    @property
    def columns(self) -> int:
        """Of op(B) and C."""
        return self.b.shape[1]

    @property
    def depth(self) -> int:
        """Columns of op(A), rows of op(B)."""
        return self.a.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all matrices."""
        return self.a.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.a.dtype.itemsize

    @property
    def multiply_adds(self) -> float:
        """Products that are added up: half the floating-point operations."""
        return float(self.rows) * self.columns * self.depth

    @property
    def trivial(self) -> bool:
        """Whether there is nothing to multiply."""
        return self.rows * self.columns * self.depth == 0

    def hidden(self) -> Problem:
        """The same product on a rank that cannot see the operands."""
        c = None if self.c is None else self.c.hidden()
        return Problem(self.a.hidden(), self.b.hidden(), c, self.alpha, self.beta)

    @property
    def operands(self) -> dict[str, Operand]:
        """By name."""
        return {"a": self.a, "b": self.b, **({} if self.c is None else {"c": self.c})}

    def fingerprints(self) -> str:
        """Alike on ranks that see the same matrices."""
        return " ".join(operand.fingerprint() for operand in self.operands.values())

    def identity(self) -> dict[str, Any]:
        """What tells this product from others; plain data."""
        return {
            "shape": [self.rows, self.columns, self.depth],
            "dtype": self.dtype.str[1:],
            "alpha": self.alpha,
            "beta": self.beta,
            "operands": {name: [operand.fingerprint(), _age(operand)] for name, operand in self.operands.items()},
        }


def problem_of(
    a: ArrayLike | Path | str,
    b: ArrayLike | Path | str,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    c: ArrayLike | Path | str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Problem:
    """The product of these operands; CaseError says which of them does not fit and why."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not math.isfinite(value):
            raise CaseError(f"{name} is {value}", key=name, remedy="give a finite number")
    left, right = operand_of("a", a, transpose_a), operand_of("b", b, transpose_b)
    if left.dtype != right.dtype:
        raise CaseError(
            f"{left.name} is {left.dtype.str[1:]} and {right.name} is {right.dtype.str[1:]}",
            remedy="convert one of them, so that both have the same type",
        )
    if left.shape[1] != right.shape[0]:
        raise CaseError(
            f"{_says(left)} and {_says(right)} cannot be multiplied: {left.shape[1]} columns meet "
            f"{right.shape[0]} rows",
            remedy=_transposes(left, right),
        )
    if beta and c is None:
        raise CaseError(f"beta is {beta:g}, but there is no c that it could multiply", key="beta", remedy="give c")
    added = None
    if c is not None and beta:
        added = operand_of("c", c)
        if added.dtype != left.dtype:
            raise CaseError(f"{added.name} is {added.dtype.str[1:]}, but the product {left.dtype.str[1:]}", key="c")
        if added.shape != (left.shape[0], right.shape[1]):
            raise CaseError(
                f"{added.name} has shape {_by(added.shape)}, but the product {_by((left.shape[0], right.shape[1]))}",
                key="c",
            )
    return Problem(left, right, added, float(alpha), float(beta))


def _says(operand: Operand) -> str:
    return f"{operand.name} ({_by(operand.shape)})"


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _transposes(left: Operand, right: Operand) -> str | None:
    """What would fit, where transposing one of them is all it takes."""
    if left.shape[0] == right.shape[0]:
        return f"transpose {left.name}, if that is meant"
    if left.shape[1] == right.shape[1]:
        return f"transpose {right.name}, if that is meant"
    return None


def _age(operand: Operand) -> int:
    """When the file of an operand was changed last, ns; 0 for one that is no file."""
    file = getattr(operand.stored, "filename", None)
    return Path(file).stat().st_mtime_ns if file is not None else 0
