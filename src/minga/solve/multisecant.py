"""Quasi-Newton acceleration of a fixed-point iteration by secants: Anderson's method, recorded into a Program.

An iteration offers corrections r(x) that vanish at the solution. Differences of successive x and r say how r answers to
x; the step taken is the correction less what these secants foresee of it,

    x <- x + r - sum_j (q_j . r) (s_j + q_j),

with q_j differences of r made orthonormal one after the other and s_j the same combinations of differences of x.
D. G. Anderson, J. ACM 12, 1965; the least squares by Gram-Schmidt as in Walker and Ni, SIAM J. Numer. Anal. 49, 2011.
All sums are exact, so that the iteration has the same bits on any layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.solve.krylov import here_of
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid

__all__ = ["Multisecant"]

Readers = Sequence[CellReader]

DEPTH: Final = 5
"""Number of secants that are kept."""
DEPENDENT: Final = 1e-8
"""A difference is left out if its new part (squared) is less than this."""
GROWN: Final = 4.0
"""Growth of the correction (squared) beyond which all secants are discarded."""


@dataclass(frozen=True, eq=False)
class Multisecant:
    """Anderson acceleration of a fixed-point iteration over a field of cells (f8) and one number.

    Parameters
    ----------
    grid
        The grid of the field.
    name
        The beginning of the names of all fields.
    """

    grid: Grid
    name: str = "secants"
    images: Field = field(init=False)
    moves: Field = field(init=False)
    residual: Field = field(init=False)
    taken: Field = field(init=False)
    numbers: tuple[Register, ...] = field(init=False)
    number_taken: Register = field(init=False)
    number_residual: Register = field(init=False)
    size: Register = field(init=False)
    rounds: Register = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "images", Field(f"{self.name} images", self.grid, slots=DEPTH))
        put(self, "moves", Field(f"{self.name} moves", self.grid, slots=DEPTH))
        put(self, "residual", Field(f"{self.name} residual", self.grid))
        put(self, "taken", Field(f"{self.name} taken", self.grid))
        put(self, "numbers", tuple(Register(f"{self.name} number {n}") for n in range(DEPTH)))
        put(self, "number_taken", Register(f"{self.name} number taken"))
        put(self, "number_residual", Register(f"{self.name} number residual"))
        put(self, "size", Register(f"{self.name} size"))
        put(self, "rounds", Register(f"{self.name} rounds", "i8"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.images, self.moves, self.residual, self.taken

    def begin(self, program: Program) -> None:
        """Record the beginning of an iteration, which has no secants yet.

        Parameters
        ----------
        program
            The Program to record into.
        """
        program.apply(_forget, _slots(self.images), _slots(self.moves))
        for register in self.numbers:
            program.let(register, 0.0)
        program.let(self.rounds, 0)

    def step(self, program: Program, x: Slot, r: Slot, number: Register, correction: Register) -> Register:
        """Record one accelerated step of a field and a number.

        Parameters
        ----------
        program
            The Program to record into.
        x
            The field, which is updated.
        r
            The correction that the fixed-point iteration offers for the field.
        number
            The number, which is updated.
        correction
            Its correction.

        Returns
        -------
        Register
            The largest absolute value of `r`.
        """
        program.rotate(self.images, self.moves)
        old_images, old_moves = _slots(self.images)[:-1], _slots(self.moves)[:-1]
        image, move = self.images.previous, self.moves.previous
        seen = program.apply(_meet, r, self.residual, old_images)
        assert isinstance(seen, SimpleNamespace)
        astray = Register(f"{self.name} astray", "bool")
        program.let(astray, (self.rounds > 0) & (seen.size > GROWN * self.size))
        program.let(self.size, seen.size)
        with program.when(astray):
            program.apply(_forget, _slots(self.images), _slots(self.moves))
            for register in self.numbers:
                program.let(register, 0.0)
        shares: dict[str, Any] = {f"h{n}": Register(f"{self.name} share {n}") for n in range(DEPTH - 1)}
        for n, register in enumerate(shares.values()):
            program.let(register, where(astray, 0.0, getattr(seen, f"share{n}")))
        length = program.apply(_orthogonal, r, self.residual, self.taken, old_images, old_moves, image, move, **shares)
        assert isinstance(length, Register)
        known = (self.rounds > 0) & (length > DEPENDENT * seen.length) & (length > 0.0)
        root = Register(f"{self.name} root")
        program.let(root, where(known, 1.0 / mg.sqrt(where(known, length, 1.0)), 0.0))
        # The number's difference goes through the same combinations as the field's.
        fresh = self.number_taken + (correction - self.number_residual)
        for n in range(DEPTH - 1):
            program.let(self.numbers[n], self.numbers[n + 1])
            fresh = fresh - shares[f"h{n}"] * self.numbers[n]
        program.let(self.numbers[-1], fresh * root)
        found = program.apply(_foresee, r, old_images, image, move, root=root)
        gains = {f"g{n}": getattr(found, f"gain{n}") for n in range(DEPTH)}
        change = as_node(correction)
        for n in range(DEPTH):
            change = change - gains[f"g{n}"] * self.numbers[n]
        program.let(self.number_taken, change)
        program.let(self.number_residual, correction)
        program.let(number, number + self.number_taken)
        largest = program.apply(
            _move, x, r, self.residual, self.taken, _slots(self.images), _slots(self.moves), **gains
        )
        program.let(self.rounds, self.rounds + 1)
        assert isinstance(largest, Register)
        return largest


def _slots(item: Field) -> list[Slot]:
    return [item.slot(k) for k in range(item.slots)]


@kernel
def _forget(images: Readers, moves: Readers) -> None:
    for item in (*images, *moves):
        item[here_of(item)] = 0.0


@kernel
def _meet(r: CellReader, old: CellReader, images: Readers) -> dict[str, Reduced]:
    here = here_of(r)
    difference = r[here] - old[here]
    found = {f"share{n}": mg.sum(q[here] * difference) for n, q in enumerate(images)}
    return {"length": mg.sum(difference * difference), "size": mg.sum(r[here] * r[here]), **found}


@kernel
def _orthogonal(
    r: CellReader, old: CellReader, taken: CellReader, images: Readers, moves: Readers, image: CellReader,
    move: CellReader, *, h0: Node, h1: Node, h2: Node, h3: Node,
) -> Reduced:  # fmt: skip
    here = here_of(r)
    q, s = r[here] - old[here], taken[here]
    for share, other, along in zip((h0, h1, h2, h3), images, moves, strict=True):
        q = q - share * other[here]
        s = s - share * along[here]
    image[here] = q
    move[here] = s
    return mg.sum(q * q)


@kernel
def _foresee(r: CellReader, images: Readers, image: CellReader, move: CellReader, *, root: Node) -> dict[str, Reduced]:
    here = here_of(r)
    q = image[here] * root
    image[here] = q
    move[here] = move[here] * root
    found = {f"gain{n}": mg.sum(other[here] * r[here]) for n, other in enumerate(images)}
    return {**found, f"gain{len(images)}": mg.sum(q * r[here])}


@kernel
def _move(
    x: CellReader, r: CellReader, residual: CellReader, taken: CellReader, images: Readers, moves: Readers, *,
    g0: Node, g1: Node, g2: Node, g3: Node, g4: Node,
) -> Reduced:  # fmt: skip
    here = here_of(x)
    change = r[here]
    for gain, q, s in zip((g0, g1, g2, g3, g4), images, moves, strict=True):
        change = change - gain * (q[here] + s[here])
    x[here] = x[here] + change
    residual[here] = r[here]
    taken[here] = change
    return mg.max(mg.abs(r[here]))
