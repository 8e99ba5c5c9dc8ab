"""The metal on the cathode's plane, at the beginning and at any time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.compile.explain import Kernel, kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import where
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import CATHODE, Problem
from minga.models.electrodeposition.rows import volume

__all__ = ["Deposit", "first_deposit", "measure_deposit"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, slots=True)
class Deposit:
    """Metal on the cathode's plane: number of cells, volume (m3), and height of the tallest finger (m)."""

    cells: int
    volume: float
    height: float


def first_deposit(problem: Problem) -> Deposit:
    """Return the solid cathode that a problem begins with."""
    if problem.kinds is None:
        return Deposit(0, 0.0, 0.0)
    grid, there = problem.grid, problem.kinds == CATHODE
    sizes = functools.reduce(np.multiply.outer, [grid.widths(a) for a in range(grid.ndim)])
    y = grid.axis("y")
    tops = (grid.faces(y)[1:] - grid.faces(y)[0])[np.any(there, axis=tuple(a for a in range(grid.ndim) if a != y))]
    return Deposit(int(there.sum()), float(sizes[there].sum()), float(tops.max(initial=0.0)))


def measure_deposit(lengths: Lengths) -> Kernel:
    """Return the kernel of the number of cells, the volume and the height of the cathode's metal."""
    grid, here = lengths.grid, (0,) * lengths.ndim
    y = grid.axis("y")
    plane = float(grid.faces(y)[0])

    @kernel
    def deposit(kind: CellReader, widths: Readers) -> dict[str, Reduced]:
        there = kind[here] == CATHODE
        top = mg.coordinate(y) + 0.5 * lengths.width(widths, y) - plane
        return {
            "cells": mg.count(there),
            "volume": mg.sum(where(there, volume(lengths, widths), 0.0)),
            "height": mg.max(where(there, top, 0.0)),
        }

    return deposit
