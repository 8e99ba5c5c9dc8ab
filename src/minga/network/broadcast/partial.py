"""Directory in which a receiver keeps what it has verified, until it is complete; a later transfer continues with it.

It lies beside the destination, with a name derived from the destination's, belongs to this user alone, and contains
the content and a journal. The journal begins with the digest of the manifest; each further line is an extent whose
bytes are in the content.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any, Final, TextIO

from minga.errors import RunError
from minga.network.broadcast.extents import Extent

__all__ = ["Partial", "make_removable"]

_VERSION: Final = 1


class Partial:
    """The directory of one destination, locked by this process.

    Parameters
    ----------
    target
        Path of the destination.
    manifest
        Digest of the manifest of what arrives.
    resume
        False discards what an earlier transfer left.

    Attributes
    ----------
    content
        Path of the content.
    claims
        Extents that an earlier transfer of the same manifest has left.
    changed
        True if an earlier transfer left something of another manifest, which was discarded.
    """

    def __init__(self, target: Path, manifest: bytes, *, resume: bool = True) -> None:
        # A digest of the name, which may already have the maximum length.
        digest = hashlib.sha256(target.name.encode()).hexdigest()[:16]
        self.path = target.with_name(f".minga-{digest}.partial")
        self.content = self.path / "content"
        self.claims: list[Extent] = []
        self.changed = False
        self._journal: TextIO | None = None
        self._noted = 0
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
        state = self.path.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
            raise RunError(
                f"{self.path} is in the way: it is not a private directory of this user", remedy=f"remove {self.path}"
            )
        self._journal = self._lock(target)
        try:
            self._begin(manifest.hex(), resume)
        except BaseException:
            self._close()
            raise

    def note(self, extent: Extent) -> None:
        """Note in the journal that the bytes of an extent are in the content."""
        self._write(extent.as_list())
        self._noted += 1

    def close(self, *, keep: bool) -> None:
        """Release the directory, and remove it unless it is to be kept and contains something verified."""
        if self._journal is None:
            return
        if not keep or self._noted == 0:
            self._remove()
        self._close()

    def forget(self) -> None:
        """Discard everything that an earlier transfer left."""
        self.claims = []
        self._noted = 0
        if self.content.is_dir() and not self.content.is_symlink():
            make_removable(self.content)
            shutil.rmtree(self.content)
        else:
            self.content.unlink(missing_ok=True)

    def _lock(self, target: Path) -> TextIO:
        number = os.open(self.path / "journal", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        journal = os.fdopen(number, "r+", encoding="utf-8", errors="replace")
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            journal.close()
            raise RunError(
                f"another transfer to {target} is under way", remedy="wait until it has ended, or end it"
            ) from error
        return journal

    def _begin(self, manifest: str, resume: bool) -> None:
        assert self._journal is not None
        lines = self._journal.read().splitlines()
        head = _parsed(lines[0]) if lines else None
        fits = head == {"version": _VERSION, "manifest": manifest} and not self._named()
        self.changed = resume and head is not None and not fits
        if fits and resume:
            with contextlib.suppress(RunError):  # the line in which the last transfer was interrupted
                self.claims.extend(Extent.read(_parsed(line)) for line in lines[1:])
        else:
            self.forget()
        claims = self.claims
        self._journal.seek(0)
        self._journal.truncate()
        self._write({"version": _VERSION, "manifest": manifest})
        for one in claims:
            self.note(one)

    def _named(self) -> bool:
        """Return True if the content already has its name, from a transfer that was killed before it could end."""
        with contextlib.suppress(OSError):
            state = self.content.lstat()
            return stat.S_ISREG(state.st_mode) and state.st_nlink > 1
        return False

    def _write(self, entry: Any) -> None:
        assert self._journal is not None
        self._journal.write(json.dumps(entry) + "\n")
        self._journal.flush()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.forget()
            (self.path / "journal").unlink(missing_ok=True)
            self.path.rmdir()

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def make_removable(directory: Path) -> None:
    """Let the owner remove what is in a tree, whatever permissions its directories have."""
    for place, _, _ in os.walk(directory):
        with contextlib.suppress(OSError):
            os.chmod(place, 0o700)  # noqa: PTH101


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
