"""Rules by name: B/S strings of outer-totalistic automata, Wolfram's elementary rules, rules in Python files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.errors import CaseError, suggest
from minga.lang.expr import Node
from minga.lang.near import Near
from minga.lang.neighbourhood import Neighbourhood, hex, moore, von_neumann
from minga.lang.rule import Rule, rule
from minga.models.files import locate
from minga.models.python_file import run_file

__all__ = ["BirthSurvival", "elementary", "find_rule", "life_like", "parse_birth_survival"]

KEY: Final = "automaton.rule"
FORMS: Final = 'write "B3/S23" (or "23/3", survival first), "W30" in one dimension, or "file.py:name"'

_NEIGHBOURHOODS: Final = {"": moore(1), "V": von_neumann(1), "H": hex()}
_COUNTS: Final = r"([0-9]{0,99}(?:,[0-9]{1,9})*)"
_BIRTH_FIRST: Final = re.compile(rf"B{_COUNTS}/?S{_COUNTS}([VH]?)", re.IGNORECASE)
_SURVIVAL_FIRST: Final = re.compile(rf"S{_COUNTS}/?B{_COUNTS}([VH]?)", re.IGNORECASE)
_NUMBERS: Final = re.compile(rf"{_COUNTS}/{_COUNTS}([VH]?)", re.IGNORECASE)
_WOLFRAM: Final = re.compile(r"W([0-9]{1,9})", re.IGNORECASE)
_FILE: Final = re.compile(r"(.+\.py)(?::(\w*))?")


@dataclass(frozen=True, slots=True)
class BirthSurvival:
    """An outer-totalistic rule of two states: the numbers of live neighbours with which a cell is born or survives."""

    birth: frozenset[int]
    survival: frozenset[int]
    neighbourhood: Neighbourhood

    def __str__(self) -> str:
        letter = next(key for key, value in _NEIGHBOURHOODS.items() if value == self.neighbourhood)
        return f"B{_spell(self.birth)}/S{_spell(self.survival)}{letter}"


def _spell(counts: frozenset[int]) -> str:
    wide = any(count > 9 for count in counts)
    return ",".join(map(str, sorted(counts))) if wide else "".join(map(str, sorted(counts)))


def parse_birth_survival(text: str) -> BirthSurvival | None:
    """The rule a B/S string stands for, None where the text has another form.

    "B3/S23", "b3s23" and "S23/B3" say birth and survival; "23/3" is survival, then birth. Commas separate counts above
    9 (B5/S4,10 in three dimensions). A final V means the von Neumann, H the hexagonal neighbourhood.
    """
    squeezed = "".join(text.split())
    if match := _BIRTH_FIRST.fullmatch(squeezed):
        birth, survival, letter = match.groups()
    elif match := _SURVIVAL_FIRST.fullmatch(squeezed) or _NUMBERS.fullmatch(squeezed):
        survival, birth, letter = match.groups()
    else:
        return None
    return BirthSurvival(_counts(birth), _counts(survival), _NEIGHBOURHOODS[letter.upper()])


def _counts(text: str) -> frozenset[int]:
    """Digits are counts of their own, unless commas separate them."""
    return frozenset(map(int, text.split(",") if "," in text else text))


def life_like(which: BirthSurvival | str, ndim: int = 2) -> Rule:
    """The Rule of a B/S string in so many dimensions; its kernel is one sum of bytes and a few comparisons."""
    parsed = parse_birth_survival(which) if isinstance(which, str) else which
    if parsed is None:
        raise CaseError(f"{which!r} is not a B/S rule", key=KEY, remedy=FORMS)
    name = str(parsed)
    if parsed.neighbourhood.ndim not in (None, ndim):
        raise CaseError(
            f"rule {name} is for {parsed.neighbourhood.ndim} dimensions, the grid has {ndim}",
            key=KEY,
            remedy="leave the final H out, or give a grid.shape of two numbers",
        )
    most = len(parsed.neighbourhood.around(ndim))
    if too_many := sorted(count for count in parsed.birth | parsed.survival if count > most):
        raise CaseError(
            f"rule {name} names {too_many[0]} live neighbours; a cell has {most} in {ndim} dimensions",
            key=KEY,
            remedy="separate counts above 9 by commas; the neighbourhood is Moore's, or von Neumann's with a final V",
        )

    @rule(neighbourhood=parsed.neighbourhood, states=2, name=name)
    def next_state(cell: Node, near: Near) -> Node:
        return _alive(cell, near.count(1), parsed)

    return next_state


def _alive(cell: Node, n: Node, which: BirthSurvival) -> Node:
    """Whether the cell lives next, in few byte operations.

    Where count k + 1 always gives a live cell and an even k only keeps one alive, both are one comparison of n | cell
    with k + 1 (Life itself: (n | cell) == 3).
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


def elementary(number: int) -> Rule:
    """Wolfram's elementary rule: bit 4 left + 2 cell + right of the number is the next state."""
    if not 0 <= number <= 255:
        raise CaseError(f"elementary rules are W0 .. W255, found W{number}", key=KEY)

    @rule(neighbourhood=moore(1), states=2, name=f"W{number}")
    def next_state(cell: Node, near: Near) -> Node:
        code = near[-1] * 4 + cell * 2 + near[1]
        return _among(code, [bit for bit in range(8) if number >> bit & 1])

    return next_state


def find_rule(text: str, ndim: int, directory: Path) -> Rule:
    """The rule a case names; Python files are looked for in `directory`. A CaseError says what else to write."""
    if match := _FILE.fullmatch(text.strip()):
        return _from_file(locate(match[1], directory), match[2])
    if match := _WOLFRAM.fullmatch(text.strip()):
        if ndim != 1:
            raise CaseError(f"{text} is for one dimension, the grid has {ndim}", key=KEY, remedy=FORMS)
        return elementary(int(match[1]))
    parsed = parse_birth_survival(text)
    if parsed is not None and (parsed.birth or parsed.survival or "b" in text.lower()):
        return life_like(parsed, ndim)
    raise CaseError(f"{text!r} is not a rule", key=KEY, suggestion=_close(text), remedy=FORMS)


def _close(text: str) -> str | None:
    """The B/S rule that was probably meant: the same digits, with what is between them put right."""
    digits = re.findall(r"[0-9]+", text)
    if len(digits) == 2:
        return f"S{digits[0]}/B{digits[1]}" if text.lstrip().lower().startswith("s") else f"B{digits[0]}/S{digits[1]}"
    return "B3/S23" if suggest(text, ["life", "conway", "game of life"]) else None


def _from_file(path: Path, name: str | None) -> Rule:
    names = run_file(path, KEY)
    rules = {key: value for key, value in names.items() if isinstance(value, Rule)}
    listed = ", ".join(map(repr, rules)) or "none"
    if name:
        if name in rules:
            return rules[name]
        raise CaseError(
            f"{str(path)!r} has no rule {name!r}; its rules: {listed}",
            key=KEY,
            suggestion=suggest(name, rules),
            remedy=f"decorate a function in it: @mg.rule(...) def {name}(cell, near): ...",
        )
    if len(rules) == 1:
        return next(iter(rules.values()))
    raise CaseError(f"{str(path)!r} has these rules: {listed}", key=KEY, remedy=f'name one: "{path.name}:name"')
