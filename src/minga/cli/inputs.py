"""Input files that a case names: finding them, and copying them into the directory of a run.

Any string in the settings of a model that has a suffix and is the path of an existing file counts as a file, for
example ``"glider.rle"``, or ``"rules.py:fire"`` for an object defined in a file. Large files, Zarr stores and headers
that name other files are not copied; the run keeps their full paths instead.
"""

from __future__ import annotations

import filecmp
import itertools
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from minga.case.files import locate

__all__ = ["absolute", "keep", "kept", "named", "renamed"]

_LONGEST = 1000
_LARGEST = 64 << 20
"""Size in bytes up to which a file is copied."""
_STORES, _HEADERS = (".zarr",), (".rsf",)


def absolute(value: object) -> object:
    """Make the files in a value absolute; on the command line they are relative to the working directory."""

    def resolve(file: str) -> str | None:
        return str(Path(file).resolve()) if _is_there(Path(file)) else None

    return _each_file(value, resolve)


def keep(value: object, base: Path, folder: Path) -> object:
    """Copy the files that a value names into ``folder``, and return the value with the paths of the copies.

    Paths in the value are relative to ``base``, paths of copies to the parent of ``folder``.
    """

    def copy(file: str) -> str | None:
        source = locate(file, base)
        if not _is_there(source):
            return None
        if source.suffix in (*_STORES, *_HEADERS) or source.stat().st_size > _LARGEST:
            return str(source.resolve())
        return _copy(source, folder).relative_to(folder.parent).as_posix()

    return _each_file(value, copy)


def kept(table: Mapping[str, Any], keys: Iterable[str], base: Path, folder: Path) -> dict[str, object]:
    """Return the entries of a case with these keys, with copies of their files as `keep` makes them."""
    return {key: keep(table[key], base, folder) for key in keys if key in table}


def named(value: object, base: Path) -> list[Path]:
    """Return the existing files that a value of a case in the directory ``base`` names."""
    found: list[Path] = []

    def note(file: str) -> None:
        source = locate(file, base)
        if _is_there(source):
            found.append(source)

    _each_file(value, note)
    return found


def renamed(value: object, names: Mapping[Path, str]) -> Any:
    """Return a value of a case in which files have other names; paths that ``names`` lacks stay as they are."""
    return _each_file(value, lambda file: names.get(Path(file)))


def _is_there(path: Path) -> bool:
    return path.is_file() or (path.suffix in _STORES and path.is_dir())


def _each_file(value: object, change: Callable[[str], str | None]) -> object:
    """Apply ``change`` to every string in a value that may name a file; None from ``change`` keeps the string."""
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
    """Copy a file and return the copy; files with the same name but different content get a number."""
    folder.mkdir(exist_ok=True)
    for number in itertools.count(1):
        target = folder / (source.name if number == 1 else f"{source.stem}-{number}{source.suffix}")
        if not target.exists():
            shutil.copyfile(source, target)
            return target
        if filecmp.cmp(source, target, shallow=False):
            return target
    raise AssertionError("unreachable: numbers do not end")
