"""What Golly calls an automaton: the rule and the bounded grid that the head of a pattern file names.

A rule in Python is named by what it does: where it has two states, looks at most one cell far and knows no chance, all
its 512 cases are tried, and it is a B/S rule or the MAP string that says the same.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.numpy import BoundArray, evaluate
from minga.lang.block import BlockRule
from minga.lang.inline import without_locals
from minga.lang.kernel import FieldType, ScalarType, Signature
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule
from minga.lang.updates import Synchronous
from minga.models.automaton.bits_edges import ghost
from minga.models.automaton.bits_rule import Unsuitable, looked_at
from minga.models.automaton.notation.birth_survival import NEIGHBOURHOODS, BirthSurvival, parse_birth_survival
from minga.models.automaton.notation.isotropic import parse_isotropic
from minga.models.automaton.notation.larger_than_life import LargerThanLife, parse_larger_than_life
from minga.models.automaton.notation.map_rule import Map, parse_map
from minga.models.boundary import Boundaries
from minga.space.boundary import SIDES
from minga.space.grid import Grid

__all__ = ["NOTE", "PATTERN", "least_width", "pattern_attributes"]

PATTERN: Final = "pattern_rule"
"""The attribute that holds the rule as a pattern file names it."""
NOTE: Final = "pattern_note"
"""The attribute that says what a pattern file cannot say."""

_GENERATIONS: Final = re.compile(r"[0-8]*/[0-8]*/[0-9]{1,3}")
_NONE: Final = "Golly has no name for it, and takes a file without a rule for Life, B3/S23"


def pattern_attributes(
    given: object, rule: Rule | BlockRule, grid: Grid, ends: Boundaries, parameters: Mapping[str, Any]
) -> dict[str, str]:
    """What files say of an automaton: its rule, and where cells are on two axes how pattern files name it.

    given  the rule as it was asked for: a text, or an object of Python
    """
    about = {"rule": rule.name}
    if grid.ndim != 2:
        return about
    name = _name(given, rule, parameters)
    if name is None:
        update = "" if not isinstance(rule, Rule) or _plain(rule) else f", update {rule.update}"
        return {**about, NOTE: f"rule: {rule.name}{update}; {_NONE}"}
    bounds = _bounds(grid, ends)
    if bounds is None:
        return {**about, PATTERN: name, NOTE: "Golly has no grid with such ends, and goes on with an unbounded one"}
    large = parse_larger_than_life(name)
    if large is not None and min(grid.shape) < least_width(large):
        note = f"Golly has no grid narrower than {least_width(large)} cells for this rule, and takes an unbounded one"
        return {**about, PATTERN: name, NOTE: note}
    return {**about, PATTERN: f"{name}:{bounds}"}


def least_width(rule: LargerThanLife) -> int:
    """The cells along an axis below which Golly widens a bounded grid."""
    return 2 * rule.radius


def _plain(rule: Rule) -> bool:
    return isinstance(rule.update, Synchronous)


def _name(given: object, rule: Rule | BlockRule, parameters: Mapping[str, Any]) -> str | None:
    """What Golly calls a rule on two axes; None where it has none like it."""
    if not isinstance(rule, Rule) or not _plain(rule):
        return None
    if isinstance(given, str) and ".py" not in given:
        if _known(rule.name):
            return rule.name
        text = given.strip()
        if text.endswith(".rule") or re.fullmatch(r"[A-Za-z][\w.+-]*", text):
            return Path(text).name.removesuffix(".rule")  # Golly finds rule files by their names
        return None
    try:
        return _by_cases(_cases(rule, parameters))
    except Unsuitable:
        return None


def _known(name: str) -> bool:
    """Whether a rule's short name is one in Golly, too."""
    plain = parse_birth_survival(name)
    if plain is not None:
        return "," not in name
    large = parse_larger_than_life(name)
    if large is not None:
        return large.letter in "MNC" and len(large.survival) == len(large.birth) == 1
    table = parse_map(name) if name.startswith("MAP") else None
    isotropic = _GENERATIONS.fullmatch(name) is None and parse_isotropic(name) is not None
    return isotropic or (table is not None and table.states == 2) or _GENERATIONS.fullmatch(name) is not None


def _bounds(grid: Grid, ends: Boundaries) -> str | None:
    """The suffix for a grid with such ends; None where Golly has none."""
    rows, columns = grid.shape
    if all(pair is None for pair in ends.sides):
        along_x, along_y = (sum(shift.values()) for shift in ends.shift)
        if along_x and along_y:
            return None
        return f"T{columns}{_signed(along_x)},{rows}{_signed(along_y)}"
    try:
        dead = all(
            pair is not None
            and all(ghost(condition, side, 1) == 0 for condition, side in zip(pair, SIDES, strict=True))
            for pair in ends.sides
        )
    except Unsuitable:
        return None
    return f"P{columns},{rows}" if dead else None


def _signed(shift: int) -> str:
    return f"{shift:+d}" if shift else ""


# Rules in Python, by what they do -----------------------------------------------------------------------------------
def _cases(rule: Rule, parameters: Mapping[str, Any]) -> NDArray[np.uint8]:
    """The next state of a cell for each of the 512 states of the cells around it, numbered as a MAP string does."""
    if rule.states != 2 or list(rule.fields.values()) != ["u1"]:
        raise Unsuitable("it has other cells than such of two states")
    field = FieldType("u1", (0, 1))
    scalars = tuple((key, ScalarType(_type(value), True)) for key, value in parameters.items())
    graph = without_locals(rule.kernel.graph(Signature(2, (field, field), scalars, ("y", "x"))))
    if any(max(map(abs, offset)) > 1 for offset in looked_at(graph)):
        raise Unsuitable("it looks farther than one cell")
    cells = np.array(list(itertools.product((0, 1), repeat=9)), np.uint8).reshape(-1, 3)
    after = np.zeros_like(cells)
    arrays = [BoundArray(cells, (0, 0)), BoundArray(after, (0, 0))]
    evaluate(graph, ((1, 1), (len(cells) - 1, 2)), arrays, dict(parameters))
    return after[1::3, 1]


def _type(value: object) -> Any:
    return "bool" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"


def _by_cases(table: NDArray[np.uint8]) -> str:
    """The shortest name for such a table: B/S where only numbers of live neighbours count, else a MAP string."""
    spelled = sorted([*moore(1).around(2), (0, 0)])
    bits = np.array(list(itertools.product((0, 1), repeat=9)), np.uint8)
    centre = bits[:, spelled.index((0, 0))]
    for neighbourhood in NEIGHBOURHOODS.values():
        counts = bits[:, [spelled.index(offset) for offset in neighbourhood.around(2)]].sum(axis=1)
        born, kept = (
            {int(n) for n in np.unique(counts) if table[(centre == state) & (counts == n)].all()} for state in (0, 1)
        )
        alive = np.where(centre == 1, np.isin(counts, list(kept)), np.isin(counts, list(born)))
        if np.array_equal(alive, table == 1):
            return str(BirthSurvival(frozenset(born), frozenset(kept), neighbourhood))
    return str(Map(base64.b64encode(np.packbits(table).tobytes()).decode().rstrip("=")))
