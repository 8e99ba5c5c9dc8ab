"""Rule files, `.rule`: transitions in a @TABLE, or a finished decision diagram in a @TREE.

@COLORS gives colours to the states; @ICONS are ignored. Source of the format: Golly's help, File formats, "Rule
format"; the table format is Tim Hutton's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from minga.errors import CaseError, suggest
from minga.lang.neighbourhood import moore, von_neumann
from minga.lang.rule import Rule
from minga.lang.rule_context import STATES_OF_A_BYTE
from minga.models.automaton.notation.decision import Diagram, diagram_rule, reduced
from minga.models.automaton.notation.text import KEY, in_dimensions
from minga.models.automaton.notation.transitions import SHAPES, Shape, TableTransition, Variables, diagram_of

__all__ = ["read_rule_file"]

LARGEST_FILE: Final = 1 << 26
_GOLLY_BACKGROUND: Final = (48, 48, 48)

Lines = Sequence[tuple[int, str]]
"""Lines with their numbers, without comments and white space at the ends."""

_DESCRIPTOR: Final = re.compile(r"(\w+)\s*[:=]\s*(\S+)")
_VARIABLE: Final = re.compile(r"var\s+(\S+?)\s*=\s*\{(.*)\}")
_TREE_ORDER: Final = {
    4: ((-1, 0), (0, -1), (0, 1), (1, 0), (0, 0)),
    8: ((-1, -1), (-1, 1), (1, -1), (1, 1), (-1, 0), (0, -1), (0, 1), (1, 0), (0, 0)),
}
"""Cells that a tree queries, by the number of neighbours."""
_NEEDS_TABLE: Final = "a table begins with n_states:4, neighborhood:Moore and symmetries:rotate8, a line each"


def read_rule_file(path: Path, ndim: int) -> Rule:
    """Return the Rule of a file; a CaseError names the line that is wrong."""
    if not path.is_file():
        raise CaseError(
            f"there is no file {str(path)!r}", key=KEY, remedy="paths are relative to the case file's directory"
        )
    if path.stat().st_size > LARGEST_FILE:
        raise CaseError(f"{str(path)!r} is larger than {LARGEST_FILE} bytes", key=KEY)
    sections = _sections(path.read_text(encoding="utf-8", errors="replace"))
    for word, read in (("@TABLE", _read_table), ("@TREE", _read_tree)):
        if word in sections:
            try:
                rule = read(sections[word], path.stem, ndim)
                return replace(rule, colours=_colours(sections.get("@COLORS", ()), rule.states or 0))
            except _Mistake as mistake:
                raise CaseError(
                    mistake.message, key=KEY, where=(str(path), mistake.line), remedy=mistake.remedy,
                    suggestion=mistake.suggestion,
                ) from None  # fmt: skip
    raise CaseError(f"{path.name} has neither a @TABLE nor a @TREE", key=KEY, where=(str(path), 0), remedy=_NEEDS_TABLE)


class _Mistake(Exception):
    """Raised for an invalid line of the file; `line` counts from 1."""

    def __init__(self, message: str, line: int, remedy: str | None = None, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.remedy, self.suggestion = message, line, remedy, suggestion


def _colours(lines: Lines, states: int) -> tuple[str, ...]:
    """Return the colours of all states.

    "1 255 0 0" gives the colour of one state, "255 0 0 255 255 0" a gradient from state 1 to the last. The result is
    empty if a state has no colour, except for state 0, which then gets Golly's grey. Other lines are ignored.
    """
    known = {0: _GOLLY_BACKGROUND}
    for _, line in lines:
        words = line.split()
        numbers = [int(word) for word in words if word.isdecimal() and len(word) <= 3]
        if len(numbers) != len(words) or not all(number <= 255 for number in numbers):
            continue
        if len(numbers) == 4:
            known[numbers[0]] = (numbers[1], numbers[2], numbers[3])
        elif len(numbers) == 6:
            for state in range(1, states):
                part = (state - 1) / max(1, states - 2)
                red, green, blue = (round(a + (b - a) * part) for a, b in zip(numbers[:3], numbers[3:]))
                known[state] = (red, green, blue)
    if not lines or not all(state in known for state in range(states)):
        return ()
    return tuple("#{:02x}{:02x}{:02x}".format(*known[state]) for state in range(states))


def _sections(text: str) -> dict[str, Lines]:
    """Return the lines below each line that begins with @; only the first section of each kind is kept."""
    sections: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if line.startswith("@"):
            current = []
            sections.setdefault(line.split()[0].upper(), current)
        elif content:
            current.append((number, content))
    return dict(sections)


def _number(text: str, low: int, high: int, line: int, what: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise _Mistake(f"{what} is {text!r}; it can be {low} .. {high}", line)
    return int(text)


# Tables --------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Table:
    """Contents of a table that have been read so far."""

    descriptors: dict[str, tuple[int, str]] = field(default_factory=dict)
    variables: dict[str, tuple[int, ...]] = field(default_factory=dict)
    transitions: list[TableTransition] = field(default_factory=list)


def _read_table(lines: Lines, name: str, ndim: int) -> Rule:
    table = _Table()
    content = iter(lines)
    for number, line in content:
        if match := _DESCRIPTOR.fullmatch(line):
            table.descriptors[match[1].replace("neighbourhood", "neighborhood")] = number, match[2]
        else:
            content = iter([(number, line), *content])
            break
    states, shape, symmetry = _descriptors(table, lines)
    in_dimensions(name, len(shape.around[0]), ndim)
    for number, line in content:
        if match := _VARIABLE.fullmatch(line):
            table.variables[match[1]] = _values(match[2], table.variables, states, number)
        elif _DESCRIPTOR.fullmatch(line):
            raise _Mistake(f"{line!r} stands after the first variable or transition", number, _NEEDS_TABLE)
        else:
            table.transitions.append(_transition(line, table.variables, states, len(shape.around) + 2, number))
    diagram = diagram_of(states, shape, symmetry, table.transitions)
    return diagram_rule(diagram, shape.neighbourhood, name)


def _descriptors(table: _Table, lines: Lines) -> tuple[int, Shape, str]:
    """Return the number of states, the neighbourhood and its symmetry."""
    first = lines[0][0] if lines else 0
    for word in table.descriptors:
        if word not in ("n_states", "neighborhood", "symmetries"):
            close = suggest(word, ("n_states", "neighborhood", "symmetries"))
            raise _Mistake(f"unknown entry {word!r}", table.descriptors[word][0], _NEEDS_TABLE, close)
    for word in ("n_states", "neighborhood", "symmetries"):
        if word not in table.descriptors:
            raise _Mistake(f"the table has no entry {word}", first, _NEEDS_TABLE)
    number, text = table.descriptors["n_states"]
    states = _number(text, 2, STATES_OF_A_BYTE, number, "n_states")
    number, text = table.descriptors["neighborhood"]
    if text not in SHAPES:
        known = ", ".join(SHAPES)
        raise _Mistake(f"there is no neighborhood {text!r}", number, f"there are {known}", suggest(text, SHAPES))
    shape = SHAPES[text]
    number, symmetry = table.descriptors["symmetries"]
    symmetries = (*shape.symmetries, "permute")
    if symmetry not in symmetries:
        raise _Mistake(
            f"{text} has no symmetries {symmetry!r}", number, f"there are {', '.join(symmetries)}",
            suggest(symmetry, symmetries),
        )  # fmt: skip
    return states, shape, symmetry


def _values(text: str, variables: Variables, states: int, line: int) -> tuple[int, ...]:
    """Return the states that a variable stands for, in order; other variables may be among them."""
    found: dict[int, None] = {}
    for word in filter(None, re.split(r"[\s,]+", text.strip())):
        listed = variables[word] if word in variables else (_state(word, variables, states, line),)
        found |= dict.fromkeys(listed)
    if not found:
        raise _Mistake("the variable stands for no state", line, "list states: var a={0,1,2}")
    return tuple(found)


def _state(word: str, variables: Iterable[str], states: int, line: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", word):
        raise _Mistake(
            f"{word!r} is neither a state nor a variable", line, "declare variables before: var a={0,1,2}",
            suggest(word, variables),
        )  # fmt: skip
    return _number(word, 0, states - 1, line, "the state")


def _transition(line: str, variables: Variables, states: int, length: int, number: int) -> TableTransition:
    words = [word.strip() for word in line.split(",")] if "," in line else list(line)
    if len(words) != length:
        raise _Mistake(
            f"a transition of {len(words)} states, expected {length}", number,
            "write the cell, its neighbours and the next state, with commas between them",
        )  # fmt: skip
    terms = tuple(word if word in variables else _state(word, variables, states, number) for word in words)
    if isinstance(terms[-1], str) and terms.count(terms[-1]) == 1:
        raise _Mistake(
            f"the next state {terms[-1]!r} could be any of several",
            number,
            "use it also for the cell or a neighbour, or give a state",
        )
    return TableTransition(terms, {name: variables[name] for name in terms if isinstance(name, str)}, number)


# Trees ---------------------------------------------------------------------------------------------------------------
def _read_tree(lines: Lines, name: str, ndim: int) -> Rule:
    given: dict[str, int] = {}
    limits = {"num_states": (2, STATES_OF_A_BYTE), "num_neighbors": (4, 8), "num_nodes": (1, 1 << 22)}
    levels: list[list[list[int]]] = []
    names: list[tuple[int, int]] = []
    for number, line in lines:
        if match := _DESCRIPTOR.fullmatch(line):
            if match[1] not in limits:
                raise _Mistake(f"unknown entry {match[1]!r}", number, suggestion=suggest(match[1], limits))
            given[match[1]] = _number(match[2], *limits[match[1]], number, match[1])
            if given.get("num_neighbors", 4) not in _TREE_ORDER:
                raise _Mistake(f"a tree of {match[2]} neighbors", number, "trees are for 4 or 8 neighbors")
            continue
        if missing := [word for word in limits if word not in given]:
            raise _Mistake(f"the tree has no entry {missing[0]}", number)
        levels = levels or [[] for _ in range(given["num_neighbors"] + 1)]
        depth, children = _node(line, given["num_states"], len(levels), names, number)
        names.append((depth, len(levels[depth - 1])))
        levels[depth - 1].append(children)
    if not names or names[-1][0] != len(levels):
        last = lines[-1][0] if lines else 0
        raise _Mistake("the tree does not end with its root", last, "the last node has the depth num_neighbors + 1")
    asked = _TREE_ORDER[given["num_neighbors"]]
    in_dimensions(name, 2, ndim)
    arrays = [np.array(level, np.int32).reshape(-1, given["num_states"]) for level in reversed(levels)]
    arrays[0] = arrays[0][-1:]
    diagram = reduced(Diagram(given["num_states"], asked, tuple(arrays)))
    return diagram_rule(diagram, von_neumann(1) if len(asked) == 5 else moore(1), name)


def _node(line: str, states: int, depths: int, names: Sequence[tuple[int, int]], number: int) -> tuple[int, list[int]]:
    """Return the depth of a node and its children: states at depth 1, else numbers of nodes one level less deep."""
    words = line.split()
    if len(words) != states + 1:
        raise _Mistake(f"a node of {len(words)} numbers, expected its depth and {states} children", number)
    depth = _number(words[0], 1, depths, number, "the depth")
    if depth == 1:
        return depth, [_number(word, 0, states - 1, number, "the state") for word in words[1:]]
    children = []
    for word in words[1:]:
        child = _number(word, 0, len(names) - 1, number, "the child") if names else 0
        if not names or names[child][0] != depth - 1:
            raise _Mistake(f"child {word} of a node of depth {depth} has another depth than {depth - 1}", number)
        children.append(names[child][1])
    return depth, children
