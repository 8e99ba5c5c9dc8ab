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
from minga.paths import check_free, plain_name

__all__ = ["Announced", "Arriving", "Source", "destination"]

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


@dataclass(frozen=True, slots=True)
class Announced:
    """Size and permissions of a file as its sender announces them; the receiver alone decides where it is written."""

    size: int
    mode: int

    @classmethod
    def read(cls, said: object) -> Announced:
        """Read what came from the sender. RunError for what no file can be; of the mode only permissions are kept."""
        size, mode = (said.get("size"), said.get("mode")) if isinstance(said, dict) else (None, None)
        for number in (size, mode):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
                raise RunError(
                    f"the sender announced no file: {str(said)[:80]}",
                    remedy="look at the host that sends, and at its minga",
                )
        assert isinstance(size, int)
        assert isinstance(mode, int)
        return cls(size, mode & 0o777)


def destination(text: str, name: str, host: str, *, replace: bool = False) -> Path:
    """Where a file called ``name`` goes on ``host``: ``text`` with ``{host}`` filled in, below it if it is a directory.

    CaseError where that cannot be: for names that lead elsewhere, for anything but a regular file in its place, and for
    a file there unless it is to be replaced.
    """
    if "{host}" in text:
        text = text.replace("{host}", plain_name(host, "the host's name, which is part of --to,"))
    try:
        path = Path(text).expanduser()
        if text.endswith("/") or path.is_dir():
            path = path / plain_name(name, "the file's name")
        there = path.parent.is_dir()
    except (ValueError, RuntimeError, OSError) as error:  # a NUL; no such user; a name that is too long
        raise CaseError(f"--to {text[:80]!r} names no file: {error}", remedy="name a file or a directory") from None
    if not there:
        raise CaseError(f"there is no directory {path.parent}", remedy="make it, or name another one")
    check_free(path, replace)
    return path


class Arriving:
    """A file that is being received: without a name, or with a temporary one, until :meth:`keep`.

    Its space is taken at once, so that a disk that is full is noticed before anything is sent. Of ``mode`` count the
    permissions that this user gives to new files (umask). Unless ``replace``, a file that has appeared under its name
    meanwhile stays. RunError for what the file system refuses.
    """

    def __init__(self, path: Path, size: int, mode: int, *, replace: bool = False) -> None:
        self.path = path
        self._replace = replace
        self._temporary: Path | None = None
        self._map: mmap.mmap | None = None
        self.data = memoryview(bytearray())
        try:
            self._number = self._open()
        except OSError as error:
            raise _refused(path, error) from error
        try:
            os.fchmod(self._number, mode & 0o777 & ~_umask())
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
            if self._replace:
                self._temporary.replace(self.path)
            else:
                self._give_name()
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

    def _give_name(self) -> None:
        """Name the file if the name is still free: a link, unlike a new name, replaces nothing."""
        assert self._temporary is not None
        try:
            os.link(self._temporary, self.path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                raise
            check_free(self.path, replace=False)  # a file system without links
            self._temporary.replace(self.path)
        else:
            self._temporary.unlink()

    def _name(self) -> Path:
        # Not after the file, whose name may be as long as names can be.
        return self.path.with_name(f".{secrets.token_hex(8)}.partial")


def _umask() -> int:
    """The permissions that this process withholds from files it makes."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _refused(path: Path, error: OSError) -> RunError:
    if error.errno == errno.EEXIST:
        return RunError(
            f"{path} was written by somebody else meanwhile; what arrived was not kept",
            remedy="replace it with --force, or name another file",
        )
    return RunError(
        f"{path} cannot be written: {error.strerror or error}",
        remedy="look at space and permissions, then send it again",
    )
