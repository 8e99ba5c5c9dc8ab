"""Generations, "/2/3": rules in which cells that do not survive age through further states before they vanish.

Survival, birth and the number of states, as in Golly's help (Algorithms, Generations); Hensel's letters are allowed as
well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from minga.lang.expr import Node, cast
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule, rule
from minga.lang.rule_context import STATES_OF_A_BYTE, RuleContext
from minga.models.automaton.notation.ageing import aged, ageing_colours
from minga.models.automaton.notation.birth_survival import BirthSurvival, alive, check_counts, parse_birth_survival
from minga.models.automaton.notation.isotropic import AROUND, Isotropic, alive_by_table, parse_isotropic, spell
from minga.models.automaton.notation.text import in_dimensions, squeezed, wrong

__all__ = ["Generations", "generations", "parse_generations"]

_STATES: Final = re.compile(r"(.*)/[CG]?([0-9]{1,9})([VH]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Generations:
    """Rule of two states whose cells die slowly.

    They age from state 1, the only one that counts as alive, through the further states to 0.
    """

    living: BirthSurvival | Isotropic
    states: int

    def __str__(self) -> str:
        which = self.living
        if isinstance(which, Isotropic):
            return f"{spell(which.survival)}/{spell(which.birth)}/{self.states}"
        return f"{which.spelled(which.survival)}/{which.spelled(which.birth)}/{self.states}{which.letter}"


def parse_generations(text: str) -> Generations | None:
    """Return the rule that a text of three parts stands for, or None if it has another form.

    "23/3/8" is survival, birth, states; "B3/S23/8" and "S23/B3/C8" name them.

    Raises
    ------
    CaseError
        If the number of states or a letter is invalid.
    """
    match = _STATES.fullmatch(squeezed(text))
    if match is None or "/" not in match[1]:
        return None
    living = parse_birth_survival(match[1] + match[3]) or (None if match[3] else parse_isotropic(match[1]))
    if living is None:
        return None
    states = int(match[2])
    if not 2 <= states <= STATES_OF_A_BYTE:
        raise wrong(
            f"{squeezed(text)} has {states} states; there can be 2 .. {STATES_OF_A_BYTE}",
            'the last number is that of the states: "/2/3" has survival, birth, states',
        )
    return Generations(living, states)


def generations(which: Generations, ndim: int = 2) -> Rule:
    """Return the Rule of a Generations description in `ndim` dimensions."""
    name, living = str(which), which.living
    if isinstance(living, Isotropic):
        in_dimensions(name, 2, ndim)
        return _by_table(name, living, which.states)
    check_counts(living, name, ndim)

    @rule(neighbourhood=living.neighbourhood, states=which.states, name=name, colours=ageing_colours(which.states))
    def next_state(cell: Node, near: RuleContext) -> Node:
        return aged(cell, alive(cell, near.count(1), living), which.states)

    return next_state


def _by_table(name: str, living: Isotropic, states: int) -> Rule:
    table = living.table()

    @rule(neighbourhood=moore(1), states=states, name=name, colours=ageing_colours(states))
    def next_state(cell: Node, near: RuleContext) -> Node:
        lives = alive_by_table(cast(cell == 1, "u1"), [cast(near[offset] == 1, "u1") for offset in AROUND], table)
        return aged(cell, lives, states)

    return next_state
