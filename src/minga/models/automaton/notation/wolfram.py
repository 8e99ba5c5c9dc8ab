"""Wolfram's numbers: elementary rules "W30", and codes of more colours and neighbours.

Forms: "W...,K3,R2" by the whole neighbourhood, totalistic codes "T777,K3" and outer-totalistic codes "O942,NN". The
digits of a number in base K, the last one first, are the next states: of neighbourhoods spelled from left to right (W),
of the sum over the neighbourhood with the cell (T), or of K times the sum over the neighbours, plus the cell (O).
Source: S. Wolfram, A New Kind of Science, 2002, pages 53, 60, 170 and 928.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import Neighbourhood, moore, von_neumann
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import STATES_OF_A_BYTE, RuleContext
from minga.lang.table import lookup
from minga.lang.types import DType
from minga.models.automaton.notation.text import in_dimensions, squeezed, wrong

__all__ = ["Code", "code_rule", "elementary", "parse_code"]

_CODE: Final = re.compile(r"([WTO])([0-9]{1,4000})((?:,[KRN][0-9A-Z]{1,9})*)", re.IGNORECASE)
_MOST_ENTRIES: Final = 1 << 16
_EXAMPLES: Final = 'write "W30" (elementary), "T777,K3" (totalistic, 3 states), "O942,NN" (outer-totalistic)'


@dataclass(frozen=True, slots=True)
class Code:
    """Numbered rule.

    Attributes
    ----------
    kind
        W: by the whole neighbourhood, in one dimension; T: by the sum including the cell; O: by the cell and the sum.
    number
        Number whose digits in base `states` are the next states.
    states
        Number of states.
    radius
        Radius of the neighbourhood.
    letter
        M: Moore's neighbourhood, N: von Neumann's.
    """

    kind: str
    number: int
    states: int = 2
    radius: int = 1
    letter: str = "M"

    def __str__(self) -> str:
        states = "" if self.states == 2 else f",K{self.states}"
        radius = "" if self.radius == 1 else f",R{self.radius}"
        return f"{self.kind}{self.number}{states}{radius}{'' if self.letter == 'M' else f',N{self.letter}'}"

    @property
    def neighbourhood(self) -> Neighbourhood:
        """Neighbourhood of cells that the rule reads."""
        return von_neumann(self.radius) if self.letter == "N" else moore(self.radius)

    def entries(self, ndim: int) -> int:
        """Return the number of different neighbourhoods that the rule distinguishes."""
        around: int = (2 * self.radius + 1) ** ndim - 1
        if self.letter == "N" and around <= _MOST_ENTRIES:
            around = len(self.neighbourhood.around(ndim))
        if self.kind == "W":
            return int(self.states ** min(around + 1, 64))
        if self.kind == "T":
            return (around + 1) * (self.states - 1) + 1
        return (around * (self.states - 1) + 1) * self.states


def parse_code(text: str) -> Code | None:
    """Return the numbered rule that a text stands for, or None if it has another form."""
    text = squeezed(text).upper()
    match = _CODE.fullmatch(text)
    if match is None:
        return None
    given = [part for part in match[3].split(",") if part]
    values = {part[0]: part[1:] for part in given}
    if len(values) < len(given):
        raise wrong(f"{text} has {given[-1][0]} twice", _EXAMPLES)
    letter = values.pop("N", "M")
    if letter not in ("M", "N"):
        raise wrong(f"{text}: there is no neighbourhood N{letter}", "NM is Moore's (the default), NN von Neumann's")
    if bad := [value for value in values.values() if not value.isdigit()]:
        raise wrong(f"{text}: {bad[0]!r} is not a number", _EXAMPLES)
    code = Code(match[1], int(match[2]), int(values.get("K", 2)), int(values.get("R", 1)), letter)
    if not 2 <= code.states <= STATES_OF_A_BYTE:
        raise wrong(f"{text} has {code.states} states; there can be 2 .. {STATES_OF_A_BYTE}", "K is their number")
    if not 1 <= code.radius <= 500:
        raise wrong(f"{text} has radius {code.radius}; it can be 1 .. 500", "R is the radius of the neighbourhood")
    return code


def elementary(number: int) -> Rule:
    """Return Wolfram's elementary rule: bit 4 left + 2 cell + right of the number is the next state."""
    return code_rule(Code("W", number), 1)


def code_rule(code: Code, ndim: int) -> Rule:
    """Return the Rule of a number in `ndim` dimensions."""
    name = _shortened(str(code))
    if code.kind == "W":
        in_dimensions(name, 1, ndim)
    entries = code.entries(ndim)
    if entries > _MOST_ENTRIES:
        raise wrong(f"rule {name} distinguishes more than {_MOST_ENTRIES} neighbourhoods", "use a smaller K or R")
    if code.number >= code.states**entries:
        what = "elementary rules" if (code.kind, entries) == ("W", 8) else "such rules"
        last = _shortened(f"{code.kind}{code.states**entries - 1}")
        raise wrong(f"{what} are {code.kind}0 .. {last}, found {name}", _EXAMPLES)
    table = _digits(code.number, code.states, entries)
    if (code.kind, entries) == ("W", 8):
        return _elementary(name, table)

    @rule(neighbourhood=code.neighbourhood, states=code.states, name=str(code))
    def next_state(cell: Node, near: RuleContext) -> Node:
        if code.kind == "W":
            values = near.values()
            half = len(values) // 2
            return lookup(table, _spelled([*values[:half], cell, *values[half:]], code.states))
        return lookup(table, _by_sum(cell, near, code))

    return next_state


def _elementary(name: str, table: NDArray[np.uint8]) -> Rule:
    """Return the rule in byte operations, which are faster than a lookup."""

    @rule(neighbourhood=moore(1), states=2, name=name)
    def next_state(cell: Node, near: RuleContext) -> Node:
        spelled = near[-1] * 4 + cell * 2 + near[1]
        ones = [spelled == bit for bit in np.flatnonzero(table).tolist()]
        found = ones[0] if ones else cell != cell
        for one in ones[1:]:
            found = found | one
        return found

    return next_state


def _spelled(values: Iterable[Node], states: int) -> Node:
    """Return the number whose digits are these cells."""
    first, *others = (cast(value, "i4") for value in values)
    for value in others:
        first = first * states + value
    return first


def _by_sum(cell: Node, near: RuleContext, code: Code) -> Node:
    kind: DType = "i4"
    total = cast(near.sum(), kind)
    return total * code.states + cast(cell, kind) if code.kind == "O" else total + cast(cell, kind)


def _digits(number: int, base: int, count: int) -> NDArray[np.uint8]:
    """Return the digits of a number, the last one first."""
    digits = []
    for _ in range(count):
        number, digit = divmod(number, base)
        digits.append(digit)
    return np.array(digits, np.uint8)


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"
