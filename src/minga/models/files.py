"""Where the files that a case names are looked for."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["SHIPPED", "locate"]

SHIPPED = Path(str(files("minga"))) / "examples"
"""The directory of the examples, with their patterns and rules."""


def locate(name: str | Path, directory: Path) -> Path:
    """A file beside the case, or else one that ships with minga, such as "patterns/r-pentomino.rle"."""
    beside = directory / name
    shipped = SHIPPED / name
    return shipped if not beside.exists() and shipped.is_file() else beside
