"""Pattern files: Golly's run-length encoding (RLE), plain text (.cells) and Life 1.06, as small arrays of states.

Source of the format: golly.sourceforge.io/Help/formats.html, conwaylife.com/wiki/Run_Length_Encoded.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError

__all__ = [
    "MOST_CELLS",
    "SMALLER",
    "Pattern",
    "PatternError",
    "read_cells",
    "read_coordinates",
    "read_pattern",
    "read_rle",
    "write_rle",
]

States = NDArray[np.uint8]

_HEADER: Final = re.compile(
    r"x\s*=\s*([0-9]{1,18})\s*,\s*y\s*=\s*([0-9]{1,18})\s*(?:,\s*rule\s*=\s*(.+?)\s*)?,?\s*", re.IGNORECASE
)
_POSITION: Final = re.compile(r"Pos\s*=\s*(-?[0-9]{1,18})\s*,\s*(-?[0-9]{1,18})")
_GENERATION: Final = re.compile(r"Gen\s*=\s*([0-9]{1,18})")
_COORDINATES: Final = re.compile(r"([+-]?[0-9]{1,18})\s+([+-]?[0-9]{1,18})")
_LINE: Final = 70
MOST_CELLS: Final = 1 << 28
SMALLER: Final = "use a smaller pattern"
_CELLS: Final = "cells are b and o (or . and A to X, pA to yO), $ ends a row, ! the pattern"


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Pattern of cells.

    Parameters
    ----------
    cells
        States, u1, of shape (rows, columns).
    rule
        Rule the pattern is meant for, as written in the file ("B3/S23"), without the suffix of a bounded grid; or None.
    bounds
        Suffix of the rule that names a bounded grid ("T64,64"), or None.
    position
        Row and column of the upper left cell, if the file gives them (#CXRLE Pos).
    generation
        Step at which the pattern was taken (#CXRLE Gen).
    comments
        Text of the comment lines, without the mark.
    """

    cells: States
    rule: str | None = None
    bounds: str | None = None
    position: tuple[int, int] | None = None
    generation: int = 0
    comments: tuple[str, ...] = ()

    @property
    def population(self) -> int:
        """Number of cells whose state is not 0."""
        return int(np.count_nonzero(self.cells))


def read_pattern(path: Path, key: str = "automaton.init") -> Pattern:
    """Read the pattern in a file by its extension: .rle, .cells, .lif, .life, .mc. Errors name `key` and the line.

    Parameters
    ----------
    path
        The file.
    key
        The key of a case that messages name.

    Returns
    -------
    Pattern
        The pattern.
    """
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise CaseError(f"cannot read the pattern {str(path)!r}: {error.strerror}", key=key) from error
    if not text.strip():
        raise CaseError(f"the pattern {str(path)!r} is empty", key=key, remedy="write x = 0, y = 0 and ! for no cells")
    from minga.models.automaton.macrocell import read_macrocell

    known = {".cells": read_cells, ".lif": read_coordinates, ".life": read_coordinates, ".mc": read_macrocell}
    read = known.get(path.suffix.lower(), read_rle)
    try:
        return read(text)
    except PatternError as error:
        raise CaseError(str(error), key=key, where=(str(path), error.line), remedy=error.remedy) from None


class PatternError(ValueError):
    """Raised for a text that is not a pattern; `line` counts from 1."""

    def __init__(self, message: str, line: int, remedy: str) -> None:
        super().__init__(message)
        self.line = line
        self.remedy = remedy


def read_rle(text: str) -> Pattern:
    """Read a pattern from RLE text: comments, an optional header, runs such as 3o2b$, with states up to 255 (pA is 25).

    The cells determine the size if the header gives a smaller one; a larger one pads with dead cells. Text after `!` is
    ignored.

    Raises
    ------
    PatternError
        If the text is not a pattern.
    """
    lines = list(enumerate(text.splitlines(), start=1))
    head = list(itertools.takewhile(lambda numbered: _is_head(numbered[1]), lines))
    runs = list(_runs(lines[len(head) :]))
    rows = max((row + 1 for row, _, _, _ in runs), default=0)
    columns = max((column + length for _, column, length, _ in runs), default=0)
    rule = bounds = None
    for _, line in head:
        if header := _HEADER.fullmatch(line.strip()):
            padded = max(rows, int(header[2])), max(columns, int(header[1]))
            rows, columns = padded if padded[0] * padded[1] <= MOST_CELLS else (rows, columns)
            rule, _, bounds = (part.strip() or None for part in (header[3] or "").partition(":"))
    if rows * columns > MOST_CELLS:
        raise PatternError(f"the pattern is {rows} x {columns} cells large", 1, SMALLER)
    cells = np.zeros((rows, columns), np.uint8)
    for row, column, length, state in runs:
        cells[row, column : column + length] = state
    marked = " ".join(line for _, line in head if line.startswith("#CXRLE"))
    position, generation = _POSITION.search(marked), _GENERATION.search(marked)
    return Pattern(
        cells,
        rule,
        bounds,
        (int(position[2]), int(position[1])) if position else None,
        int(generation[1]) if generation else 0,
        tuple(line[2:].strip() for _, line in head if line.startswith("#") and not line.startswith("#CXRLE")),
    )


def _is_head(line: str) -> bool:
    return not line.strip() or line.startswith("#") or _HEADER.fullmatch(line.strip()) is not None


def _runs(lines: list[tuple[int, str]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (row, column, length, state) of each run of equal cells that are not dead."""
    row = column = 0
    for number, count, item in _items(lines):
        length = int(count) if count else 1
        if length > MOST_CELLS:
            raise PatternError(f"a run of {length} cells", number, SMALLER)
        if item == "$":
            row, column = row + length, 0
            continue
        state = _state(item[:-1], item[-1])
        if state is None:
            raise PatternError(f"{item!r} is not a cell in run-length encoding", number, _CELLS)
        if state:
            yield row, column, length, state
        column += length


def _items(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, count, item) up to the final !: an item is $ or a cell, which may have a prefix of p to y."""
    count = prefix = ""
    for number, line in lines:
        if not prefix and not count and line.lstrip().startswith("#"):
            continue
        for character in "".join(line.split()):
            if not prefix and character in "0123456789":
                count += character
                if int(count) > MOST_CELLS * 10**9:  # there may be any number of digits
                    raise PatternError(f"a run of {count} cells or more", number, SMALLER)
            elif not prefix and character == "!":
                return
            elif not prefix and "p" <= character <= "y":
                prefix = character
            else:
                yield number, count, prefix + character
                count = prefix = ""
    if prefix or count:
        raise PatternError(f"the pattern ends within a run, after {count + prefix!r}", lines[-1][0], _CELLS)
    # A missing final ! is common in hand-written files and loses nothing.


def _state(prefix: str, character: str) -> int | None:
    if prefix:
        state = 24 * (ord(prefix) - ord("o")) + ord(character) - ord("A") + 1
        return state if "A" <= character <= "X" and state <= 255 else None
    if character in "b.":
        return 0
    if character == "o":
        return 1
    return ord(character) - ord("A") + 1 if "A" <= character <= "X" else None


def _letter(state: int, many: bool) -> str:
    if not many:
        return "o" if state else "b"
    if state == 0:
        return "."
    high, low = divmod(state - 1, 24)
    return (chr(ord("o") + high) if high else "") + chr(ord("A") + low)


def write_rle(
    cells: NDArray[np.integer],
    rule: str | None = "B3/S23",
    comments: tuple[str, ...] = (),
    generation: int = 0,
    position: tuple[int, int] | None = None,
) -> str:
    """Return the RLE text of a two-dimensional array of states 0 .. 255; `read_rle` gives the same cells back.

    `rule` may name a bounded grid (B3/S23:T64,64) or be None; `position` is the row and column of the upper left cell.
    """
    if cells.ndim != 2:
        raise ValueError(f"RLE is for two dimensions; the array has {cells.ndim}")
    if cells.size and not 0 <= int(cells.min()) <= int(cells.max()) <= 255:
        raise ValueError("RLE is for states 0 .. 255")
    many = bool(cells.size) and int(cells.max()) > 1
    lines = [*(f"#C {comment}" for comment in comments)]
    marks = [f"Pos={position[1]},{position[0]}"] if position is not None else []
    marks += [f"Gen={generation}"] if generation else []
    lines += [f"#CXRLE {' '.join(marks)}"] if marks else []
    lines.append(f"x = {cells.shape[1]}, y = {cells.shape[0]}" + (f", rule = {rule}" if rule else ""))
    line = ""
    for token in [*_tokens(cells, many), "!"]:
        if len(line) + len(token) > _LINE:
            lines.append(line)
            line = ""
        line += token
    return "\n".join([*lines, line]) + "\n"


def _tokens(cells: NDArray[np.integer], many: bool) -> Iterator[str]:
    """Yield runs as text: rows end with $; dead cells at the end of a row and empty rows at the end are left out."""
    ended = 0
    for row, states in enumerate(cells):
        alive = np.flatnonzero(states)
        if not alive.size:
            continue
        if row > ended:
            yield _run(row - ended, "$")
            ended = row
        states = states[: alive[-1] + 1]
        starts = np.concatenate(([0], np.flatnonzero(np.diff(states)) + 1, [states.size]))
        for start, stop in itertools.pairwise(starts):
            yield _run(int(stop - start), _letter(int(states[start]), many))


def _run(length: int, letter: str) -> str:
    return letter if length == 1 else f"{length}{letter}"


def read_cells(text: str) -> Pattern:
    """Read a pattern from plain text: one line for each row, `.` dead, `O` or `*` alive, `!` a comment.

    Raises
    ------
    PatternError
        If a line has other characters.
    """
    rows: list[list[int]] = []
    comments: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("!"):
            comments.append(line[1:].strip())
            continue
        row = line.rstrip()
        wrong = set(row) - set(".O*")
        if wrong:
            raise PatternError(f"{min(wrong)!r} is not a cell", number, "write . for dead and O for live cells")
        rows.append([int(character in "O*") for character in row])
    while rows and not any(rows[-1]):
        rows.pop()
    cells = np.zeros((len(rows), max(map(len, rows), default=0)), np.uint8)
    for index, row_states in enumerate(rows):
        cells[index, : len(row_states)] = row_states
    return Pattern(cells, comments=tuple(comments))


def read_coordinates(text: str) -> Pattern:
    """Read a pattern from Life 1.06: a line "x y" for each live cell, x to the right and y downwards.

    The array is the smallest that holds all live cells; `position` is the row and column of its first cell.

    Raises
    ------
    PatternError
        If the text is not in this format.
    """
    first, *lines = text.splitlines() or [""]
    if first.split() != ["#Life", "1.06"]:
        raise PatternError(
            f"{first[:40]!r} does not begin a Life 1.06 file", 1, 'begin it with "#Life 1.06", or save it as RLE'
        )
    cells: list[tuple[int, int]] = []
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        match = _COORDINATES.fullmatch(line.strip())
        if match is None:
            raise PatternError(f"{line[:40]!r} is not a cell", number, "write its x and its y, two whole numbers")
        cells.append((int(match[2]), int(match[1])))
    if not cells:
        return Pattern(np.zeros((0, 0), np.uint8))
    rows, columns = zip(*cells, strict=True)
    top, left = min(rows), min(columns)
    height, width = max(rows) - top + 1, max(columns) - left + 1
    if height * width > MOST_CELLS:
        raise PatternError(f"the pattern is {height} x {width} cells large", 1, SMALLER)
    states = np.zeros((height, width), np.uint8)
    states[np.subtract(rows, top), np.subtract(columns, left)] = 1
    return Pattern(states, position=(top, left))
