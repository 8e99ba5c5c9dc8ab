"""Automata in Golly's terms: the rule and the bounded grid in the header of a pattern file.

A rule in Python is named by its behaviour: if it has two states, reads no further than one cell away and uses no random
numbers, all 512 cases are evaluated, and the name is a B/S rule or the MAP string with the same table.
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

from minga.case.boundary import Boundaries
from minga.compile.numpy import BoundArray, evaluate
from minga.lang.block import BlockRule
from minga.lang.inline import without_locals
from minga.lang.kernel import FieldType, ScalarType, Signature
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule
from minga.lang.updates import Synchronous
from minga.models.automaton.bits_edges import ghost
from minga.models.automaton.bits_rule import Unsuitable, read_offsets
from minga.models.automaton.notation.birth_survival import NEIGHBOURHOODS, BirthSurvival, parse_birth_survival
from minga.models.automaton.notation.isotropic import parse_isotropic
from minga.models.automaton.notation.larger_than_life import LargerThanLife, parse_larger_than_life
from minga.models.automaton.notation.map_rule import Map, parse_map
from minga.space.boundary import SIDES
from minga.space.grid import Grid
from minga.space.seams import Seam

__all__ = ["CORNER", "NOTE", "PATTERN", "least_width", "pattern_attributes"]

PATTERN: Final = "pattern_rule"
"""Name of the attribute that holds the rule in the form that pattern files use."""
NOTE: Final = "pattern_note"
"""Name of the attribute for a note on properties that a pattern file cannot express."""
CORNER: Final = "pattern_corner"
"""Name of the attribute that holds the row and the column of the first cell on an unbounded plane."""

_GENERATIONS: Final = re.compile(r"[0-8]*/[0-8]*/[0-9]{1,3}")
_NONE: Final = "Golly has no name for it, and takes a file without a rule for Life, B3/S23"


def pattern_attributes(
    given: object, rule: Rule | BlockRule, grid: Grid, ends: Boundaries, parameters: Mapping[str, Any]
) -> dict[str, str]:
    """Return the attributes of an automaton for files: its rule, and in two dimensions its name in pattern files.

    Parameters
    ----------
    given
        The rule as it was asked for: a text, or a Python object.
    rule, grid, ends, parameters
        Rule, grid, boundary conditions and values of the rule's keyword parameters.
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
    """Return the number of cells along an axis below which Golly widens a bounded grid."""
    return 2 * rule.radius * (2 if rule.letter == "L" else 1)


def _plain(rule: Rule) -> bool:
    return isinstance(rule.update, Synchronous)


def _name(given: object, rule: Rule | BlockRule, parameters: Mapping[str, Any]) -> str | None:
    """Return Golly's name of a rule in two dimensions; None if Golly has no such rule."""
    if not isinstance(rule, Rule) or not _plain(rule):
        return None
    if isinstance(given, str) and ".py" not in given:
        large = parse_larger_than_life(rule.name)
        if large is not None:
            return _large_name(large)
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


def _large_name(rule: LargerThanLife) -> str | None:
    """Return Golly's name: with one range of counts each, or with lists, which only rules without M1 may have."""
    if len(rule.survival) == len(rule.birth) == 1:
        return str(rule)
    if rule.middle or not rule.survival or not rule.birth:
        return None
    survival, birth = (
        ",".join(f"{low}-{high}" if low < high else str(low) for low, high in ranges)
        for ranges in (rule.survival, rule.birth)
    )
    return f"R{rule.radius},C{rule.states},S{survival},B{birth},N{rule.letter}{rule.more}"


def _known(name: str) -> bool:
    """Return whether Golly understands a rule's short name."""
    plain = parse_birth_survival(name)
    if plain is not None:
        return "," not in name
    table = parse_map(name) if name.startswith("MAP") else None
    isotropic = _GENERATIONS.fullmatch(name) is None and parse_isotropic(name) is not None
    return isotropic or (table is not None and table.states == 2) or _GENERATIONS.fullmatch(name) is not None


def _bounds(grid: Grid, ends: Boundaries) -> str | None:
    """Return Golly's suffix for a grid with these boundaries; None if there is none."""
    rows, columns = grid.shape
    if grid.seam is not None:
        return _surface(grid.seam, rows, columns)
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


def _surface(seam: Seam, rows: int, columns: int) -> str | None:
    """Return Golly's suffix for a grid with a seam; None for a shift that it would make another one."""
    if seam.surface == "sphere":
        return f"S{columns}"
    if seam.surface == "cross-surface":
        return f"C{columns},{rows}"
    cells = rows if seam.axis else columns
    shift = seam.shift % cells
    if shift > 1 or (shift and cells % 2):
        return None
    edge = f"*{_signed(shift)}"
    return f"K{columns},{rows}{edge}" if seam.axis else f"K{columns}{edge},{rows}"


def _signed(shift: int) -> str:
    return f"{shift:+d}" if shift else ""


# Rules in Python, by their behaviour ---------------------------------------------------------------------------------
def _cases(rule: Rule, parameters: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Return the next state of a cell for each of the 512 states of its neighbourhood, numbered as in a MAP string."""
    if rule.states != 2 or list(rule.fields.values()) != ["u1"]:
        raise Unsuitable("it has cells with other than two states")
    field = FieldType("u1", (0, 1))
    scalars = tuple((key, ScalarType(_type(value), True)) for key, value in parameters.items())
    graph = without_locals(rule.kernel.graph(Signature(2, (field, field), scalars, ("y", "x"))))
    if any(max(map(abs, offset)) > 1 for offset in read_offsets(graph)):
        raise Unsuitable("it reads farther than one cell")
    cells = np.array(list(itertools.product((0, 1), repeat=9)), np.uint8).reshape(-1, 3)
    after = np.zeros_like(cells)
    arrays = [BoundArray(cells, (0, 0)), BoundArray(after, (0, 0))]
    evaluate(graph, ((1, 1), (len(cells) - 1, 2)), arrays, dict(parameters))
    return after[1::3, 1]


def _type(value: object) -> Any:
    return "bool" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"


def _by_cases(table: NDArray[np.uint8]) -> str:
    """Return the shortest name for a table: B/S if only numbers of live neighbours count, else a MAP string."""
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
