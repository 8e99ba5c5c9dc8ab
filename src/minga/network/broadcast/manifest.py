"""Manifest of what is sent, a file, a pipe or a directory with all its entries; checked by sender and receivers.

The contents of all regular files, in the order of the manifest, form one stream of bytes. Offsets in this stream are
what the transfer and its resumption speak of.
"""

from __future__ import annotations

import json
import os
import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal

from minga.errors import CaseError, RunError
from minga.paths import is_plain_name

__all__ = ["Entry", "Kind", "Manifest", "scan"]

Kind = Literal["file", "tree", "pipe"]
_KINDS: Final = ("file", "tree", "pipe")
_PERMISSIONS: Final = 0o777
_LARGEST: Final = 1 << 62
_LONGEST_TARGET: Final = 4095


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a manifest.

    ``path`` is relative to what is sent, with ``/`` between names; empty for itself. ``kind`` is ``"d"`` for a
    directory, ``"f"`` for a regular file and ``"l"`` for a symbolic link. Only files have a ``size`` in bytes, None for
    a pipe, and only links have a ``target``.
    """

    kind: Literal["d", "f", "l"]
    path: str
    mode: int = 0
    size: int | None = 0
    target: str = ""

    def as_list(self) -> list[Any]:
        """Return the entry as JSON-serialisable data."""
        return [self.kind, self.path, self.mode, self.size, self.target]


@dataclass(frozen=True)
class Manifest:
    """Kind and entries of what is sent; directories precede their entries."""

    kind: Kind
    entries: tuple[Entry, ...]
    _starts: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", list(accumulate((one.size or 0 for one in self.files), initial=0)))

    @property
    def files(self) -> list[Entry]:
        """Regular files, in the order of the stream."""
        return [one for one in self.entries if one.kind == "f"]

    @property
    def size(self) -> int | None:
        """Bytes of the stream; None for a pipe."""
        return None if self.kind == "pipe" else self._starts[-1]

    def pack(self) -> bytes:
        """Return the manifest as bytes."""
        text = json.dumps({"kind": self.kind, "entries": [one.as_list() for one in self.entries]}, ensure_ascii=True)
        return text.encode()

    @classmethod
    def read(cls, packed: bytes) -> Manifest:
        """Return the manifest that :meth:`pack` wrote, after checking it: nothing in it leads out of the target.

        Raises
        ------
        RunError
            If it is malformed, or contains an invalid entry; the message names it.
        """
        try:
            said = json.loads(packed)
            kind, entries = said["kind"], [Entry(*one) for one in said["entries"]]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise _invalid(f"a malformed list of files: {packed[:60]!r}") from error
        if kind not in _KINDS or not entries or (kind != "tree" and len(entries) > 1):
            raise _invalid(f"a list of files of kind {str(kind)[:20]!r} with {len(entries)} entries")
        checked = _Checked()
        for number, one in enumerate(entries):
            if why := checked.fault(one, first=number == 0, kind=kind):
                raise _invalid(f"the entry {str(one.path)[:120]!r}, which {why}")
        found = [Entry(one.kind, one.path, one.mode & _PERMISSIONS, one.size, one.target) for one in entries]
        return cls(kind, tuple(found))

    def spans(self, offset: int, length: int) -> Iterator[tuple[Entry, int, int]]:
        """Yield the parts of files that make up a range of the stream, as (file, offset in it, length)."""
        files, at, end = self.files, offset, offset + length
        if self.kind == "pipe":
            yield files[0], offset, length
            return
        index = bisect_right(self._starts, at) - 1
        while at < end:
            size = min(end, self._starts[index + 1]) - at
            if size:
                yield files[index], at - self._starts[index], size
            at += size
            index += 1


@dataclass
class _Checked:
    """Entries that were found valid so far."""

    directories: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def fault(self, one: Entry, *, first: bool, kind: str) -> str:
        """Return why an entry is invalid, or an empty text; note a valid one."""
        if first:
            if one.path != "" or one.kind != ("d" if kind == "tree" else "f"):
                return "does not stand for the whole"
        elif why := self._misplaced(one.path):
            return why
        if type(one.mode) is not int or not 0 <= one.mode < _LARGEST:
            return "has invalid permissions"
        if one.kind == "d":
            self.directories.add(one.path)
            return ""
        self.others.add(one.path)
        if one.kind == "f":
            known = kind != "pipe"
            right = type(one.size) is int and 0 <= one.size < _LARGEST if known else one.size is None
            return "" if right else "has an invalid size"
        return outside(one.path, one.target) if one.kind == "l" else "has an unknown kind"

    def _misplaced(self, path: object) -> str:
        if not isinstance(path, str) or not all(is_plain_name(name) for name in path.split("/")):
            return "is not a plain relative path"
        if path in self.directories or path in self.others:
            return "is listed twice"
        parent = path.rpartition("/")[0]
        return "" if parent in self.directories else "lies in no listed directory"


def outside(path: str, target: object) -> str:
    """Return why a symbolic link at ``path`` may lead out of the tree; an empty text if it cannot.

    A target may begin with ``..`` as often as directories of the tree contain the link. Later it must not contain any,
    since the parent of a name that is itself a link need not be the directory before it in the text.
    """
    if not isinstance(target, str) or not 0 < len(target) <= _LONGEST_TARGET:
        return "is a symbolic link without a valid target"
    if target.startswith("/"):
        return f"is a symbolic link to the absolute path {target[:80]}"
    steps = [step for step in target.split("/") if step not in ("", ".")]
    up = next((number for number, step in enumerate(steps) if step != ".."), len(steps))
    if not all(is_plain_name(step) for step in steps[up:] if step != ".."):
        return "is a symbolic link without a valid target"
    if up > path.count("/") or ".." in steps[up:]:
        return f"is a symbolic link to {target[:80]}, which may lie outside of the directory that is sent"
    return ""


def scan(root: Path) -> Manifest:
    """Return the manifest of a file or a directory.

    Entries are sorted by name, so that equal directories have equal manifests.

    Raises
    ------
    CaseError
        If something cannot be read, or is neither a file, a directory nor a link within the directory; the message
        names it.
    """
    try:
        state = root.stat()
        if stat.S_ISREG(state.st_mode):
            return Manifest("file", (Entry("f", "", state.st_mode & _PERMISSIONS, state.st_size),))
        if not stat.S_ISDIR(state.st_mode):
            raise CaseError(
                f"{root} is neither a file nor a directory",
                remedy="name one, or send what a program writes: PROGRAM | minga bcast -",
            )
        entries = [Entry("d", "", state.st_mode & _PERMISSIONS), *_below(root, "")]
    except OSError as error:
        raise CaseError(
            f"{error.filename or root} cannot be read: {error.strerror}", remedy="name something that exists"
        ) from error
    return Manifest("tree", tuple(entries))


def _below(directory: Path, prefix: str) -> Iterator[Entry]:
    with os.scandir(directory) as found:
        listed: Sequence[os.DirEntry[str]] = sorted(found, key=lambda one: one.name)
    for one in listed:
        path = prefix + one.name
        if not is_plain_name(one.name):
            raise CaseError(
                f"the name {one.name!r} in {directory} cannot be sent",
                remedy="rename it: letters, digits, punctuation without \\",
            )
        state = one.stat(follow_symlinks=False)
        mode = state.st_mode & _PERMISSIONS
        if stat.S_ISDIR(state.st_mode):
            yield Entry("d", path, mode)
            yield from _below(Path(one.path), path + "/")
        elif stat.S_ISREG(state.st_mode):
            yield Entry("f", path, mode, state.st_size)
        elif stat.S_ISLNK(state.st_mode):
            target = os.readlink(one.path)  # noqa: PTH115  (a Path would normalise the target)
            if why := outside(path, target):
                raise CaseError(f"{one.path} {why}", remedy="remove it, or make it relative and within the directory")
            yield Entry("l", path, 0, 0, target)
        else:
            raise CaseError(f"{one.path} is a device, a pipe or a socket", remedy="remove it, or send an archive")


def _invalid(what: str) -> RunError:
    return RunError(f"the sender announced {what}", remedy="check the host that sends, and its version of minga")
