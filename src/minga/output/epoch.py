"""``epoch``: the number of times that processes have begun to write a run, and a mark of the one that did so last.

A process that was cut off, or frozen, while others resumed its run must not write there any more when it comes back.
Before a frame or a checkpoint counts, a run therefore checks that it is still the last one that has begun.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from minga.errors import RunError
from minga.output.directory import write_whole

__all__ = ["Epoch", "begin_epoch", "epoch_number"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """The right of a process to write a run, until another process begins to write it.

    Attributes
    ----------
    path
        The file; None on a host that does not see it, where nothing is checked.
    number
        Number of the epoch, from 1.
    mark
        Random text: two processes that begin the same epoch at the same time differ.
    """

    path: Path | None
    number: int
    mark: str

    @property
    def lasts(self) -> bool:
        """True unless another process has begun to write the run.

        A host that does not see the file cannot tell, and one that sees an earlier number reads an old copy of it.
        """
        if self.path is None:
            return True
        number, mark = _content(self.path)
        return number < self.number or (number, mark) == (self.number, self.mark)

    def at(self, path: Path) -> Epoch:
        """Return the same right for a process that sees the file at a path, or does not see it.

        It is to be called when the epoch has just begun. Hosts that share no files may have an old run there.
        """
        return replace(self, path=path if _content(path) == (self.number, self.mark) else None)

    def check(self) -> None:
        """Raise an error if another process has begun to write the run.

        Raises
        ------
        RunError
            If so: this process must not write there any more.
        """
        if self.path is not None and not self.lasts:
            raise RunError(
                f"another process has resumed the run in {self.path.parent}; this one writes nothing more there",
                remedy="leave the run to the other process",
            )

    def spread(self, path: Path) -> None:
        """Begin the same epoch at a path on a host that has the run in a directory of its own.

        A disk that refuses is no error: the host then cannot tell an earlier process from a later one.
        """
        with contextlib.suppress(RunError):
            write_whole(path, self._text)

    @property
    def _text(self) -> str:
        return f"{self.number} {self.mark}\n"


def begin_epoch(path: Path, after: int = 0) -> Epoch:
    """Begin to write a run: earlier processes lose their right to.

    Parameters
    ----------
    path
        The file, :attr:`minga.output.directory.RunDirectory.epoch`.
    after
        Latest epoch that other hosts know.

    Returns
    -------
    Epoch
        The right of this process.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    epoch = Epoch(path, max(after, _content(path)[0]) + 1, secrets.token_hex(8))
    write_whole(path, epoch._text)
    return epoch


def epoch_number(path: Path) -> int:
    """Return the number of the present epoch of a run, 0 before the first one."""
    return _content(path)[0]


def _content(path: Path) -> tuple[int, str]:
    """Return number and mark in the file; 0 and no mark if there is none."""
    try:
        number, mark = path.read_text(encoding="utf-8").split()
        return int(number), mark
    except (OSError, ValueError):
        return 0, ""
