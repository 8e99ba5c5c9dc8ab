"""The last messages of ranks that fail, in files for the launcher: MPI may end a job before it passes on all output."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Final

__all__ = ["collected", "say_last"]

_FOLDER: Final = "MINGA_LAST_WORDS"
"""The environment variable that names the folder; launchers of MPI pass it on to ranks."""
_INTERRUPTED: Final = "interrupted"
"""A file in that folder: a rank has ended the job because it was asked to."""


def say_last(text: str, rank: int, *, interrupted: bool = False) -> None:
    """Report why a rank ends: to the launcher that collects it on this machine, or on the standard error stream.

    ``interrupted`` tells the launcher that the job was asked to end. The status of the job may not, if it is that of
    another rank.
    """
    folder = os.environ.get(_FOLDER)
    if folder is not None:  # it exists on the machine of the launcher alone
        with contextlib.suppress(OSError), Path(folder, f"{rank:07d}").open("a", encoding="utf-8") as file:
            file.write(text)
            if interrupted:
                Path(folder, _INTERRUPTED).touch()
            return
    sys.stderr.write(text)
    sys.stderr.flush()


@contextlib.contextmanager
def collected(environment: MutableMapping[str, str]) -> Iterator[Callable[[], bool]]:
    """Collect the last messages of ranks that are started with ``environment``, and write them to the error stream.

    Yields a function that returns True once a rank has reported that it was interrupted.
    """
    with tempfile.TemporaryDirectory(prefix="minga-last-words-") as folder:
        environment[_FOLDER] = folder
        try:
            yield Path(folder, _INTERRUPTED).exists
        finally:
            for file in sorted(Path(folder).iterdir()):
                sys.stderr.write(file.read_text(encoding="utf-8", errors="replace"))
            sys.stderr.flush()
