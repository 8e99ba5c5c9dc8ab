"""Bounded grids in Golly's notation behind a rule, such as "B3/S23:T64,64".

T is a torus, P has dead cells around it, and K, C and S are a Klein bottle, a cross-surface and a sphere. A torus or a
plane with 0 cells along an axis is unbounded along it: "T0,20" is an infinite tube, "P0,20" an infinite strip.
Source: golly.sourceforge.io/Help/bounded.html.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minga.errors import CaseError

__all__ = ["Bounds", "parse_bounds", "split_bounds"]

KEY: Final = "grid.shape"
FORMS: Final = (
    "leave it out and give grid.shape and grid.boundary, or write :T64,64 (a torus), :P64,64 (a plane), :K64*,32 (a "
    "Klein bottle), :C64,32 (a cross-surface) or :S64 (a sphere)"
)

_SUFFIX: Final = re.compile(r"(.*[^:]):([TPKCS][-+*0-9,.]{1,99})", re.IGNORECASE | re.DOTALL)
_LENGTH: Final = r"([0-9]{1,9})(\*?)(?:([+-][0-9]{1,9}))?"
_FORM: Final = re.compile(rf"([TPKCS]){_LENGTH}(?:,{_LENGTH})?", re.IGNORECASE)
_JOINED: Final = {"T": "periodic", "P": "fixed", "C": "twisted", "S": "sphere"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounded grid.

    Attributes
    ----------
    shape
        Cells along each axis (rows, columns), 0 along an unbounded one; one number in one dimension.
    boundary
        Boundary as a case writes it: "periodic", "fixed", "twisted", "sphere", "unbounded", or a list with a shift, a
        twist or an unbounded axis.
    """

    shape: tuple[int, ...]
    boundary: object

    def fit(self, shape: tuple[int, ...]) -> bool:
        """Return whether a grid has these cells along each axis that is not unbounded."""
        return len(shape) == len(self.shape) and all(n in (0, m) for n, m in zip(self.shape, shape, strict=True))

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
    has as many rows as columns; for a rule of one dimension it is one row. "K30*,20" is a Klein bottle whose upper and
    lower edges are reversed; all shifts of one with an even number of cells are a shift by 1, those of others are 0.

    Raises
    ------
    CaseError
        If minga has no such grid; the error names `key`, the place where the suffix was found.
    """
    squeezed = "".join(suffix.split())
    match = _FORM.fullmatch(squeezed)
    if match is None:
        raise CaseError(f":{squeezed[:60]} is not a bounded grid", key=key, remedy=FORMS)
    letter, width, twist_x, along_x, height, twist_y, along_y = match.groups()
    letter = letter.upper()
    shifts = [int(shift) if shift else 0 for shift in (along_x, along_y)]
    twists = [bool(twist_x), bool(twist_y)]
    _check_form(letter, squeezed, height is not None, shifts, twists, key)
    if int(width) == 0 or int(height or width) == 0:
        return _unbounded(letter, squeezed, [int(height or width), int(width)][-ndim:], any(shifts), key)
    if letter == "K":
        return _klein_bottle(int(width), int(height or width), shifts, twists)
    if height is None:
        return Bounds((int(width),) * (ndim if letter in "TP" else 2), _JOINED[letter])
    if not any(shifts):
        return Bounds((int(height), int(width)), _JOINED[letter])
    rows, columns = ({"shift": shift} if shift else "periodic" for shift in shifts)
    return Bounds((int(height), int(width)), [rows, columns])


def _check_form(letter: str, suffix: str, two: bool, shifts: Sequence[int], twists: Sequence[bool], key: str) -> None:
    """Raise CaseError for a twist, a shift or a second number where a surface has none."""
    if (any(twists) and letter != "K") or all(twists):
        raise CaseError(f":{suffix} has a twist where none is possible", key=key, remedy="twist one edge of :K")
    if letter == "S" and two:
        raise CaseError(f":{suffix}: a sphere has one number of cells", key=key, remedy="write one number: :S64")
    on_twists = all(twist or not shift for twist, shift in zip(twists, shifts, strict=True))
    possible = (letter == "T" and two and not all(shifts)) or (letter == "K" and on_twists)
    if any(shifts) and not possible:
        remedy = "shift one edge of a torus, or the twisted edge of a Klein bottle"
        raise CaseError(f":{suffix} has a shift where none is possible", key=key, remedy=remedy)


def _unbounded(letter: str, suffix: str, shape: list[int], shifted: bool, key: str) -> Bounds:
    """Return a grid that is unbounded along the axes with 0 cells."""
    if letter not in "TP" or shifted:
        raise CaseError(f":{suffix} is unbounded along an axis", key=key, remedy="write :T or :P without a shift")
    ends: list[object] = ["unbounded" if n == 0 else _JOINED[letter] for n in shape]
    return Bounds(tuple(shape), ends if any(shape) else "unbounded")


def _klein_bottle(width: int, height: int, shifts: Sequence[int], twists: Sequence[bool]) -> Bounds:
    """Return a Klein bottle; without a twist, Golly takes the edges along y."""
    along = 0 if twists[0] else 1
    cells = (width, height)[along]
    edge = {"twisted": 1} if shifts[along] and cells % 2 == 0 else "twisted"
    return Bounds((height, width), [edge, "periodic"] if along == 0 else ["periodic", edge])
