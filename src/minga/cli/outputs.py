"""Checks of the files that a command is to write, before it starts any long work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from minga.errors import CaseError
from minga.paths import check_free

__all__ = ["check_output"]


def check_output(file: Path | None, key: str, endings: Sequence[str] = (), *, force: bool = False) -> None:
    """Raise CaseError if a file cannot be written.

    Parameters
    ----------
    file
        The file, or None if the option was not given.
    key
        The option that names the file, such as ``"-o"``.
    endings
        Suffixes that the file may have; empty if any suffix is allowed.
    force
        Whether an existing file may be replaced, which users request with --force.

    Raises
    ------
    CaseError
        If the file cannot be written, has another suffix, or exists and may not be replaced.
    """
    if file is None:
        return
    folder = file.absolute().parent
    if file.is_dir() or not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise CaseError(f"{file} cannot be written: no such directory, or no permission", key=key)
    if endings and file.suffix not in endings:
        raise CaseError(
            f"{file} is neither {' nor '.join(endings)}", key=key, remedy=f"name it {file.stem}{endings[0]}"
        )
    check_free(file, force, key=key)
