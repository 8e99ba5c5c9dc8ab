"""Boundaries of rows stored as bits: conditions for words, and the unused bits of the last words.

Each condition of cells is evaluated for every ghost cell that the rule reads; the result is a state, or the state of a
cell inside. It is then translated into bits of words. The bits of a last word beyond the end of its row are ghost cells
as well: a step updates them together with the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import MingaError
from minga.lang.cell import CellReader
from minga.lang.expr import Node, const, where
from minga.models.automaton.bits_kernel import Edges
from minga.models.automaton.bits_rule import Unsuitable
from minga.space.bit_words import WORD
from minga.space.boundary import SIDES, Condition, Edge, Side, custom, fixed

__all__ = ["Row", "plane_conditions"]

FULL = 2**WORD - 1


@dataclass(frozen=True, slots=True)
class Inside:
    """The n-th cell inside an end, counted from 0."""

    n: int


Ghost = int | Inside


@dataclass(frozen=True, slots=True)
class _Probe:
    """Stand-in for the edge of a field while a condition is evaluated for ghost cell number `layer`."""

    layer: int
    side: Side

    def __getitem__(self, n: int) -> Inside:
        return Inside(n)


def ghost(condition: Condition, side: Side, layer: int) -> Ghost:
    """Return the value that a condition gives to a ghost cell: a state, or a cell inside.

    Raises
    ------
    Unsuitable
        If the value is neither.
    """
    try:
        found: Any = condition.value(_Probe(layer, side))  # type: ignore[arg-type]
    except (TypeError, AttributeError, MingaError) as error:
        raise Unsuitable(f"cells beyond an end are computed by {condition.name}") from error
    if isinstance(found, Inside):
        return found
    if not isinstance(found, bool | int | float) or found != int(found):
        raise Unsuitable(f"cells beyond an end are computed by {condition.name}")
    return int(found)


def _word(state: int, plane: int) -> int:
    """Return a word of cells that are all in one state."""
    return FULL if state >> plane & 1 else 0


@dataclass(frozen=True, slots=True)
class Row:
    """Ends of a grid's rows for a rule that reads `before` cells backwards and `after` cells forwards along them."""

    length: int
    sides: tuple[Condition | None, Condition | None]
    before: int
    after: int

    @property
    def words(self) -> int:
        """Number of words of a row."""
        return -(-self.length // WORD)

    @property
    def tail(self) -> int:
        """Number of cells in the last word."""
        return self.length - (self.words - 1) * WORD

    @property
    def uneven(self) -> bool:
        """True if the last word is only partly used."""
        return self.tail != WORD

    @property
    def periodic(self) -> bool:
        """True if the two ends of a row are joined."""
        return self.sides[0] is None

    def check(self) -> None:
        """Raise Unsuitable if the last word holds too few cells."""
        if self.uneven and self.periodic and max(self.before, self.after) > self.tail:
            raise Unsuitable(f"rows of {self.length} cells end with a word of {self.tail}, fewer than a cell reads")
        for n in (item.n for item in self.beyond() if isinstance(item, Inside)):
            if n >= self.tail:
                raise Unsuitable(f"rows of {self.length} cells end with a word of {self.tail}, too few for a mirror")

    def beyond(self) -> list[Ghost]:
        """Return the ghost cells that occupy unused bits of the last word, in order."""
        high = self.sides[1]
        if high is None or not self.uneven:
            return []
        return [ghost(high, "high", layer) for layer in range(1, min(max(self.after, 1), WORD - self.tail) + 1)]

    def condition(self, side: Side, plane: int) -> Condition | None:
        """Return the condition of words at one end of the rows."""
        given = self.sides[side == "high"]
        if given is None:
            return None
        looked = self.before if side == "low" else self.after
        known = [ghost(given, side, layer) for layer in range(1, max(1, looked) + 1)]
        if all(item == known[0] and isinstance(item, int) for item in known):
            return fixed(_word(int(known[0]), plane))  # type: ignore[arg-type]

        def word(edge: Edge) -> Node:
            value: Any = edge[0] ^ edge[0]
            for layer, item in enumerate(known, 1):
                number, bit = divmod(self.length - 1 + layer if side == "high" else -layer, WORD)
                place = number - self.words + 1 if side == "high" else -number
                if place != edge.layer:
                    continue
                if isinstance(item, int):
                    value = value | (_word(item, plane) & 1 << bit)
                else:
                    value = value | (self._cell(edge, side, item.n) & 1) << bit
            return value  # type: ignore[no-any-return]

        return custom(word, f"{given.name} of words")

    def _cell(self, edge: Edge, side: Side, n: int) -> Node:
        """Return a word whose lowest bit is the n-th cell inside an end."""
        number, bit = divmod(self.length - 1 - n if side == "high" else n, WORD)
        return edge[self.words - 1 - number if side == "high" else number] >> bit

    def last_word(self, state: int, plane: int) -> int:
        """Return the last word of a row whose cells are all in one state, including the ghost cells that it holds."""
        value = _word(state, plane)
        for bit, item in enumerate(self.beyond(), self.tail):
            there = item if isinstance(item, int) else state
            value = value & ~(1 << bit) | (_word(there, plane) & 1 << bit)
        return value

    # Rows that end within a word -----------------------------------------------------------------------------------
    def fields(self) -> list[tuple[str, NDArray[np.uint64]]]:
        """Return the fields along the rows that a step needs, by name.

        They are the masks of bits in use, the numbers of bits in each word, and those of the words before.
        """
        if not self.uneven:
            return []
        used = np.full(self.words, FULL, np.uint64)
        used[-1] = (1 << self.tail) - 1
        sizes = np.full(self.words, WORD, np.uint64)
        sizes[-1] = self.tail
        periodic = [("size", sizes), ("size_before", np.roll(sizes, 1))] if self.periodic else []
        return [("used", used), *periodic]

    def edges(self) -> Edges:
        """Return the parts of the step that handle words that are only partly used."""
        if not self.uneven:
            return Edges()
        shifts = (lambda row: (_here(row[1]), _here(row[2]))) if self.periodic else None
        return Edges(self._finish, shifts)

    def _finish(self, values: list[Node], row: Sequence[CellReader]) -> list[Node]:
        used = _here(row[0])
        return [self._with_ghosts(value & used, used, plane) for plane, value in enumerate(values)]

    def _with_ghosts(self, value: Node, used: Node, plane: int) -> Node:
        known = self.beyond()
        if known and all(item == known[0] and isinstance(item, int) for item in known):
            return value | ~used if _word(int(known[0]), plane) else value  # type: ignore[arg-type]
        for bit, item in enumerate(known, self.tail):
            if isinstance(item, int):
                value = value | (~used & (_word(item, plane) & 1 << bit))
            else:
                value = value | (~used & ((value >> (self.tail - 1 - item.n) & 1) << bit))
        return value

    def filled(self, states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Extend rows of first states to whole words, including the ghost cells behind their ends."""
        missing = -states.shape[-1] % WORD
        if not missing:
            return states
        ghosts = np.zeros((*states.shape[:-1], missing), np.uint8)
        for k, item in enumerate(self.beyond()):
            ghosts[..., k] = item if isinstance(item, int) else states[..., -1 - item.n]
        known = self.beyond()
        if known and all(item == known[0] and isinstance(item, int) for item in known):
            ghosts[...] = known[0]
        return np.concatenate([states, ghosts], axis=-1)


def _here(field: CellReader) -> Node:
    return field[0]


Pair = tuple[Condition, Condition]


def plane_conditions(row: Row, sides: Sequence[Pair | None], plane: int) -> dict[str | int, Pair]:
    """Return the conditions of one plane of words, by axis, given the conditions of cells.

    Raises
    ------
    Unsuitable
        If a condition cannot be expressed in bits.
    """
    conditions: dict[str | int, Pair] = {}
    for axis, pair in enumerate(sides[:-1]):
        if pair is not None:
            low, high = (_aside(given, side, plane, row) for given, side in zip(pair, SIDES, strict=True))
            conditions[axis] = (low, high)
    low_end, high_end = row.condition("low", plane), row.condition("high", plane)
    if low_end is not None and high_end is not None:
        conditions[len(sides) - 1] = (low_end, high_end)
    return conditions


def _aside(condition: Condition, side: Side, plane: int, row: Row) -> Condition:
    """Return the condition of words at an end of another axis, where all bits of a word are alike.

    The exception is the last word of cells in a fixed state: its unused bits hold ghost cells beyond the end of the
    row, and for these the condition of the row takes precedence.
    """
    first = ghost(condition, side, 1)
    if isinstance(first, int):
        inside, last = _word(first, plane), row.last_word(first, plane)
        if inside == last:
            return fixed(inside)
        return Condition(
            condition.name,
            lambda edge: where(edge.index(edge.ndim - 1) == row.words - 1, const(last, "u8"), const(inside, "u8")),
            reads=False,
        )

    def word(edge: Edge) -> object:
        found = ghost(condition, side, edge.layer)
        return edge[found.n] if isinstance(found, Inside) else _word(found, plane)

    return custom(word, condition.name)
