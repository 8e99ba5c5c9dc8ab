"""Object code on disk, so that a kernel is compiled once per machine and not once per run.

A file holds one object: a line with the SHA-256 of the rest, a line of JSON that describes it, and the code. A file
that is truncated, corrupted, of another key or of another user counts as missing; a directory that cannot be written
costs compilation time, but never a run. Files are created by renaming, so that processes that share a directory never
see an incomplete file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import llvmlite
import llvmlite.binding as llvm

from minga.compile.target import Target

SUFFIX: Final = ".object"
LIMIT: Final = 256 << 20
LOOKED_AFTER: Final = "0"
"""Last digit of the keys whose storing triggers a check of the total size. This is one key in 16: the check takes
longer than compiling a small kernel."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Objects in one directory. The least recently used ones are removed when the total exceeds `limit` bytes."""

    directory: Path
    limit: int = LIMIT

    def __contains__(self, key: str) -> bool:
        """Return True if there is a file for `key`, whether or not it is valid."""
        return self._path(key).exists()

    def load(self, key: str) -> bytes | None:
        """Return the object of `key`, or None if there is no valid one."""
        path = self._path(key)
        content = self.read(path.name)
        if content is None:
            return None
        checksum, _, rest = content.partition(b"\n")
        if checksum != _checksum(rest):
            return None
        about, _, code = rest.partition(b"\n")
        if json.loads(about).get("key") != key:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return code

    def store(self, key: str, code: bytes, about: Mapping[str, str] | None = None) -> bool:
        """Store an object.

        Parameters
        ----------
        key
            Key of the object.
        code
            The object code.
        about
            Further information for people who inspect the file.

        Returns
        -------
        bool
            False if the directory cannot be written.
        """
        rest = json.dumps({"key": key, **(about or {})}).encode() + b"\n" + code
        if not self.write(self._path(key).name, _checksum(rest) + b"\n" + rest):
            return False
        if key.endswith(LOOKED_AFTER):
            self._prune()
        return True

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none, or if it is another user's."""
        try:
            with (self.directory / name).open("rb") as file:
                return file.read() if _is_ours(os.fstat(file.fileno())) else None
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> bool:
        """Write a file so that other processes see all of it or nothing; return False if that is impossible."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(dir=self.directory, prefix=".new-")
        except OSError:
            return False
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(temporary).replace(self.directory / name)
        except OSError:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            return False
        return True

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}{SUFFIX}"

    def _prune(self) -> None:
        """Remove the least recently used objects until a fifth of the limit is free, if the total exceeds the limit."""
        found = []
        with contextlib.suppress(OSError):
            for path in self.directory.glob(f"*{SUFFIX}"):
                with contextlib.suppress(OSError):
                    state = path.stat()
                    found.append((state.st_mtime_ns, state.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, path in sorted(found):
            if total <= self.limit * 4 // 5:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def default_cache() -> Cache | None:
    """Return the cache in $MINGA_CACHE, or else in the user's cache directory; None if $MINGA_CACHE is `off`."""
    place = os.environ.get("MINGA_CACHE")
    if place == "off":
        return None
    return Cache(Path(place) if place else _user_directory() / "minga" / "objects")


def object_key(digest: str, target: Target, options: str) -> str:
    """Return the key of an object, which depends on graph, processor, options, this package's printers and LLVM."""
    parts = (digest, repr(target), options, _printers(), llvmlite.__version__, repr(llvm.llvm_version_info))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _is_ours(state: os.stat_result) -> bool:
    """Return True if only this user and root can have written a file, since its content is executed."""
    mine = not hasattr(os, "geteuid") or state.st_uid in (0, os.geteuid())
    return mine and not (os.name == "posix" and state.st_mode & stat.S_IWOTH)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@functools.cache
def _printers() -> str:
    """Return the SHA-256 of this package's sources, so that changed printers make new objects."""
    state = hashlib.sha256()
    for item in sorted(resources.files(__package__).iterdir(), key=lambda item: item.name):
        if item.name.endswith(".py"):
            state.update(item.read_bytes())
    return state.hexdigest()


def _user_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
