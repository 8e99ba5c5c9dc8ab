"""Rows of states that are written out, `init = [[0, 1, 0], [1, 1, 1]]`: arrays, and errors that name row and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError, shown

__all__ = ["array_of", "place_in", "shape_of"]

_KEY: Final = "automaton.init"
_FORM: Final = "write states as numbers, each row as long as the others: [[0, 1, 0], [0, 0, 1], [1, 1, 1]]"


def array_of(rows: object) -> NDArray[Any]:
    """Return rows of states as an array.

    Parameters
    ----------
    rows
        An array, or nested sequences of numbers.

    Raises
    ------
    CaseError
        If a row is a text, or differs from the first one in length.
    """
    if isinstance(rows, Sequence):
        for number, row in enumerate(rows):
            if isinstance(row, str):
                raise CaseError(
                    f"row {number} is the text {shown(row)}",
                    key=_KEY,
                    remedy=f'{_FORM}, or put the pattern into a file: init = "pattern.rle"',
                )
            if isinstance(row, Sequence) and isinstance(rows[0], Sequence) and len(row) != len(rows[0]):
                raise CaseError(
                    f"rows of the pattern differ in length: row {number} has {len(row)} states, row 0 {len(rows[0])}",
                    key=_KEY,
                    remedy=_FORM,
                )
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise CaseError("rows of the pattern differ in length", key=_KEY, remedy=_FORM) from error


def place_in(wrong: NDArray[np.bool_]) -> str:
    """Return the place of the first true value of an array, "at row 0, column 2" on two axes."""
    index = [int(n) for n in np.unravel_index(int(np.argmax(wrong)), wrong.shape)]
    return f"at row {index[0]}, column {index[1]}" if len(index) == 2 else f"at index {index}"


def shape_of(init: object) -> tuple[int, ...] | None:
    """Return the shape of initial cells that are an array or rows of states; None for other forms.

    Parameters
    ----------
    init
        Initial cells, in one of the forms of a case, or an array.
    """
    rows = init.get("pattern") if isinstance(init, Mapping) else init
    if isinstance(rows, np.ndarray) or (isinstance(rows, Sequence) and rows and not isinstance(rows, str)):
        return array_of(rows).shape
    return None
