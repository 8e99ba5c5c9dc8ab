"""Kernels of multigrid for an elliptic operator: relaxation, transfers that follow the coefficients, coarse ones.

Along an axis a pair of cells has its coarse point half way, by resistance, through the face that they share; a cell
without a partner is its own. Between the points of two coarse cells there are then three resistances in a row: half of
the lower pair's shared face, the face between the pairs, half of the upper pair's,

    c'    | k_s' |    | k_f |    | k_s |    c            R = 1/(2 k_s') + 1/k_f + 1/(2 k_s)

so the coarse face conducts 1/R (all lines of cells through it added up), and the child beside the face interpolates
with share 1/(2 k_s) / R from the coarse neighbour: the potential along these resistances is linear in them. Nothing is
interpolated through a face that conducts nothing. Each child has one neighbour an axis on its own side, and takes from
them one after the other (linear, not multilinear, interpolation: exact for linear functions too).

Where a plate that lets nothing through lies within coarse cells, they would join what it keeps apart. So the upper of
two cells that share such a face, unless they meet around it or a wall holds it, is cut off: it goes with the coarse
cell above it, as if the plate lay between the two coarse cells.

The face below each cell is kept at the cell, and 0 beyond the ends, so that all fields of a level lie at its cells.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from minga.compile.explain import Kernel, kernel
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.functions import index
from minga.lang.functions import max as cell_max
from minga.solve.elliptic import Readers, quotient, whole_diagonal
from minga.solve.laplacian import step

Axes = tuple[int, ...]


# On one level --------------------------------------------------------------------------------------------------------
@functools.cache
def take_faces(ndim: int) -> Kernel:
    """Return the kernel that stores the conductance of the face below a cell at the cell."""
    here = (0,) * ndim

    @kernel
    def faces_at_cells(faces: CellReader, result: CellReader) -> None:
        result[here] = faces[here]

    return faces_at_cells


@functools.cache
def sum_diagonal(ndim: int, axes: Axes) -> Kernel:
    """Return the kernel that computes the whole diagonal of the operator."""
    here = (0,) * ndim

    @kernel
    def elliptic_diagonal(faces: Readers, walls: CellReader, result: CellReader) -> None:
        result[here] = whole_diagonal(faces, walls[here], axes)

    return elliptic_diagonal


def _remaining(u: CellReader, f: CellReader, faces: Readers, diagonal: CellReader, axes: Axes) -> Node:
    """Return f - A u, computed with the whole diagonal."""
    ndim = len(faces)
    here = (0,) * ndim
    inflow = f[here]
    for axis in axes:
        below, above = step(ndim, axis, -1), step(ndim, axis, 1)
        inflow = inflow + (faces[axis][here] * u[below] + faces[axis][above] * u[above])
    return inflow - diagonal[here] * u[here]


@functools.cache
def first_step(ndim: int) -> Kernel:
    """Return the kernel of result = weight * f / diagonal, a step of damped Jacobi from 0. Solid cells stay 0."""
    here = (0,) * ndim

    @kernel
    def first_elliptic_step(f: CellReader, diagonal: CellReader, result: CellReader, *, weight: Node) -> None:
        result[here] = weight * quotient(f[here], diagonal[here])

    return first_elliptic_step


@functools.cache
def copy_active(ndim: int) -> Kernel:
    """Return the kernel of result = f, 0 in solid cells."""
    here = (0,) * ndim

    @kernel
    def copy_of_active(f: CellReader, diagonal: CellReader, result: CellReader) -> None:
        result[here] = where(diagonal[here] > 0.0, f[here], 0.0)

    return copy_of_active


@functools.cache
def jacobi_step(ndim: int, axes: Axes) -> Kernel:
    """Return the kernel of one step of damped Jacobi, u + weight * (f - A u) / diagonal. Solid cells become 0."""
    here = (0,) * ndim

    @kernel
    def elliptic_step(
        u: CellReader, f: CellReader, faces: Readers, diagonal: CellReader, result: CellReader, *, weight: Node
    ) -> None:
        change = quotient(_remaining(u, f, faces, diagonal, axes), diagonal[here])
        result[here] = where(diagonal[here] > 0.0, u[here] + weight * change, 0.0)

    return elliptic_step


@functools.cache
def left_over(ndim: int, axes: Axes) -> Kernel:
    """Return the kernel of result = f - A u, 0 in solid cells."""
    here = (0,) * ndim

    @kernel
    def elliptic_left_over(
        u: CellReader, f: CellReader, faces: Readers, diagonal: CellReader, result: CellReader
    ) -> None:
        result[here] = where(diagonal[here] > 0.0, _remaining(u, f, faces, diagonal, axes), 0.0)

    return elliptic_left_over


@functools.cache
def find_behind(factors: Axes) -> Kernel:
    """Return the kernel, over coarse cells, that marks cells which, like their coarse cell, conduct nothing.

    It stores 1 in these cells, else 0; and 1 for a coarse cell if all its cells are marked.
    """

    @kernel
    def cells_behind(diagonal: CellReader, coarse: CellReader, behind: CellReader, whole: CellReader) -> None:
        read, write = diagonal.strided(*factors), behind.strided(*factors)
        here = (0,) * len(factors)
        nothing = coarse[here] == 0.0
        every = nothing
        for child in _children(factors):
            solid = nothing & (read[child] == 0.0)
            every = every & solid
            write[child] = cast(solid, "u1")
        whole[here] = cast(every, "u1")

    return cells_behind


# Between two levels --------------------------------------------------------------------------------------------------
def _children(factors: Axes, skip: int | None = None) -> Iterator[tuple[int, ...]]:
    """Return the offsets of a coarse cell's children; along `skip` the first only."""
    return itertools.product(*(range(1 if axis == skip else f) for axis, f in enumerate(factors)))


def _there(child: tuple[int, ...], closing: Axes, value: Node, last: tuple[Node, ...]) -> Node:
    """Return `value`, or 0 for a missing second child: on a closing axis the offset reaches the very first cell."""
    for axis in closing:
        if child[axis]:
            value = where(index(axis) == last[axis], 0.0, value)
    return value


def _half(conductance: Node) -> Node:
    """Return half of a face's resistance; 0 where it conducts nothing: the coarse point is then the child itself."""
    return quotient(0.5, conductance)


def _shifted(offsets: tuple[int, ...], axis: int, to: int) -> tuple[int, ...]:
    return (*offsets[:axis], to, *offsets[axis + 1 :])


def _inside(cut: tuple[CellReader, ...], at: tuple[int, ...]) -> Node:
    """Return 1, or 0 in a cell that is cut off."""
    return where(cut[0][at] == 0, 1.0, 0.0) if cut else as_node(1.0)


@functools.cache
def find_cuts(factors: Axes) -> Kernel:
    """Return the kernel of 1 + the axis across which a cell is cut off from its coarse cell, 0 in other cells.

    `coarse` is any field of the coarse grid, whose cells the kernel runs over; it is not read.
    """
    coarsened = [axis for axis, f in enumerate(factors) if f == 2]

    @kernel
    def cells_cut_off(
        faces: Readers, walls: CellReader, diagonal: CellReader, coarse: CellReader, cuts: CellReader
    ) -> None:
        read = [face.strided(*factors) for face in faces]
        wall, active, write = walls.strided(*factors), diagonal.strided(*factors), cuts.strided(*factors)
        for child in _children(factors):
            found = cast(as_node(0), "u1")
            for axis in (a for a in coarsened if child[a]):
                lower, upper = _shifted(child, axis, 0), _shifted(child, axis, 2)
                apart = (read[axis][child] == 0.0) & (read[axis][upper] > 0.0)
                apart = apart & (active[child] > 0.0) & (active[lower] > 0.0) & (wall[child] == 0.0)
                for other in (a for a in coarsened if a != axis):
                    first, beside = _shifted(child, other, 1), _shifted(child, other, 1 - child[other])
                    around = (read[other][first] > 0.0) & (read[other][_shifted(first, axis, 0)] > 0.0)
                    apart = apart & ~(around & (read[axis][beside] > 0.0))
                found = where(apart & (found == 0), cast(as_node(axis + 1), "u1"), found)
            write[child] = found

    return cells_cut_off


@functools.cache
def find_shares(factors: Axes) -> Kernel:
    """Return the kernel of the fractions that fine cells take from coarse neighbours along each axis, at most 1 in all.

    `coarse` is any field of the coarse grid, whose cells the kernel runs over; it is not read. `cuts` holds what
    `find_cuts` found, or no field.
    """
    coarsened = [axis for axis, f in enumerate(factors) if f == 2]

    @kernel
    def elliptic_shares(faces: Readers, coarse: CellReader, cuts: Readers, shares: Readers) -> None:
        read = [face.strided(*factors) for face in faces]
        write = [share.strided(*factors) for share in shares]
        cut = tuple(item.strided(*factors) for item in cuts)
        for child in _children(factors):
            found = []
            for axis in coarsened:
                side, beyond = (2, 3) if child[axis] else (0, -1)
                own, between, other = (read[axis][_shifted(child, axis, at)] for at in (1, side, beyond))
                mine = _half(own)
                whole = mine + _half(other) + quotient(1.0, between)
                share = where(between > 0.0, quotient(mine, whole), 0.0)
                found.append(share * _inside(cut, _shifted(child, axis, 2 if child[axis] else -1)))
            total = functools.reduce(lambda a, b: a + b, found)
            for axis, target, share in zip(coarsened, write, found, strict=True):
                value = share / cell_max(total, 1.0)
                for item in cut:
                    value = where(item[child] == 0, value, where(item[child] == axis + 1, 1.0, 0.0))
                target[child] = value

    return elliptic_shares


@functools.cache
def coarse_faces(factors: Axes, axis: int, closing: Axes) -> Kernel:
    """Return the kernel of conductances of the coarse faces across `axis`."""

    @kernel
    def coarse_elliptic_faces(
        faces: CellReader, cuts: Readers, result: CellReader, *, n0: Node, n1: Node, n2: Node, n3: Node
    ) -> None:
        read = faces.strided(*factors)
        cut = tuple(item.strided(*factors) for item in cuts)
        total: Node | float = 0.0
        for child in _children(factors, axis):
            between = read[child]
            if factors[axis] == 2:
                beside = _half(read[_shifted(child, axis, 1)]) + _half(read[_shifted(child, axis, -1)])
                between = between / (1.0 + between * beside)
            for at in (child, _shifted(child, axis, child[axis] - 1)):
                between = between * _inside(cut, at)
            total = total + _there(child, closing, between, (n0, n1, n2, n3))
        result[(0,) * len(factors)] = total

    return coarse_elliptic_faces


@functools.cache
def coarse_walls(factors: Axes, closing: Axes) -> Kernel:
    """Return the kernel of the coarse cells' coefficients of what goes to walls."""

    @kernel
    def coarse_elliptic_walls(
        faces: Readers, walls: CellReader, result: CellReader,
        *, n0: Node, n1: Node, n2: Node, n3: Node,
    ) -> None:  # fmt: skip
        read, wall = [face.strided(*factors) for face in faces], walls.strided(*factors)
        total: Node | float = 0.0
        for child in _children(factors):
            conductance = wall[child]
            for axis in (a for a, f in enumerate(factors) if f == 2):
                outer = read[axis][_shifted(child, axis, 2 * child[axis])]
                inner = _half(read[axis][_shifted(child, axis, 1)])
                conductance = where(outer > 0.0, conductance, conductance / (1.0 + conductance * inner))
            total = total + _there(child, closing, conductance, (n0, n1, n2, n3))
        result[(0,) * len(factors)] = total

    return coarse_elliptic_walls


@functools.cache
def restriction(factors: Axes, closing: Axes) -> Kernel:
    """Return the kernel of coarse = P^T fine."""
    coarsened = [axis for axis, f in enumerate(factors) if f == 2]

    @kernel
    def restrict_elliptic(
        fine: CellReader, shares: Readers, coarse: CellReader,
        *, n0: Node, n1: Node, n2: Node, n3: Node,
    ) -> None:  # fmt: skip
        last = (n0, n1, n2, n3)
        value = fine.strided(*factors)
        share = [s.strided(*factors) for s in shares]
        total: Node | float = 0.0
        for child in _children(factors):
            own: Node | float = 1.0
            for each in share:
                own = own - each[child]
            total = total + _there(child, closing, own * value[child], last)
        for number, axis in enumerate(coarsened):
            for child in _children(factors, axis):
                below, above = _shifted(child, axis, -1), _shifted(child, axis, 2)
                lower, upper = (share[number][at] * value[at] for at in (below, above))
                if axis in closing:
                    at = _shifted(child, axis, 1)
                    lower = where(index(axis) == 0, 0.0, lower)
                    upper = where(index(axis) == last[axis], share[number][at] * value[at], upper)
                total = total + _there(child, closing, lower + upper, last)
        coarse[(0,) * len(factors)] = total

    return restrict_elliptic


@functools.cache
def prolongation(factors: Axes) -> Kernel:
    """Return the kernel of fine = fine + P coarse."""
    ndim = len(factors)
    coarsened = [axis for axis, f in enumerate(factors) if f == 2]

    @kernel
    def prolong_elliptic(coarse: CellReader, shares: Readers, fine: CellReader) -> None:
        value = fine.strided(*factors)
        share = [s.strided(*factors) for s in shares]
        own = coarse[(0,) * ndim]
        for child in _children(factors):
            total = value[child] + own
            for number, axis in enumerate(coarsened):
                total = total + share[number][child] * (coarse[step(ndim, axis, 1 if child[axis] else -1)] - own)
            value[child] = total

    return prolong_elliptic
