"""What ranks say when they fail, in files for the launcher: MPI may end a job before it passes on all output."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Final

__all__ = ["collected", "say_last"]

_FOLDER: Final = "MINGA_LAST_WORDS"
"""The environment variable that names the folder; launchers of MPI pass it on to ranks."""


def say_last(text: str, rank: int) -> None:
    """Say what ended a rank: to the launcher that collects it on this machine, or on the standard error stream."""
    folder = os.environ.get(_FOLDER)
    if folder is not None:  # it is on the machine of the launcher alone
        with contextlib.suppress(OSError), Path(folder, f"{rank:07d}").open("a", encoding="utf-8") as file:
            file.write(text)
            return
    sys.stderr.write(text)
    sys.stderr.flush()


@contextlib.contextmanager
def collected(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Have ranks that are started with ``environment`` leave their last words, and write them to the error stream."""
    with tempfile.TemporaryDirectory(prefix="minga-last-words-") as folder:
        environment[_FOLDER] = folder
        try:
            yield
        finally:
            for file in sorted(Path(folder).iterdir()):
                sys.stderr.write(file.read_text(encoding="utf-8", errors="replace"))
            sys.stderr.flush()
