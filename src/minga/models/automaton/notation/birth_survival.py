"""B/S strings: outer-totalistic rules of two states, such as "B3/S23", in one to four dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from minga.lang.expr import Node
from minga.lang.neighbourhood import Neighbourhood, hex, moore, von_neumann
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import RuleContext
from minga.models.automaton.notation.text import birth_and_survival, wrong

__all__ = ["NEIGHBOURHOODS", "BirthSurvival", "alive", "check_counts", "life_like", "parse_birth_survival"]

NEIGHBOURHOODS: Final = {"": moore(1), "V": von_neumann(1), "H": hex()}
"""Neighbourhoods by the final letter of a rule."""

_COUNTS: Final = "[0-9]{0,99}(?:,[0-9]{0,9})*"


@dataclass(frozen=True, slots=True)
class BirthSurvival:
    """Outer-totalistic rule of two states: the numbers of live neighbours with which a cell is born or survives."""

    birth: frozenset[int]
    survival: frozenset[int]
    neighbourhood: Neighbourhood

    def __str__(self) -> str:
        return f"B{self.spelled(self.birth)}/S{self.spelled(self.survival)}{self.letter}"

    @property
    def letter(self) -> str:
        """Letter at the end of the rule's name that denotes its neighbourhood."""
        return next(key for key, value in NEIGHBOURHOODS.items() if value == self.neighbourhood)

    @staticmethod
    def spelled(counts: frozenset[int]) -> str:
        """Spell counts as in a rule: digits, separated by commas if one of them is above 9."""
        if not any(count > 9 for count in counts):
            return "".join(map(str, sorted(counts)))
        return ",".join(map(str, sorted(counts))) + ("," if len(counts) == 1 else "")


def parse_birth_survival(text: str) -> BirthSurvival | None:
    """Return the rule that a B/S string stands for, or None if the text has another form.

    "B3/S23", "b3s23" and "S23/B3" name birth and survival; "23/3" is survival, then birth. Commas separate counts above
    9 (B5/S4,10 in three dimensions). A final V denotes the von Neumann neighbourhood, H the hexagonal one.
    """
    halves = birth_and_survival(text, _COUNTS, "[VHvh]?")
    if halves is None:
        return None
    birth, survival, letter = halves
    return BirthSurvival(_counts(birth), _counts(survival), NEIGHBOURHOODS[letter.upper()])


def _counts(text: str) -> frozenset[int]:
    """Return the counts in a text: each digit is one, unless commas separate them."""
    return frozenset(int(count) for count in (text.split(",") if "," in text else text) if count)


def life_like(which: BirthSurvival | str, ndim: int = 2) -> Rule:
    """Return the Rule of a B/S string in `ndim` dimensions; its kernel is one sum of bytes and a few comparisons."""
    parsed = parse_birth_survival(which) if isinstance(which, str) else which
    if parsed is None:
        raise wrong(f"{which!r} is not a B/S rule")
    name = str(parsed)
    check_counts(parsed, name, ndim)

    @rule(neighbourhood=parsed.neighbourhood, states=2, name=name)
    def next_state(cell: Node, near: RuleContext) -> Node:
        return alive(cell, near.count(1), parsed)

    return next_state


def check_counts(which: BirthSurvival, name: str, ndim: int) -> None:
    """Raise CaseError if no cell in `ndim` dimensions can have the rule's numbers of neighbours."""
    if which.neighbourhood.ndim not in (None, ndim):
        raise wrong(
            f"rule {name} is for {which.neighbourhood.ndim} dimensions, the grid has {ndim}",
            "leave the final H out, or give a grid.shape of two numbers",
        )
    most = len(which.neighbourhood.around(ndim))
    if too_many := sorted(count for count in which.birth | which.survival if count > most):
        raise wrong(
            f"rule {name} names {too_many[0]} live neighbours; a cell has {most} in {ndim} dimensions",
            "separate counts above 9 by commas; the neighbourhood is Moore's, or von Neumann's with a final V",
        )


def alive(cell: Node, n: Node, which: BirthSurvival) -> Node:
    """Return whether a cell in state 0 or 1 lives next, in few byte operations.

    If count k + 1 always gives a live cell and an even k only keeps one alive, both are one comparison of n | cell with
    k + 1 (Life itself: (n | cell) == 3).
    """
    always = set(which.birth & which.survival)
    keeps = set(which.survival - which.birth)
    makes = set(which.birth - which.survival)
    joined = {k for k in keeps if k % 2 == 0 and k + 1 in always}
    terms = [(n | cell) == k + 1 for k in sorted(joined)]
    terms += [_among(n, always - {k + 1 for k in joined})]
    terms += [(cell == 1) & _among(n, keeps - joined)] if keeps - joined else []
    terms += [(cell == 0) & _among(n, makes)] if makes else []
    return _any(terms, n)


def _among(n: Node, counts: Iterable[int]) -> Node:
    return _any([n == k for k in sorted(counts)], n)


def _any(terms: list[Node], n: Node) -> Node:
    found = terms[0] if terms else n != n
    for term in terms[1:]:
        found = found | term
    return found
