"""The files that a case names: found on the command line, and copied into a run's directory.

A file is any word with an ending, wherever it stands in the model's settings, that names one: ``"glider.rle"``, or
``"rules.py:fire"`` for something that is defined in one. Large data, Zarr stores and headers that name other files stay
where they are: the run keeps their full names instead.
"""

from __future__ import annotations

import filecmp
import itertools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from minga.models.files import locate

__all__ = ["absolute", "keep", "named"]

_LONGEST = 1000
_LARGEST = 64 << 20
"""Bytes of a file up to which it is copied."""
_STORES, _HEADERS = (".zarr",), (".rsf",)


def absolute(value: object) -> object:
    """A value from the command line, in which files are relative to where the person is."""

    def resolve(file: str) -> str | None:
        return str(Path(file).resolve()) if _is_there(Path(file)) else None

    return _each_file(value, resolve)


def keep(value: object, base: Path, folder: Path) -> object:
    """A value of a case in ``base``, with copies of its files in ``folder`` and their names relative to its parent."""

    def copy(file: str) -> str | None:
        source = locate(file, base)
        if not _is_there(source):
            return None
        if source.suffix in (*_STORES, *_HEADERS) or source.stat().st_size > _LARGEST:
            return str(source.resolve())
        return _copy(source, folder).relative_to(folder.parent).as_posix()

    return _each_file(value, copy)


def named(value: object, base: Path) -> list[Path]:
    """The files that a value of a case in ``base`` names, and that are there."""
    found: list[Path] = []

    def note(file: str) -> None:
        source = locate(file, base)
        if _is_there(source):
            found.append(source)

    _each_file(value, note)
    return found


def _is_there(path: Path) -> bool:
    return path.is_file() or (path.suffix in _STORES and path.is_dir())


def _each_file(value: object, change: Callable[[str], str | None]) -> object:
    """A value with every word that may name a file changed, unless ``change`` says that it is none."""
    if isinstance(value, Mapping):
        return {key: _each_file(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each_file(inner, change) for inner in value]
    if not isinstance(value, str) or len(value) > _LONGEST or "\n" in value:
        return value
    file, colon, name = value.rpartition(":")
    if not file.endswith(".py"):
        file, colon, name = value, "", ""
    changed = change(file) if PurePath(file).suffix else None
    return value if changed is None else changed + colon + name


def _copy(source: Path, folder: Path) -> Path:
    """The copy of a file; files of one name but other content get a number."""
    folder.mkdir(exist_ok=True)
    for number in itertools.count(1):
        target = folder / (source.name if number == 1 else f"{source.stem}-{number}{source.suffix}")
        if not target.exists():
            shutil.copyfile(source, target)
            return target
        if filecmp.cmp(source, target, shallow=False):
            return target
    raise AssertionError("unreachable: numbers do not end")
