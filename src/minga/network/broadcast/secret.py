"""Key of a group: 32 random bytes, in a file that only its owner can read, or in a pipe; never in an argument."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO, Final

from minga.errors import CaseError, RunError

__all__ = ["make_key_file", "read_key"]

KEY_BYTES: Final = 32


def make_key_file(path: str | Path) -> bytes:
    """Write a new key to a new file that only its owner may read, and return the key.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    bytes
        The key.

    Raises
    ------
    RunError
        If the file cannot be created.
    """
    key = secrets.token_bytes(KEY_BYTES)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(key.hex().encode() + b"\n")
    except OSError as error:
        raise RunError(f"the key file {path} cannot be created: {error.strerror}", remedy="name a new file") from error
    return key


def read_key(source: bytes | str | Path | BinaryIO) -> bytes:
    """Return a key: from a file with mode 0600, from an open binary stream (a pipe), or the given bytes themselves.

    A file or pipe contains a line of 64 hexadecimal digits.

    Raises
    ------
    CaseError
        If the source contains no valid key, or is a file that others can read.
    """
    if isinstance(source, bytes):
        if len(source) != KEY_BYTES:
            raise CaseError(f"a key has {KEY_BYTES} bytes, found {len(source)}", remedy="secrets.token_bytes(32)")
        return source
    if not isinstance(source, (str, Path)):
        return _key(source.readline(), "the given stream")
    try:
        with Path(source).open("rb") as file:
            mode = os.fstat(file.fileno())
            if stat.S_ISREG(mode.st_mode) and mode.st_mode & 0o077:
                raise CaseError(
                    f"the key file {source} can be read by others",
                    remedy=f"chmod 600 {source}, and create a new key if others may have seen it",
                )
            return _key(file.readline(), str(source))
    except OSError as error:
        raise CaseError(f"the key file {source} cannot be read: {error.strerror}") from error


def _key(line: bytes, where: str) -> bytes:
    try:
        key = bytes.fromhex(line.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise CaseError(
            f"{where} contains no key: a line of {2 * KEY_BYTES} hexadecimal digits is expected",
            remedy="create one with minga.network.broadcast.make_key_file(path)",
        )
    return key
