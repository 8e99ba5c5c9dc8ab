"""Neighbourhoods of Larger than Life whose cells have weights: triangles (NL), a pyramid (NG), and one's own (N@, NW).

On a triangular grid, as in Golly, cell (y, x) is a triangle with an edge above if y + x is even, below if it is odd,
where the neighbourhood is mirrored. Source: Golly's help, Algorithms, Larger than Life.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.lang.expr import Node, cast, const, where
from minga.lang.functions import index
from minga.lang.neighbourhood import Neighbourhood, Offset, moore, offsets
from minga.lang.rule_context import RuleContext
from minga.lang.table import lookup
from minga.lang.window import MOST_TERMS
from minga.models.automaton.notation.text import wrong

__all__ = ["NAMES", "LargeWeights", "large_weights"]

NAMES: Final = {"L": "triangles", "G": "pyramid", "@": "cells as bits", "W": "weights"}
"""Names of these neighbourhoods by the letter after N."""

_DIGITS: Final = re.compile(r"([0-9A-F]*)(?:,([0-9A-F]+))?([HL]?)")


@dataclass(frozen=True, slots=True)
class LargeWeights:
    """Weights in a neighbourhood.

    Attributes
    ----------
    cells
        Weights by offset, without zeros; one at (0, 0) is that of the cell itself.
    triangular
        True if the neighbourhood of cells (y, x) with odd y + x is mirrored, top to bottom.
    states
        Weight of each state; None: 1 for state 1, 0 for others.
    """

    cells: Mapping[Offset, int]
    triangular: bool = False
    states: tuple[int, ...] | None = None

    @property
    def most(self) -> int:
        """Largest possible sum."""
        return sum(max(0, weight) for weight in self.cells.values()) * max(self.states or (1,))

    def neighbourhood(self) -> Neighbourhood:
        """Return the neighbourhood of all cells that are read."""
        mirrored = {(-y, x) for y, x in self.cells} if self.triangular else set()
        return offsets(sorted({*self.cells, *mirrored} - {(0, 0)}))

    def total(self, cell: Node, near: RuleContext) -> Node:
        """Return the weighted sum over the neighbourhood of a cell, i4."""

        def value(offset: Offset) -> Node:
            state = near[offset] if any(offset) else cell
            if self.states is None:
                return cast(state == 1, "i4")
            return cast(lookup(np.array(self.states, np.uint8), state), "i4")

        if not self.triangular:
            return _sum(self.cells, value)
        mirrored: dict[Offset, int] = {(-y, x): weight for (y, x), weight in self.cells.items()}
        common: dict[Offset, int] = {
            offset: weight for offset, weight in self.cells.items() if mirrored.get(offset) == weight
        }
        even, odd = (
            _sum({offset: weight for offset, weight in cells.items() if offset not in common}, value)
            for cells in (self.cells, mirrored)
        )
        return _sum(common, value) + where((index(0) + index(1)) % 2 == 0, even, odd)


def _sum(cells: Mapping[Offset, int], value: Callable[[Offset], Node]) -> Node:
    found: Node = const(0, "i4")
    for offset, weight in sorted(cells.items()):
        found = found + (value(offset) if weight == 1 else value(offset) * weight)
    return found


def large_weights(letter: str, radius: int, more: str, states: int, name: str) -> LargeWeights:
    """Return the weights of a neighbourhood.

    Parameters
    ----------
    letter, radius
        Letter after N, and R.
    more
        What follows the letter: hexadecimal digits, weights of the states after a comma, H or L for the grid.
    states
        Number of states.
    name
        The rule, for errors.
    """
    cells = (2 * radius + 1) * (4 * radius + 1) if letter == "L" else (2 * radius + 1) ** 2
    if cells > MOST_TERMS:
        raise wrong(
            f"rule {name} adds {cells} cells one by one, at most {MOST_TERMS} are possible",
            "use a smaller R, or the neighbourhood NM or NN",
        )
    if letter == "L":
        return LargeWeights(_triangles(radius), triangular=True)
    box = sorted([*moore(radius).around(2), (0, 0)])
    if letter == "G":
        return LargeWeights({(y, x): (radius + 1 - abs(y)) * (radius + 1 - abs(x)) for y, x in box})
    match = _DIGITS.fullmatch(more)
    assert match is not None
    digits, weights_of_states, grid = match[1], match[2], match[3]
    if letter == "@":
        found = _bits(digits, [offset for offset in box if any(offset)], name)
    else:
        found = dict(zip(box, _signed(digits, len(box), name), strict=True))
    if not any(weight for offset, weight in found.items() if any(offset)):
        raise wrong(f"rule {name} counts no neighbour", "set a digit to another value than 0")
    kept = {offset: weight for offset, weight in found.items() if weight}
    return LargeWeights(kept, grid == "L", _of_states(letter, weights_of_states, states, name))


def _triangles(radius: int) -> dict[Offset, int]:
    """Return the neighbourhood of a triangle with an edge above: 12 triangles that touch it, for radius 1."""
    widths = {y: 2 * radius + 1 + y if y < 0 else 2 * radius - y for y in range(-radius, radius + 1)}
    return {(y, x): 1 for y, width in widths.items() for x in range(-width, width + 1) if (y, x) != (0, 0)}


def _bits(digits: str, around: list[Offset], name: str) -> dict[Offset, int]:
    """Return the cells that a number with one bit for each chooses."""
    if len(digits) != len(around) // 4:
        raise wrong(
            f"rule {name} has {len(digits)} digits after N@; its radius needs {len(around) // 4}",
            f"write {len(around)} bits for the cells row by row, without the middle one, as hexadecimal digits",
        )
    bits = f"{int(digits, 16):0{len(around)}b}"
    return {offset: int(bit) for offset, bit in zip(around, bits, strict=True)}


def _signed(digits: str, count: int, name: str) -> list[int]:
    """Return the numbers of one or two digits each, whose highest bit is their sign."""
    if len(digits) not in (count, 2 * count):
        raise wrong(
            f"rule {name} has {len(digits)} digits after NW; its radius needs {count}, or twice as many",
            "write one hexadecimal digit for each cell row by row, or two for each: 0 .. 7 and 8 .. F (0 .. -7), or "
            "00 .. 7F and 80 .. FF (0 .. -127)",
        )
    wide = len(digits) // count
    sign = 8 << 4 * (wide - 1)
    numbers = (int(digits[n : n + wide], 16) for n in range(0, len(digits), wide))
    return [-(number - sign) if number >= sign else number for number in numbers]


def _of_states(letter: str, digits: str | None, states: int, name: str) -> tuple[int, ...] | None:
    """Return the weights of the states; None if the rule has none."""
    if digits is None:
        return None
    if letter != "W" or len(digits) != states:
        raise wrong(
            f"rule {name} has {len(digits)} weights of states",
            f"after NW, write one hexadecimal digit for each of the {states} states"
            if letter == "W"
            else "leave them out, or use NW",
        )
    return tuple(int(digit, 16) for digit in digits)
