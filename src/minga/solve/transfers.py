"""Transfers between a grid and one of half its resolution: linear interpolation by axes, and its exact transpose.

Fine cell i of an axis lies in coarse cell c = i // 2. Its value is interpolated between the centres of c and of the
coarse neighbour on its own side; at a `dirichlet` wall between c and the wall's 0, at a `neumann` wall it is c's. The
last coarse cell of an odd axis has one child, which lies at its centre. Restriction adds up the same weights the other
way round, so that a multigrid cycle of symmetric parts is symmetric.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node
from minga.solve.laplacian import Floats, Readers, Wall
from minga.space.field import Field, Slot
from minga.space.grid import Grid

RESTRICTED: tuple[int, ...] = (-1, 0, 1, 2)
"""Offsets, from fine cell 2 * c, of the fine cells that contribute to coarse cell c."""


@dataclass(frozen=True, slots=True)
class AxisWeights:
    """Weights of one coarsened axis, each of shape (coarse cells,).

    own, aside  what the even and the odd child take from their coarse cell, and from the neighbour on their side
    taken       what the coarse cell takes from the fine cells at the offsets `RESTRICTED`
    """

    own: tuple[Floats, Floats]
    aside: tuple[Floats, Floats]
    taken: tuple[Floats, Floats, Floats, Floats]


def axis_weights(fine: Grid, coarse: Grid, axis: int, walls: tuple[Wall, Wall]) -> AxisWeights:
    """Return the weights of linear interpolation along one axis."""
    x, centre, width = fine.centres(axis), coarse.centres(axis), coarse.widths(axis)
    cells, length = len(x), len(centre)
    periodic = fine.periodic[axis]
    parent = np.arange(cells) // 2
    odd = np.arange(cells) % 2
    distance = np.abs(x - centre[parent])
    # Where the neighbour on the child's side lies, and whether it is a cell, a wall that holds 0, or nothing.
    beside = parent + np.where(odd, 1, -1)
    gap = 0.5 * (width[parent] + width[beside % length])
    share = distance / gap
    neighbour = beside % length
    if not periodic:
        for end, kind in ((-1, walls[0]), (length, walls[1])):
            at = beside == end
            share[at] = (distance / (0.5 * width[parent]))[at] if kind == "dirichlet" else 0.0
            neighbour[at] = -1
    single = np.bincount(parent, minlength=length)[parent] == 1
    share[single] = 0.0
    from_beside = np.where(neighbour >= 0, share, 0.0)

    def child(values: Floats, bit: int) -> Floats:
        """Return the values of the even or odd children, by coarse cell; 0 where there is no such child."""
        found = np.zeros(length)
        found[: len(values[bit::2])] = values[bit::2]
        return found

    taken = []
    used = np.full((length, 0), -1)
    for offset in (0, 1, -1, 2):
        i = 2 * np.arange(length) + offset
        inside = np.ones(length, bool) if periodic else (i >= 0) & (i < cells)
        i = i % cells
        # On a short periodic axis two offsets may be one cell, which counts once.
        fresh = inside & ~(used == i[:, None]).any(axis=1)
        used = np.concatenate((used, np.where(inside, i, -1)[:, None]), axis=1)
        c = np.arange(length)
        weight = (1.0 - share[i]) * (parent[i] == c) + from_beside[i] * (neighbour[i] == c)
        taken.append(np.where(fresh, weight, 0.0))
    return AxisWeights(
        (child(1.0 - share, 0), child(1.0 - share, 1)),
        (child(from_beside, 0), child(from_beside, 1)),
        (taken[2], taken[0], taken[1], taken[3]),
    )


@functools.cache
def restriction(factors: tuple[int, ...]) -> Kernel:
    """Return the kernel of coarse = P^T fine; `weights` holds the fields of `AxisWeights.taken` of coarsened axes."""
    ndim = len(factors)

    def restrict(fine: CellReader, coarse: CellReader, weights: Readers) -> None:
        reader = fine.strided(*factors)

        def total(axis: int, offsets: tuple[int, ...], left: Readers) -> Node:
            if axis == ndim:
                return reader[offsets]
            if factors[axis] == 1:
                return total(axis + 1, (*offsets, 0), left)
            terms = (w[0] * total(axis + 1, (*offsets, o), left[4:]) for o, w in zip(RESTRICTED, left, strict=False))
            return functools.reduce(lambda a, b: a + b, terms)

        coarse[(0,) * ndim] = total(0, (), weights)

    return kernel(restrict)


@functools.cache
def prolongation(factors: tuple[int, ...]) -> Kernel:
    """Return the kernel of fine = fine + P coarse; `weights` has own and aside of both children of coarsened axes."""
    ndim = len(factors)

    def prolong(coarse: CellReader, fine: CellReader, weights: Readers) -> None:
        writer = fine.strided(*factors)

        def value(axis: int, child: tuple[int, ...], offsets: tuple[int, ...], left: Readers) -> Node:
            if axis == ndim:
                return coarse[offsets]
            if factors[axis] == 1:
                return value(axis + 1, child, (*offsets, 0), left)
            own, aside = left[2 * child[axis] : 2 * child[axis] + 2]
            side = 1 if child[axis] else -1
            here = value(axis + 1, child, (*offsets, 0), left[4:])
            there = value(axis + 1, child, (*offsets, side), left[4:])
            return own[0] * here + aside[0] * there

        for child in itertools.product(*(range(f) for f in factors)):
            writer[child] = writer[child] + value(0, child, (), weights)

    return kernel(prolong)


@dataclass(frozen=True, eq=False)
class GridTransfer:
    """Restriction to and interpolation from `coarse`, the grid `fine.coarsen(factors)`, recorded into Programs.

    The layouts of the two grids must match: `layout.coarsen(factors)` of one whose cuts are multiples of the factors.
    """

    fine: Grid
    coarse: Grid
    factors: tuple[int, ...]
    walls: tuple[tuple[Wall, Wall], ...]
    name: str
    down: tuple[Field, ...] = field(init=False)
    up: tuple[Field, ...] = field(init=False)
    constants: Mapping[Field, Floats] = field(init=False)

    def __post_init__(self) -> None:
        constants: dict[Field, Floats] = {}
        down: list[Field] = []
        up: list[Field] = []

        def one_axis(kind: str, axis: int, values: Floats) -> Field:
            item = Field(f"{self.name} {kind} {self.coarse.axes[axis]}", self.coarse, axes=(axis,))
            constants[item] = values
            return item

        for axis in (a for a, f in enumerate(self.factors) if f == 2):
            weights = axis_weights(self.fine, self.coarse, axis, self.walls[axis])
            down += [one_axis(f"taken {o}", axis, w) for o, w in zip(RESTRICTED, weights.taken, strict=True)]
            for bit, word in enumerate(("even", "odd")):
                up.append(one_axis(f"{word} own", axis, weights.own[bit]))
                up.append(one_axis(f"{word} aside", axis, weights.aside[bit]))
        put = object.__setattr__
        put(self, "down", tuple(down))
        put(self, "up", tuple(up))
        put(self, "constants", constants)

    def restrict(self, program: Program, fine: Field | Slot, coarse: Field | Slot) -> None:
        """Record coarse = P^T fine."""
        program.apply(restriction(self.factors), fine, coarse, self.down)

    def prolong(self, program: Program, coarse: Field | Slot, fine: Field | Slot) -> None:
        """Record fine = fine + P coarse."""
        program.apply(prolongation(self.factors), coarse, fine, self.up)
