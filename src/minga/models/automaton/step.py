"""One step of an automaton as a Program: all cells at once, colour after colour, or by blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from minga.engine.model import Recurrence
from minga.engine.program import Apply, Let, Operation, Program, flat
from minga.errors import CaseError, KernelError
from minga.lang.block import BlockRule
from minga.lang.cell import CellReader
from minga.lang.expr import Node, cast, const
from minga.lang.graph import Scalar
from minga.lang.kernel import Kernel
from minga.lang.neighbourhood import Neighbourhood
from minga.lang.random import threefry
from minga.lang.rule import Rule
from minga.lang.updates import Coloured, SecondOrder, Update, as_update
from minga.space.box import Box
from minga.space.field import SEED, STEP, Field, Register
from minga.space.grid import Grid
from minga.space.region import Region

__all__ = ["record_step", "recurrence", "with_update"]

KEY: Final = "automaton.update"
MOST_SHUFFLED: Final = 64
"""Largest number of colours that can be updated in random order."""

_ORDER_STREAM: Final = 0xC0101235

Number = bool | int | float


def with_update(rule: Rule | BlockRule, update: object) -> Rule | BlockRule:
    """Return the rule with the update that a case or a caller asks for; None leaves it as it is."""
    if update is None:
        return rule
    try:
        chosen: Update = as_update(update)
        if isinstance(rule, Rule):
            return rule.updated(chosen)
    except KernelError as error:
        raise CaseError(error.message, key=KEY, remedy=error.remedy) from error
    raise CaseError(
        f"block rule {rule.name!r} has an update of its own: all blocks at once",
        key=KEY,
        remedy="leave the update out; a rule whose blocks change by chance uses mg.random()",
    )


def record_step(rule: Rule | BlockRule, fields: Mapping[str, Field], parameters: Mapping[str, Number]) -> Program:
    """Record one step of the fields of a rule, from slot now to slot next, which then becomes now.

    Raises
    ------
    CaseError
        If the grid does not suit the update.
    """
    step = Program("step")
    scalars = dict[str, Any](parameters)
    now, new = [f.now for f in fields.values()], [f.next for f in fields.values()]
    if isinstance(rule, BlockRule):
        step.apply(rule.kernel, *now, *new, **_wraps(rule, now[0].field.grid), **scalars)
    elif isinstance(rule.update, Coloured):
        for field in fields.values():
            step.apply(_COPY, field.now, field.next)
        _record_colours(step, rule, rule.update, tuple(fields.values()), scalars)
    else:
        step.apply(rule.kernel, *now, *new, **scalars)
    step.rotate(*fields.values())
    step.let(STEP, STEP + 1)
    return step


def recurrence(rule: Rule | BlockRule, step: Program, fields: Sequence[Field]) -> Recurrence | None:
    """Return the slots that determine the future of the cells; None if the step uses random numbers or the clock."""
    if any(scalar.name in _CLOCK for scalar in _scalars(step.operations)):
        return None
    now, before = tuple(f.now for f in fields), tuple(f.previous for f in fields)
    if isinstance(rule, Rule) and isinstance(rule.update, SecondOrder):
        return Recurrence((*now, *before))
    return Recurrence(now, before, cycle=2 if isinstance(rule, BlockRule) else 1)


_CLOCK: Final = (SEED.key, STEP.key)


def _scalars(operations: Sequence[Operation]) -> Iterator[Scalar]:
    """Yield the scalars that operations use, except for the operation that increments the step."""
    for operation in flat(operations):
        if isinstance(operation, Apply) or (isinstance(operation, Let) and operation.register is not STEP):
            yield from operation.graph.scalars


def _copy(old: CellReader, new: CellReader) -> None:
    here = (0,) * len(old.axes)
    new[here] = old[here]


_COPY: Final = Kernel(_copy, name="copy")


# Blocks --------------------------------------------------------------------------------------------------------------
def _wraps(rule: BlockRule, grid: Grid) -> dict[str, Any]:
    """Return the step, and for each axis the number of cells after which it repeats. Blocks must fit periodic axes."""
    if grid.twisted:
        raise CaseError(
            f"block rule {rule.name!r} on a shifted or twisted torus: its blocks would not meet at the seam",
            key="grid.boundary",
            remedy='leave shifts and twists out: "periodic"',
        )
    for axis, length in enumerate(grid.shape):
        if grid.periodic[axis] and length % 2:
            raise CaseError(
                f"block rule {rule.name!r} on a periodic axis of {length} cells: its blocks are 2 cells wide",
                key="grid.shape",
                remedy=f'use {length + 1} cells along axis {axis}, or the boundary "fixed"',
            )
    wraps = {f"wrap_{axis}": length * grid.periodic[axis] for axis, length in enumerate(grid.shape)}
    return {"step": STEP, **wraps}


# Colours -------------------------------------------------------------------------------------------------------------
def _record_colours(
    step: Program, rule: Rule, update: Coloured, fields: Sequence[Field], scalars: Mapping[str, Any]
) -> None:
    """Update the next slots in place, colour after colour."""
    regions = _colours(rule.neighbourhood, fields[0].grid)
    targets = [field.next for field in fields]
    if update.order == "fixed":
        for region in regions:
            step.apply(rule.kernel, *targets, region=region, **scalars)
        return
    if len(regions) > MOST_SHUFFLED:
        raise CaseError(
            f"rule {rule.name!r} has {len(regions)} colours, too many for a random order",
            key=KEY,
            remedy=f'at most {MOST_SHUFFLED} can be shuffled: use a smaller neighbourhood, or update = "coloured"',
        )
    turns = _shuffle(step, len(regions))
    turn = Register("update.turn", "i8")
    step.let(turn, 0)
    with step.repeat(len(regions)):
        for mine, region in zip(turns, regions, strict=True):
            with step.when(mine == turn):
                step.apply(rule.kernel, *targets, region=region, **scalars)
        step.let(turn, turn + 1)


def _colours(neighbourhood: Neighbourhood, grid: Grid) -> list[Region]:
    """Return the cells of each colour: even and odd ones, or every n-th along each axis."""
    around = neighbourhood.around(grid.ndim)
    if all(sum(offset) % 2 for offset in around):
        _check_closed(grid, (2,) * grid.ndim, "a checkerboard")
        return [Region(colour=0), Region(colour=1)]
    strides = tuple(1 + max(abs(offset[axis]) for offset in around) for axis in range(grid.ndim))
    _check_closed(grid, strides, f"colours that repeat every {' x '.join(map(str, strides))} cells")
    firsts = itertools.product(*(range(min(n, length)) for n, length in zip(strides, grid.shape, strict=True)))
    return [Region(Box(first, grid.shape), stride=strides) for first in firsts]


def _check_closed(grid: Grid, strides: Sequence[int], what: str) -> None:
    """Raise CaseError if cells of one colour would meet at a seam of the grid."""
    if grid.seam is not None:
        raise CaseError(
            f"{what} on a {grid.seam.surface}: cells of one colour meet where edges are joined in reverse",
            key="grid.boundary",
            remedy='use "periodic" or "fixed", or a synchronous update',
        )
    for axis, (length, stride) in enumerate(zip(grid.shape, strides, strict=True)):
        if grid.periodic[axis] and length % stride:
            fitting = math.ceil(length / stride) * stride
            raise CaseError(
                f"{what} on a periodic axis of {length} cells: cells of one colour meet where it closes",
                key="grid.shape",
                remedy=f'use {fitting} cells along axis {axis}, or the boundary "fixed"',
            )
    if any(moved % stride for vector in grid.shift for moved, stride in zip(vector, strides, strict=True)):
        raise CaseError(
            f"{what} on a torus shifted by {grid.shift}: cells of one colour meet at the seam",
            key="grid.boundary",
            remedy=f"shift by multiples of {' and '.join(map(str, sorted(set(strides))))} cells",
        )


def _shuffle(step: Program, count: int) -> list[Register]:
    """Record, for each of `count` colours, its position in the order of this step: a random permutation from the seed.

    Colours are ranked by one random word each, equal words by the number of the colour.
    """
    seed, number = SEED.node, STEP.node
    key = threefry(_halves(seed), (_halves(number)[0], _halves(number)[1] ^ _ORDER_STREAM))
    words, turns = [], []
    for colour in range(count):
        word = threefry(key, (const(colour, "u4"), const(0, "u4")))[0]
        words.append(step.let(Register(f"update.word{colour}", "u4"), word))
    for colour, mine in enumerate(words):
        before = [
            word <= mine if other < colour else word < mine for other, word in enumerate(words) if other != colour
        ]
        rank: Any = const(0, "i8")
        for earlier in before:
            rank = rank + cast(earlier, "i8")
        turns.append(step.let(Register(f"update.turn{colour}", "i8"), rank))
    return turns


def _halves(number: Node) -> tuple[Node, Node]:
    return cast(number, "u4"), cast(number >> 32, "u4")
