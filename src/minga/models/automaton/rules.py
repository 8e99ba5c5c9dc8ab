"""Rules by name: recognition of the notation of a text, and rules in Python files and rule files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from minga.case.files import SHIPPED, locate
from minga.case.python_file import run_file
from minga.errors import CaseError, suggest
from minga.lang.block import BlockRule
from minga.lang.rule import Rule
from minga.lang.updates import SecondOrder
from minga.models.automaton.notation.birth_survival import BirthSurvival, life_like, parse_birth_survival
from minga.models.automaton.notation.generations import generations, parse_generations
from minga.models.automaton.notation.isotropic import isotropic, parse_isotropic
from minga.models.automaton.notation.larger_than_life import larger_than_life, parse_larger_than_life
from minga.models.automaton.notation.map_rule import map_rule, parse_map
from minga.models.automaton.notation.margolus import parse_margolus
from minga.models.automaton.notation.rule_file import read_rule_file
from minga.models.automaton.notation.text import FORMS, KEY, squeezed
from minga.models.automaton.notation.weighted import parse_weighted, weighted_life
from minga.models.automaton.notation.wolfram import code_rule, elementary, parse_code

__all__ = ["FORMS", "KEY", "BirthSurvival", "elementary", "find_rule", "life_like", "parse_birth_survival"]

_FILE: Final = re.compile(r"(.+\.py)(?::(\w*))?")
_BOUNDS: Final = re.compile(r"(.+):[TPKCS][0-9].*")
_WORD: Final = re.compile(r"[A-Za-z][\w.+-]{0,99}")


def find_rule(text: str, ndim: int, directory: Path) -> Rule | BlockRule:
    """Return the rule that a case names; files are looked for in `directory`. A CaseError suggests a correct form.

    Parameters
    ----------
    text
        The rule in a case, such as "B3/S23", "W30" or "file.py:name".
    ndim
        The number of axes.
    directory
        The directory of the case.

    Returns
    -------
    Rule or BlockRule
        The rule.
    """
    text = text.strip()
    if match := _FILE.fullmatch(text):
        return _from_file(locate(match[1], directory), match[2])
    if text.endswith(".rule"):
        return read_rule_file(locate(text, directory), ndim)
    if match := _BOUNDS.fullmatch(text):
        raise CaseError(
            f"{text!r} ends with a bounded grid",
            key=KEY,
            suggestion=match[1],
            remedy="describe the grid by grid.shape and grid.boundary",
        )
    if (found := _in_notation(text, ndim)) is not None:
        return found
    if (path := _named_file(text, directory)) is not None:
        return read_rule_file(path, ndim)
    raise CaseError(f"{text!r} is not a rule", key=KEY, suggestion=_close(text), remedy=FORMS)


def _in_notation(text: str, ndim: int) -> Rule | BlockRule | None:
    """Return the rule that a text stands for in one of the notations; a final R makes it a second-order rule."""
    if (found := _first_order(text, ndim)) is not None:
        return found
    short = squeezed(text)
    found = _first_order(short[:-1], ndim) if short.endswith("R") else None
    return _second_order(found) if isinstance(found, Rule) else None


def _first_order(text: str, ndim: int) -> Rule | BlockRule | None:
    found = (read(text, ndim) for read in _NOTATIONS)
    return next((rule for rule in found if rule is not None), None)


def _second_order(rule: Rule) -> Rule:
    """Return the rule as a second-order one: the state before the present one is subtracted from its next state."""
    return replace(rule.updated(SecondOrder()), name=f"{rule.name}R")


def _totalistic(text: str, ndim: int) -> Rule | None:
    parsed = parse_birth_survival(text)
    plain = parsed is not None and (parsed.birth or parsed.survival or "b" in text.lower())
    return life_like(parsed, ndim) if parsed is not None and plain else None


Parsed = TypeVar("Parsed")


def _read(
    parse: Callable[[str], Parsed | None], make: Callable[[Parsed, int], Rule]
) -> Callable[[str, int], Rule | None]:
    """Return a reader of a notation, which parses a text and makes a rule of the result."""

    def read(text: str, ndim: int) -> Rule | None:
        parsed = parse(text)
        return None if parsed is None else make(parsed, ndim)

    return read


_NOTATIONS: Final[tuple[Callable[[str, int], Rule | BlockRule | None], ...]] = (
    _totalistic,
    _read(parse_code, code_rule),
    _read(parse_isotropic, isotropic),
    _read(parse_generations, generations),
    _read(parse_larger_than_life, larger_than_life),
    _read(parse_weighted, weighted_life),
    _read(parse_map, map_rule),
    parse_margolus,
)


def _named_file(text: str, directory: Path) -> Path | None:
    """Find the rule file of this name, as pattern files refer to it: beside the case, in `rules` there, or shipped."""
    if not _WORD.fullmatch(text):
        return None
    places = (directory, directory / "rules", SHIPPED / "rules")
    return next((path for place in places if (path := place / f"{text}.rule").is_file()), None)


def _close(text: str) -> str | None:
    """Return the rule that was probably meant: the same digits, with the text between them corrected."""
    if match := re.fullmatch(r"\s*([TW][0-9]+)\s*,\s*([0-9]+)\s*", text, re.IGNORECASE):
        return f"{match[1].upper()},K{match[2]}"
    digits = re.findall(r"[0-9]+", text)
    if len(digits) == 2:
        return f"S{digits[0]}/B{digits[1]}" if text.lstrip().lower().startswith("s") else f"B{digits[0]}/S{digits[1]}"
    if suggest(text, ["life", "conway", "game of life"]):
        return "B3/S23"
    return suggest(text, [path.stem for path in (SHIPPED / "rules").glob("*.rule")])


def _from_file(path: Path, name: str | None) -> Rule | BlockRule:
    names = run_file(path, KEY)
    rules = {key: value for key, value in names.items() if isinstance(value, Rule | BlockRule)}
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
