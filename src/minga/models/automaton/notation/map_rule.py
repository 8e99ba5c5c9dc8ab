"""MAP strings: any rule of two states and a small neighbourhood as the bits of its table, in base 64.

Bit i of the table, from the left, says whether a cell lives next whose neighbourhood spells i in binary: row by row
from the upper left, the cell itself in its place, the first one highest; in a hexagonal neighbourhood, however, the
lowest row comes first, as in Golly. A Moore neighbourhood has 512 bits (86 characters), a hexagonal one 128 (22), von
Neumann's 32 (6). Source: Golly's help, Algorithms, QuickLife, "MAP rules", and the behaviour of bgolly 3.3 for single
bits.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import Neighbourhood, Offset, hex, moore, von_neumann
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import STATES_OF_A_BYTE, RuleContext
from minga.lang.table import lookup
from minga.models.automaton.notation.ageing import aged
from minga.models.automaton.notation.text import in_dimensions, squeezed, wrong

__all__ = ["Map", "map_rule", "parse_map"]

_MAP: Final = re.compile(r"MAP([A-Za-z0-9+/]{0,200}?)(?:==)?(?:/([0-9]{1,9}))?")
_NEIGHBOURHOODS: Final[dict[int, Neighbourhood]] = {86: moore(1), 22: hex(), 6: von_neumann(1)}
"""Neighbourhoods by the number of characters."""


@dataclass(frozen=True, slots=True)
class Map:
    """Text of a table in base 64, and the number of states that cells age through."""

    characters: str
    states: int = 2

    def __str__(self) -> str:
        return f"MAP{self.characters}{'' if self.states == 2 else f'/{self.states}'}"

    @property
    def neighbourhood(self) -> Neighbourhood:
        """Neighbourhood of cells that the rule reads."""
        return _NEIGHBOURHOODS[len(self.characters)]

    @property
    def spelled(self) -> list[Offset]:
        """Cells that the bits of the table's index stand for, the highest first."""
        cells = [*self.neighbourhood.around(2), (0, 0)]
        upwards = -1 if self.neighbourhood == hex() else 1
        return sorted(cells, key=lambda offset: (upwards * offset[0], offset[1]))

    def table(self) -> NDArray[np.uint8]:
        """Return the table of next states, by the number that a neighbourhood spells: 1 if the cell lives next."""
        content = base64.b64decode(self.characters + "==")
        bits = np.unpackbits(np.frombuffer(content, np.uint8))
        return bits[: 1 << len(self.neighbourhood.around(2)) + 1]


def parse_map(text: str) -> Map | None:
    """Return the rule that a MAP string stands for, or None if it has another form; a wrong length is a CaseError."""
    match = _MAP.fullmatch(squeezed(text))
    if match is None:
        return None
    characters, states = match[1], int(match[2] or 2)
    if len(characters) not in _NEIGHBOURHOODS:
        raise wrong(
            f"MAP is followed by {len(characters)} characters",
            "give 86 (Moore), 22 (hexagonal) or 6 (von Neumann) in base 64",
        )
    if not 2 <= states <= STATES_OF_A_BYTE:
        raise wrong(f"{text} has {states} states; there can be 2 .. {STATES_OF_A_BYTE}")
    return Map(characters, states)


def map_rule(which: Map, ndim: int = 2) -> Rule:
    """Return the Rule of a MAP string."""
    in_dimensions("MAP...", 2, ndim)
    table, states = which.table(), which.states

    @rule(neighbourhood=which.neighbourhood, states=states, name=str(which))
    def next_state(cell: Node, near: RuleContext) -> Node:
        index = None
        for offset in which.spelled:
            value = near[offset] if any(offset) else cell
            live = cast(value if states == 2 else value == 1, "i2")
            index = live if index is None else index * 2 + live
        return aged(cell, lookup(table, index) == 1, states)

    return next_state
