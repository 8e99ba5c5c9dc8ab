"""Bounded grids in Golly's notation behind a rule: "B3/S23:T64,64" is a torus, ":P64,64" has dead cells around it.

Source: golly.sourceforge.io/Help/bounded.html.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from minga.errors import CaseError

__all__ = ["Bounds", "parse_bounds", "split_bounds"]

KEY: Final = "grid.shape"
FORMS: Final = "leave it out and give grid.shape and grid.boundary, or write :T64,64 (a torus) or :P64,64 (a plane)"

_SUFFIX: Final = re.compile(r"(.*[^:]):([TPKCS][-+*0-9,.]{1,99})", re.IGNORECASE | re.DOTALL)
_LENGTH: Final = r"([0-9]{1,9})(?:([+-][0-9]{1,9}))?"
_FORM: Final = re.compile(rf"([TP]){_LENGTH}(?:,{_LENGTH})?", re.IGNORECASE)
_REFUSED: Final = {"K": "a Klein bottle", "C": "a cross-surface", "S": "a sphere"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounded grid.

    Attributes
    ----------
    shape
        Cells along each axis (rows, columns); one number in one dimension.
    boundary
        Boundary as a case writes it: "periodic", "fixed", or a list with a shift.
    """

    shape: tuple[int, ...]
    boundary: object

    def index(self, position: tuple[int, int]) -> tuple[int, ...]:
        """Return the index of the cell at row and column `position` of Golly's plane, whose cell (0, 0) is central."""
        return tuple(p + n // 2 for p, n in zip(position[-len(self.shape) :], self.shape, strict=True))


def split_bounds(rule: str) -> tuple[str, str | None]:
    """Split a rule into the rule alone and the suffix that bounds the grid, or None if there is no suffix."""
    match = _SUFFIX.fullmatch(rule.strip())
    return (match[1].strip(), match[2]) if match and not match[1].endswith(".py") else (rule, None)


def parse_bounds(suffix: str, key: str = KEY, ndim: int = 2) -> Bounds:
    """Return the grid that a suffix stands for.

    "T30+5,20" is a torus of 20 rows of 30 cells, whose lower edge is joined to the upper one 5 cells farther on. "T30"
    has as many rows as columns; for a rule of one dimension it is one row.

    Raises
    ------
    CaseError
        If minga has no such grid; the error names `key`, the place where the suffix was found.
    """
    squeezed = "".join(suffix.split())
    if squeezed[:1].upper() in _REFUSED:
        raise CaseError(
            f":{squeezed} is {_REFUSED[squeezed[0].upper()]}, which is not supported", key=key, remedy=FORMS
        )
    match = _FORM.fullmatch(squeezed)
    if match is None:
        raise CaseError(f":{squeezed[:60]} is not a bounded grid", key=key, remedy=FORMS)
    letter, width, along_x, height, along_y = match.groups()
    torus = letter.upper() == "T"
    if int(width) == 0 or (height is not None and int(height) == 0):
        raise CaseError(f":{squeezed} is unbounded along an axis", key=key, remedy=FORMS)
    shifts = [int(shift) if shift else 0 for shift in (along_x, along_y)]
    if (any(shifts) and not torus) or all(shifts) or (height is None and any(shifts)):
        raise CaseError(f":{squeezed} has a shift where none is possible", key=key, remedy="shift one edge of a torus")
    if height is None:
        return Bounds((int(width),) * ndim, "periodic" if torus else "fixed")
    if not any(shifts):
        return Bounds((int(height), int(width)), "periodic" if torus else "fixed")
    rows, columns = ({"shift": shift} if shift else "periodic" for shift in shifts)
    return Bounds((int(height), int(width)), [rows, columns])
