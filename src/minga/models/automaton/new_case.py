"""Text of a case to start from, as ``minga new FILE.toml --rule RULE`` writes it."""

from __future__ import annotations

from pathlib import Path

from minga.case.files import SHIPPED
from minga.cli.toml import dump
from minga.errors import CaseError
from minga.models.automaton.rules import find_rule

__all__ = ["new_case"]


def new_case(rule: str | None, directory: Path) -> str:
    """Return the text of a case with a rule, by default Life, on a grid of as many axes as the rule needs.

    Parameters
    ----------
    rule
        The rule, or None for the default.
    directory
        The directory of the case, to which the names of files with rules are relative.

    Raises
    ------
    CaseError
        If there is no such rule.
    """
    chosen = rule or "B3/S23"
    text = (SHIPPED / "templates" / "case.toml").read_text(encoding="utf-8")
    text = text.replace('rule = "B3/S23"', dump({"rule": chosen}).strip())
    match _dimensions(chosen, directory):
        case 1:
            return text.replace("[240, 320]", "[400]").replace("every = 10", "every = 1")
        case 3:
            return text.replace("[240, 320]", "[64, 64, 64]")
    return text


def _dimensions(rule: str, base: Path) -> int:
    """Return the number of grid axes of a rule, 2 if it supports that; raise CaseError if there is no such rule."""
    said: list[CaseError] = []
    for ndim in (2, 1, 3):
        try:
            find_rule(rule, ndim, base)
        except CaseError as error:
            said.append(error)
        else:
            return ndim
    first = min(said, key=lambda error: "dimension" in error.message)  # the error in the rule's own dimensions, if any
    first.key = "--rule"
    raise first
