"""Checks of file names: names from untrusted sources, and names of existing files."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from minga.errors import CaseError

__all__ = ["LONGEST_NAME", "check_free", "is_plain_name", "plain_name", "reason_of", "same_file"]

LONGEST_NAME: Final = 255
"""Maximum length of a file name in bytes on common file systems."""


def is_plain_name(name: object) -> bool:
    """Return True if ``name`` is a plain entry of one directory: no path, no parent, no control characters."""
    if not isinstance(name, str) or not name or name in (".", ".."):
        return False
    try:
        size = len(name.encode())
    except UnicodeEncodeError:  # a lone surrogate: bytes that are not text
        return False
    return size <= LONGEST_NAME and name.isprintable() and not set(name) & {"/", "\\"}


def plain_name(name: object, what: str) -> str:
    """Return ``name`` if it is plain, and raise CaseError otherwise; ``what`` describes the name in the error."""
    if not (isinstance(name, str) and is_plain_name(name)):
        shown = repr(name)
        raise CaseError(
            f"{what} is {shown[:60]}{'...' if len(shown) > 60 else ''}, which is not the plain name of a file",
            remedy="use a name without directories (no '/', '\\' or '..') and control characters, of at most "
            f"{LONGEST_NAME} bytes",
        )
    return name


def reason_of(error: Exception) -> str:
    """Return why a file cannot be read or written, without its path."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def check_free(path: Path, replace: bool, *, key: str | None = None, how: str = "--force") -> None:
    """Check that a file may be written as ``path``.

    A symbolic link counts as its target; a broken one counts as an existing file.

    Parameters
    ----------
    path
        Path of the file.
    replace
        True if an existing file may be replaced.
    key
        Key of the entry in errors.
    how
        The option that permits replacing, for errors.

    Raises
    ------
    CaseError
        If the name exists already and ``replace`` is False, or anything other than a regular file has the name.
    """
    try:
        there = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        why = reason_of(error)
        raise CaseError(f"{path} cannot be written: {why}", key=key, remedy="name another file") from None
    if stat.S_ISLNK(there.st_mode) and path.exists():
        there = path.stat()
    if stat.S_ISDIR(there.st_mode):
        raise CaseError(f"{path} is a directory", key=key, remedy="name a file")
    if not (stat.S_ISREG(there.st_mode) or stat.S_ISLNK(there.st_mode)):
        raise CaseError(f"{path} is a device, a pipe or a socket", key=key, remedy="name another file")
    if not replace:
        raise CaseError(
            f"{path} exists already, and nothing is overwritten by default",
            key=key,
            remedy=f"name another file, or replace this one with {how}",
        )


def same_file(one: Path, other: Path) -> bool:
    """Return True if two paths lead to the same existing file."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False
