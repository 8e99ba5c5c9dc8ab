"""BiCGStab for systems that are not symmetric, recorded into a Program like conjugate gradients.

The method is van der Vorst's (SIAM J. Sci. Stat. Comput. 13, 1992), preconditioned from the right: what it tests is the
norm of b - A x itself. Where it breaks down (the residual orthogonal to its shadow, or a stabilising step of length 0)
it starts anew from where it is, with the residual as its own shadow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import abs as absolute
from minga.lang.functions import sum as cell_sum
from minga.solve.krylov import (
    LARGEST,
    Operator,
    Preconditioner,
    Solution,
    check_system,
    clear,
    here_of,
    lenient,
    like,
    rounds,
)
from minga.space.boundary import BoundaryLike
from minga.space.field import Field, Register, Slot

__all__ = ["Vectors", "bicgstab", "bicgstab_vectors", "coupled_bicgstab"]

Readers = Sequence[CellReader]
Vector = tuple[Slot, ...]
Mapped = Callable[[Program, Vector, Vector], object]
"""Records target = A source, of several fields."""

ORTHOGONAL: Final = 1e-14
"""Cosine of the angle between residual and shadow below which their product is rounding."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of BiCGStab, which successive solves may share: nothing in them outlives a solve.

    Parameters
    ----------
    r, shadow
        The residual and its shadow.
    p
        The search direction.
    v, t
        Images of the direction and of the residual.
    y
        The preconditioned vector.
    """

    r: Vector
    shadow: Vector
    p: Vector
    v: Vector
    t: Vector
    y: Vector


def bicgstab_vectors(x: Field, boundary: BoundaryLike = None, name: str = "bicgstab") -> Vectors:
    """Declare the vectors of `bicgstab` for unknowns like `x`.

    Parameters
    ----------
    x
        The field of the unknowns.
    boundary
        The boundary condition of the vectors; by default fixed at 0.
    name
        The beginning of the names of all fields.

    Returns
    -------
    Vectors
        The vectors.
    """
    return Vectors(*((like(x, f"{name} {suffix}", boundary),) for suffix in ("r", "shadow", "p", "v", "t", "y")))


def bicgstab(
    program: Program,
    operator: Operator,
    x: Field | Slot,
    b: Field | Slot,
    *,
    preconditioner: Preconditioner | None = None,
    tolerance: float | Register = 1e-8,
    limit: int = 1000,
    boundary: BoundaryLike = None,
    name: str = "bicgstab",
    work: Vectors | None = None,
    unsolved: Register | None = None,
) -> Solution:
    """Record the solution of A x = b by BiCGStab, for a general A, starting from the contents of `x`.

    Parameters
    ----------
    program
        The Program to record into.
    operator
        The operator A.
    x, b
        f8, of one grid. Conditions at `x`'s boundary may be inhomogeneous; the iteration's own vectors get `boundary`,
        the homogeneous condition (default: fixed at 0).
    preconditioner
        An approximate inverse of A.
    tolerance
        Done when |b - A x| <= tolerance * |b|, or, if b is 0, * the first residual's norm.
    limit
        At most so many iterations (of two products with A each); the run then ends with the reason "limit".
    boundary
        The boundary condition of the vectors; by default fixed at 0.
    name
        The beginning of the names of all fields.
    work
        Vectors shared with other solves; else six of the grid are declared.
    unsolved
        An i8 register, which grows by 1 where the limit is reached or the residual is no number; x is then what was
        reached, or 0. The run goes on. None: it ends with "limit" or "not finite".

    Returns
    -------
    Solution
        Registers of the iteration.
    """
    unknown = x.now if isinstance(x, Field) else x
    check_system("bicgstab", unknown.field, b if isinstance(b, Field) else b.field, tolerance)
    vectors = work or bicgstab_vectors(unknown.field, boundary, name)

    def product(program: Program, source: Vector, target: Vector) -> None:
        operator(program, source[0], target[0])

    def approximate(program: Program, source: Vector, target: Vector) -> None:
        assert preconditioner is not None
        preconditioner(program, source[0], target[0])

    right = b.now if isinstance(b, Field) else b
    return coupled_bicgstab(
        program, product, (unknown,), (right,), vectors, preconditioner=None if preconditioner is None else approximate,
        tolerance=tolerance, limit=limit, name=name, unsolved=unsolved,
    )  # fmt: skip


def coupled_bicgstab(
    program: Program,
    operator: Mapped,
    x: Vector,
    b: Vector,
    vectors: Vectors,
    *,
    preconditioner: Mapped | None = None,
    tolerance: float | Register = 1e-8,
    limit: int = 1000,
    name: str = "bicgstab",
    unsolved: Register | None = None,
) -> Solution:
    """Record the solution of A x = b for several fields together, as `bicgstab` does for one: all of x are unknowns.

    The norm is that of all fields of b - A x: equations have to be scaled so that they may be compared.
    """
    r, shadow, p, v, t, y = vectors.r, vectors.shadow, vectors.p, vectors.v, vectors.t, vectors.y
    iterations = Register(f"{name} iterations", "i8")
    names = ("rr", "bb", "reference", "ss", "rho", "next rho", "alpha", "omega", "beta")
    rr, bb, reference, ss, rho, new, alpha, omega, beta = (Register(f"{name} {n}") for n in names)

    def solved(source: Vector) -> Vector:
        """Return the slots of the preconditioned vector."""
        if preconditioner is None:
            return source
        preconditioner(program, source, y)
        return y

    with lenient(program, "bicgstab", unsolved):
        operator(program, x, v)
        program.apply(begin, b, v, r, shadow, p, into={"bb": bb, "rr": rr})
        program.let(reference, where(bb > 0.0, bb, rr))
        program.let(iterations, 0)
        program.let(ss, rr)
        program.let(new, rr)
        for one in (rho, alpha, omega):
            program.let(one, 1.0)
        done = rr <= (tolerance * tolerance) * reference
        with rounds(program, done, rr, iterations, limit, unsolved):
            small = (ORTHOGONAL * ORTHOGONAL) * rr * ss
            lost = (new * new <= small) | (omega == 0.0) | (alpha == 0.0)
            broken = Register(f"{name} broken", "bool")
            program.let(broken, lost)
            with program.when(broken):
                program.apply(copied, r, shadow)
                program.let(new, rr)
                program.let(ss, rr)
            keep = where(broken, 0.0, 1.0)
            program.let(beta, keep * divided(new, rho) * divided(alpha, omega))
            program.apply(direction, r, p, v, beta=beta, omega=omega)
            program.let(rho, new)
            towards = solved(p)
            operator(program, towards, v)
            program.let(alpha, divided(rho, program.apply(inner, shadow, v)))  # type: ignore[arg-type]
            program.apply(half_step, x, towards, r, v, alpha=alpha)
            towards = solved(r)
            operator(program, towards, t)
            found = program.apply(products, t, r)
            program.let(omega, divided(found.ts, found.tt))  # type: ignore[union-attr]
            program.apply(other_half, x, towards, r, t, shadow, omega=omega, into={"rr": rr, "rho": new})
            program.let(iterations, iterations + 1)
        if unsolved is not None:
            known = rr < LARGEST
            program.let(unsolved, where(done & known, unsolved, unsolved + 1))
            with program.when(~known):
                for item in x:
                    program.apply(clear, item)
    return Solution(iterations, rr, reference)


def divided(value: Node | Register, divisor: Node | Register) -> Node:
    """Return value / divisor, or 0 where the divisor is 0."""
    zero = absolute(divisor) == 0.0
    return where(zero, 0.0, value / where(zero, 1.0, divisor))


# Kernels, of vectors of any number of fields -------------------------------------------------------------------------
def total(products: Sequence[Node]) -> Reduced:
    """Return the sum of numbers at a cell over all cells."""
    value = products[0]
    for item in products[1:]:
        value = value + item
    return cell_sum(value)


@kernel
def begin(b: Readers, image: Readers, r: Readers, shadow: Readers, p: Readers) -> dict[str, Reduced]:
    """Store r = shadow = b - A x and p = 0; return |b|^2 and |r|^2."""
    here = here_of(b[0])
    values = [one[here] - other[here] for one, other in zip(b, image, strict=True)]
    for k, value in enumerate(values):
        r[k][here] = value
        shadow[k][here] = value
        p[k][here] = 0.0
    return {"bb": total([item[here] * item[here] for item in b]), "rr": total([value * value for value in values])}


@kernel
def copied(source: Readers, target: Readers) -> None:
    """Store target = source."""
    here = here_of(source[0])
    for one, other in zip(source, target, strict=True):
        other[here] = one[here]


@kernel
def inner(a: Readers, b: Readers) -> Reduced:
    """Return a . b."""
    here = here_of(a[0])
    return total([one[here] * other[here] for one, other in zip(a, b, strict=True)])


@kernel
def direction(r: Readers, p: Readers, v: Readers, *, beta: Node, omega: Node) -> None:
    """Store p = r + beta * (p - omega * v)."""
    here = here_of(r[0])
    for k, item in enumerate(p):
        item[here] = r[k][here] + beta * (item[here] - omega * v[k][here])


@kernel
def half_step(x: Readers, y: Readers, r: Readers, v: Readers, *, alpha: Node) -> None:
    """Store x = x + alpha * y and r = r - alpha * v."""
    here = here_of(x[0])
    for k, item in enumerate(x):
        item[here] = item[here] + alpha * y[k][here]
        r[k][here] = r[k][here] - alpha * v[k][here]


@kernel
def products(t: Readers, s: Readers) -> dict[str, Reduced]:
    """Return t . s and |t|^2."""
    here = here_of(t[0])
    pairs = list(zip(t, s, strict=True))
    return {"ts": total([a[here] * b[here] for a, b in pairs]), "tt": total([a[here] * a[here] for a, _ in pairs])}


@kernel
def other_half(
    x: Readers, z: Readers, r: Readers, t: Readers, shadow: Readers, *, omega: Node
) -> dict[str, Reduced]:  # fmt: skip
    """Store x = x + omega * z and r = r - omega * t; return |r|^2 and shadow . r."""
    here = here_of(x[0])
    values = []
    for k, item in enumerate(x):
        item[here] = item[here] + omega * z[k][here]
        value = r[k][here] - omega * t[k][here]
        r[k][here] = value
        values.append(value)
    return {
        "rr": total([value * value for value in values]),
        "rho": total([shadow[k][here] * value for k, value in enumerate(values)]),
    }
