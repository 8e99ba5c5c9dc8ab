"""Two-dimensional layouts: rectangles in columns, areas in proportion to speeds.

O. Beaumont, V. Boudet, F. Rastello, Y. Robert, *Matrix Multiplication on Heterogeneous Platforms*, IEEE Transactions on
Parallel and Distributed Systems 12 (2001): workers sorted by speed are cut into columns such that the sum of half
perimeters, which measures the data they receive, is smallest. The width of a column is proportional to the total speed
of its workers, and its height is divided among them in proportion to their speeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

__all__ = ["half_perimeters", "in_columns"]


def in_columns(speeds: Sequence[float], columns: int) -> list[list[int]]:
    """Return the workers of each column, for the cut of workers sorted by speed with the smallest half perimeters.

    No column is empty; there must be at least as many workers as columns.
    """
    order = sorted(range(len(speeds)), key=lambda worker: (-speeds[worker], worker))
    area = np.array([speeds[worker] for worker in order], float)
    total = np.concatenate([[0.0], np.cumsum(area / area.sum())])
    count = len(order)
    # best[q]: smallest sum of widths times workers for the first q workers in the present number of columns.
    best = np.array([np.inf if q == 0 else q * total[q] for q in range(count + 1)])
    cuts: list[list[int]] = []
    for used in range(2, columns + 1):
        found, chosen = np.full(count + 1, np.inf), [0] * (count + 1)
        for q in range(used, count + 1):
            before = np.arange(used - 1, q)
            costs = best[before] + (q - before) * (total[q] - total[before])
            chosen[q] = int(before[np.argmin(costs)])
            found[q] = costs.min()
        cuts.append(chosen)
        best = found
    ends = [count]
    for chosen in reversed(cuts):
        ends.append(chosen[ends[-1]])
    bounds = [0, *reversed(ends)]
    return [order[first:end] for first, end in pairwise(bounds)]


def half_perimeters(speeds: Sequence[float], columns: Sequence[Sequence[int]]) -> float:
    """Return the sum of half perimeters of a layout of the unit square; at least twice the sum of roots of areas."""
    total = float(sum(speeds))
    widths = [sum(speeds[worker] for worker in column) / total for column in columns]
    return len(columns) + sum(width * len(column) for width, column in zip(widths, columns, strict=True))
