"""Hensel's notation of isotropic rules, "B2-a/S12": letters denote arrangements of the live neighbours.

A letter after a count stands for one arrangement of so many live neighbours in a Moore neighbourhood, rotated or
mirrored in any way; a minus sign stands for all but the letters after it. Sources: the table in Golly's help
(Algorithms, QuickLife), A. Hensel's Life pages; each letter was compared with Golly's interpretation of it.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import RuleContext
from minga.lang.table import lookup
from minga.models.automaton.notation.text import birth_and_survival, in_dimensions, squeezed, wrong

__all__ = ["AROUND", "Isotropic", "alive_by_table", "isotropic", "parse_isotropic"]

AROUND: Final = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""Neighbours clockwise from the north: bit k of an arrangement is 1 if neighbour k is alive."""

_UP_TO_FOUR: Final = {
    1: {"c": 0b10, "e": 0b1},
    2: {"c": 0b1010, "e": 0b101, "k": 0b1001, "a": 0b11, "i": 0b10001, "n": 0b100010},
    3: {
        "c": 0b101010, "e": 0b10101, "k": 0b100101, "a": 0b111, "i": 0b1110, "n": 0b1011, "y": 0b101001,
        "q": 0b100011, "j": 0b1101, "r": 0b10011,
    },
    4: {
        "c": 0b10101010, "e": 0b1010101, "k": 0b101101, "a": 0b1111, "i": 0b11011, "n": 0b101110, "y": 0b101011,
        "q": 0b100111, "j": 0b110101, "r": 0b10111, "t": 0b111001, "w": 0b110110, "z": 0b110011,
    },
}  # fmt: skip
"""One arrangement for each letter. Those of n = 5 neighbours and more are dead where those of 8 - n are alive."""
LETTERS: Final = {
    0: "", 8: "",
    **{n: "".join(sorted(_UP_TO_FOUR[min(n, 8 - n)])) for n in range(1, 8)},
}  # fmt: skip

_CONDITIONS: Final = "(?:[0-8](?:-?[cekainyqjrtwz]+)?)*"
_LETTER: Final = re.compile("[0-8]-?[cekainyqjrtwz]")
_CONDITION: Final = re.compile(r"([0-8])(-?)([a-z]*)")

Conditions = frozenset[str]
"""Set of arrangements: "0", "8", and counts with one letter, "2a"."""


@dataclass(frozen=True, slots=True)
class Isotropic:
    """Isotropic rule of two states: the arrangements of live neighbours with which a cell is born or survives.

    The next state depends on the cell and on the arrangement of its live neighbours, but not on how the pattern is
    rotated or mirrored.
    """

    birth: Conditions
    survival: Conditions

    def __str__(self) -> str:
        return f"B{spell(self.birth)}/S{spell(self.survival)}"

    def table(self) -> NDArray[np.uint8]:
        """Return the table of next states: entry 256 * cell + arrangement is 1 if the cell lives next."""
        table = np.zeros(512, np.uint8)
        for half, conditions in enumerate((self.birth, self.survival)):
            for condition in conditions:
                table[[256 * half + arrangement for arrangement in arrangements(condition)]] = 1
        return table


def parse_isotropic(text: str) -> Isotropic | None:
    """Return the rule that a text in Hensel's notation stands for, or None if it has another form or no letter.

    Raises
    ------
    CaseError
        If a letter does not belong to its count.
    """
    if not _LETTER.search(squeezed(text)):
        return None
    halves = birth_and_survival(text.replace("_", "/"), _CONDITIONS)
    return halves and Isotropic(read_conditions(halves[0], text), read_conditions(halves[1], text))


def read_conditions(text: str, whole: str) -> Conditions:
    """Return the arrangements of a text such as "12-a3"; a count without letters stands for all its arrangements."""
    found: set[str] = set()
    for digit, minus, letters in _CONDITION.findall(text):
        known = LETTERS[int(digit)]
        if unknown := sorted(set(letters) - set(known)):
            which = f"are {', '.join(known)}" if known else "do not exist: write it without"
            raise wrong(f"{whole}: there is no arrangement {digit}{unknown[0]}", f"the letters of {digit} {which}")
        if not known:
            found.add(digit)
            continue
        chosen = (set(known) - set(letters) if minus else set(letters)) if letters else set(known)
        found |= {digit + letter for letter in chosen}
    return frozenset(found)


def spell(conditions: Conditions) -> str:
    """Spell arrangements in the shortest way, as Golly does; without a minus sign if that is no longer."""
    words = []
    for digit in range(9):
        known = LETTERS[digit]
        chosen = "".join(letter for letter in known if f"{digit}{letter}" in conditions)
        others = "".join(letter for letter in known if letter not in chosen)
        if not known:
            words += [str(digit)] if str(digit) in conditions else []
        elif chosen:
            shortest = "" if not others else chosen if len(chosen) <= len(others) + 1 else f"-{others}"
            words.append(f"{digit}{shortest}")
    return "".join(words)


@functools.cache
def arrangements(condition: str) -> tuple[int, ...]:
    """Return the sets of live neighbours, one bit each, in all rotations and reflections of an arrangement."""
    count, letter = int(condition[0]), condition[1:]
    if not letter:
        return (255 if count else 0,)
    first = _UP_TO_FOUR[count][letter] if count <= 4 else 255 ^ _UP_TO_FOUR[8 - count][letter]
    bits = [bit for bit in range(8) if first >> bit & 1]
    turned = {sum(1 << (sign * bit + turn) % 8 for bit in bits) for sign in (1, -1) for turn in (0, 2, 4, 6)}
    return tuple(sorted(turned))


def isotropic(which: Isotropic, ndim: int = 2) -> Rule:
    """Return the Rule of an isotropic description."""
    in_dimensions(str(which), 2, ndim)
    table = which.table()

    @rule(neighbourhood=moore(1), states=2, name=str(which))
    def next_state(cell: Node, near: RuleContext) -> Node:
        return alive_by_table(cell, [near[offset] for offset in AROUND], table)

    return next_state


def alive_by_table(cell: Node, around: list[Node], table: NDArray[np.uint8]) -> Node:
    """Return whether a cell lives next, given values 0 and 1.

    The index into the table has the neighbours as its bits, the first one lowest, and then the cell.
    """
    index = cast(around[0], "i2")
    for bit, value in enumerate([*around[1:], cell], start=1):
        index = index + (cast(value, "i2") << bit)
    return lookup(table, index) == 1
