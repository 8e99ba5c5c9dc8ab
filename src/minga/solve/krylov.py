"""Conjugate gradients, recorded into a Program: the whole iteration runs without Python between its operations.

Sums are exact in minga, so the iterates, and with them the number of iterations, do not depend on layout or ranks.
The method is Hestenes and Stiefel's (J. Res. NBS 49, 1952); the preconditioned form is Golub and Van Loan's, Matrix
Computations (4th edition), algorithm 11.5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import sum as cell_sum
from minga.space.boundary import BoundaryLike, fixed
from minga.space.field import Field, Register, Slot


class Operator(Protocol):
    """Records target = A source. May return the register of the sum of source * target, if that comes for free."""

    def __call__(self, program: Program, source: Slot, target: Slot) -> Register | None: ...


class Preconditioner(Protocol):
    """Records correction = M residual, for a fixed M that is symmetric and positive definite."""

    def __call__(self, program: Program, residual: Slot, correction: Slot) -> None: ...


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solve leaves in registers: iterations done, squared norms of the residual and of its reference."""

    iterations: Register
    residual: Register
    reference: Register


def conjugate_gradients(
    program: Program,
    operator: Operator,
    x: Field,
    b: Field,
    *,
    preconditioner: Preconditioner | None = None,
    tolerance: float = 1e-8,
    limit: int = 1000,
    boundary: BoundaryLike = None,
    name: str = "cg",
) -> Solution:
    """Record the solution of A x = b, for A symmetric and positive definite, starting from what `x` holds.

    x, b       f8 fields of one grid. Conditions at `x`'s boundary may be inhomogeneous (a wall of a given value): they
               enter the first residual, and search directions get `boundary`, the homogeneous condition (default:
               fixed at 0)
    tolerance  done when |b - A x| <= tolerance * |b|, or, if b is 0, * the first residual's norm
    limit      at most so many iterations; the run then ends with the reason "limit"

    Four vectors of the grid are declared besides (r, d, A d, and z if there is a preconditioner).
    """
    _check(x, b, tolerance)
    zero = fixed(0.0) if boundary is None else boundary

    def vector(suffix: str) -> Slot:
        return Field(f"{name} {suffix}", x.grid, x.dtype, centre=_faces(x), on=x.on, boundary=zero).now

    r, d, image = vector("r"), vector("d"), vector("Ad")
    z = r if preconditioner is None else vector("z")
    iterations = Register(f"{name} iterations", "i8")
    rr, rz, bb, reference = (Register(f"{name} {suffix}") for suffix in ("rr", "rz", "bb", "reference"))

    operator(program, x.now, image)
    program.apply(first_residual, b, image, r, d, into={"bb": bb, "rr": rr})
    program.let(reference, where(bb > 0.0, bb, rr))
    program.let(iterations, 0)
    program.let(rz, 1.0)
    with program.repeat(until=rr <= (tolerance * tolerance) * reference, limit=limit):
        new = rr
        if preconditioner is not None:
            preconditioner(program, r, z)
            new = program.apply(dot, r, z)  # type: ignore[assignment]
        # d is 0 before the first round, so that beta does not matter there.
        program.apply(xpby, z, d, beta=new / rz)
        program.let(rz, new)
        product = operator(program, d, image)
        if product is None:
            product = program.apply(dot, d, image)  # type: ignore[assignment]
        program.apply(update, x, r, d, image, alpha=rz / product, into=rr)
        program.let(iterations, iterations + 1)
    return Solution(iterations, rr, reference)


def _check(x: Field, b: Field, tolerance: float) -> None:
    if x.grid != b.grid or x.centre != b.centre or x.on != b.on or x.replicated:
        raise ProgramError(
            f"conjugate gradients: the unknown is {x!r}, the right side {b!r}",
            remedy="declare both on one grid, with the same points",
        )
    for item in (x, b):
        if item.dtype != "f8":
            raise ProgramError(f"conjugate gradients: field {item.name!r} is {item.dtype}", remedy="declare it as f8")
    if not 0.0 < tolerance < 1.0:
        raise ProgramError(f"conjugate gradients: tolerance {tolerance}", remedy="give a number between 0 and 1")


def _faces(item: Field) -> tuple[int, ...]:
    return tuple(axis for axis, bit in enumerate(item.centre) if bit)


def _here(item: CellReader) -> tuple[int, ...]:
    return (0,) * len(item.axes)


@kernel
def first_residual(b: CellReader, image: CellReader, r: CellReader, d: CellReader) -> dict[str, Reduced]:
    """r = b - A x and d = 0; returns |b|^2 and |r|^2."""
    here = _here(b)
    value = b[here] - image[here]
    r[here] = value
    d[here] = 0.0
    return {"bb": cell_sum(b[here] * b[here]), "rr": cell_sum(value * value)}


@kernel
def dot(a: CellReader, b: CellReader) -> Reduced:
    """The inner product of two vectors."""
    here = _here(a)
    return cell_sum(a[here] * b[here])


@kernel
def xpby(z: CellReader, d: CellReader, *, beta: Node) -> None:
    """d = z + beta * d."""
    here = _here(d)
    d[here] = z[here] + beta * d[here]


@kernel
def update(x: CellReader, r: CellReader, d: CellReader, image: CellReader, *, alpha: Node) -> Reduced:
    """x = x + alpha * d, r = r - alpha * A d; returns |r|^2."""
    here = _here(x)
    x[here] = x[here] + alpha * d[here]
    value = r[here] - alpha * image[here]
    r[here] = value
    return cell_sum(value * value)
