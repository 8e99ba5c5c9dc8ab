"""Avalanches: bursts of activity between quiet steps, counted while an automaton runs.

The activity of a step is its number of active cells: either the cells that change in it, or the cells that are in a
given state or above when it begins (the cells of a sandpile that topple). An avalanche begins with the first active
step after a quiet one and ends before the next quiet one. Its size is the sum of its activities, its duration the
number of its steps. Source: P. Bak, C. Tang, K. Wiesenfeld, Phys. Rev. Lett. 59 (1987) 381.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import as_node, cast, where
from minga.lang.kernel import Kernel
from minga.space.field import Field, Register

__all__ = ["BINS", "watch_avalanches"]

BINS: Final = 32
"""Number of bins of the size distribution: bin k counts avalanches of size 2**k to 2**(k + 1) - 1."""


def watch_avalanches(
    step: Program, fields: Sequence[Field], activity: bool | int
) -> tuple[dict[str, Register | tuple[Register, ...]], dict[Register, int]]:
    """Record the statistics of avalanches at the end of a step that has already rotated its fields.

    Parameters
    ----------
    step
        Program of one step, to which the operations are appended.
    fields
        Fields of the automaton.
    activity
        True to count the cells that change in a step; a state to count the cells in that state or above when it begins.

    Returns
    -------
    observables
        Registers by name. They describe finished avalanches only:

        avalanches           number of avalanches
        avalanche_size       size of the last one
        avalanche_duration   its number of steps
        avalanche_largest    size of the largest one
        avalanche_sizes      numbers of avalanches of size 1, 2 .. 3, 4 .. 7, and so on
    initial
        First values of all registers that are used.
    """
    active = _activity(step, fields, activity)
    names = ("avalanches", "avalanche_size", "avalanche_duration", "avalanche_largest", "running", "steps")
    number, last, duration, largest, running, steps = registers = [Register(name, "i8") for name in names]
    bins = tuple(Register(f"avalanche_sizes.{k}", "i8") for k in range(BINS))
    over = step.let(Register("avalanche.over", "bool"), (active == 0) & (running > 0))
    step.let(number, number + cast(over, "i8"))
    step.let(last, where(over, running, last))
    step.let(duration, where(over, steps, duration))
    step.let(largest, where(over & (running > largest), running, largest))
    for k, entry in enumerate(bins):
        among = (running >= 1 << k) & (running < 1 << (k + 1)) if k < BINS - 1 else as_node(running) >= 1 << k
        step.let(entry, entry + cast(as_node(over) & among, "i8"))
    step.let(running, where(over, 0, running + active))
    step.let(steps, where(over, 0, steps + cast(active > 0, "i8")))
    shown = zip(names[:4], registers[:4], strict=True)
    return {**dict(shown), "avalanche_sizes": bins}, dict.fromkeys([*registers, *bins], 0)


def _activity(step: Program, fields: Sequence[Field], activity: bool | int) -> Register:
    """Record and return the number of active cells in the step that has just been done."""

    def active_cells(now: CellReader, before: CellReader) -> Reduced:
        here = (0,) * len(now.axes)
        return mg.count(now[here] != before[here] if activity is True else before[here] >= activity)

    total = Register("avalanche.active", "i8")
    kernel = Kernel(active_cells)
    counts: list[Any] = [step.apply(kernel, field.now, field.previous) for field in fields]
    return step.let(total, sum(counts[1:], counts[0] + 0))
