"""Initial cells: files, soups, constants and Python functions, each as a function of a box of the grid.

A case may write for `automaton.init` (paths: beside the case, or a file that ships with minga):

    "patterns/glider.rle"                       a pattern (.rle, .cells, .lif, .mc, .npy or .png), centred
    {pattern = "glider.rle", at = [2, 3]}       the same, with its first cell at this row and column
    [[0, 1, 0], [0, 0, 1], [1, 1, 1]]           a pattern written out
    {soup = 0.375, seed = 1}                    cells of state 1 with this probability; [0.3, 0.1]: of states 1 and 2
    {fill = 0.5}                                the same value everywhere
    "file.py:name"                              a function of the grid's shape and the cells' indices: name(shape, y, x)
    {u = ..., v = ...}                          one of these for each field
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.case.files import find_file, locate
from minga.case.python_file import run_file
from minga.errors import CaseError, Where, shown, suggest
from minga.lang.block import BlockRule
from minga.lang.random import uniform
from minga.lang.rule import Rule
from minga.lang.rule_context import STATES_OF_A_BYTE
from minga.lang.types import DType, integer_range, is_float
from minga.models.automaton.patterns import Pattern, read_pattern
from minga.models.automaton.picture import read_picture
from minga.models.automaton.written_rows import array_of, place_in
from minga.space.box import Box

__all__ = ["Initial", "initial_values", "pattern_of", "place", "soup"]

KEY: Final = "automaton.init"
FORMS: Final = (
    'write a file ("glider.rle", "cells.npy", "file.py:name"), rows of states, {soup = 0.3, seed = 1}, '
    '{pattern = "glider.rle", at = [0, 0]}, {fill = 1.0}, or one of these for each field'
)
TEXT_FILES: Final = (".rle", ".cells", ".lif", ".life", ".mc")
PATTERN_FILES: Final = (*TEXT_FILES, ".npy", ".png")
SOUP_STREAM: Final = 0x50075007

Array = NDArray[Any]
Initial = Callable[[Box], Array]


@dataclass(frozen=True, slots=True)
class Start:
    """Context for the parts of `init`: the grid, the rule's states, the directory of files, and the default seed."""

    shape: tuple[int, ...]
    states: int | None
    directory: Path
    seed: int

    def check(self, values: Array, dtype: DType, what: str, whole: bool = False) -> Array:
        """Return `values` as cells of this type; raise CaseError unless each one is a state of the rule.

        The error names the place of a wrong value if these are the values of a `whole` pattern.
        """
        if not is_float(dtype) and values.dtype.kind == "f" and not np.equal(values, np.floor(values)).all():
            raise CaseError(f"{what} holds fractions, the cells are {dtype}", key=KEY)
        if values.dtype.kind not in "biuf":
            raise CaseError(f"{what} holds {values.dtype}, not numbers", key=KEY)
        if is_float(dtype) or not values.size:
            return values.astype(dtype)
        low, high = (0, self.states - 1) if self.states else integer_range(dtype)
        least, most = values.min(), values.max()
        if least < low or most > high:
            wrong = most if most > high else least
            where = f" {place_in(values == wrong)}" if whole and values.ndim else ""
            raise CaseError(
                f"{what} holds {wrong}{where}; the rule's states are {low} .. {high}",
                key=KEY,
                remedy=f"write a state from {low} to {high} there, or choose a rule with more states",
            )
        return values.astype(dtype)


def initial_values(
    init: object, rule: Rule | BlockRule, shape: tuple[int, ...], directory: Path = Path(), seed: int = 0
) -> dict[str, Initial]:
    """Return for each field of the rule a function that gives its first values on a box of the grid."""
    start = Start(shape, rule.states, directory, seed)
    several = len(rule.fields) > 1
    if isinstance(init, Mapping) and (several or set(init) == set(rule.fields)) and _names_fields(init, rule):
        return {
            name: _one(init[name], number, dtype, start) for number, (name, dtype) in enumerate(rule.fields.items())
        }
    if isinstance(init, str) and (split := _function(init, directory)):
        return _from_function(split, rule, start)
    if callable(init):
        return _from_function(init, rule, start)
    if several:
        raise CaseError(
            f"the rule has the fields {', '.join(rule.fields)}; found {shown(init)}",
            key=KEY,
            remedy="start each of them: {"
            + ", ".join(f"{name} = ..." for name in rule.fields)
            + '}, or "file.py:name"',
        )
    name, dtype = next(iter(rule.fields.items()))
    return {name: _one(init, 0, dtype, start)}


def _names_fields(init: Mapping[Any, Any], rule: Rule | BlockRule) -> bool:
    """Return whether a mapping gives a start for each field by name; raise CaseError if one is missing or unknown."""
    if set(init) == set(rule.fields):
        return True
    unknown = [str(name) for name in init if name not in rule.fields]
    missing = [name for name in rule.fields if name not in init]
    raise CaseError(
        f"no field {unknown[0]!r}" if unknown else f"field {missing[0]!r} has no start",
        key=KEY,
        suggestion=suggest(unknown[0], rule.fields) if unknown else None,
        remedy="start each of the rule's fields: " + ", ".join(rule.fields),
    )


def _one(init: object, number: int, dtype: DType, start: Start) -> Initial:
    """Return the start of one field."""
    if isinstance(init, str):
        return place(_read(init, dtype, start), start.shape, None)
    if isinstance(init, np.ndarray) or (isinstance(init, Sequence) and init):
        return place(_rows(init, dtype, start), start.shape, None)
    if isinstance(init, Mapping):
        for word, keys in {"soup": {"seed"}, "pattern": {"at"}, "fill": set[str]()}.items():
            if word not in init:
                continue
            if extra := sorted(set(init) - {word} - keys):
                raise CaseError(
                    f"unknown entry {extra[0]!r}", key=KEY, suggestion=suggest(extra[0], keys), remedy=FORMS
                )
            return _table(word, init, number, dtype, start)
        close = suggest(str(next(iter(init), "")), ("soup", "pattern", "fill"))
        raise CaseError(f"found {shown(dict(init))}", key=KEY, suggestion=close, remedy=FORMS)
    raise CaseError(f"found {shown(init)}", key=KEY, remedy=FORMS)


def _table(word: str, init: Mapping[str, Any], number: int, dtype: DType, start: Start) -> Initial:
    value = init[word]
    if word == "soup":
        seed = init.get("seed", start.seed)
        if not _whole(seed) or not 0 <= seed < 2**64:
            raise CaseError(f"seed = {seed!r}: expected an integer 0 .. 2**64 - 1", key=f"{KEY}.seed")
        return soup(_probabilities(value, start.states), int(seed), start.shape, dtype, number)
    if word == "fill":
        if not isinstance(value, bool | int | float):
            raise CaseError(f"fill = {shown(value)}: expected a number", key=f"{KEY}.fill")
        filling = start.check(np.asarray(value), dtype, "fill")
        return lambda box: np.full(box.shape, filling, dtype)
    if not isinstance(value, str):
        return place(_rows(value, dtype, start), start.shape, init.get("at"))
    return place(_read(value, dtype, start), start.shape, init.get("at"))


# Soups ---------------------------------------------------------------------------------------------------------------
def _probabilities(value: object, states: int | None) -> tuple[float, ...]:
    given = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not all(map(_share, given)) or sum(given) > 1:
        raise CaseError(
            f"soup = {shown(value)}: expected probabilities",
            key=f"{KEY}.soup",
            remedy="write the share of live cells, 0 .. 1, or a list with those of states 1, 2, ..., at most 1 in all",
        )
    if states is not None and len(given) >= states:
        raise CaseError(
            f"soup has shares for {len(given)} states besides 0, the rule has {states - 1}",
            key=f"{KEY}.soup",
            remedy="leave out shares, or give the rule more states, such as T777,K3 or /2/3",
        )
    return tuple(map(float, given))


def _share(value: object) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and 0 <= float(value) <= 1  # type: ignore[arg-type]


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def soup(
    probabilities: Sequence[float], seed: int, shape: tuple[int, ...], dtype: DType = "u1", number: int = 0
) -> Initial:
    """Return random cells: state k with probability `probabilities[k - 1]`, otherwise 0.

    The draw for a cell depends only on the seed, the cell's index in the grid and the number of the field, so no layout
    changes it.
    """
    limits = np.cumsum(np.asarray(probabilities, np.float64))[::-1]

    def values(box: Box) -> Array:
        draws = uniform(box.shape, seed=seed, stream=SOUP_STREAM, draw=number, origin=box.lo, extent=shape)
        cells = np.zeros(box.shape, dtype)
        for state, limit in zip(range(len(limits), 0, -1), limits, strict=True):
            cells[draws < limit] = state
        return cells

    return values


# Patterns ------------------------------------------------------------------------------------------------------------
def pattern_of(init: object, directory: Path) -> Pattern | None:
    """Return the pattern file that `init` names, if it is of a kind that can name a rule."""
    name = init.get("pattern") if isinstance(init, Mapping) else init
    is_pattern = isinstance(name, str) and Path(name).suffix.lower() in TEXT_FILES
    return read_pattern(find_file(str(name), directory, KEY), KEY) if is_pattern else None


def _read(name: str, dtype: DType, start: Start) -> Array:
    if Path(name).suffix.lower() not in PATTERN_FILES:
        raise CaseError(f"{name!r} is a file of an unknown kind", key=KEY, remedy=FORMS)
    path = find_file(name, start.directory, KEY)
    if path.suffix.lower() in TEXT_FILES:
        return _rows(read_pattern(path, KEY).cells, dtype, start, name)
    if path.suffix.lower() == ".png":
        states = None if is_float(dtype) else start.states or STATES_OF_A_BYTE
        return _rows(read_picture(path, states, KEY), dtype, start, name)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # whatever the parser of the header raises: EOFError, SyntaxError, TokenError, ...
        raise CaseError(f"{str(path)!r} is not a .npy file of numbers: {error}", key=KEY) from error
    return _rows(array, dtype, start, name)


def _rows(rows: object, dtype: DType, start: Start, what: str = "the pattern") -> Array:
    """Return cells as an array that has the grid's number of axes and fits into the grid."""
    array = array_of(rows)
    ndim = len(start.shape)
    if ndim == 1 and array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != ndim:
        raise CaseError(f"{what} has {array.ndim} dimensions, the grid has {ndim}", key=KEY)
    array = start.check(array, dtype, what, whole=True)
    if any(n > limit for n, limit in zip(array.shape, start.shape)):
        array = _trimmed(array)
    if any(n > limit for n, limit in zip(array.shape, start.shape)):
        size, grid = (" x ".join(map(str, s)) for s in (array.shape, start.shape))
        raise CaseError(f"{what} is {size} cells, larger than the grid, {grid}", key=KEY, remedy="enlarge grid.shape")
    return array


def _trimmed(array: Array) -> Array:
    """Return the smallest box of the array that holds all cells that are not 0."""
    if not array.any():
        return array[(slice(0, 0),) * array.ndim]
    cut = []
    for axis in range(array.ndim):
        alive = np.flatnonzero(array.any(axis=tuple(a for a in range(array.ndim) if a != axis)))
        cut.append(slice(int(alive[0]), int(alive[-1]) + 1))
    return array[tuple(cut)]


def place(pattern: Array, shape: tuple[int, ...], at: object) -> Initial:
    """Place a pattern on a grid of zeros: its first cell at index `at`, or centred (odd cells go to the low ends)."""
    if at is None:
        corner = tuple((n - m) // 2 for n, m in zip(shape, pattern.shape))
    elif isinstance(at, Sequence | np.ndarray) and len(at) == len(shape) and all(map(_whole, at)):
        corner = tuple(map(int, at))
    else:
        raise CaseError(f"at = {at!r}: expected an index for each of {len(shape)} axes", key=f"{KEY}.at")
    if any(i < 0 or i + m > n for i, m, n in zip(corner, pattern.shape, shape)):
        size, grid = (" x ".join(map(str, s)) for s in (pattern.shape, shape))
        raise CaseError(f"a pattern of {size} cells at {list(corner)} leaves the grid, {grid}", key=f"{KEY}.at")
    occupied = Box(corner, tuple(i + m for i, m in zip(corner, pattern.shape)))

    def values(box: Box) -> Array:
        cells = np.zeros(box.shape, pattern.dtype)
        common = box & occupied
        if not common.empty:
            cells[common.slices(box.lo)] = pattern[common.slices(corner)]
        return cells

    return values


# Functions -----------------------------------------------------------------------------------------------------------
def _function(init: str, directory: Path) -> Callable[..., object] | None:
    """Return the function that "file.py:name" names; None for other strings."""
    path, colon, name = init.partition(":")
    if not path.endswith(".py"):
        return None
    names = run_file(locate(path, directory), KEY)
    if not colon or not callable(names.get(name)) or isinstance(names.get(name), Rule):
        functions = [key for key, value in names.items() if callable(value) and getattr(value, "__code__", None)]
        raise CaseError(
            f"{path!r} has no function {name!r}",
            key=KEY,
            suggestion=suggest(name, functions),
            remedy=f"write def {name if name.isidentifier() else 'start'}(shape, *indices): ..., which returns states",
        )
    found: Callable[..., object] = names[name]
    return found


def _from_function(function: Callable[..., object], rule: Rule | BlockRule, start: Start) -> dict[str, Initial]:
    """Compute each field from function(shape, *indices): integer arrays, one for each axis, that broadcast to the box.

    A few cells are computed at once, so that a function that cannot work is found before anything starts.
    """

    def field(name: str, dtype: DType) -> Initial:
        def values(box: Box) -> Array:
            indices = np.ogrid[tuple(slice(low, high) for low, high in zip(box.lo, box.hi, strict=True))]
            try:
                result = _of_field(_called(function, start.shape, indices), name, rule)
                cells = start.check(_as_array(result, name), dtype, name)
            except CaseError as error:
                place = _place(function)
                error.where = error.where or (Where(*place) if place else None)
                raise
            try:
                return np.ascontiguousarray(np.broadcast_to(cells, box.shape))
            except ValueError as error:
                raise CaseError(
                    f"{_name(function)} returns values of shape {cells.shape} for the indices of {box.shape} cells",
                    key=KEY,
                    where=_place(function),
                    remedy="compute with the indices, which are arrays of the requested cells, not of the whole grid",
                ) from error

        return values

    fields = {name: field(name, dtype) for name, dtype in rule.fields.items()}
    few = Box.of(tuple(min(length, 2 + axis) for axis, length in enumerate(start.shape)))
    for values in fields.values():
        values(few)
    return fields


def _called(function: Callable[..., object], shape: tuple[int, ...], indices: Sequence[Array]) -> object:
    """Call the function; raise CaseError with its line if it does not accept these arguments, or fails."""
    try:
        inspect.signature(function).bind(shape, *indices)
    except TypeError as error:
        arrays = f"{len(shape)} index array{'s' if len(shape) > 1 else ''}"
        raise CaseError(
            f"{_name(function)} cannot be called with the grid's shape and {arrays}: {error}",
            key=KEY,
            where=_place(function),
            remedy=f"write def {_name(function)}(shape, {', '.join('wzyx'[-len(shape) :])}): ...",
        ) from error
    except ValueError:  # functions written in C have no signature
        pass
    try:
        return function(shape, *indices)
    except CaseError:
        raise
    except Exception as error:
        place = _place(function)
        lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if place and f.filename == place[0]]
        raise CaseError(
            f"{_name(function)} raises {type(error).__name__}: {error}",
            key=KEY,
            where=(place[0], lines[-1]) if place and lines else place,
            remedy="it is called with the grid's shape and an array of indices for each axis",
        ) from error


def _of_field(result: object, name: str, rule: Rule | BlockRule) -> object:
    """Return the values of one field from the function's result."""
    if not isinstance(result, Mapping) and len(rule.fields) == 1:
        return result
    if not isinstance(result, Mapping) or name not in result:
        names = ", ".join(f'"{field}": ...' for field in rule.fields)
        raise CaseError(f"the function returns no values for field {name!r}", key=KEY, remedy=f"return {{{names}}}")
    return result[name]


def _as_array(values: object, name: str) -> Array:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise CaseError(f"the values of {name} are not an array: {error}", key=KEY) from error


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", "the function"))


def _place(function: Callable[..., object]) -> tuple[str, int] | None:
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else None
