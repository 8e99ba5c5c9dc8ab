"""Names of files: those that come from elsewhere, and those that are taken already."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from minga.errors import CaseError

__all__ = ["LONGEST_NAME", "check_free", "is_plain_name", "plain_name", "same_file"]

LONGEST_NAME: Final = 255
"""Bytes of a name on the usual file systems."""


def is_plain_name(name: object) -> bool:
    """Whether ``name`` names an entry of one directory and nothing else: no path, no parent, no control characters."""
    if not isinstance(name, str) or not name or name in (".", ".."):
        return False
    try:
        size = len(name.encode())
    except UnicodeEncodeError:  # a lone surrogate: bytes that are no text
        return False
    return size <= LONGEST_NAME and name.isprintable() and not set(name) & {"/", "\\"}


def plain_name(name: object, what: str) -> str:
    """Return ``name`` if it is plain. CaseError otherwise; ``what`` says whose name it is."""
    if not (isinstance(name, str) and is_plain_name(name)):
        shown = repr(name)
        raise CaseError(
            f"{what} is {shown[:60]}{'...' if len(shown) > 60 else ''}, which is not the plain name of a file",
            remedy="use a name without directories (no '/', '\\' or '..') and control characters, of at most "
            f"{LONGEST_NAME} bytes",
        )
    return name


def check_free(path: Path, replace: bool, *, key: str | None = None, how: str = "--force") -> None:
    """See that a file may be written as ``path``.

    CaseError where something has that name already and ``replace`` was not asked for (``how`` says how it is), and for
    anything that is not a regular file in any case. A symbolic link counts as what it points to; a broken one is taken.
    """
    try:
        there = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CaseError(f"{path} cannot be written: {why}", key=key, remedy="name another file") from None
    if stat.S_ISLNK(there.st_mode) and path.exists():
        there = path.stat()
    if stat.S_ISDIR(there.st_mode):
        raise CaseError(f"{path} is a directory", key=key, remedy="name a file")
    if not (stat.S_ISREG(there.st_mode) or stat.S_ISLNK(there.st_mode)):
        raise CaseError(f"{path} is a device, a pipe or a socket", key=key, remedy="name another file")
    if not replace:
        raise CaseError(
            f"{path} exists already, and nothing is overwritten unless you say so",
            key=key,
            remedy=f"name another file, or replace this one with {how}",
        )


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file that exists."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False
