"""The directory that stands in for that of a run on a host that does not see it: the case, and checkpoints.

It has the name of the run, so the next ranks on the host find the checkpoints of earlier ones. And it is the directory
of a run itself: ``minga run --resume`` on that host goes on from there if the machine that started the run is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minga.output.directory import RunDirectory

__all__ = ["StandIn", "default_place"]

_KEPT: Final = "checkpoint.json"


@dataclass(slots=True)
class StandIn:
    """A directory of this process, until another one takes it over.

    Attributes
    ----------
    folder
        The directory.
    mark
        Text in a file that says whose it is.
    """

    folder: Path
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    _present: str = ""
    _arriving: Path = Path()
    _fault: str | None = None

    @classmethod
    def made(cls, place: str | None, name: str) -> StandIn:
        """Make a directory, or take over what earlier processes have left.

        A directory that was resumed on this host is a run of its own since then, and is left alone.

        Parameters
        ----------
        place
            The directory that it lies in; None for the default.
        name
            Name of the run.

        Raises
        ------
        OSError
            If that is not possible.
        """
        base = default_place() if place is None else Path(place)
        for number in itertools.count(1):
            run = RunDirectory(base / (name if number == 1 else f"{name}-{number}"))
            if run.path.is_dir() and not run.stands_in and any(run.path.iterdir()):
                continue
            made = cls(run.path)
            run.path.mkdir(exist_ok=True)
            run.host_mark.write_text(made.mark)
            return made
        raise AssertionError("unreachable: numbers do not end")

    def room(self, names: Sequence[str]) -> None:
        """Make directories for files that arrive in another way."""
        for name in names:
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def begin(self, name: str) -> None:
        """Begin to receive a file."""
        path = self.folder / name
        self._present, self._arriving = name, path.with_name(f".{path.name}.{self.mark}")
        self._try(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        self._try(lambda: self._arriving.write_bytes(b""))

    def append(self, content: bytes) -> None:
        """Append bytes to the present file."""

        def append() -> None:
            with self._arriving.open("ab") as stream:
                stream.write(content)

        self._try(append)

    def settle(self, digests: Mapping[str, str], digest_of: Callable[[Path], str]) -> str | None:
        """Put the files that have arrived into their places; return why one cannot be used, None if all can."""
        for name, digest in digests.items():
            path = self.folder / name
            self._present, self._arriving = name, path.with_name(f".{path.name}.{self.mark}")
            if self._fault is None and digest_of(self._arriving) != digest:
                self._fault = f"{name} did not arrive as it was sent"
            self._try(lambda path=path: self._arriving.replace(path))  # type: ignore[misc]
        return self._fault

    def leave(self) -> None:
        """Remove the directory, unless it holds a checkpoint, or is another process's by now."""
        run = RunDirectory(self.folder)
        try:
            mine = run.host_mark.read_text() == self.mark
        except OSError:
            return
        if mine and not any(run.checkpoints.glob(f"*/{_KEPT}")):
            run.discard_checkpoints()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _try(self, action: Callable[[], object]) -> None:
        """Do something with a file; after the first error only that is remembered, as more orders are on their way."""
        if self._fault is None:
            try:
                action()
            except OSError as error:
                self._fault = f"{self.folder / self._present}: {error.strerror}"


def default_place() -> Path:
    """Return the directory for these directories: one that outlives a restart of the machine, if there is any."""
    with contextlib.suppress(OSError, RuntimeError):  # there may be no home directory
        state = os.environ.get("XDG_STATE_HOME")
        place = (Path(state) if state else Path.home() / ".local" / "state") / "minga" / "runs"
        place.mkdir(parents=True, exist_ok=True)
        if os.access(place, os.W_OK):
            return place
    return Path(tempfile.gettempdir())
