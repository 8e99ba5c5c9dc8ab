"""Files that are there whole or not at all: a temporary name, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.output.snapshots.chunks import PAGE
from minga.output.snapshots.counters import Counters

__all__ = ["Disk", "Throttle", "bytes_of"]

Throttle = Callable[[int], None]
"""Function called with the bytes of a frame that will be written next; it may wait. For experiments with slow disks."""

_PIECE: Final = 16 << 20
"""Bytes written by one system call; a multiple of a page."""
_DIRECT_FROM: Final = 1 << 20
"""Least size in bytes of files that are worth writing past the page cache."""
_MANY: Final = 1000
"""Number of files from which it is faster to have the system sync everything."""


def bytes_of(data: NDArray[Any] | bytes) -> memoryview:
    """Return the bytes of an object, without a copy; an array must be contiguous."""
    return (data.data if isinstance(data, np.ndarray) else memoryview(data)).cast("B")


class Disk:
    """Writer of the files of one rank, which counts the cost.

    Parameters
    ----------
    counters
        Counters of the rank.
    durable
        Fsync files before they are renamed, and folders in `settle`.
    direct
        Try O_DIRECT for large files; after a file system has refused it is not tried again.
    throttle
        Called before each write.
    """

    def __init__(
        self, counters: Counters, *, durable: bool = False, direct: bool = False, throttle: Throttle | None = None
    ) -> None:
        self.counters, self.durable = counters, durable
        self._direct = direct and hasattr(os, "O_DIRECT")
        self._throttle = throttle
        self._folders: set[Path] = set()
        self._loose: set[Path] = set()
        """Files that were not synced; of very many only some."""

    def write(self, path: Path, data: NDArray[np.uint8] | bytes, size: int | None = None) -> None:
        """Write `path`, which appears when it is complete.

        `data` may be longer than `size`, the bytes of the file: writes past the page cache must fill whole pages.

        Raises
        ------
        OSError
            If the system refuses; then nothing is left.
        """
        buffer = bytes_of(data)
        size = len(buffer) if size is None else size
        temporary = path.with_name(f"{path.name}.partial")
        try:
            if not (self._direct and size >= _DIRECT_FROM and self._past_the_cache(temporary, data, size)):
                self._through_the_cache(temporary, buffer[:size])
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        self._folders.add(path.parent)
        self._note(path)

    def append(self, path: Path, text: str) -> None:
        """Append to a file, which is truncated again if that fails halfway."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            end = os.fstat(handle).st_size
            try:
                self._put(handle, memoryview(text.encode()), limited=False)
                self._sync(handle)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
        self._note(path)

    def settle(self) -> None:
        """Bring the names of all files since the last call to the disk."""
        if self.durable:
            for folder in sorted(self._folders):
                self._sync_path(folder)
        self._folders.clear()

    def catch_up(self) -> None:
        """Sync to the disk everything that was written without; raise OSError if the system refuses."""
        if len(self._loose) > _MANY:
            with self.counters.time("fsync"):
                os.sync()
        else:
            for path in sorted(self._loose | {path.parent for path in self._loose}):
                self._sync_path(path)
        self._loose.clear()

    def _note(self, path: Path) -> None:
        if not self.durable and len(self._loose) <= _MANY:
            self._loose.add(path)

    def _sync_path(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        try:
            self._fsync(handle)
        finally:
            os.close(handle)

    def _past_the_cache(self, path: Path, data: NDArray[np.uint8] | bytes, size: int) -> bool:
        """Write a file with O_DIRECT, and return whether that was possible."""
        padded = -(-size // PAGE) * PAGE
        if not isinstance(data, np.ndarray) or data.nbytes < padded or data.ctypes.data % PAGE:
            return False
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o666)
        except OSError as error:
            return self._refused(error)
        try:
            self._put(handle, bytes_of(data)[:padded])
            os.ftruncate(handle, size)
            self._sync(handle)
        except OSError as error:
            return self._refused(error)
        finally:
            os.close(handle)
        self.counters.direct += 1
        return True

    def _refused(self, error: OSError) -> bool:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise error
        self._direct = False
        self.counters.buffered += 1
        return False

    def _through_the_cache(self, path: Path, buffer: memoryview) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            self._put(handle, buffer)
            self._sync(handle)
        finally:
            os.close(handle)

    def _put(self, handle: int, buffer: memoryview, *, limited: bool = True) -> None:
        with self.counters.time("write"):
            at = 0
            while at < len(buffer):
                piece = buffer[at : at + _PIECE]
                if limited and self._throttle is not None:
                    self._throttle(len(piece))
                at += os.write(handle, piece)

    def _sync(self, handle: int) -> None:
        if self.durable:
            self._fsync(handle)

    def _fsync(self, handle: int) -> None:
        with self.counters.time("fsync"):
            os.fsync(handle)
