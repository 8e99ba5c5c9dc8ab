"""Boundary conditions as case files specify them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minga.errors import CaseError, LayoutError, suggest
from minga.space.boundary import Condition, fixed, reflect, zero_gradient
from minga.space.grid import Grid
from minga.space.seams import Seam

__all__ = ["Boundaries", "parse_boundary"]

KEY = "grid.boundary"
WORDS = ("periodic", "fixed", "reflect", "zero-gradient", "twisted", "sphere")
FORMS = (
    'one of "periodic", "fixed", "reflect", "zero-gradient", ["fixed", value], ["reflect", "cell"], {shift = cells}, '
    '"twisted", {twisted = cells}, "sphere"; '
    "or a list with one of these for each axis, where a pair is for the low and the high side; "
    '["twisted", "periodic"] is a Klein bottle'
)

Shift = Mapping[str | int, int]
Pair = tuple[Condition, Condition]


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Boundary conditions of all axes: for each axis, periodic ends, possibly shifted, or a condition for each side."""

    sides: tuple[Pair | None, ...]
    shift: tuple[Shift, ...]
    values: tuple[bool | int | float, ...]
    seam: Seam | None = None

    @property
    def conditions(self) -> dict[str | int, Pair]:
        """Argument `boundary` of fields: a pair of conditions for each axis that is not periodic."""
        return {axis: pair for axis, pair in enumerate(self.sides) if pair is not None}

    def grid(self, shape: Sequence[int], origin: Sequence[float] | float = 0.0) -> Grid:
        """Return the grid of this shape with these periodic axes and shifts, which begins at `origin`."""
        try:
            joined = [pair is None for pair in self.sides]
            rows = [0] if len(shape) == 2 else []  # rows are written from top to bottom
            return Grid(
                shape, origin=origin, periodic=joined, shift=dict(enumerate(self.shift)), down=rows, seam=self.seam
            )
        except LayoutError as error:
            raise CaseError(error.message, key="grid", remedy=error.remedy) from error


def parse_boundary(value: object, ndim: int) -> Boundaries:
    """Parse the boundary conditions of a case for a grid of `ndim` axes.

    Parameters
    ----------
    value
        The entry of the case; `FORMS` describes the forms that it may have.
    ndim
        Number of axes.

    Returns
    -------
    Boundaries
        The conditions.

    Raises
    ------
    CaseError
        If the entry is invalid.
    """
    if _twists(value):
        return Boundaries((None,) * ndim, ({},) * ndim, (), _seam(value, ndim))
    axes = [value] * ndim if isinstance(value, str | Mapping) or _is_condition(value) else value
    if not isinstance(axes, Sequence):
        raise CaseError(f"found {value!r}", key=KEY, remedy=f"write {FORMS}")
    if len(axes) != ndim:
        raise CaseError(
            f"{len(axes)} entries for a grid of {ndim} axes: {value!r}",
            key=KEY,
            remedy="give one entry for each axis, or one word for all; a pair for the two sides is a nested list",
        )
    parsed = [_axis(entry, axis, ndim) for axis, entry in enumerate(axes)]
    return Boundaries(tuple(pair for pair, _ in parsed), tuple(shift for _, shift in parsed), tuple(_values(axes)))


def _axis(entry: object, axis: int, ndim: int) -> tuple[Pair | None, Shift]:
    """Return the conditions at the two sides of one axis, None if it is periodic, and its shift."""
    if entry == "periodic":
        return None, {}
    if isinstance(entry, Mapping):
        return None, _shift(entry, axis, ndim)
    if isinstance(entry, str) or _is_condition(entry):
        condition = _condition(entry)
        return (condition, condition), {}
    if not (isinstance(entry, Sequence) and len(entry) == 2):
        raise CaseError(f"found {entry!r} for axis {axis}", key=KEY, remedy=f"write {FORMS}")
    if "periodic" in entry:
        raise CaseError(
            f"{list(entry)!r}: an axis is periodic at both sides or at neither",
            key=KEY,
            remedy='write "periodic" alone',
        )
    return (_condition(entry[0]), _condition(entry[1])), {}


def _is_condition(value: object) -> bool:
    """Return True if a list is one condition, ["fixed", 1.0] or ["reflect", "cell"], not a list of conditions."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) == 2
        and isinstance(value[0], str)
        and (isinstance(value[1], bool | int | float) or value[1] in ("edge", "cell"))
    )


def _values(entry: object) -> Iterator[bool | int | float]:
    """Yield the values to which cells beyond the ends of an axis are fixed."""
    if entry == "fixed":
        yield 0
    elif _is_condition(entry):
        yield from (number for number in entry if isinstance(number, bool | int | float))  # type: ignore[attr-defined]
    elif isinstance(entry, Sequence) and not isinstance(entry, str):
        for item in entry:
            yield from _values(item)


def _condition(entry: object) -> Condition:
    word: object = entry
    argument: object = None
    if _is_condition(entry):
        word, argument = entry  # type: ignore[misc]
    match word:
        case "fixed" if argument is None or (isinstance(argument, bool | int | float) and math.isfinite(argument)):
            return fixed(0 if argument is None else argument)
        case "reflect" if argument in (None, "edge", "cell"):
            return reflect("cell" if argument == "cell" else "edge")
        case "zero-gradient" if argument is None:
            return zero_gradient()
    close = suggest(word, WORDS) if isinstance(word, str) and word not in WORDS else None
    raise CaseError(f"found {entry!r}", key=KEY, suggestion=close, remedy=f"write {FORMS}")


def _twists(value: object) -> bool:
    """Return True if the ends of an axis, or of several, are joined with reversed edges."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(map(_twists, value))
    return value in ("twisted", "sphere") or (isinstance(value, Mapping) and "twisted" in value)


def _seam(value: Any, ndim: int) -> Seam:
    """Return the join of the ends of a grid; raise CaseError unless it makes a surface of two axes."""
    axes = [value] * 2 if isinstance(value, str) else value
    remedy = (
        'write "twisted" (a cross-surface), "sphere", or for a Klein bottle ["twisted", "periodic"] or '
        '[{twisted = 1}, "periodic"], either way round'
    )
    if ndim != 2:
        raise CaseError(f"found {value!r} for a grid of {ndim} axes", key=KEY, remedy="use two axes")
    if value == "sphere":
        return Seam("sphere")
    found = [_twist(entry) for entry in axes] if isinstance(axes, Sequence) and len(axes) == 2 else [None, None]
    if found == [0, 0] and axes[0] == "twisted" == axes[1]:
        return Seam("cross-surface")
    for axis, shift in enumerate(found):
        if shift is not None and axes[1 - axis] == "periodic":
            return Seam("klein-bottle", axis, shift)
    raise CaseError(f"found {value!r}, which joins no ends", key=KEY, remedy=remedy)


def _twist(entry: object) -> int | None:
    """Return the shift of reversed edges, None if an entry is something else."""
    if isinstance(entry, Mapping):
        shift = entry["twisted"] if set(entry) == {"twisted"} else None
        return shift if isinstance(shift, int) and not isinstance(shift, bool) else None
    return 0 if entry == "twisted" else None


def _shift(entry: Mapping[Any, Any], axis: int, ndim: int) -> Shift:
    """Return the shift of a periodic axis whose ends are joined with a displacement.

    The forms are {shift = {x = 5}} and, on two axes, {shift = 5}, which shifts along the other axis.
    """
    shift = entry.get("shift")
    if set(entry) != {"shift"}:
        close = suggest(str(next(iter(entry), "")), ["shift"])
        raise CaseError(f"found {dict(entry)!r}", key=KEY, suggestion=close, remedy=f"write {FORMS}")
    if isinstance(shift, int) and not isinstance(shift, bool) and ndim == 2:
        return {1 - axis: shift}
    if isinstance(shift, Mapping) and all(isinstance(v, int) and not isinstance(v, bool) for v in shift.values()):
        return dict(shift)
    raise CaseError(
        f"found shift = {shift!r}", key=KEY, remedy="name the axis along which the ends are shifted: {shift = {x = 5}}"
    )
