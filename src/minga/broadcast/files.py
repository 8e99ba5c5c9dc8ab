"""Files that are broadcast: read where they are, and written so that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from minga.errors import CaseError, RunError

__all__ = ["Arriving", "Source", "destination"]

_NOT_ALWAYS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""Answers of file systems that have no files without a name."""


@dataclass(eq=False)
class Source:
    """A file that is sent, as it was when it was opened."""

    path: Path
    size: int = 0
    mode: int = 0o644
    data: memoryview = field(default_factory=lambda: memoryview(b""))
    _stamp: tuple[int, int] = (0, 0)
    _map: mmap.mmap | None = None

    @classmethod
    def open(cls, path: Path) -> Source:
        """CaseError for what is no file that can be read."""
        try:
            with path.open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_size == 0:
                    return cls(path, 0, state.st_mode & 0o777, _stamp=(0, state.st_mtime_ns))
                whole = mmap.mmap(file.fileno(), state.st_size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no regular file"
            raise CaseError(f"{path} cannot be read: {why}", remedy="name a file that is there") from error
        stamp = (state.st_size, state.st_mtime_ns)
        return cls(path, state.st_size, state.st_mode & 0o777, memoryview(whole), stamp, whole)

    def check(self) -> None:
        """RunError where the file was changed meanwhile."""
        state = self.path.stat()
        if (state.st_size, state.st_mtime_ns) != self._stamp:
            raise RunError(f"{self.path} was changed while it was sent", remedy="send it again when nobody writes it")

    def close(self) -> None:
        """Let go of the file."""
        self.data.release()
        if self._map is not None:
            self._map.close()


def destination(text: str, name: str, host: str) -> Path:
    """Where a file called ``name`` goes on ``host``: ``text`` with ``{host}`` filled in, below it if it is a directory.

    CaseError where that cannot be.
    """
    path = Path(text.replace("{host}", host)).expanduser()
    if text.endswith("/") or path.is_dir():
        path = path / name
    if not path.parent.is_dir():
        raise CaseError(f"there is no directory {path.parent}", remedy="make it, or name another one")
    if path.is_dir():
        raise CaseError(f"{path} is a directory", remedy="name a file")
    return path


class Arriving:
    """A file that is being received: without a name, or with a temporary one, until :meth:`keep`.

    Its space is taken at once, so that a disk that is full is noticed before anything is sent. RunError for what the
    file system refuses.
    """

    def __init__(self, path: Path, size: int, mode: int) -> None:
        self.path = path
        self._temporary: Path | None = None
        self._map: mmap.mmap | None = None
        self.data = memoryview(bytearray())
        try:
            self._number = self._open()
        except OSError as error:
            raise _refused(path, error) from error
        try:
            os.fchmod(self._number, mode)
            if size:
                os.posix_fallocate(self._number, 0, size)
                self._map = mmap.mmap(self._number, size)
                self.data = memoryview(self._map)
        except OSError as error:
            self.drop()
            raise _refused(path, error) from error

    def keep(self) -> None:
        """All is there: give the file its name, when it is on the disk."""
        try:
            if self._map is not None:
                self._map.flush()
            os.fsync(self._number)
            if self._temporary is None:
                self._temporary = self._name()
                # With a descriptor, which an absolute path makes no use of, Python follows the link to the file.
                os.link(f"/proc/self/fd/{self._number}", self._temporary, src_dir_fd=self._number)
            self._temporary.replace(self.path)
            self._temporary = None
        except OSError as error:
            raise _refused(self.path, error) from error
        finally:
            self.drop()

    def drop(self) -> None:
        """Leave nothing but what was kept. Also from a signal, or twice."""
        with contextlib.suppress(BufferError, ValueError):
            self.data.release()
            if self._map is not None:
                self._map.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
        if self._number >= 0:
            with contextlib.suppress(OSError):
                os.close(self._number)
            self._number = -1

    def _open(self) -> int:
        try:
            return os.open(self.path.parent, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in _NOT_ALWAYS:
                raise
        self._temporary = self._name()
        return os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)

    def _name(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.partial")


def _refused(path: Path, error: OSError) -> RunError:
    return RunError(
        f"{path} cannot be written: {error.strerror or error}",
        remedy="look at space and permissions, then send it again",
    )
