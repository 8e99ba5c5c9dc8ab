"""Cellular automata: B/S and elementary rules by name, rules in Python, patterns, soups.

Names are imported when they are first used::

    model = mg.models.automaton.automaton("B3/S23", (512, 512), init={"soup": 0.375, "seed": 1})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.automaton.model import automaton
    from minga.models.automaton.patterns import Pattern, read_pattern
    from minga.models.automaton.rules import find_rule

__all__ = [
    "Pattern",
    "automaton",
    "find_rule",
    "read_pattern",
]

__getattr__, __dir__ = attach(__name__, __file__)
