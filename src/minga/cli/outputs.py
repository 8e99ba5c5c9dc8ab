"""Files that a command is to write, looked at before it does what takes long."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from minga.errors import CaseError
from minga.paths import check_free

__all__ = ["check_output"]


def check_output(file: Path | None, key: str, endings: Sequence[str] = (), *, force: bool = False) -> None:
    """CaseError where ``file`` cannot be written or has another ending; ``key`` is the option that names it.

    A file that exists is replaced only with ``force``, which is what people ask for with --force.
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
