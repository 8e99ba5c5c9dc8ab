"""Conjugate gradients, recorded into a Program: the whole iteration runs without Python between its operations.

Sums are exact in minga, so the iterates, and with them the number of iterations, do not depend on layout or ranks.
The method is Hestenes and Stiefel's (J. Res. NBS 49, 1952); the preconditioned form is Golub and Van Loan's, Matrix
Computations (4th edition), algorithm 11.5.1.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import max as larger
from minga.lang.functions import sum as cell_sum
from minga.space.boundary import BoundaryLike, fixed
from minga.space.field import Field, Register, Slot

TINY: Final = 1e-300
"""Smallest divisor, which avoids a division by a null vector that is all 0."""
LARGEST: Final = 1e300
"""Limit of a squared norm, at and above which the iteration has failed."""


class Operator(Protocol):
    """A linear operator that records its application into a Program."""

    def __call__(self, program: Program, source: Slot, target: Slot) -> Register | None:
        """Record target = A source.

        Parameters
        ----------
        program
            The Program to record into.
        source, target
            Slots of fields with the same points.

        Returns
        -------
        Register or None
            The sum of source * target, if it comes at no extra cost.
        """


class Preconditioner(Protocol):
    """A fixed linear map M, symmetric and positive definite for conjugate gradients, that records its application."""

    def __call__(self, program: Program, residual: Slot, correction: Slot) -> None:
        """Record correction = M residual.

        Parameters
        ----------
        program
            The Program to record into.
        residual, correction
            Slots of fields with the same points.
        """


@dataclass(frozen=True, slots=True)
class Solution:
    """The registers of a solve.

    Parameters
    ----------
    iterations
        The number of iterations done.
    residual
        The squared norm of the residual.
    reference
        The squared norm that the residual is compared with.
    """

    iterations: Register
    residual: Register
    reference: Register


@dataclass(frozen=True, slots=True)
class Workspace:
    """The vectors of conjugate gradients, which successive solves may share: nothing in them outlives a solve.

    Parameters
    ----------
    r
        The residual.
    d
        The search direction.
    image
        The image of the direction.
    z
        The preconditioned residual.
    """

    r: Slot
    d: Slot
    image: Slot
    z: Slot


def like(x: Field, name: str, boundary: BoundaryLike = None) -> Slot:
    """Declare a vector with the points of `x`, and 0 beyond its ends unless `boundary` says otherwise."""
    zero = fixed(0.0) if boundary is None else boundary
    return Field(name, x.grid, x.dtype, centre=_faces(x), on=x.on, boundary=zero).now


def workspace(x: Field, boundary: BoundaryLike = None, name: str = "cg", *, preconditioned: bool = True) -> Workspace:
    """Declare the vectors of `conjugate_gradients` for unknowns like `x`.

    Parameters
    ----------
    x
        The field of the unknowns.
    boundary
        The boundary condition of the vectors; by default fixed at 0.
    name
        The beginning of the names of all fields.
    preconditioned
        Whether there is a preconditioner, which needs one more vector.

    Returns
    -------
    Workspace
        The vectors.
    """
    r, d, image = (like(x, f"{name} {suffix}", boundary) for suffix in ("r", "d", "Ad"))
    return Workspace(r, d, image, like(x, f"{name} z", boundary) if preconditioned else r)


def conjugate_gradients(
    program: Program,
    operator: Operator,
    x: Field | Slot,
    b: Field | Slot,
    *,
    preconditioner: Preconditioner | None = None,
    tolerance: float | Register = 1e-8,
    limit: int = 1000,
    boundary: BoundaryLike = None,
    name: str = "cg",
    work: Workspace | None = None,
    null: Field | Slot | None = None,
    unsolved: Register | None = None,
) -> Solution:
    """Record the solution of A x = b by conjugate gradients, for A symmetric and positive definite.

    The iteration starts from the contents of `x`.

    Parameters
    ----------
    program
        The Program to record into.
    operator
        The operator A.
    x, b
        f8 fields of one grid. Boundary conditions of `x` may be inhomogeneous (a wall of a given value): they enter the
        first residual.
    preconditioner
        A fixed, symmetric and positive definite approximation of the inverse of A; by default none.
    tolerance
        The iteration ends when |b - A x| <= tolerance * |b|, or, if b is 0, tolerance * |first residual|.
    limit
        The most iterations; the run then ends with the reason "limit".
    boundary
        The homogeneous boundary condition of search directions; by default fixed at 0.
    name
        The beginning of the names of all vectors and registers.
    work
        Vectors shared with other solves; by default four are declared (r, d, A d, and z if there is a preconditioner).
    null
        For a singular A: the vector that A maps to 0, such as 1 in all cells that are no walls. Its component in b,
        which no x can produce, is left out, and the solution has no component along it.
    unsolved
        An i8 register, which grows by 1 where the limit is reached or the residual is no number; x is then what was
        reached, or 0. The run goes on. None: it ends with "limit" or "not finite".

    Returns
    -------
    Solution
        Registers of the iteration.
    """
    unknown = x.now if isinstance(x, Field) else x
    check_system("conjugate gradients", unknown.field, b if isinstance(b, Field) else b.field, tolerance)
    vectors = work or workspace(unknown.field, boundary, name, preconditioned=preconditioner is not None)
    r, d, image = vectors.r, vectors.d, vectors.image
    z = r if preconditioner is None else vectors.z
    iterations = Register(f"{name} iterations", "i8")
    rr, rz, bb, reference = (Register(f"{name} {suffix}") for suffix in ("rr", "rz", "bb", "reference"))

    with lenient(program, "conjugate gradients", unsolved):
        operator(program, unknown, image)
        program.apply(first_residual, b, image, r, d, into={"bb": bb, "rr": rr})
        if null is not None:
            # A x has no share of the null vector, so what the residual has of it is b's.
            found = program.apply(share, r, null)
            mean = found.value / larger(found.size, TINY)  # type: ignore[union-attr]
            program.apply(remove, r, null, amount=mean, into=rr)
            program.let(bb, bb - mean * found.value)  # type: ignore[union-attr]
        program.let(reference, where(bb > 0.0, bb, rr))
        program.let(iterations, 0)
        program.let(rz, 1.0)
        done = rr <= (tolerance * tolerance) * reference
        with rounds(program, done, rr, iterations, limit, unsolved):
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
        if unsolved is not None:
            note(program, unknown, done, rr, unsolved)
        if null is not None:
            found = program.apply(share, x, null)
            program.apply(remove, x, null, amount=found.value / larger(found.size, TINY))  # type: ignore[union-attr]
    return Solution(iterations, rr, reference)


def lenient(program: Program, method: str, unsolved: Register | None) -> AbstractContextManager[None]:
    """Return the context of a solve, unchecked if failures are counted; ProgramError for an invalid counter."""
    if unsolved is None:
        return nullcontext()
    if unsolved.dtype != "i8":
        raise ProgramError(f"{method}: register {unsolved.name!r} is {unsolved.dtype}", remedy="declare it as i8")
    return program.unchecked()


def rounds(
    program: Program, done: Node, rr: Register, iterations: Register, limit: int, unsolved: Register | None
) -> AbstractContextManager[None]:
    """Return the loop of a solve: until `done`, and if failures are counted also until it has failed."""
    if unsolved is None:
        return program.repeat(until=done, limit=limit)
    return program.repeat(until=done | (iterations >= limit) | ~(rr < LARGEST))


def note(program: Program, x: Slot, done: Node, rr: Register, unsolved: Register) -> None:
    """Record whether a solve has failed; x becomes 0 if it is no longer finite."""
    known = rr < LARGEST
    program.let(unsolved, where(done & known, unsolved, unsolved + 1))
    with program.when(~known):
        program.apply(clear, x)


def check_system(method: str, x: Field, b: Field, tolerance: float | Register) -> None:
    """Raise ProgramError unless `x` and `b` are f8 fields of the same points, and the tolerance is valid."""
    if x.grid != b.grid or x.centre != b.centre or x.on != b.on or x.replicated:
        raise ProgramError(
            f"{method}: the unknown is {x!r}, the right side {b!r}",
            remedy="declare both on one grid, with the same points",
        )
    for item in (x, b):
        if item.dtype != "f8":
            raise ProgramError(f"{method}: field {item.name!r} is {item.dtype}", remedy="declare it as f8")
    if not isinstance(tolerance, Register) and not 0.0 < tolerance < 1.0:
        raise ProgramError(f"{method}: tolerance {tolerance}", remedy="give a number between 0 and 1")


def _faces(item: Field) -> tuple[int, ...]:
    return tuple(axis for axis, bit in enumerate(item.centre) if bit)


def here_of(item: CellReader) -> tuple[int, ...]:
    """Return the offsets of the cell itself, in a kernel for any number of axes."""
    return (0,) * len(item.axes)


@kernel
def first_residual(b: CellReader, image: CellReader, r: CellReader, d: CellReader) -> dict[str, Reduced]:
    """Store r = b - A x and d = 0; return |b|^2 and |r|^2."""
    here = here_of(b)
    value = b[here] - image[here]
    r[here] = value
    d[here] = 0.0
    return {"bb": cell_sum(b[here] * b[here]), "rr": cell_sum(value * value)}


@kernel
def clear(x: CellReader) -> None:
    """Store x = 0."""
    x[here_of(x)] = 0.0


@kernel
def copy(source: CellReader, target: CellReader) -> None:
    """Store target = source, at the points that both have."""
    target[here_of(source)] = source[here_of(source)]


@kernel
def dot(a: CellReader, b: CellReader) -> Reduced:
    """Return the inner product of two vectors."""
    here = here_of(a)
    return cell_sum(a[here] * b[here])


@kernel
def share(a: CellReader, null: CellReader) -> dict[str, Reduced]:
    """Return null . a and |null|^2."""
    here = here_of(a)
    return {"value": cell_sum(null[here] * a[here]), "size": cell_sum(null[here] * null[here])}


@kernel
def remove(a: CellReader, null: CellReader, *, amount: Node) -> Reduced:
    """Store a = a - amount * null; return |a|^2."""
    here = here_of(a)
    value = a[here] - amount * null[here]
    a[here] = value
    return cell_sum(value * value)


@kernel
def xpby(z: CellReader, d: CellReader, *, beta: Node) -> None:
    """Store d = z + beta * d."""
    here = here_of(d)
    d[here] = z[here] + beta * d[here]


@kernel
def axpy(x: CellReader, y: CellReader, *, alpha: Node) -> None:
    """Store y = y + alpha * x."""
    here = here_of(y)
    y[here] = y[here] + alpha * x[here]


@kernel
def update(x: CellReader, r: CellReader, d: CellReader, image: CellReader, *, alpha: Node) -> Reduced:
    """Store x = x + alpha * d and r = r - alpha * A d; return |r|^2."""
    here = here_of(x)
    x[here] = x[here] + alpha * d[here]
    value = r[here] - alpha * image[here]
    r[here] = value
    return cell_sum(value * value)
