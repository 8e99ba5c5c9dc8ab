"""Networks that are no trees: distances between nodes in hops, on rings, tori and meshes, or from a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.errors import LayoutError
from minga.space.boxes import Ints

__all__ = ["MOST_IN_TABLE", "Network"]

MOST_IN_TABLE: Final = 2048
"""Maximum number of nodes of a network that is given as a table of distances."""
_MOST_AXES: Final = 3
_MOST_HOPS: Final = 1 << 15
_MOST_NODES: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class Network:
    """Distances between the nodes of a machine, in hops from one to the next.

    Parameters
    ----------
    places
        Coordinates of each node on the axes of a torus or mesh, int64, shape (nodes, axes).
    lengths
        For each axis, the number of nodes after which it closes to a ring; 0 for an axis with two ends.
    table
        Instead of both, the distances between all nodes, int64, shape (nodes, nodes).
    """

    places: Ints
    lengths: tuple[int, ...] = ()
    table: Ints | None = None

    @classmethod
    def torus(cls, shape: Sequence[int], *, closed: bool = True) -> Network:
        """Return a torus of 1 to 3 axes, which is a ring with one axis; nodes are numbered along the last axis first.

        Parameters
        ----------
        shape
            The number of nodes along each axis.
        closed
            False for a mesh, whose axes have two ends.

        Returns
        -------
        Network
            The network.

        Raises
        ------
        LayoutError
            If the shape is not that of a network.
        """
        kind = "torus" if closed else "mesh"
        if not 1 <= len(shape) <= _MOST_AXES or min(shape) < 1 or math.prod(shape) > _MOST_NODES:
            raise LayoutError(
                f"a {kind} of {' x '.join(map(str, shape)) or 'no'} nodes",
                remedy=f"give the numbers of nodes along 1 to {_MOST_AXES} axes, at most {_MOST_NODES} in all",
            )
        places = np.indices(tuple(shape)).reshape(len(shape), -1).T
        return cls(np.ascontiguousarray(places, np.int64), tuple(shape) if closed else (0,) * len(shape))

    @classmethod
    def of_distances(cls, distances: Sequence[Sequence[int]]) -> Network:
        """Return a network from the distances between all pairs of nodes.

        Parameters
        ----------
        distances
            A symmetric table of whole numbers, at least 1 except for zeros on its diagonal.

        Returns
        -------
        Network
            The network.

        Raises
        ------
        LayoutError
            If the table is invalid, with the pair of nodes concerned.
        """
        remedy = "give a row for each node, with its distances to all nodes in hops: [[0, 1, 2], [1, 0, 1], [2, 1, 0]]"
        count = len(distances)
        if not 1 <= count <= MOST_IN_TABLE:
            raise LayoutError(f"a table of distances between {count} nodes: 1 to {MOST_IN_TABLE} can be", remedy=remedy)
        for number, row in enumerate(distances):
            if not isinstance(row, list | tuple) or len(row) != count:
                raise LayoutError(f"row {number} of {count} does not have {count} distances", remedy=remedy)
            for other, hops in enumerate(row):
                whole = isinstance(hops, int) and not isinstance(hops, bool)
                if not whole or (hops == 0) != (other == number) or not 0 <= hops <= _MOST_HOPS:
                    raise LayoutError(f"the distance of nodes {number} and {other} is {hops!r}", remedy=remedy)
        table = np.array(distances, np.int64)
        for one, other in np.argwhere(table != table.T)[:1].tolist():
            raise LayoutError(
                f"nodes {one} and {other} are {table[one, other]} hops apart in one direction, and "
                f"{table[other, one]} in the other",
                remedy="give the same distance in both directions",
            )
        return cls(np.empty((count, 0), np.int64), (), table)

    def __len__(self) -> int:
        return len(self.places)

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the distances between nodes ``a`` and ``b``.

        Parameters
        ----------
        a, b
            Numbers of nodes.

        Returns
        -------
        ndarray
            Hops, int64, of the shape of ``a`` and ``b``.
        """
        if self.table is not None:
            found: Ints = self.table[a, b]
            return found
        total = np.zeros(np.broadcast(a, b).shape, np.int64)
        for axis, length in enumerate(self.lengths):
            apart = np.abs(self.places[a, axis] - self.places[b, axis])
            total += np.minimum(apart, length - apart) if length else apart
        return total

    def part(self, nodes: Ints) -> Network:
        """Return the network of some nodes, numbered in this order, with the same distances.

        Parameters
        ----------
        nodes
            Numbers of nodes.

        Returns
        -------
        Network
            The network of these nodes.
        """
        table = None if self.table is None else self.table[np.ix_(nodes, nodes)]
        return Network(self.places[nodes], self.lengths, table)

    def halves(self) -> Ints:
        """Return a binary tree of the nodes: nodes with the same first columns are close to one another.

        Returns
        -------
        ndarray
            The half, the half of this half, and so on, of each node: 0 or 1, int64, shape (nodes, depth).
        """
        depth = max(1, math.ceil(math.log2(max(2, len(self)))))
        found = np.zeros((len(self), depth), np.int64)
        sets = [np.arange(len(self))]
        for column in range(depth):
            halves = []
            for members in sets:
                if len(members) > 1:
                    ordered = members[self._order(members)]
                    middle = len(members) // 2
                    found[ordered[middle:], column] = 1
                    halves += [ordered[:middle], ordered[middle:]]
            sets = halves
        return found

    def _order(self, members: Ints) -> Ints:
        """Return an order of nodes in which the first and the last half are apart."""
        if self.table is None:
            places = self.places[members]
            widest = int(np.argmax(np.ptp(places, axis=0)))
            others = [places[:, axis] for axis in range(places.shape[1]) if axis != widest]
            return np.lexsort((*others, places[:, widest]))
        inside = self.table[np.ix_(members, members)]
        one = int(np.argmax(inside[0]))
        other = int(np.argmax(inside[one]))
        return np.argsort(inside[one] - inside[other], kind="stable")
