"""SUMMA with mpi4py, as people write it: equal blocks on a grid of ranks, panels broadcast along rows and columns.

R. van de Geijn, J. Watts, *SUMMA: scalable universal matrix multiplication algorithm*, Concurrency 9 (1997).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI


class Summa:
    """C = A B on ``grid`` ranks; rows and columns of the matrices are cut evenly, panels have ``width`` columns."""

    def __init__(self, world: MPI.Intracomm, n: int, grid: tuple[int, int], width: int = 256) -> None:
        self.n, self.grid, self.width = n, grid, width
        self.place = divmod(world.rank, grid[1])
        self.along_row = world.Split(self.place[0], self.place[1])
        self.along_column = world.Split(self.place[1], self.place[0])
        self.rows, self.columns = self._cut(0)[self.place[0]], self._cut(1)[self.place[1]]
        # A is cut like C; so is B, by its own rows and columns.
        shape = self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]
        self.a, self.b, self.c = np.empty(shape), np.empty(shape), np.zeros(shape)

    def _cut(self, axis: int) -> list[tuple[int, int]]:
        count = self.grid[axis]
        return [(self.n * place // count, self.n * (place + 1) // count) for place in range(count)]

    def fill(self, a: Any, b: Any) -> None:
        """Take this rank's blocks of two matrices."""
        here = slice(*self.rows), slice(*self.columns)
        self.a[:], self.b[:] = a[here], b[here]

    def multiply(self) -> None:
        """Panel after panel: columns of A along rows of the grid, rows of B along columns."""
        self.c[:] = 0
        at = 0
        while at < self.n:
            left, right = self._owner(at, 1), self._owner(at, 0)
            end = min(at + self.width, self._cut(1)[left][1], self._cut(0)[right][1])
            of_a = np.empty((self.a.shape[0], end - at))
            of_b = np.empty((end - at, self.b.shape[1]))
            if self.place[1] == left:
                of_a[:] = self.a[:, at - self.columns[0] : end - self.columns[0]]
            if self.place[0] == right:
                of_b[:] = self.b[at - self.rows[0] : end - self.rows[0]]
            self.along_row.Bcast(of_a, left)
            self.along_column.Bcast(of_b, right)
            self.c += np.matmul(of_a, of_b)
            at = end

    def _owner(self, index: int, axis: int) -> int:
        return next(place for place, (first, end) in enumerate(self._cut(axis)) if first <= index < end)

    def error(self, expected: Any) -> float:
        """The largest difference from a result, on this rank."""
        return float(np.abs(self.c - expected[slice(*self.rows), slice(*self.columns)]).max())
