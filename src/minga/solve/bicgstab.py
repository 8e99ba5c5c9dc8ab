"""BiCGStab for systems that are not symmetric, recorded into a Program like conjugate gradients.

The method is van der Vorst's (SIAM J. Sci. Stat. Comput. 13, 1992), preconditioned from the right: what it tests is the
norm of b - A x itself. Where it breaks down (the residual orthogonal to its shadow, or a stabilising step of length 0)
it starts anew from where it is, with the residual as its own shadow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import abs as absolute
from minga.lang.functions import sum as cell_sum
from minga.solve.krylov import (
    Operator,
    Preconditioner,
    Solution,
    check_system,
    copy,
    dot,
    here_of,
    lenient,
    like,
    note,
    rounds,
)
from minga.space.boundary import BoundaryLike
from minga.space.field import Field, Register, Slot

__all__ = ["Vectors", "bicgstab", "bicgstab_vectors"]

ORTHOGONAL: Final = 1e-14
"""Cosine of the angle between residual and shadow below which their product is rounding."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of an iteration: residual, its shadow, direction, two images, and a preconditioned vector.

    Solves that follow one another may share them: nothing in them outlives a solve.
    """

    r: Slot
    shadow: Slot
    p: Slot
    v: Slot
    t: Slot
    y: Slot


def bicgstab_vectors(x: Field, boundary: BoundaryLike = None, name: str = "bicgstab") -> Vectors:
    """Declare the vectors for unknowns like `x`; see `bicgstab` for `boundary`."""
    return Vectors(*(like(x, f"{name} {suffix}", boundary) for suffix in ("r", "shadow", "p", "v", "t", "y")))


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
    """Record the solution of A x = b, for any regular A, starting from what `x` holds.

    x, b            f8, of one grid. Conditions at `x`'s boundary may be inhomogeneous; the iteration's own vectors get
                    `boundary`, the homogeneous condition (default: fixed at 0)
    preconditioner  any fixed approximate inverse; it need not be symmetric
    tolerance       done when |b - A x| <= tolerance * |b|, or, if b is 0, * the first residual's norm
    limit           at most so many iterations (of two products with A each); the run then ends with the reason "limit"
    work            vectors shared with other solves; else six of the grid are declared
    unsolved        an i8 register, which grows by 1 where the limit is reached or the residual is no number; x is then
                    what was reached, or 0. The run goes on. None: it ends with "limit" or "not finite"
    """
    unknown = x.now if isinstance(x, Field) else x
    check_system("bicgstab", unknown.field, b if isinstance(b, Field) else b.field, tolerance)
    vectors = work or bicgstab_vectors(unknown.field, boundary, name)
    r, shadow, p, v, t, y = vectors.r, vectors.shadow, vectors.p, vectors.v, vectors.t, vectors.y
    iterations = Register(f"{name} iterations", "i8")
    names = ("rr", "bb", "reference", "ss", "rho", "next rho", "alpha", "omega", "beta")
    rr, bb, reference, ss, rho, new, alpha, omega, beta = (Register(f"{name} {n}") for n in names)

    def solved(source: Slot) -> Slot:
        """Where the preconditioned vector is."""
        if preconditioner is None:
            return source
        preconditioner(program, source, y)
        return y

    with lenient(program, "bicgstab", unsolved):
        operator(program, unknown, v)
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
                program.apply(copy, r, shadow)
                program.let(new, rr)
                program.let(ss, rr)
            keep = where(broken, 0.0, 1.0)
            program.let(beta, keep * divided(new, rho) * divided(alpha, omega))
            program.apply(direction, r, p, v, beta=beta, omega=omega)
            program.let(rho, new)
            towards = solved(p)
            operator(program, towards, v)
            program.let(alpha, divided(rho, program.apply(dot, shadow, v)))  # type: ignore[arg-type]
            program.apply(half_step, unknown, towards, r, v, alpha=alpha)
            towards = solved(r)
            operator(program, towards, t)
            found = program.apply(products, t, r)
            program.let(omega, divided(found.ts, found.tt))  # type: ignore[union-attr]
            program.apply(other_half, unknown, towards, r, t, shadow, omega=omega, into={"rr": rr, "rho": new})
            program.let(iterations, iterations + 1)
        if unsolved is not None:
            note(program, unknown, done, rr, unsolved)
    return Solution(iterations, rr, reference)


def divided(value: Node | Register, divisor: Node | Register) -> Node:
    """value / divisor, 0 where the divisor is 0."""
    zero = absolute(divisor) == 0.0
    return where(zero, 0.0, value / where(zero, 1.0, divisor))


@kernel
def begin(b: CellReader, image: CellReader, r: CellReader, shadow: CellReader, p: CellReader) -> dict[str, Reduced]:
    """r = shadow = b - A x, p = 0; returns |b|^2 and |r|^2."""
    here = here_of(b)
    value = b[here] - image[here]
    r[here] = value
    shadow[here] = value
    p[here] = 0.0
    return {"bb": cell_sum(b[here] * b[here]), "rr": cell_sum(value * value)}


@kernel
def direction(r: CellReader, p: CellReader, v: CellReader, *, beta: Node, omega: Node) -> None:
    """p = r + beta * (p - omega * v)."""
    here = here_of(r)
    p[here] = r[here] + beta * (p[here] - omega * v[here])


@kernel
def half_step(x: CellReader, y: CellReader, r: CellReader, v: CellReader, *, alpha: Node) -> None:
    """x = x + alpha * y, r = r - alpha * v."""
    here = here_of(x)
    x[here] = x[here] + alpha * y[here]
    r[here] = r[here] - alpha * v[here]


@kernel
def products(t: CellReader, s: CellReader) -> dict[str, Reduced]:
    """t . s and |t|^2."""
    here = here_of(t)
    return {"ts": cell_sum(t[here] * s[here]), "tt": cell_sum(t[here] * t[here])}


@kernel
def other_half(
    x: CellReader, z: CellReader, r: CellReader, t: CellReader, shadow: CellReader, *, omega: Node
) -> dict[str, Reduced]:
    """x = x + omega * z, r = r - omega * t; returns |r|^2 and shadow . r."""
    here = here_of(x)
    x[here] = x[here] + omega * z[here]
    value = r[here] - omega * t[here]
    r[here] = value
    return {"rr": cell_sum(value * value), "rho": cell_sum(shadow[here] * value)}
