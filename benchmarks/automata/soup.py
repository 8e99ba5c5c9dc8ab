"""The same random cells for everyone: a generator that is written down in a line, so that any program can repeat it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FACTOR, _ADDEND, _MASK = 1103515245, 12345, 2**31 - 1

States = NDArray[np.uint8]


def soup(rows: int, columns: int, eighths: int = 3) -> States:
    """x <- (1103515245 x + 12345) mod 2**31 from x = 1; a cell, row by row, lives where (x >> 16) mod 8 < eighths."""
    wanted = rows * columns
    numbers = np.array([(_FACTOR + _ADDEND) & _MASK], np.uint64)
    factor, addend = _FACTOR, _ADDEND  # of as many steps as there are numbers
    while numbers.size < wanted:
        following = (numbers * np.uint64(factor) + np.uint64(addend)) & np.uint64(_MASK)
        numbers = np.concatenate([numbers, following])
        factor, addend = factor * factor & _MASK, (factor * addend + addend) & _MASK
    alive = (numbers[:wanted] >> np.uint64(16)) % np.uint64(8) < eighths
    return alive.astype(np.uint8).reshape(rows, columns)


def write_rle(path: Path, cells: States, rule: str) -> None:
    """Golly's run-length encoding."""
    letters = ".ABCDEFGHIJKLMNOPQRSTUVWX" if cells.max(initial=0) > 1 else "bo"
    rows = []
    for row in cells.tolist():
        runs = ((len(list(group)), letters[state]) for state, group in itertools.groupby(row))
        rows.append("".join(f"{count if count > 1 else ''}{letter}" for count, letter in runs))
    path.write_text(f"x = {cells.shape[1]}, y = {cells.shape[0]}, rule = {rule}\n" + "$\n".join(rows) + "!\n")
