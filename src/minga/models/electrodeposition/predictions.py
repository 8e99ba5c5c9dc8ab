"""The comparison of the next concentrations with their prediction from the last steps: the error of a time step."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from minga.compile.explain import Kernel, kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.problem import FLUID, Problem, largest_given
from minga.space.field import Register

__all__ = ["TOO_BIG", "compare", "greatest"]

Readers = Sequence[CellReader]

TOO_BIG: Final = 1e6
"""Error that stands for one that is not a number."""


def greatest(values: Sequence[Node | Register]) -> Node:
    """Return the index of the greatest value, the first of equal ones."""
    number, most = as_node(0), as_node(values[0])
    for candidate, value in enumerate(values[1:], 1):
        number, most = where(value > most, candidate, number), mg.max(most, value)
    return number


def compare(problem: Problem, *, mean: bool = False) -> Kernel:
    """Return the kernel that computes the next rates and compares the next concentrations with their prediction.

    It returns the largest differences, relative to the scale of the species, and the lowest concentrations; for a
    `mean`, also the sum of the squares of the cells' largest differences, and the number of cells of solution. The
    prediction is the parabola through the last two values with the last rate, or, with Euler's method, the line.
    """
    here = (0,) * problem.grid.ndim
    scales = [1.0 / largest_given(problem, number) for number in range(len(problem.species))]

    @kernel
    def compare_with_foretold(
        kind: CellReader, now: Readers, then: Readers, before: Readers, rates: Readers, next_rates: Readers, *,
        rate: Node, h0: Node, h1: Node, dt: Node, ratio: Node, last: Node,
    ) -> dict[str, Reduced]:  # fmt: skip
        fluid = kind[here] == FLUID
        differences, lowest = [], []
        found: dict[str, Reduced] = {}
        for number, scale in enumerate(scales):
            new, old, older = then[number][here], now[number][here], before[number][here]
            next_rates[number][here] = rate * new - (h0 * old - h1 * older)
            slope = rates[number][here]
            predicted = old + dt * slope + ratio * ratio * ((older - old) + last * slope)
            off = mg.abs(new - predicted) * scale
            differences.append(where(fluid & (off < TOO_BIG), off, where(fluid, TOO_BIG, 0.0)))
            lowest.append(where(fluid & (new > -TOO_BIG), new, where(fluid, -TOO_BIG, TOO_BIG)))
            found |= {f"worst{number}": mg.max(differences[-1]), f"least{number}": mg.min(lowest[-1])}
        shown, least = (functools.reduce(pick, items) for pick, items in ((mg.max, differences), (mg.min, lowest)))
        if mean:
            found |= {"square": mg.sum(where(fluid, shown * shown, 0.0)), "cells": mg.count(fluid)}
        return {**found, "difference": mg.max(shown), "place": mg.argmax(shown), "least_at": mg.argmin(least)}

    return compare_with_foretold
