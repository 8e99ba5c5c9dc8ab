"""Weighted Life, "NW0,NN1,NE0,WW1,ME0,EE1,SW0,SS1,SE0,HI0,RS2,RB1,RB3": live neighbours count by their weights.

A weight for each cell of the Moore neighbourhood (ME is the cell itself; those left out are 0), HI the number of states
(0: two; further ones age as in Generations), an RS for each sum with which a cell survives and an RB for each with
which it is born. Source: M. Wojtowicz, MCell's rules lexicon, "Weighted Life".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.errors import suggest
from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import offsets
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import STATES_OF_A_BYTE, RuleContext
from minga.lang.table import lookup
from minga.models.automaton.notation.ageing import aged, ageing_colours
from minga.models.automaton.notation.text import in_dimensions, squeezed, wrong

__all__ = ["WeightedLife", "parse_weighted", "weighted_life"]

PLACES: Final = {
    "NW": (-1, -1), "NN": (-1, 0), "NE": (-1, 1), "WW": (0, -1), "ME": (0, 0), "EE": (0, 1), "SW": (1, -1),
    "SS": (1, 0), "SE": (1, 1),
}  # fmt: skip
MOST_WEIGHT: Final = 1000

_PART: Final = re.compile(r"([A-Z]{2})(-?[0-9]{1,9})")
_FORM: Final = re.compile(r"[A-Z]{2}-?[0-9]+(,[A-Z]{2}-?[0-9]+)+", re.IGNORECASE)
_EXAMPLE: Final = 'write as in "NN1,WW1,EE1,SS1,HI0,RS2,RB1,RB3"'


@dataclass(frozen=True, slots=True)
class WeightedLife:
    """Weights of the nine cells, row by row, the number of states, and the sums for survival and birth."""

    weights: tuple[int, ...]
    states: int
    survival: frozenset[int]
    birth: frozenset[int]

    def __str__(self) -> str:
        words = [f"{name}{weight}" for name, weight in zip(PLACES, self.weights)]
        words.append(f"HI{0 if self.states == 2 else self.states}")
        words += [f"RS{total}" for total in sorted(self.survival)] + [f"RB{total}" for total in sorted(self.birth)]
        return ",".join(words)


def parse_weighted(text: str) -> WeightedLife | None:
    """Return the rule that a text stands for, or None if it has another form; raise CaseError for an invalid part."""
    text = squeezed(text).upper()
    if not _FORM.fullmatch(text):
        return None
    weights: dict[str, int] = {}
    sums: dict[str, set[int]] = {"RS": set(), "RB": set()}
    states = 2
    for part in text.split(","):
        match = _PART.fullmatch(part)
        word, number = (match[1], int(match[2])) if match else (part[:2], MOST_WEIGHT + 1)
        if word not in (*PLACES, "HI", "RS", "RB"):
            close = suggest(word, [*PLACES, "HI", "RS", "RB"])
            raise wrong(f"{part}: there is no {word} in a weighted rule", _EXAMPLE, suggestion=close)
        if abs(number) > MOST_WEIGHT:
            raise wrong(f"{part}: weights and sums are at most {MOST_WEIGHT}", _EXAMPLE)
        if word in sums:
            sums[word].add(number)
        elif word == "HI":
            states = max(2, number)
        elif word in weights:
            raise wrong(f"{word} has two weights", _EXAMPLE)
        else:
            weights[word] = number
    if states > STATES_OF_A_BYTE:
        raise wrong(f"HI{states}: there can be at most {STATES_OF_A_BYTE} states", _EXAMPLE)
    if not any(weights.get(word) for word in PLACES if word != "ME"):
        raise wrong("no neighbour has a weight", _EXAMPLE)
    found = WeightedLife(
        tuple(weights.get(word, 0) for word in PLACES), states, frozenset(sums["RS"]), frozenset(sums["RB"])
    )
    _check_sums(found)
    return found


def _check_sums(which: WeightedLife) -> None:
    low, high = _reach(which.weights)
    for total in sorted(which.survival | which.birth):
        if not low <= total <= high:
            raise wrong(f"no cell ever has the sum {total}", f"with these weights sums are {low} .. {high}")


def _reach(weights: Iterable[int]) -> tuple[int, int]:
    """Return the least and the greatest sum."""
    given = tuple(weights)
    return sum(min(0, weight) for weight in given), sum(max(0, weight) for weight in given)


def weighted_life(which: WeightedLife, ndim: int = 2) -> Rule:
    """Return the Rule of a weighted Life: one weighted sum of live cells, looked up in a table."""
    name = str(which)
    in_dimensions(name, 2, ndim)
    low, high = _reach(which.weights)
    table = np.zeros(2 * (high - low + 1), np.uint8)
    for half, totals in enumerate((which.birth, which.survival)):
        table[[half * (high - low + 1) + total - low for total in totals]] = 1
    weights = dict(zip(PLACES.values(), which.weights))
    around = [offset for offset, weight in weights.items() if weight and any(offset)]

    @rule(neighbourhood=offsets(around), states=which.states, name=name, colours=ageing_colours(which.states))
    def next_state(cell: Node, near: RuleContext) -> Node:
        live = cast(cell == 1, "i4")
        index = live * (high - low + 1 + weights[0, 0]) - low
        for offset in around:
            index = index + cast(near[offset] == 1, "i4") * weights[offset]
        return aged(cell, lookup(table, index) == 1, which.states)

    return next_state
