"""Pairs that a case reads from a file, in place of light."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from minga.case.files import find_file
from minga.errors import CaseError
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.structure.pairs import Pairs

__all__ = ["pairs_of", "read_pairs"]

Floats = NDArray[np.float64]

_KEY: Final = "photodiode.light.generation"
_MOST: Final = 10_000_000
_FORM: Final = "give rows of x, y, G in um, um and 1/cm3 s (x, G for one axis), or an .npz file of arrays x, y and G"


def pairs_of(settings: PhotodiodeSettings, directory: Path) -> Pairs | None:
    """Return the table of pairs of a case; None if it has light, or neither.

    Raises
    ------
    CaseError
        If the file is invalid, or there is light besides.
    """
    said = settings.light
    if said is None or said.generation is None:
        return None
    others = sorted(said.model_fields_set - {"generation"})
    if others:
        raise CaseError(
            f"generation from a file, and {' and '.join(others)}",
            key=f"photodiode.light.{others[0]}",
            remedy="leave the one or the other out: the file has the pairs, whatever their light",
        )
    return read_pairs(find_file(said.generation, directory, _KEY))


def read_pairs(path: Path) -> Pairs:
    """Return the pairs in a file: text with rows of x, y, G in um and 1/cm3 s, or `.npz` with arrays x, y and G.

    Rows of text may have any order; `#` begins a comment, and a first row of names is passed over. The points form a
    rectangle. For a device with one axis, there is no y.

    Raises
    ------
    CaseError
        If the file cannot be read, or is no such table.
    """
    try:
        places, values = _arrays(path) if path.suffix == ".npz" else _rows(path)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise _wrong(f"cannot read {path.name} as numbers: {error}") from None
    for name, array in (*zip("xy", places), ("G", values)):
        if not np.isfinite(array).all():
            raise _wrong(f"{path.name}: {name} has values that are not finite")
    for name, line in zip("xy", places):
        if line.size < 2 or not (np.diff(line) > 0).all():
            raise _wrong(f"{path.name}: {name} has {line.size} values; expected two or more, in ascending order")
    if values.shape != tuple(line.size for line in places):
        raise _wrong(f"{path.name}: G is {_size(values.shape)}, its places are {_size(p.size for p in places)}")
    if (values < 0).any():
        raise _wrong(f"{path.name}: G = {values.min():g}; pairs are generated, not lost")
    return Pairs(path.name, tuple(1e-4 * line for line in places), values)


def _arrays(path: Path) -> tuple[tuple[Floats, ...], Floats]:
    """Return places and values of an .npz file."""
    if not is_zipfile(path):
        raise ValueError("it is no .npz file")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
        names = ("x", "y", "G") if "y" in found else ("x", "G")
        missing = [name for name in names if name not in found]
        if missing:
            raise _wrong(f"{path.name} has no array {missing[0]!r}; it has {', '.join(found) or 'none'}")
        arrays = [np.asarray(found[name]) for name in names]
    for name, array in zip(names, arrays):
        if array.dtype.kind not in "fiu" or array.size > _MOST:
            raise _wrong(f"{path.name}: {name} has {array.size:,} values of type {array.dtype}")
        if name != "G" and array.ndim != 1:
            raise _wrong(f"{path.name}: {name} is {_size(array.shape)}; expected a list of positions")
    *places, values = (np.ascontiguousarray(array, np.float64) for array in arrays)
    return tuple(places), values


def _rows(path: Path) -> tuple[tuple[Floats, ...], Floats]:
    """Return places and values of a text file."""
    lines = (
        line.partition("#")[0].replace(",", " ").split() for line in path.read_text(encoding="utf-8-sig").splitlines()
    )
    rows = [line for line in lines if line]
    if rows and rows[0][0].strip('"') == "x":
        rows = rows[1:]
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) not in (2, 3):
        raise _wrong(f"{path.name} has rows of {sorted({len(row) for row in rows}) or 'no'} numbers")
    table = np.array([[float(word) for word in row] for row in rows])
    if not np.isfinite(table).all():
        raise _wrong(f"{path.name}: not all numbers are finite")
    axes = [np.unique(column, return_inverse=True) for column in table.T[:-1]]
    shape = tuple(line.size for line, _ in axes)
    places = np.ravel_multi_index(tuple(number for _, number in axes), shape)
    if len(rows) != np.prod(shape) or np.unique(places).size != len(rows):
        raise _wrong(f"{path.name} has {len(rows):,} rows; its places form a rectangle of {_size(shape)} points")
    values = np.empty(table.shape[0])
    values[places] = table[:, -1]
    return tuple(line for line, _ in axes), values.reshape(shape)


def _size(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


def _wrong(text: str) -> CaseError:
    return CaseError(text, key=_KEY, remedy=_FORM)
