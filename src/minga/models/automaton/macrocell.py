"""Golly's macrocell files (.mc): a pattern as a tree of squares, in which equal squares are written once.

A line is a square, numbered from 1; number 0 is empty. Of two states, squares of 8 x 8 cells are rows of ``.`` and
``*``, each ended by ``$``; the others are ``level nw ne sw se`` with the numbers of their quarters, where level n has
2**n cells along a side. Of more states, squares of level 1 hold four states. The last square is the whole pattern: its
columns are -2**(n - 1) .. 2**(n - 1) - 1, its rows -2**(n - 1) + 1 .. 2**(n - 1), as y grows upwards within Golly.
Source: golly.sourceforge.io/Help/formats.html; the rows as Golly 3.3 writes them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.automaton.patterns import MOST_CELLS, SMALLER, Pattern, PatternError
from minga.space.box import Box

__all__ = ["read_macrocell", "write_macrocell"]

_LEAF: Final = 3
"""Level of squares that are written as rows of cells."""
_NODE: Final = re.compile(r"([0-9]{1,4})" + r" ([0-9]{1,18})" * 4)
_ROWS: Final = "squares are rows of . and *, each ended by $, or five numbers: a level and four quarters"
_DEEPEST: Final = 60


@dataclass(frozen=True, slots=True)
class _Square:
    """Square of 2**level cells a side: its cells or quarters, and the box of its live cells, None if there are none."""

    level: int
    cells: NDArray[np.uint8] | None
    quarters: tuple[int, ...]
    alive: Box | None


def read_macrocell(text: str) -> Pattern:
    """Read a pattern from the text of a macrocell file.

    The array is the smallest that holds all live cells; `position` is the row and column of its first cell.

    Raises
    ------
    PatternError
        If the text is not in this format, or the pattern is too large for an array.
    """
    lines = text.splitlines()
    if not lines or not lines[0].startswith("[M2]"):
        raise PatternError("a macrocell file begins with [M2]", 1, "save the pattern as RLE, or as macrocell again")
    squares = [_Square(0, None, (), None)]
    rule: str | None = None
    generation, comments = 0, []
    for number, line in enumerate(lines[1:], start=2):
        if line.startswith("#"):
            rule = line[2:].strip() if line.startswith("#R") else rule
            generation = int(line[2:]) if re.fullmatch(r"#G\s*[0-9]{1,18}\s*", line) else generation
            comments += [line[2:].strip()] if line.startswith("#C") else []
        elif line.strip():
            squares.append(_square(line.strip(), number, squares))
    name, _, bounds = (rule or "").partition(":")
    about = (name or None, bounds or None)
    alive = squares[-1].alive
    if alive is None:
        return Pattern(np.zeros((0, 0), np.uint8), *about, None, generation, tuple(comments))
    if alive.size > MOST_CELLS:
        raise PatternError(f"the pattern is {alive.shape[0]} x {alive.shape[1]} cells large", 1, SMALLER)
    cells = np.zeros(alive.shape, np.uint8)
    _fill(cells, squares, len(squares) - 1, (-alive.lo[0], -alive.lo[1]))
    half = 1 << (squares[-1].level - 1)
    position = (alive.lo[0] - half + 1, alive.lo[1] - half)
    return Pattern(cells, *about, position, generation, tuple(comments))


def _square(line: str, number: int, squares: list[_Square]) -> _Square:
    """Return the square of a line."""
    if line[0] in ".*$":
        return _of_rows(line, number)
    match = _NODE.fullmatch(line)
    if match is None:
        raise PatternError(f"{line[:40]!r} is not a square", number, _ROWS)
    level, *numbers = map(int, match.groups())
    if not 1 <= level <= _DEEPEST:
        raise PatternError(f"a square of level {level}", number, f"levels from 1 to {_DEEPEST} are read")
    if level == 1:
        if max(numbers) > 255:
            raise PatternError(f"a cell in state {max(numbers)}", number, "states are 0 .. 255")
        return _of_cells(np.array(numbers, np.uint8).reshape(2, 2), 1)
    for one in numbers:
        if one >= len(squares) or (one and squares[one].level != level - 1):
            raise PatternError(f"square {one} is not a quarter of one of level {level}", number, _ROWS)
    half, alive = 1 << (level - 1), None
    for place, one in enumerate(numbers):
        found = squares[one].alive
        if found is not None:
            moved = found.shift((half * (place // 2), half * (place % 2)))
            alive = moved if alive is None else alive.hull(moved)
    return _Square(level, None, tuple(numbers), alive)


def _of_rows(line: str, number: int) -> _Square:
    cells = np.zeros((8, 8), np.uint8)
    for row, text in enumerate(line.rstrip("$").split("$")):
        if row >= 8 or len(text) > 8 or set(text) - set(".*"):
            raise PatternError(f"{line[:80]!r} is not a square of 8 x 8 cells", number, _ROWS)
        cells[row, : len(text)] = [character == "*" for character in text]
    return _of_cells(cells, _LEAF)


def _of_cells(cells: NDArray[np.uint8], level: int) -> _Square:
    found = np.argwhere(cells)
    alive = None
    if len(found):
        low, high = found.min(axis=0).tolist(), (found.max(axis=0) + 1).tolist()
        alive = Box(tuple(low), tuple(high))
    return _Square(level, cells, (), alive)


def _fill(cells: NDArray[np.uint8], squares: list[_Square], number: int, at: tuple[int, int]) -> None:
    """Write a square whose first cell has the index `at`, which may lie outside, into an array."""
    square = squares[number]
    if square.alive is None:
        return
    if square.cells is not None:
        inside = square.alive.slices((0, 0))
        cells[square.alive.shift(at).slices((0, 0))] = square.cells[inside]
        return
    half = 1 << (square.level - 1)
    for place, one in enumerate(square.quarters):
        _fill(cells, squares, one, (at[0] + half * (place // 2), at[1] + half * (place % 2)))


def write_macrocell(
    cells: NDArray[np.integer],
    rule: str | None = "B3/S23",
    comments: tuple[str, ...] = (),
    generation: int = 0,
    position: tuple[int, int] = (0, 0),
) -> str:
    """Return the macrocell text of a two-dimensional array of states 0 .. 255; `read_macrocell` gives the cells back.

    `position` is the row and column of the upper left cell.
    """
    tree = _Tree(np.asarray(cells, np.uint8), position, bool(cells.size) and int(cells.max()) > 1)
    reach = max(*map(abs, position), *(p + n for p, n in zip(position, cells.shape, strict=True)), 1)
    level = max(_LEAF + 1, 1 + int(reach).bit_length())
    tree.square(level, (-(1 << (level - 1)) + 1, -(1 << (level - 1))))
    head = ["[M2] (minga)", *([f"#R {rule}"] if rule else []), *([f"#G {generation}"] if generation else [])]
    lines = tree.lines or [f"{level} 0 0 0 0"]
    return "\n".join([*head, *(f"#C {comment}" for comment in comments), *lines]) + "\n"


@dataclass(slots=True)
class _Tree:
    """Squares of an array, each written once."""

    cells: NDArray[np.uint8]
    position: tuple[int, int]
    many: bool
    lines: list[str] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def square(self, level: int, corner: tuple[int, int]) -> int:
        """Return the number of the square at a corner; 0 if it is empty."""
        size = 1 << level
        low = [max(0, c - p) for c, p in zip(corner, self.position, strict=True)]
        high = [max(0, min(n, c + size - p)) for c, p, n in zip(corner, self.position, self.cells.shape, strict=True)]
        part = self.cells[low[0] : high[0], low[1] : high[1]]
        if not part.any():
            return 0
        if level == (1 if self.many else _LEAF):
            whole = np.zeros((size, size), np.uint8)
            first = [p + a - c for p, a, c in zip(self.position, low, corner, strict=True)]
            whole[first[0] : first[0] + part.shape[0], first[1] : first[1] + part.shape[1]] = part
            return self._number(f"1 {' '.join(map(str, whole.ravel().tolist()))}" if self.many else _rows(whole))
        half = size // 2
        corners = [(corner[0] + half * i, corner[1] + half * j) for i in (0, 1) for j in (0, 1)]
        return self._number(" ".join(map(str, [level, *(self.square(level - 1, one) for one in corners)])))

    def _number(self, line: str) -> int:
        if line not in self._known:
            self.lines.append(line)
            self._known[line] = len(self.lines)
        return self._known[line]


def _rows(cells: NDArray[np.uint8]) -> str:
    return "".join(_without_end(row) for row in cells).rstrip("$") + "$"


def _without_end(row: NDArray[np.uint8]) -> str:
    return "".join(".*"[state] for state in row.tolist()).rstrip(".") + "$"
