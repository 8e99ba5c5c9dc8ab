"""Detection of live cells at the edges of the grid, after which a run may differ from one on an unbounded grid.

Two kinds of edges ("ends" of an axis) are watched: those with dead cells beyond them, and those that are joined because
no boundary was given. An end is reached when a live cell lies so near that a cell beyond the end could come alive in
the next step. Nothing spreads faster than the rule's reach per step, so while a strip along each end is dead, no check
is needed for as many steps as it takes to cross the strip, and no contact is missed. A grid that begins with live cells
at all watched ends, such as a soup, is accepted as it is. A check costs about as much as a step does for the cells it
reads: where live cells stay within 32 steps of an end without reaching it, checks are frequent; elsewhere they cost
about a hundredth of the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from minga.case.boundary import Boundaries
from minga.compile.numpy import BoundArray, evaluate
from minga.engine.diagnostics import Diagnostics, Finding
from minga.engine.program import Apply, Program
from minga.lang import functions as mg
from minga.lang.analysis import reads
from minga.lang.block import BlockRule
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import as_node, cast, const, where
from minga.lang.graph import Scalar
from minga.lang.kernel import Kernel
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule
from minga.lang.types import is_float
from minga.lang.updates import Coloured
from minga.models.automaton.bits_edges import ghost
from minga.models.automaton.bits_rule import Unsuitable
from minga.space.bit_words import WORD, Packed
from minga.space.boundary import SIDES
from minga.space.box import Box
from minga.space.field import SEED, STEP, Field, Register
from minga.space.grid import Grid

__all__ = ["End", "edge_diagnostics", "stays_dead", "watched_ends"]

STEPS: Final = (1, 2, 8, 32)
"""Possible numbers of steps between two checks: nothing can cross the strips that are checked in so many steps."""
PATIENCE: Final = 16
"""Checks of narrow strips before wider ones, in which there were live cells, are tried again."""
TRIED: Final = 4096
"""Dead cells on which a rule with random numbers is tried."""
_CLOCK: Final = (SEED.key, STEP.key)
_NAMES: Final = {1: (("left", "right"),), 2: (("upper", "lower"), ("left", "right"))}


@dataclass(frozen=True, slots=True)
class End:
    """End of an axis of the grid.

    Attributes
    ----------
    axis, side
        Axis, and 0 for its low or 1 for its high end.
    reach
        Distance over which a cell beyond the end reads cells inside, which is also their speed in cells per step.
    """

    axis: int
    side: int
    reach: int

    def strip(self, shape: Sequence[int], steps: int) -> Box:
        """Return the box of cells from which the end can be reached in fewer than `steps` steps."""
        low, high, width = [0] * len(shape), list(shape), min(steps * self.reach, shape[self.axis])
        if self.side:
            low[self.axis] = shape[self.axis] - width
        else:
            high[self.axis] = width
        return Box(tuple(low), tuple(high))

    def name(self, grid: Grid) -> str:
        """Return the name of the end in messages, such as "left" or "low x"."""
        names = _NAMES.get(grid.ndim)
        return names[self.axis][self.side] if names else f"{SIDES[self.side]} {grid.axes[self.axis]}"


def watched_ends(
    rule: Rule | BlockRule, grid: Grid, ends: Boundaries, init: object, step: Program, *, joined: bool
) -> tuple[End, ...]:
    """Return the ends of an automaton's grid that are watched; none if its cells are not a pattern on dead cells.

    Parameters
    ----------
    rule, grid, ends
        Rule, grid and boundary conditions.
    init
        Initial cells; soups and fillings are not patterns.
    step
        One step of the rule on fields of cells.
    joined
        Whether joined ends are watched too.
    """
    found = _ends(rule, grid, ends, joined)
    pattern = not _fills(init) and not any(map(is_float, rule.fields.values()))
    return tuple(found) if found and pattern and stays_dead(step) else ()


def edge_diagnostics(
    step: Program, watched: Sequence[End], grid: Grid, cells: Sequence[Field] | Packed
) -> Diagnostics | None:
    """Return the diagnostics that watch the ends of a grid during such steps; None if there are no ends to watch."""
    if not watched:
        return None
    due, found, level, wait, width = (
        Register(f"edges.{name}", "i8") for name in ("due", "found", "level", "wait", "width")
    )
    seen = [Register(f"edges.seen{number}", "u8") for number in range(len(watched))]
    steps = [n for n in STEPS if all(2 * n * end.reach <= grid.shape[end.axis] for end in watched)] or [1]
    program, now = Program("edges"), cast(STEP.node, "i8")
    with program.when((found < 0) & (due <= now)):
        # `level` counts down to 0, the narrowest strips, while there are live cells in wider ones.
        for number in reversed(range(len(steps))):
            with program.when((due <= now) & (level == number)):
                for end, count in zip(watched, seen, strict=True):
                    _count_alive(program, cells, end.strip(grid.shape, steps[number]), count)
                program.let(width, steps[number])
                clear = sum(map(as_node, seen[1:]), as_node(seen[0])) == 0
                program.let(due, now + where(clear, width, 0))
                program.let(found, where(clear | (level > 0), -1, now))
                program.let(wait, where(clear, wait - 1, PATIENCE))
                wider = where((wait <= 0) & (level < len(steps) - 1), level + 1, level)
                program.let(level, where(clear, wider, level - 1))
    program.include(step)

    def tell(engine: Any) -> Finding | None:
        met = [end for end, count in zip(watched, seen, strict=True) if engine.read(count)]
        at = int(engine.read(found))
        return None if at == 0 and len(met) == len(watched) else _finding(grid, met, at)

    return Diagnostics(program, due, found, tell)


def _finding(grid: Grid, met: Sequence[End], step: int) -> Finding:
    """Return the warning for ends that were reached before a step."""
    names = ", ".join(end.name(grid) for end in met)
    why = (
        "as the grid is a torus where no boundary is given. A larger grid.shape avoids that; write boundary = "
        '"periodic" where a torus is meant'
        if all(grid.periodic[end.axis] for end in met)
        else "as cells beyond the edge are dead. A larger grid.shape avoids that"
    )
    return Finding(
        f"live cells reached the edge of the grid ({names}) after step {step}: later steps may differ from those of an "
        f"unbounded grid, {why}",
        {"edge_step": step, "edge_sides": names},
    )


def _ends(rule: Rule | BlockRule, grid: Grid, ends: Boundaries, joined: bool) -> list[End]:
    """Return the ends to watch; none for updates in which a change may spread through the grid within one step."""
    if isinstance(rule, Rule) and isinstance(rule.update, Coloured):
        return []
    around = (rule.neighbourhood if isinstance(rule, Rule) else moore(1)).around(grid.ndim)
    found = []
    for axis, pair in enumerate(ends.sides):
        for side, sign in enumerate((1, -1)):
            reach = max((sign * offset[axis] for offset in around), default=0)
            counts = joined if pair is None else _is_dead(pair[side], side)
            if reach > 0 and counts:
                found.append(End(axis, side, reach))
    return found


def _is_dead(condition: Any, side: int) -> bool:
    """Return whether cells beyond an end are fixed at 0."""
    try:
        return ghost(condition, SIDES[side], 1) == 0
    except Unsuitable:
        return False


def _fills(init: object) -> bool:
    """Return whether some cells start as a soup or with one value everywhere, so that nothing is a pattern."""
    if isinstance(init, Mapping):
        return "soup" in init or "fill" in init or any(map(_fills, init.values()))
    return False


# Looking -------------------------------------------------------------------------------------------------------------
def _count_alive(program: Program, cells: Sequence[Field] | Packed, box: Box, count: Register) -> None:
    """Record the number of live cells in a box, or of words that contain some.

    They are added up one by one, which is the cheapest way in narrow boxes.
    """
    ndim = box.ndim
    if not isinstance(cells, Packed):
        program.apply(_ANY[ndim], [field.now for field in cells], region=box, into=count)
        return
    planes, used = [plane.now for plane in cells.planes], list(cells.row[:1])
    pieces: list[Any] = []
    for word, first, last in _words(box.lo[-1], box.hi[-1]):
        words = Box((*box.lo[:-1], word.start), (*box.hi[:-1], word.stop))
        pieces.append(program.apply(_ANY_OF_BITS[ndim], planes, used, region=words, first=first, last=last))
    program.let(count, sum(pieces[1:], pieces[0] + 0))


def _words(low: int, high: int) -> Iterator[tuple[range, int, int]]:
    """Yield the words that hold cells low .. high - 1 of a row, each with the first and the last bit that counts."""
    while low < high:
        word, first = divmod(low, WORD)
        stop = high // WORD if first == 0 and high - low >= WORD else word + 1
        end = min(high, stop * WORD)
        yield range(word, stop), first, (end - 1) % WORD
        low = end


def _any_kernel(ndim: int) -> Kernel:
    def live_cells(now: Sequence[CellReader]) -> Reduced:
        alive: Any = now[0][(0,) * ndim] != 0
        for field in now[1:]:
            alive = alive | (field[(0,) * ndim] != 0)
        return mg.sum(cast(alive, "u1"))

    return Kernel(live_cells)


def _any_of_bits_kernel(ndim: int) -> Kernel:
    def live_words(now: Sequence[CellReader], used: Sequence[CellReader], *, first: Any, last: Any) -> Reduced:
        alive: Any = now[0][(0,) * ndim]
        for plane in now[1:]:
            alive = alive | plane[(0,) * ndim]
        every = const((1 << WORD) - 1, "u8")
        alive = alive & (every << cast(first, "u8")) & (every >> (WORD - 1 - cast(last, "u8")))
        return mg.sum(cast((alive & used[0][0] if used else alive) != 0, "u1"))

    return Kernel(live_words)


_ANY: Final = {ndim: _any_kernel(ndim) for ndim in range(1, 5)}
_ANY_OF_BITS: Final = {ndim: _any_of_bits_kernel(ndim) for ndim in range(1, 5)}


# Dead cells ----------------------------------------------------------------------------------------------------------
def stays_dead(step: Program) -> bool:
    """Return whether a step leaves dead cells among dead cells dead.

    This is tried on a few cells, or on many if the step uses random numbers. A rule that randomly gives birth to fewer
    than one cell in several thousand may thus be taken for one that does not.
    """
    return all(_keeps_dead(operation) for operation in step.operations if isinstance(operation, Apply))


def _keeps_dead(apply: Apply) -> bool:
    graph = apply.graph
    chance = any(scalar.name in _CLOCK for scalar in graph.scalars)
    size = next(n for n in range(2, TRIED + 1) if n**graph.ndim >= TRIED) if chance else 2
    beyond = max((abs(o) for found in reads(graph).values() for _, offsets in found for o in offsets), default=0)
    arrays = [
        BoundArray(np.zeros((size + 2 * beyond,) * len(param.axes), param.dtype), (-beyond,) * len(param.axes))
        for param in graph.params
    ]
    evaluate(
        graph, ((0,) * graph.ndim, (size,) * graph.ndim), arrays, {s.name: _value(apply, s) for s in graph.scalars}
    )
    return not any(arrays[number].array.any() for number in graph.written)


def _value(apply: Apply, scalar: Scalar) -> bool | int | float:
    """Return the value of a scalar; for a register, a value that it may have."""
    given = apply.scalars.get(scalar.name, 0)
    return given if isinstance(given, bool | int | float) else 0
