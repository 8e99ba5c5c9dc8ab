"""Copies of the parts of a checkpoint on other hosts: each rank sends its file while it stores those of others."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm
from minga.output.checkpoint.messages import exchange
from minga.output.checkpoint.places import Places
from minga.output.checkpoint.sets import block_file
from minga.output.directory import disk_errors

__all__ = ["copy_parts"]

_MEMORY: Final = 8 << 20
"""Bytes that a rank may need for the files it stores, and for the one it sends."""
_LEAST: Final = 1 << 16
"""Least number of bytes of a message."""


def copy_parts(folder: Path, comm: Comm, places: Places) -> list[str]:
    """Store a copy of every part of a checkpoint where it belongs; collective.

    Returns
    -------
    list of str
        The copies that could not be stored, equal on all ranks.
    """
    if not places.partners:
        return []
    part = block_file(folder, comm.rank)
    sends = places.copier(comm.rank) is not None and part.is_file()
    sizes = comm.bcast(comm.gather(part.stat().st_size if sends else 0))
    traffic = _Traffic(folder, comm, places, sizes)
    with contextlib.ExitStack() as opened:
        traffic.run(opened)
    everyone = comm.bcast(comm.gather(traffic.faults))
    return [fault for several in everyone for fault in several]


class _Traffic:
    """Files that a rank sends and stores at the same time, in as many rounds of messages as the longest one needs.

    In each round every rank begins to send before it waits for others, so that rings cannot block.
    """

    def __init__(self, folder: Path, comm: Comm, places: Places, sizes: Sequence[int]) -> None:
        self._folder, self._comm, self._sizes = folder, comm, sizes
        copiers = [places.copier(rank) if size else None for rank, size in enumerate(sizes)]
        self._target = copiers[comm.rank]
        self._sources = [rank for rank, copier in enumerate(copiers) if copier == comm.rank]
        self._pieces = [
            0 if copier is None else max(_LEAST, _MEMORY // copiers.count(copier)) for copier in copiers
        ]  # bytes of a message of each rank
        self.faults: list[str] = []

    def run(self, opened: contextlib.ExitStack) -> None:
        """Send and store everything."""
        mine = [*self._sources, *([] if self._target is None else [self._comm.rank])]
        rounds = max((-(-self._sizes[rank] // self._pieces[rank]) for rank in mine), default=0)
        files = {rank: self._open(block_file(self._folder, rank), opened) for rank in self._sources}
        sent = None
        if self._target is not None:
            sent = opened.enter_context(block_file(self._folder, self._comm.rank).open("rb", buffering=0))
        for number in range(rounds):
            receives = {rank: buffer for rank in self._sources if (buffer := self._piece(rank, number)).size}
            sends = {}
            if sent is not None and (piece := self._piece(self._comm.rank, number)).size:
                _read_whole(sent, piece.data, block_file(self._folder, self._comm.rank))
                sends[self._target] = piece
            exchange(self._comm, sends, receives)  # type: ignore[arg-type]
            for rank, buffer in receives.items():
                files[rank] = self._store(rank, files[rank], buffer)
        for rank, descriptor in files.items():
            self._settle(rank, descriptor)

    def _piece(self, rank: int, number: int) -> NDArray[Any]:
        """Return memory for a piece of a rank's file, which is empty after its end."""
        piece = self._pieces[rank]
        return np.zeros(max(0, min(piece, self._sizes[rank] - number * piece)), np.uint8)

    def _open(self, path: Path, opened: contextlib.ExitStack) -> int | None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            self._note(path, error)
            return None
        opened.callback(os.close, descriptor)
        return descriptor

    def _store(self, rank: int, descriptor: int | None, buffer: NDArray[Any]) -> int | None:
        """Append a piece to a copy; after an error the copy is given up, while its pieces still arrive."""
        if descriptor is None:
            return None
        content = buffer.data
        try:
            while len(content):
                content = content[os.write(descriptor, content) :]
        except OSError as error:
            self._give_up(rank, error)
            return None
        return descriptor

    def _settle(self, rank: int, descriptor: int | None) -> None:
        if descriptor is not None:
            try:
                os.ftruncate(descriptor, self._sizes[rank])
                os.fsync(descriptor)
            except OSError as error:
                self._give_up(rank, error)

    def _give_up(self, rank: int, error: OSError) -> None:
        path = block_file(self._folder, rank)
        path.unlink(missing_ok=True)
        self._note(path, error)

    def _note(self, path: Path, error: OSError) -> None:
        self.faults.append(f"{path}: {error.strerror}")


def _read_whole(stream: IO[bytes], content: memoryview, path: Path) -> None:
    """Fill memory from a file; a part that has become shorter or cannot be read ends the run."""
    with disk_errors(path):
        while len(content):
            count = stream.readinto(content)  # type: ignore[attr-defined]
            if not count:
                raise OSError(errno.EIO, "the part that was just written is shorter")
            content = content[count:]
