"""Files that are broadcast: the source is read in place, and the copies never become visible while incomplete."""

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
"""Error codes of file systems that do not support unnamed files."""


@dataclass(eq=False)
class Source:
    """A file to send, in the state in which it was opened."""

    path: Path
    size: int = 0
    mode: int = 0o644
    data: memoryview = field(default_factory=lambda: memoryview(b""))
    _stamp: tuple[int, int] = (0, 0)
    _map: mmap.mmap | None = None

    @classmethod
    def open(cls, path: Path) -> Source:
        """Open and map a file; raise CaseError if it is not a readable regular file."""
        try:
            with path.open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_size == 0:
                    return cls(path, 0, state.st_mode & 0o777, _stamp=(0, state.st_mtime_ns))
                whole = mmap.mmap(file.fileno(), state.st_size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not a regular file"
            raise CaseError(f"{path} cannot be read: {why}", remedy="name an existing file") from error
        stamp = (state.st_size, state.st_mtime_ns)
        return cls(path, state.st_size, state.st_mode & 0o777, memoryview(whole), stamp, whole)

    def check(self) -> None:
        """Raise RunError if the file has changed since it was opened."""
        state = self.path.stat()
        if (state.st_size, state.st_mtime_ns) != self._stamp:
            raise RunError(
                f"{self.path} was changed while it was sent", remedy="send it again when no program writes to it"
            )

    def close(self) -> None:
        """Release the file."""
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
        """Validate the announcement of a sender; raise RunError if it is invalid. Only permission bits are kept."""
        size, mode = (said.get("size"), said.get("mode")) if isinstance(said, dict) else (None, None)
        for number in (size, mode):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
                raise RunError(
                    f"the sender announced an invalid file: {str(said)[:80]}",
                    remedy="check the host that sends, and its version of minga",
                )
        assert isinstance(size, int)
        assert isinstance(mode, int)
        return cls(size, mode & 0o777)


def destination(text: str, name: str, host: str, *, replace: bool = False) -> Path:
    """Return the path that a file called ``name`` gets on ``host``.

    This is ``text`` with ``{host}`` replaced by the host's name; if it is a directory, the file is placed in it.

    Raises
    ------
    CaseError
        If the path is invalid: for names that lead elsewhere, if its place is taken by anything but a regular file,
        or by a regular file that is not to be replaced.
    """
    if "{host}" in text:
        text = text.replace("{host}", plain_name(host, "the host's name, which is part of --to,"))
    try:
        path = Path(text).expanduser()
        if text.endswith("/") or path.is_dir():
            path = path / plain_name(name, "the file's name")
        there = path.parent.is_dir()
    except (ValueError, RuntimeError, OSError) as error:  # a NUL; no such user; a name that is too long
        raise CaseError(
            f"--to {text[:80]!r} is not a valid path: {error}", remedy="name a file or a directory"
        ) from None
    if not there:
        raise CaseError(f"there is no directory {path.parent}", remedy="create it, or name another one")
    check_free(path, replace)
    return path


class Arriving:
    """A file that is being received: it has no name, or a temporary one, until :meth:`keep`.

    Its space is allocated at once, so that a full disk is noticed before anything is sent. The permissions in ``mode``
    are restricted by the umask. Unless ``replace`` is true, a file that has appeared under its name in the meantime is
    preserved.

    Raises
    ------
    RunError
        If the file system refuses an operation.
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
        """Flush the complete file to the disk, then give it its name."""
        try:
            if self._map is not None:
                self._map.flush()
            os.fsync(self._number)
            if self._temporary is None:
                self._temporary = self._name()
                # Passing a descriptor, though an absolute path ignores it, makes Python follow the symbolic link.
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
        """Discard the file unless it was kept, and release all resources. May be called from a signal, or twice."""
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
        """Name the file if the name is still free: a hard link, unlike a rename, replaces nothing."""
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
        # Not derived from the file's name, which may already have the maximum length.
        return self.path.with_name(f".{secrets.token_hex(8)}.partial")


def _umask() -> int:
    """Return the permissions that this process withholds from files it creates."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _refused(path: Path, error: OSError) -> RunError:
    if error.errno == errno.EEXIST:
        return RunError(
            f"{path} was created by another program in the meantime; the received file was not kept",
            remedy="replace it with --force, or name another file",
        )
    return RunError(
        f"{path} cannot be written: {error.strerror or error}",
        remedy="check free space and permissions, then send it again",
    )
