"""Vorticity and vector potential on the edges of cells: differences, and classification of edges at walls.

Velocities lie on faces (the grid of Harlow and Welch), component a of the vector potential and of the vorticity on the
edges along axis a. Both curls and the divergence are differences of two neighbours each, so div curl = 0 to rounding.
With two axes, only the third component remains, at the corners of cells.

Where the fluid is bounded by solids, the velocity next to a wall edge lies half a cell from the wall (or a whole cell
at the edge of a finger): the vorticity there, curl v with no slip, is Thom's formula in three dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, cast, where
from minga.models.electrodeposition.lengths import Lengths, Number
from minga.models.electrodeposition.problem import FLUID

SOLID: Final = 0
WALL: Final = 1
INSIDE: Final = 2
"""Kinds of edges: surrounded by solid cells only, by both solid and fluid ones, and by fluid ones only."""

Offset = tuple[int, ...]
Components = Mapping[int, CellReader]
"""Readers of the existing components of a vector, by axis."""


def cyclic(axis: int) -> tuple[int, int]:
    """Return the two axes that follow in cyclic order, so that the three are right-handed."""
    return (axis + 1) % 3, (axis + 2) % 3


def components(ndim: int) -> tuple[int, ...]:
    """Return the components that a vector potential has on a grid of two or three axes."""
    return (2,) if ndim == 2 else (0, 1, 2)


def move(at: Offset, axis: int, by: int) -> Offset:
    """Return an offset shifted along an axis."""
    return (*at[:axis], at[axis] + by, *at[axis + 1 :])


@dataclass(frozen=True, slots=True)
class Calculus:
    """Difference operators in a kernel, from the lengths of a grid and the readers of its widths."""

    lengths: Lengths
    widths: list[CellReader]

    def width(self, axis: int, at: int) -> Number:
        """Return the width of the cell `at` cells up an axis."""
        return self.lengths.width(self.widths, axis, at)

    def gap(self, axis: int, at: int) -> Number:
        """Return the distance of cell centres across the face `at` faces up an axis."""
        return self.lengths.gap(self.widths, axis, at)

    def curl_on_face(self, u: Components, a: int, at: Offset) -> Node:
        """Return component a of the curl of a vector on edges, at a face across axis a."""
        b, c = cyclic(a)
        value = as_node(0.0)
        if c in u and b < len(at):
            value = value + (u[c][move(at, b, 1)] - u[c][at]) / self.width(b, at[b])
        if b in u and c < len(at):
            value = value - (u[b][move(at, c, 1)] - u[b][at]) / self.width(c, at[c])
        return value

    def curl_on_edge(self, v: Callable[[int, Offset], Node], a: int, at: Offset) -> Node:
        """Return component a of the curl of a vector v(axis, at) on faces, at an edge along axis a."""
        b, c = cyclic(a)
        along_b = (v(c, at) - v(c, move(at, b, -1))) / self.gap(b, at[b])
        return along_b - (v(b, at) - v(b, move(at, c, -1))) / self.gap(c, at[c])

    def divergence(self, u: Components, at: Offset) -> Node:
        """Return the divergence of a vector on edges, at the node below a cell."""
        parts = [(u[a][at] - u[a][move(at, a, -1)]) / self.gap(a, at[a]) for a in u]
        return sum(parts[1:], parts[0])

    def minus_laplacian(self, u: Components, a: int, nodes: CellReader | None) -> tuple[Node, Node]:
        """Return component a of curl curl u - grad div u at an edge between fluid cells, and the weight of u there.

        The divergence counts at nodes between fluid cells only. On walls, where u has no tangential component, this is
        the condition that makes div u = 0 everywhere if the right-hand side is free of divergence (Hirasaki and
        Hellums, 1968).
        """
        ndim = self.lengths.ndim
        here = (0,) * ndim
        value = self.curl_on_edge(lambda axis, at: self.curl_on_face(u, axis, at), a, here)
        weight = as_node(0.0)
        for axis in cyclic(a):
            weight = weight + (1.0 / self.width(axis, 0) + 1.0 / self.width(axis, -1)) / self.gap(axis, 0)
        if nodes is not None:
            for end, sign in ((0, 1.0), (1, -1.0)):
                at = move(here, a, end)
                inside = nodes[at] > 0
                value = value + where(inside, sign * self.divergence(u, at) / self.width(a, 0), 0.0)
                weight = weight + where(inside, 1.0 / (self.gap(a, end) * self.width(a, 0)), 0.0)
        return value, weight

    def no_slip(self, kind: CellReader, psi: Components, a: int) -> Node:
        """Return the vorticity at a wall edge along axis a: curl v, with v = 0 on the wall."""
        b, c = cyclic(a)
        here = (0,) * self.lengths.ndim

        def across(axis: int, other: int) -> Node:
            """Return the derivative along `axis` of the velocity along `other`."""
            below = move(here, axis, -1)
            sides = [_solid(kind, at) & _solid(kind, move(at, other, -1)) for at in (below, here)]
            distance = where(
                sides[0],
                0.5 * self.width(axis, 0),
                where(sides[1], 0.5 * self.width(axis, -1), self.gap(axis, 0)),
            )
            return (self.curl_on_face(psi, other, here) - self.curl_on_face(psi, other, below)) / distance

        return across(b, c) - across(c, b)


def _solid(kind: CellReader, at: Offset) -> Node:
    return kind[at] != FLUID


def edge_mark(kind: CellReader, a: int) -> Node:
    """Return the kind of an edge along axis a: SOLID, WALL or INSIDE."""
    b, c = cyclic(a)
    here = (0,) * len(kind.axes)
    cells = [here, move(here, b, -1), move(here, c, -1), move(move(here, b, -1), c, -1)]
    solid = [_solid(kind, at) for at in cells]
    none = ~(solid[0] | solid[1] | solid[2] | solid[3])
    every = solid[0] & solid[1] & solid[2] & solid[3]
    return cast(where(none, INSIDE, where(every, SOLID, WALL)), "u1")


def node_mark(kind: CellReader) -> Node:
    """Return 1 at a node between fluid cells only, else 0."""
    here = (0,) * len(kind.axes)
    cells = [here]
    for axis in range(len(here)):
        cells += [move(at, axis, -1) for at in cells]
    fluid = ~_solid(kind, here)
    for at in cells[1:]:
        fluid = fluid & ~_solid(kind, at)
    return cast(fluid, "u1")
