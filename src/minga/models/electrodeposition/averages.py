"""Averages of fields over a radius: bells whose standard deviation along each axis is half the radius.

A bell is made of rounds of averages over three cells with weights 1, 2 and 1. Each round adds half a cell width squared
to the variance along its axis.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.solve.laplacian import step
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["record_averages", "rounds_over"]

Readers = Sequence[CellReader]


def rounds_over(grid: Grid, radius: float) -> tuple[int, ...]:
    """Return the number of rounds along each axis for a radius (m)."""
    ratios = [radius / float(grid.widths(axis).min()) for axis in range(grid.ndim)]
    return tuple(math.ceil(0.5 * ratio * ratio - 1e-9) for ratio in ratios)


def record_averages(program: Program, fields: Sequence[Field], rounds: Sequence[int]) -> None:
    """Record the average of each field's slot `now`; every field has a second slot."""
    now, then = [item.now for item in fields], [item.next for item in fields]
    done = 0
    for count in sorted({*rounds} - {0}):
        with program.repeat(count - done):
            for axis in (a for a in range(len(rounds)) if rounds[a] >= count):
                program.apply(average(len(rounds), axis), now, then)
                program.rotate(*fields)
        done = count


@functools.cache
def average(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the averages over three cells along an axis."""
    here, down, up = (0,) * ndim, step(ndim, axis, -1), step(ndim, axis, 1)

    @kernel
    def average_three(sources: Readers, means: Readers) -> None:
        for source, mean in zip(sources, means, strict=True):
            mean[here] = 0.5 * source[here] + 0.25 * (source[down] + source[up])

    return average_three
