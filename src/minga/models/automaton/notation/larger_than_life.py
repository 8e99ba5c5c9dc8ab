"""Larger than Life, "R5,C0,M1,S34..58,B34..45,NM": birth and survival by counts in a large neighbourhood.

R is the radius, C the number of states (0 and 1 mean 2; further ones age as in Generations), M1 means that a live cell
counts itself, S and B are the counts with which a cell survives or is born, N is the neighbourhood. K. Evans' five
numbers, "5,34,45,34,58" (radius, birth, survival; NM and M1), are the same kind of rule. Source: Golly's help,
Algorithms, Larger than Life; in addition, S and B may list several counts and ranges here, and there are more
neighbourhoods.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import MOST_CELLS, Neighbourhood, Offset, circular, moore, offsets, von_neumann
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import STATES_OF_A_BYTE, RuleContext
from minga.lang.window import MOST_TERMS, pays, terms
from minga.models.automaton.notation.ageing import aged, ageing_colours
from minga.models.automaton.notation.large_weights import NAMES, large_weights
from minga.models.automaton.notation.text import NUMBER, in_dimensions, squeezed, wrong

__all__ = ["LargerThanLife", "larger_than_life", "parse_larger_than_life"]

MOST_RADIUS: Final = 500

_RANGES: Final = r"(?:[0-9][0-9.-]*(?:,[0-9][0-9.-]*)*)?"
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:(?:\.\.|-)([0-9]{1,9}))?")
_MCELL: Final = re.compile(
    rf"R(?P<radius>[0-9]{{1,9}})(?:,C(?P<states>[0-9]{{1,9}}))?(?:,M(?P<middle>[0-9]))?,"
    rf"(?:S(?P<survival>{_RANGES}),B(?P<birth>{_RANGES})|B(?P<birth_first>{_RANGES}),S(?P<survival_last>{_RANGES}))"
    r"(?:,N(?P<letter>[A-Z0-9+*#@])(?P<more>[0-9A-F]*(?:,[0-9A-F]+)?[HL]?))?",
    re.IGNORECASE,
)
_EVANS: Final = re.compile(rf"{NUMBER},{NUMBER},{NUMBER},{NUMBER},{NUMBER}")
_EXAMPLE: Final = 'write as in "R5,C0,M1,S34..58,B34..45,NM"'

Ranges = tuple[tuple[int, int], ...]

_SHAPES: Final[dict[str, tuple[str, Callable[[int, int, int], bool]]]] = {
    "2": ("disc", lambda y, x, r: x * x + y * y <= r * r),
    "+": ("cross", lambda y, x, _: x * y == 0),
    "X": ("saltire", lambda y, x, _: abs(x) == abs(y)),
    "*": ("star", lambda y, x, _: x * y == 0 or abs(x) == abs(y)),
    "#": ("hash", lambda y, x, _: abs(x) == 1 or abs(y) == 1),
    "A": ("asterisk", lambda y, x, _: x * y == 0 or x == y),
    "3": ("tripod", lambda y, x, _: (y <= 0 and x == 0) or (y == 0 and x < 0) or (y > 0 and x == y)),
    "H": ("hexagon", lambda y, x, r: abs(x - y) <= r),
    "B": ("checkerboard", lambda y, x, _: (x + y) % 2 == 1),
    "D": ("aligned checkerboard", lambda y, x, _: (x + y) % 2 == 0),
}
"""Neighbourhoods of two dimensions besides Golly's M, N and C: a name, and a test of the offsets in the box."""


@dataclass(frozen=True, slots=True)
class LargerThanLife:
    """Rule of large radius: counts as inclusive ranges; `middle` is True if a live cell counts itself."""

    radius: int
    states: int
    middle: bool
    survival: Ranges
    birth: Ranges
    letter: str
    more: str = ""
    """Text behind the letter: digits of cells or weights, see `large_weights`."""

    def __str__(self) -> str:
        states = 0 if self.states == 2 else self.states
        return (
            f"R{self.radius},C{states},M{int(self.middle)},S{_spell(self.survival)},B{_spell(self.birth)},"
            f"N{self.letter}{self.more}"
        )

    def neighbourhood(self) -> Neighbourhood:
        """Return the neighbourhood of cells that are counted."""
        return _neighbourhood(self.letter, self.radius)


def _spell(ranges: Ranges) -> str:
    return ",".join(f"{low}..{high}" for low, high in ranges)


def _neighbourhood(letter: str, radius: int) -> Neighbourhood:
    if letter in _BY_LETTER:
        return _BY_LETTER[letter](radius)
    _, belongs = _SHAPES[letter]
    box = moore(radius).around(2)
    cells: list[Offset] = [(y, x) for y, x in box if belongs(y, x, radius)]
    return offsets(cells)


_BY_LETTER: Final = {"M": moore, "N": von_neumann, "C": circular}


def parse_larger_than_life(text: str) -> LargerThanLife | None:
    """Return the rule that a text stands for, or None if it has another form; raise CaseError for invalid numbers."""
    text = squeezed(text)
    if match := _EVANS.fullmatch(text):
        radius, born, most_born, kept, most_kept = map(int, match.groups())
        return _checked(LargerThanLife(radius, 2, True, ((kept, most_kept),), ((born, most_born),), "M"), text)
    match = _MCELL.fullmatch(text)
    if match is None:
        return None
    given = match.groupdict()
    if given["middle"] not in (None, "0", "1"):
        raise wrong(f"{text}: M{given['middle']}", "M1: a live cell counts itself; M0: it does not")
    birth, survival = given["birth"], given["survival"]
    if birth is None:
        birth, survival = given["birth_first"], given["survival_last"]
    found = LargerThanLife(
        radius=int(given["radius"]),
        states=max(2, int(given["states"] or 0)),
        middle=given["middle"] == "1",
        survival=_ranges(survival),
        birth=_ranges(birth),
        letter=(given["letter"] or "M").upper(),
        more=(given["more"] or "").upper(),
    )
    return _checked(found, text)


def _ranges(text: str) -> Ranges:
    """Return counts and ranges of counts in order; adjacent ones are joined."""
    found: list[tuple[int, int]] = []
    for low, high, part in sorted(map(_range, filter(None, text.split(",")))):
        if low > high:
            raise wrong(f"the range {part} is empty", "the smaller number comes first")
        if found and low <= found[-1][1] + 1:
            previous = found.pop()
            low, high = previous[0], max(previous[1], high)
        found.append((low, high))
    return tuple(found)


def _range(part: str) -> tuple[int, int, str]:
    """Return the ends of a count or range, and its text."""
    match = _RANGE.fullmatch(part)
    if match is None:
        raise wrong(f"{part} is no range of counts", "write a count, 34, or a range, 34..58")
    low, high = match.groups()
    return int(low), int(high or low), part


def _checked(which: LargerThanLife, text: str) -> LargerThanLife:
    if not 1 <= which.radius <= MOST_RADIUS:
        raise wrong(f"{text} has radius {which.radius}; it can be 1 .. {MOST_RADIUS}", _EXAMPLE)
    if which.states > STATES_OF_A_BYTE:
        raise wrong(f"{text} has {which.states} states; there can be at most {STATES_OF_A_BYTE}", _EXAMPLE)
    if which.letter not in {*_BY_LETTER, *_SHAPES, *NAMES} or (which.more and which.letter not in "@W"):
        named = {"M": "box", "N": "diamond", "C": "circle", **{k: v[0] for k, v in _SHAPES.items()}, **NAMES}
        known = ", ".join(f"{letter} ({name})" for letter, name in named.items())
        raise wrong(f"{text}: there is no neighbourhood N{which.letter}{which.more}", f"there are {known}")
    return which


def larger_than_life(which: LargerThanLife, ndim: int = 2) -> Rule:
    """Return the Rule of a Larger-than-Life description in `ndim` dimensions."""
    name = str(which)
    if which.letter in _SHAPES or which.letter in NAMES:
        in_dimensions(name, 2, ndim)
    if which.letter in NAMES:
        return _weighted(which, name)
    if (2 * which.radius + 1) ** ndim > MOST_CELLS:
        raise wrong(
            f"rule {name} chooses from {(2 * which.radius + 1) ** ndim} cells in {ndim} dimensions",
            f"use a smaller R: at most {MOST_CELLS} cells",
        )
    neighbourhood = which.neighbourhood()
    around = neighbourhood.around(ndim)
    size = len(around) + 1
    for letter, ranges in (("S", which.survival), ("B", which.birth)):
        if ranges and ranges[-1][1] > size:
            raise wrong(
                f"rule {name} names {ranges[-1][1]} live cells; a neighbourhood N{which.letter} of radius "
                f"{which.radius} has {size} with the cell itself",
                f"use counts up to {size} after {letter}",
            )
    if pays(around) and (count := terms(around)) > MOST_TERMS:
        raise wrong(
            f"rule {name} is too large for a kernel: its count has {count} terms, at most {MOST_TERMS} are possible",
            "use a smaller R, or the neighbourhood NM or NN",
        )

    @rule(neighbourhood=neighbourhood, states=which.states, name=name, colours=ageing_colours(which.states))
    def next_state(cell: Node, near: RuleContext) -> Node:
        live = cell == 1
        n = _with_cell(near.count(1), live, size) if which.middle else near.count(1)
        lives = _inside(n, which.survival) & live | _inside(n, which.birth) & (cell == 0)
        return aged(cell, lives, which.states)

    return next_state


def _weighted(which: LargerThanLife, name: str) -> Rule:
    """Return the rule if the cells of its neighbourhood have weights."""
    weights = large_weights(which.letter, which.radius, which.more, which.states, name)
    counts_itself = which.middle and which.letter != "W"  # which has a weight of its own for the cell
    for letter, ranges in (("S", which.survival), ("B", which.birth)):
        if ranges and ranges[-1][1] > weights.most + counts_itself:
            raise wrong(
                f"rule {name} names the sum {ranges[-1][1]}; its largest one is {weights.most + counts_itself}",
                f"use sums up to {weights.most + counts_itself} after {letter}",
            )

    @rule(neighbourhood=weights.neighbourhood(), states=which.states, name=name, colours=ageing_colours(which.states))
    def next_state(cell: Node, near: RuleContext) -> Node:
        live = cell == 1
        n = weights.total(cell, near)
        kept = n + 1 if counts_itself else n
        lives = _inside(kept, which.survival) & live | _inside(n, which.birth) & (cell == 0)
        return aged(cell, lives, which.states)

    return next_state


def _with_cell(n: Node, live: Node, size: int) -> Node:
    """Return the count including the cell itself, in a type that can hold it."""
    wide = cast(n, "i2") if n.dtype == "u1" and size >= STATES_OF_A_BYTE else n
    return wide + cast(live, wide.dtype)


def _inside(n: Node, ranges: Ranges) -> Node:
    found = n != n
    for number, (low, high) in enumerate(ranges):
        inside = n == low if low == high else (n >= low) & (n <= high)
        found = found | inside if number else inside
    return found
