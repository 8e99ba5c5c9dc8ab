"""Rules as decision diagrams: the cells are queried one after the other, and the last answer gives the result.

A diagram has one level for each queried cell. A node of a level has a child for each state: a node of the next level,
or on the last level the next state. Rules of many states and neighbours, whose full tables would not fit into any
memory, have small diagrams, since most of their nodes are equal. A kernel walks through a few levels with each lookup,
as many as fit into a table that stays in the fastest caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import Neighbourhood, Offset
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import RuleContext
from minga.lang.table import lookup
from minga.models.automaton.notation.text import wrong

__all__ = ["Diagram", "Stage", "diagram_rule", "reduced", "stages"]

STAGE: Final = 1 << 15
"""Entries of a stage's table if more than one stage is needed."""
WHOLE: Final = 1 << 18
"""Largest number of entries of a table that covers the whole rule in one lookup."""
MOST: Final = 1 << 20
"""Largest number of entries of a table: tables are part of the kernel's code."""

Level = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Diagram:
    """Decision diagram.

    Attributes
    ----------
    states
        Number of states; cells have the states 0 .. states - 1.
    asked
        Offset of the cell that is queried on each level.
    levels
        For each level an array of shape (nodes, states) with the children; the first level has one node.
    """

    states: int
    asked: tuple[Offset, ...]
    levels: tuple[Level, ...]

    def __call__(self, values: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the next states for an array whose last axis holds the states of the queried cells."""
        node = np.zeros(values.shape[:-1], np.int32)
        for number, level in enumerate(self.levels):
            node = level[node, values[..., number]]
        return node


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Several levels in one table: entry `node * states ** asked + ...` with the states of `asked` cells as digits."""

    first: int
    asked: int
    table: NDArray[np.integer]


def reduced(diagram: Diagram) -> Diagram:
    """Return the same function with equal nodes merged."""
    levels: list[Level] = []
    names: Level | None = None
    for level in reversed(diagram.levels):
        children = level if names is None else names[level]
        unique, inverse = np.unique(children, axis=0, return_inverse=True)
        levels.insert(0, unique.astype(np.int32))
        names = inverse.reshape(-1).astype(np.int32)
    assert names is not None
    root = levels[0][names[0]]
    return Diagram(diagram.states, diagram.asked, (root[None, :], *levels[1:]))


def stages(diagram: Diagram) -> tuple[Stage, ...]:
    """Return the diagram in as few tables as their size allows; raise CaseError if a single level is too large."""
    count, states = len(diagram.levels), diagram.states
    largest = WHOLE if states**count <= WHOLE else STAGE
    found: list[Stage] = []
    first = 0
    while first < count:
        nodes, asked = len(diagram.levels[first]), 1
        while first + asked < count and nodes * states ** (asked + 1) <= largest:
            asked += 1
        if nodes * states > MOST:
            raise wrong(
                f"the rule distinguishes {nodes * states} situations", f"a kernel's tables have at most {MOST} entries"
            )
        found.append(Stage(first, asked, _table(diagram, first, asked)))
        first += asked
    return tuple(found)


def _table(diagram: Diagram, first: int, asked: int) -> NDArray[np.integer]:
    table = diagram.levels[first]
    for level in diagram.levels[first + 1 : first + asked]:
        table = level[table.reshape(-1)].reshape(len(table), -1)
    most = int(table.max())
    kind = np.uint8 if most < 1 << 8 else np.int16 if most < 1 << 15 else np.int32
    return table.reshape(-1).astype(kind)


def diagram_rule(diagram: Diagram, neighbourhood: Neighbourhood, name: str) -> Rule:
    """Return the Rule that walks through a diagram."""
    plan, states = stages(diagram), diagram.states

    @rule(neighbourhood=neighbourhood, states=states, name=name)
    def next_state(cell: Node, near: RuleContext) -> Node:
        result: Node | None = None
        for stage in plan:
            index = result if result is None else cast(result, "i4")
            for offset in diagram.asked[stage.first : stage.first + stage.asked]:
                value = cast(near[offset] if any(offset) else cell, "i4")
                index = value if index is None else index * states + value
            result = lookup(stage.table, index)
        assert result is not None
        return result

    return next_state
