"""Common parts of the notations: errors, numbers in text, and rules for the wrong number of dimensions."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

from minga.errors import CaseError

__all__ = ["FORMS", "KEY", "NUMBER", "birth_and_survival", "in_dimensions", "squeezed", "wrong"]

KEY: Final = "automaton.rule"
FORMS: Final = (
    'write "B3/S23" (or "23/3", survival first), "/2/3", "R5,C0,M1,S34..58,B34..45,NM", "W30" in one dimension, '
    '"file.rule", or "file.py:name"; the page docs/rules.md lists all notations'
)
NUMBER: Final = "([0-9]{1,9})"


def squeezed(text: str) -> str:
    """Return the text without white space."""
    return "".join(text.split())


def wrong(message: str, remedy: str = FORMS, *, suggestion: str | None = None) -> CaseError:
    """Return the error for a rule that was recognised but is invalid."""
    return CaseError(message, key=KEY, remedy=remedy, suggestion=suggestion)


def in_dimensions(name: str, allowed: int | Iterable[int], ndim: int, remedy: str = "") -> None:
    """Raise CaseError if a rule is not for the grid's number of dimensions."""
    several = [allowed] if isinstance(allowed, int) else sorted(allowed)
    if ndim not in several:
        numbers = " or ".join(map(str, several))
        what = "one dimension" if numbers == "1" else f"{numbers} dimensions"
        give = remedy or f"give a grid.shape of {numbers} number{'' if numbers == '1' else 's'}"
        raise wrong(f"rule {name} is for {what}, the grid has {ndim}", give)


def birth_and_survival(text: str, part: str, ending: str = "") -> tuple[str, str, str] | None:
    """Return the birth part and the survival part of a rule, and its ending, or None if the text has another form.

    Parameters
    ----------
    text
        The rule.
    part
        Regular expression of one part, without groups.
    ending
        Regular expression of the ending, without groups.
    """
    for pattern, birth_first in zip(_orders(part, ending), (True, False)):
        if match := pattern.fullmatch(squeezed(text)):
            first, last = match[1] if match[1] is not None else match[2], match[3]
            return (first, last, match[4]) if birth_first else (last, first, match[4])
    return None


@functools.cache
def _orders(part: str, ending: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of rules with birth first, B3/S23, and with survival first, S23/B3 and 23/3."""
    birth = rf"(?:[Bb]({part})(?:/?[Ss]|/)|({part})/[Ss])({part})({ending})"
    survival = rf"(?:[Ss]({part})(?:/?[Bb]|/)|({part})/[Bb]?)({part})({ending})"
    return re.compile(birth), re.compile(survival)
