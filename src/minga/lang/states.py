"""Bounds on the states that a rule's result can have, proven from the states 0 .. states - 1 that its cells hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.narrow import add_intervals
from minga.lang.operations import Interval
from minga.lang.types import integer_range, is_float

__all__ = ["states_of"]

_MOST_CASES: Final = 256


def states_of(value: Node, states: int, fields: Sequence[int], locals_: Sequence[Node] = ()) -> Interval:
    """Return an interval that contains every value of an integer or bool node if all cells hold 0 .. states - 1.

    Parameters
    ----------
    value
        The node.
    states
        Number of states of a cell.
    fields
        Parameter numbers of the rule's fields.
    locals_
        The definitions that reads of locals in `value` refer to.

    Notes
    -----
    The values of the cell itself are enumerated (those of all fields together, or of one field after another if there
    would be too many cases), so that choices by them are taken into account: in where(cell == 2, 0, cell + 1), the sum
    is at most 2.
    """
    read = [node.data[0] for node in topological([value]) if _is_own(node)]
    own = [number for number in fields if number in read]
    whole = _interval(value, states, locals_, {})
    if not own or (whole[0] >= 0 and whole[1] < states):
        return whole
    together = states ** len(own) <= _MOST_CASES
    splits = [own] if together else [[number] for number in own]
    found = []
    for split in splits:
        values = product(range(states), repeat=len(split))
        cases = [_interval(value, states, locals_, dict(zip(split, case))) for case in values]
        found.append((min(low for low, _ in cases), max(high for _, high in cases)))
    return max(low for low, _ in found), min(high for _, high in found)


def _is_own(node: Node) -> bool:
    """Return True if a node reads the cell itself, at offset 0."""
    return node.op == "read" and not any(node.data[2])


def _interval(value: Node, states: int, locals_: Sequence[Node], cells: Mapping[int, int]) -> Interval:
    """Return the interval of a node if the cell itself is known to hold `cells`, by parameter number."""

    def anywhere(node: Node) -> Interval:
        return (0, states - 1) if node.dtype == "u1" else integer_range(node.dtype)

    def reads(node: Node) -> Interval:
        known = cells.get(node.data[0]) if _is_own(node) else None
        return anywhere(node) if known is None else (known, known)

    of_locals: list[Interval | None] = []
    for definition in locals_:  # locals are also read at neighbours, whose cells are not known
        inside: dict[int, Interval] = {}
        add_intervals(topological([definition]), inside, of_locals, anywhere)
        of_locals.append(None if is_float(definition.dtype) else inside[id(definition)])
    found: dict[int, Interval] = {}
    add_intervals(topological([value]), found, of_locals, reads)
    return found[id(value)]
