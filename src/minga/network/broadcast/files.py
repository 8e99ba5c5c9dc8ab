"""Files and directories that are received: where they are placed, and copies that are invisible until complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from minga.errors import CaseError, RunError
from minga.network.broadcast.extents import Extent, Range, covers
from minga.network.broadcast.keys import Buffer
from minga.network.broadcast.manifest import Entry, Kind, Manifest
from minga.network.broadcast.partial import Partial, make_removable
from minga.paths import check_free, plain_name

__all__ = ["Arriving", "destination"]

_MANY: Final = 100
"""Files above which the whole system is flushed at once, since each flush of one file waits for the disk."""


def destination(text: str, name: str, host: str, *, kind: Kind = "file", replace: bool = False) -> Path:
    """Return the path that something called ``name`` gets on ``host``.

    This is ``text`` with ``{host}`` replaced by the host's name; if it is an existing directory or ends with ``/``, the
    file or directory is placed in it.

    Raises
    ------
    CaseError
        If the path is invalid: for names that lead elsewhere, if its place is taken by anything of another kind, or by
        something that is not to be replaced, or if a pipe, which has no name, is to be placed in a directory.
    """
    if "{host}" in text:
        text = text.replace("{host}", plain_name(host, "the host's name, which is part of --to,"))
    try:
        path = Path(text).expanduser()
        if text.endswith("/") or path.is_dir():
            if kind == "pipe":
                raise CaseError(f"{text} is a directory, but a pipe has no name", remedy="name a file with --to")
            path = path / plain_name(name, "the file's name")
        there = path.parent.is_dir()
    except (ValueError, RuntimeError, OSError) as error:  # a NUL; no such user; a name that is too long
        raise CaseError(
            f"--to {text[:80]!r} is not a valid path: {error}", remedy="name a file or a directory"
        ) from None
    if not there:
        raise CaseError(f"there is no directory {path.parent}", remedy="create it, or name another one")
    if kind == "tree":
        _check_free_for_tree(path, replace)
    else:
        check_free(path, replace)
    return path


def _check_free_for_tree(path: Path, replace: bool) -> None:
    """Check that a directory may get this path; only another directory is ever replaced."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        raise CaseError(f"{path} exists already, and is not a directory", remedy="name another directory")
    if not replace:
        raise CaseError(
            f"{path} exists already, and nothing is overwritten by default",
            remedy="name another directory, or replace this one with --force",
        )


class Arriving:
    """A file or directory that is being received; it gets its name in :meth:`keep`.

    The space of files whose size is known is allocated at once, so that a full disk is noticed before their contents
    are sent. Permissions are those of the manifest, restricted by the umask.

    Parameters
    ----------
    path
        Destination.
    manifest
        What arrives.
    replace
        Replace what has the name of the destination; otherwise, what has appeared there meanwhile is preserved.
    resume
        Continue an earlier transfer, and let a later one continue this one.

    Raises
    ------
    RunError
        If the file system refuses an operation, or another transfer to this destination is under way.
    """

    def __init__(self, path: Path, manifest: Manifest, *, replace: bool = False, resume: bool = True) -> None:
        self.path, self.manifest = path, manifest
        self._replace, self._resume = replace, resume and manifest.kind != "pipe"
        self._have: list[Range] = []
        try:
            digest = hashlib.sha256(manifest.pack()).digest()
            self._partial = Partial(path, digest, resume=self._resume)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            self._build()
        except OSError as error:
            self.drop()
            raise _refused(path, error) from error

    @property
    def changed(self) -> bool:
        """True if an earlier transfer left parts of something else, which were discarded."""
        return self._partial.changed

    def claims(self) -> list[Extent]:
        """Return the extents that are there from an earlier transfer, after reading and comparing them again."""
        return [one for one in self._partial.claims if self._digest(one) == one.digest]

    def accept(self, ranges: list[Range]) -> None:
        """Note that the sender has confirmed ranges that are there already."""
        self._have += ranges

    def store(self, extent: Extent, data: Buffer) -> None:
        """Verify a piece and store it.

        Raises
        ------
        RunError
            If the piece differs from its digest, lies outside, or the disk is full.
        """
        size = self.manifest.size
        if hashlib.sha256(data).digest() != extent.digest or len(data) != extent.length:
            raise RunError(
                "the received data differ from the data that were sent",
                remedy="send the file again, and check this machine's memory",
            )
        if size is not None and extent.offset + extent.length > size:
            raise RunError(
                "the sender sent more than it announced",
                remedy="check the host that sends, and its version of minga",
            )
        view, at = memoryview(data), 0
        try:
            for entry, begin, length in self.manifest.spans(extent.offset, extent.length):
                number = os.open(self._place(entry), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    _write(number, view[at : at + length], begin)
                finally:
                    os.close(number)
                at += length
            if self._resume:
                self._partial.note(extent)
        except OSError as error:
            raise _refused(self.path, error) from error
        self._have.append(extent.range)

    def complete(self, size: int) -> None:
        """Check that all ``size`` bytes have arrived, and flush them to the disk.

        Raises
        ------
        RunError
            If bytes are missing, or the disk refuses them.
        """
        if self.manifest.size not in (None, size) or not covers(size, self._have):
            raise RunError("parts of the file were not sent", remedy="send it again")
        files = self.manifest.files
        try:
            if len(files) > _MANY:
                os.sync()
                return
            for entry in files:
                number = os.open(self._place(entry), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    os.fsync(number)
                finally:
                    os.close(number)
        except OSError as error:
            raise _refused(self.path, error) from error

    def keep(self) -> None:
        """Give the complete content its name."""
        mask = _umask()
        try:
            for entry in self.manifest.files:
                self._place(entry).chmod(entry.mode & ~mask)
            for entry in self.manifest.entries:
                if entry.kind == "l":
                    with contextlib.suppress(FileExistsError):  # from a transfer that ended here
                        self._place(entry).symlink_to(entry.target)
            for entry in reversed(self.manifest.entries):
                if entry.kind == "d" and entry.path:
                    self._place(entry).chmod(entry.mode & ~mask)
            if self.manifest.kind == "tree":
                self._name_tree()
                self.path.chmod(self.manifest.entries[0].mode & ~mask)
            else:
                self._name_file()
        except OSError as error:
            self.drop()
            raise _refused(self.path, error) from error
        self._partial.close(keep=False)

    def drop(self) -> None:
        """Release all resources; keep only what a later transfer can continue. May be called twice."""
        self._partial.close(keep=self._resume)

    # Inside -----------------------------------------------------------------------------------------------------------
    def _place(self, entry: Entry) -> Path:
        content = self._partial.content
        return content / entry.path if entry.path else content

    def _build(self) -> None:
        """Create all directories and files, with their full size."""
        for entry in self.manifest.entries:
            place = self._place(entry)
            if entry.kind == "d":
                with contextlib.suppress(FileExistsError):
                    place.mkdir(mode=0o700)
                place.chmod(0o700)
            elif entry.kind == "f":
                if place.is_file() and not place.is_symlink():
                    place.chmod(0o600)  # it may have its final mode from a transfer that could not give it its name
                number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                try:
                    os.fchmod(number, 0o600)
                    if entry.size:
                        os.posix_fallocate(number, 0, entry.size)
                finally:
                    os.close(number)

    def _digest(self, extent: Extent) -> bytes:
        found = hashlib.sha256()
        if extent.offset + extent.length > (self.manifest.size or 0):
            return b""
        with contextlib.suppress(OSError):
            for entry, begin, length in self.manifest.spans(extent.offset, extent.length):
                with self._place(entry).open("rb") as file:
                    file.seek(begin)
                    while length and (data := file.read(min(length, 1 << 22))):
                        found.update(data)
                        length -= len(data)
        return found.digest()

    def _name_file(self) -> None:
        content = self._partial.content
        if self._replace:
            content.replace(self.path)
            return
        try:
            os.link(content, self.path)  # unlike a rename, a link replaces nothing
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                raise
            check_free(self.path, replace=False)  # a file system without links
            content.replace(self.path)

    def _name_tree(self) -> None:
        content = self._partial.content
        if not (self._replace and os.path.lexists(self.path)):
            if os.path.lexists(self.path):  # a rename would replace an empty directory
                raise FileExistsError(errno.EEXIST, "exists", str(self.path))
            content.rename(self.path)
            return
        old = self.path.with_name(f".minga-{secrets.token_hex(8)}.replaced")
        self.path.rename(old)
        try:
            content.rename(self.path)
        except OSError:
            old.rename(self.path)
            raise
        make_removable(old)
        shutil.rmtree(old)


def _write(number: int, data: memoryview, offset: int) -> None:
    while data:
        done = os.pwrite(number, data, offset)
        data, offset = data[done:], offset + done


def _umask() -> int:
    """Return the permissions that this process withholds from files it creates."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _refused(path: Path, error: OSError) -> RunError:
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
        return RunError(
            f"{path} was created by another program in the meantime; what was received did not get this name",
            remedy="replace it with --force, or name another file",
        )
    return RunError(
        f"{path} cannot be written: {error.strerror or error}",
        remedy="check free space and permissions, then send it again",
    )
