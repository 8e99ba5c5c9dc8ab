"""Source of a broadcast: a file, a directory or a pipe, read in pieces."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from minga.errors import CaseError, RunError
from minga.network.broadcast.manifest import Entry, Manifest, scan

__all__ = ["Source"]

_READ = 1 << 22


@dataclass(eq=False)
class Source:
    """A source, in the state in which it was opened."""

    path: Path
    manifest: Manifest
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    _pipe: BinaryIO | None = None

    @classmethod
    def open(cls, path: Path) -> Source:
        """Open a file or a directory, or a pipe as ``/proc/NUMBER/fd/0``.

        Raises
        ------
        CaseError
            If something cannot be read; the message names it.
        """
        try:
            if path.parent.name == "fd":
                return cls(path, Manifest("pipe", (Entry("f", "", 0o666, None),)), {}, path.open("rb", buffering=0))
        except OSError as error:
            raise CaseError(
                f"the standard input cannot be read: {error.strerror}", remedy="write PROGRAM | minga bcast -"
            ) from error
        manifest = scan(path)
        source = cls(path, manifest)
        for one in manifest.files:
            place = source._place(one)
            try:
                with place.open("rb") as file:
                    state = os.fstat(file.fileno())
            except OSError as error:
                raise CaseError(f"{place} cannot be read: {error.strerror}", remedy="check its permissions") from error
            source._stamps[one.path] = (state.st_size, state.st_mtime_ns)
            if state.st_size != one.size:
                raise source._changed(place)
        return source

    def read(self, offset: int, length: int) -> bytearray:
        """Return bytes of the stream; fewer than ``length`` only at the end of a pipe.

        Raises
        ------
        RunError
            If a file has become shorter.
        """
        data = bytearray(length)
        view = memoryview(data)
        if self._pipe is not None:
            at = 0
            while at < length and (got := self._pipe.readinto(view[at:])):  # type: ignore[attr-defined]
                at += got
            view.release()
            del data[at:]
            return data
        at = 0
        for entry, begin, size in self.manifest.spans(offset, length):
            place = self._place(entry)
            with place.open("rb", buffering=0) as file:
                file.seek(begin)
                end = at + size
                while at < end:
                    got = file.readinto(view[at:end])
                    if not got:
                        raise self._changed(place)
                    at += got
        return data

    def digest(self, offset: int, length: int) -> bytes:
        """Return the SHA-256 of bytes of the stream."""
        found = hashlib.sha256()
        for at in range(offset, offset + length, _READ):
            found.update(self.read(at, min(_READ, offset + length - at)))
        return found.digest()

    def check(self) -> None:
        """Raise RunError if a file or the list of files has changed since the source was opened."""
        if self._pipe is not None:
            return
        for one in self.manifest.files:
            place = self._place(one)
            try:
                state = place.stat()
            except OSError:
                raise self._changed(place) from None
            if (state.st_size, state.st_mtime_ns) != self._stamps[one.path]:
                raise self._changed(place)
        if self.manifest.kind == "tree" and scan(self.path) != self.manifest:
            raise self._changed(self.path)

    def close(self) -> None:
        """Release the source."""
        if self._pipe is not None:
            self._pipe.close()

    def _place(self, entry: Entry) -> Path:
        return self.path / entry.path if entry.path else self.path

    def _changed(self, place: Path) -> RunError:
        return RunError(f"{place} was changed while it was sent", remedy="send it again when no program writes to it")
