"""Destination of the result: an array, or a file that is either complete or absent.

A file is assembled beside its final place, in the directory ``NAME.partial``: ``c.npy`` is the matrix, ``product.json``
identifies the product, and ``done-*.txt``, one for each process, list the blocks that are complete. An interrupted
product resumes from what is there; once everything is there and checked, the matrix gets its final name.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import CaseError, RunError
from minga.models.matmul.blocks import Block
from minga.models.matmul.operands import Array, Range

__all__ = ["ArrayResult", "PartialFile", "Result", "coherent", "partial_of"]

_FORMAT: Final = "minga partial product 1"
_NAMES: Final = ("c.npy", "product.json", ".product.json")
_APART: Final = ("nfs", "cifs", "smb", "9p", "afs", "vboxsf", "fuse.")
"""Prefixes of the types of file systems whose clients cache pages of their own."""
_SETTLED: Final = 0.5
"""Least time between two writes of blocks to the disk and the list, s."""


@dataclass(eq=False)
class ArrayResult:
    """A result in the memory of rank 0."""

    array: Array

    def store(self, rows: Sequence[Range], first: int, end: int, block: Array) -> None:
        """Store computed rows of the columns from ``first`` to before ``end``."""
        _put(self.array, rows, first, end, block)

    def place(self, rows: Sequence[Range], first: int, end: int) -> Array | None:
        """Return the memory of a block if BLAS may write there, else None."""
        if len(rows) != 1 or self.array.strides[1] != self.array.itemsize:
            return None
        return self.array[slice(*rows[0]), first:end]

    def done(self) -> list[Block]:
        """Return the complete blocks: none, at the beginning."""
        return []

    def flush(self) -> None:
        """Do nothing: the result is in memory."""


@dataclass(eq=False)
class PartialFile:
    """A result in a file that is not complete yet."""

    out: Path
    array: Array
    token: str
    """Token that distinguishes this file from one of the same name on another host or of another process."""
    _open: list[Block] = field(default_factory=list)
    _listed: float = -math.inf
    _list: Path | None = None
    _settling: Future[None] | None = None

    @property
    def folder(self) -> Path:
        """Directory in which the file is assembled."""
        return partial_of(self.out)

    @classmethod
    def begin(cls, out: Path, identity: Mapping[str, Any], shape: Range, dtype: np.dtype[Any]) -> PartialFile:
        """Resume the file of an interrupted product, or else begin a new one.

        Remains of another product are removed, because it would never be completed.

        Parameters
        ----------
        out
            Final place of the file.
        identity
            Plain data that identify the product.
        shape, dtype
            Shape and type of the result.

        Raises
        ------
        CaseError
            If the file cannot be written.
        """
        folder = partial_of(out)
        try:
            if not _continues(folder, identity):
                _clear(folder)
                folder.mkdir()
                _room(folder, shape, dtype)
                np.lib.format.open_memmap(folder / "c.npy", mode="w+", dtype=dtype, shape=shape).flush()
                token = {"format": _FORMAT, "token": secrets.token_hex(8), **identity}
                unfinished = folder / ".product.json"
                unfinished.write_text(json.dumps(token, indent=1))
                unfinished.replace(folder / "product.json")
            return cls.join(out)
        except OSError as error:
            raise CaseError(
                f"{out} cannot be written: {error.strerror or error}", key="-o", remedy="choose another place"
            ) from None

    @classmethod
    def join(cls, out: Path) -> PartialFile:
        """Open the file that rank 0 has begun.

        Raises
        ------
        OSError, ValueError, KeyError
            If the file cannot be seen.
        """
        folder = partial_of(out)
        token = str(json.loads((folder / "product.json").read_text())["token"])
        return cls(out, np.load(folder / "c.npy", mmap_mode="r+"), token)

    def store(self, rows: Sequence[Range], first: int, end: int, block: Array) -> None:
        """Store computed rows of some columns; a thread soon adds them to the list of complete blocks."""
        _put(self.array, rows, first, end, block)
        self._open += [Block(low, high, first, end) for low, high in rows]
        if time.monotonic() - self._listed > _SETTLED and (self._settling is None or self._settling.done()):
            self._raise()
            self._settling = Future()
            threading.Thread(target=self._list_open, args=(self._taken(), self._settling), daemon=True).start()

    def place(self, rows: Sequence[Range], first: int, end: int) -> None:
        """Return None: a block is stored when it is complete."""

    def flush(self) -> None:
        """Write all blocks to the disk, and then list them.

        Raises
        ------
        RunError
            If the disk is full or cannot be written.
        """
        if self._settling is not None:
            self._settling.exception()  # wait for it
        self._raise()
        last: Future[None] = Future()
        self._list_open(self._taken(), last)
        self._settling = last
        self._raise()

    def _taken(self) -> list[Block]:
        """Return the blocks to be listed now, and start collecting new ones."""
        taken, self._open, self._listed = self._open, [], time.monotonic()
        return taken

    def _list_open(self, blocks: list[Block], over: Future[None]) -> None:
        try:
            if blocks:
                self._sync()
                self._list = self._list or self._list_named(f"{os.uname().nodename}-{os.getpid()}")
                with self._list.open("a") as stream:
                    for b in blocks:
                        stream.write(f"{b.first_row} {b.end_row} {b.first_column} {b.end_column} .\n")
                    stream.flush()
                    os.fsync(stream.fileno())
            over.set_result(None)
        except OSError as error:
            over.set_exception(RunError(f"{self.folder} cannot be written: {error.strerror or error}"))

    def _list_named(self, whose: str) -> Path:
        return self.folder / f"done-{self.token}-{whose}.txt"

    def _sync(self) -> None:
        """Write what was stored to the disk; flushing the map instead would block all other threads meanwhile."""
        file = os.open(self.folder / "c.npy", os.O_RDWR)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def _raise(self) -> None:
        if self._settling is not None and self._settling.done() and (error := self._settling.exception()):
            raise error

    def done(self) -> list[Block]:
        """Return the blocks listed by any process; unfinished lines of a killed process do not count."""
        rows, columns = self.array.shape
        found = []
        for path in sorted(self.folder.glob(self._list_named("*").name)):
            for line in path.read_text().splitlines():
                words = line.split()
                if len(words) == 5 and words[-1] == "." and all(word.isdigit() for word in words[:4]):
                    block = Block(*map(int, words[:4]))
                    if block.end_row <= rows and block.end_column <= columns:
                        found.append(block)
        return found

    def finish(self) -> None:
        """Give the file its final name, and remove its directory.

        Raises
        ------
        RunError
            If another product has taken its place, or the file cannot be written.
        """
        if not self._is_there():
            raise RunError(
                f"{self.folder} now belongs to another product, or is gone",
                remedy="write only one product at a time under one name",
            )
        try:
            self._sync()
            (self.folder / "c.npy").replace(self.out)
        except OSError as error:
            raise RunError(f"{self.out} cannot be written: {error.strerror or error}") from None
        shutil.rmtree(self.folder, ignore_errors=True)

    def discard(self) -> None:
        """Remove everything that there is of this product."""
        if self._is_there():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _is_there(self) -> bool:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return bool(json.loads((self.folder / "product.json").read_text())["token"] == self.token)
        return False


Result = ArrayResult | PartialFile


def partial_of(out: Path) -> Path:
    """Return the directory in which a file is assembled before it is complete."""
    return out.with_name(f"{out.name}.partial")


def _put(array: Array, rows: Sequence[Range], first: int, end: int, block: Array) -> None:
    if block.base is array:
        return  # it was computed there
    at = 0
    for low, high in rows:
        array[low:high, first:end] = block[at : at + high - low]
        at += high - low


def coherent(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Return whether several hosts may map one file in a directory, and store rows next to one another.

    Clients of network file systems cache whole pages, and write them back with outdated rows of other hosts.
    """
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.read_text().splitlines():
        place, _, kind = line.partition(" - ")
        if place.split()[2] == number:
            return not kind.startswith(_APART)
    return True


def _clear(folder: Path) -> None:
    """Remove the remains of another product; raise CaseError if the directory holds anything else."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    strange = [name for name in names if name not in _NAMES and not name.startswith(("done-", ".nfs"))]
    if strange:
        raise CaseError(
            f"{folder} is needed for the unfinished result, but contains {strange[0]!r}",
            key="-o",
            remedy="move it away, or choose another name for the result",
        )
    shutil.rmtree(folder, ignore_errors=True)


def _continues(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Return whether the directory holds a part of this very product."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((folder / "product.json").read_text())
        found.pop("token", None)
        same = found == json.loads(json.dumps({"format": _FORMAT, **identity}))
        return same and (folder / "c.npy").is_file()
    return False


def _room(folder: Path, shape: Range, dtype: np.dtype[Any]) -> None:
    """Raise CaseError if the disk cannot hold the result: a mapped file would end the process without a message."""
    needed = shape[0] * shape[1] * dtype.itemsize
    free = shutil.disk_usage(folder).free
    if needed > free:
        folder.rmdir()
        raise CaseError(
            f"the result takes {needed / 1e9:.3g} GB, but only {free / 1e9:.3g} GB are free in "
            f"{folder.parent.absolute()}",
            key="-o",
            remedy="choose another place, or free some space",
        )
