"""Locating the files that a case names."""

from __future__ import annotations

from importlib.resources import files
from itertools import islice
from pathlib import Path, PurePath

from minga.errors import CaseError, suggest

__all__ = ["SHIPPED", "find_file", "locate", "nearest"]

_MOST_FILES = 1000

SHIPPED = Path(str(files("minga"))) / "examples"
"""Directory of the examples, with their patterns and rules."""


def locate(name: str | Path, directory: Path) -> Path:
    """Return the path of a file next to the case, or of one that ships with minga: "patterns/r-pentomino.rle"."""
    beside = directory / name
    shipped = SHIPPED / name
    return shipped if not beside.exists() and shipped.is_file() else beside


def find_file(name: str | Path, directory: Path, key: str) -> Path:
    """Locate a file as :func:`locate` does; raise CaseError with a suggestion if there is none."""
    path = locate(name, directory)
    if not path.is_file():
        raise CaseError(
            f"there is no file {str(path)!r}",
            key=key,
            suggestion=nearest(str(name), directory),
            remedy="paths are relative to the case file's directory",
        )
    return path


def nearest(name: str, directory: Path) -> str | None:
    """Return the file with the same suffix and a similar name, next to the case or shipped; None if there is none."""
    wanted = PurePath(name)
    there: dict[str, str] = {}
    for root, pattern in ((directory, "*"), (directory, "*/*"), (SHIPPED, "*/*")):
        for path in islice(root.glob(pattern), _MOST_FILES):
            if path.suffix == wanted.suffix:
                there.setdefault(path.stem, path.relative_to(root).as_posix())
    close = suggest(wanted.stem, there)
    return there[close] if close else None
