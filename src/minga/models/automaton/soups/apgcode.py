"""Names of objects as Catagolue gives them: xs4_33 is a block, xp2_7 a blinker, xq4_153 a glider.

The kind and the number say what the object does: ``xs`` and its population for still lifes, ``xp`` and its period for
oscillators, ``xq`` and its period for spaceships. The rest are its cells in extended Wechsler format: strips of five
rows, a character a column. Among all phases, rotations and reflections the shortest text counts, and of several the
first in alphabetical order. Source: conwaylife.com/wiki/Apgcode.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells", "apgcode", "as_array", "wechsler"]

Cells = frozenset[tuple[int, int]]
"""Rows and columns of live cells."""

LARGEST: Final = 40
"""Rows and columns of the largest object that is named by its cells."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_ROWS: Final = 5
_SHORT: Final = ("", "0", "w", "x")
_LONGEST: Final = 39


def apgcode(kind: str, number: int, phases: Iterable[Cells]) -> str:
    """Return the name of an object.

    Parameters
    ----------
    kind
        "s" for still lifes, "p" for oscillators, "q" for spaceships.
    number
        The population of a still life, the period of others.
    phases
        Live cells in each phase.

    Returns
    -------
    str
        The name; "ov_" and the kind and number for objects that fit into 40 x 40 cells in no phase.
    """
    arrays = [as_array(cells) for cells in phases]
    texts = [wechsler(turned) for one in arrays if max(one.shape) <= LARGEST for turned in _orientations(one)]
    if not texts:
        return f"ov_{kind}{number}"
    return f"x{kind}{number}_{min(texts, key=lambda text: (len(text), text))}"


def as_array(cells: Cells) -> NDArray[np.bool_]:
    """Return cells as the smallest array that holds them."""
    points = np.array(sorted(cells))
    points -= points.min(axis=0)
    found = np.zeros(points.max(axis=0) + 1, bool)
    found[tuple(points.T)] = True
    return found


def wechsler(cells: NDArray[np.bool_]) -> str:
    """Return cells in extended Wechsler format, as they are oriented."""
    padded = np.pad(cells, ((0, -cells.shape[0] % _ROWS), (0, 0)))
    strips = []
    for first in range(0, len(padded), _ROWS):
        columns = (padded[first : first + _ROWS] << np.arange(_ROWS)[:, None]).sum(axis=0)
        strips.append(_shortened([int(column) for column in columns]))
    return "z".join(strips)


def _shortened(columns: list[int]) -> str:
    """Return the characters of a strip, with runs of zeros abbreviated, and none at its end."""
    text, zeros = [], 0
    for column in columns:
        if column == 0:
            zeros += 1
            continue
        while zeros > _LONGEST:
            text.append("yz")
            zeros -= _LONGEST
        text.append(_SHORT[zeros] if zeros < len(_SHORT) else f"y{_DIGITS[zeros - len(_SHORT)]}")
        text.append(_DIGITS[column])
        zeros = 0
    return "".join(text)


def _orientations(cells: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Return an array in its rotations and reflections."""
    return [np.rot90(one, turns) for one in (cells, cells.T) for turns in range(4)]
