"""Blocks of fields in a file: written and read in slabs of bounded size, each with a checksum of all its bytes.

A file is a sequence of blocks, each at a multiple of 4096 bytes; their positions are recorded elsewhere
(:class:`minga.output.checkpoint.head.Head`). Bytes are in the machine's order, which is little-endian on all machines
that minga runs on, rows of the last axis first.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.output.directory import disk_errors
from minga.space.box import Box

__all__ = ["Block", "DamagedCheckpoint", "copy_common", "read_block", "read_slabs", "slabs_of", "write_blocks"]

Array = NDArray[Any]
Pieces = Sequence[tuple[Box, Array]]

_PAGE = 4096
_SLAB_BYTES = 8 << 20
"""Number of bytes that are copied, written or read at once."""


class DamagedCheckpoint(Exception):
    """Raised if data on the disk is not what was written; the message names the place."""


@dataclass(frozen=True, slots=True)
class Block:
    """Box of a slot in a file: ``file`` is the number of the rank that wrote it, ``at`` its position in bytes."""

    slot: str
    file: int
    at: int
    box: Box
    crc: int

    def as_list(self) -> list[Any]:
        """Return the block for JSON."""
        return [self.slot, self.file, self.at, list(self.box.lo), list(self.box.hi), self.crc]

    @classmethod
    def from_list(cls, entry: Sequence[Any]) -> Block:
        """Return the block from JSON."""
        slot, file, at, lo, hi, crc = entry
        return cls(str(slot), int(file), int(at), Box(tuple(map(int, lo)), tuple(map(int, hi))), int(crc))


def write_blocks(path: Path, number: int, pieces: Iterable[tuple[str, Box, Array]]) -> list[Block]:
    """Write boxes of slots to the file of rank ``number``, which may exist, and wait until the disk has them.

    Parameters
    ----------
    path, number
        The file and the rank.
    pieces
        The name of a slot, a box, and its values.

    Raises
    ------
    RunError
        If the disk refuses; the file is then removed, to free its space.
    """
    blocks = []
    with disk_errors(path), _file(path) as descriptor:
        at = 0
        for slot, box, values in pieces:
            os.lseek(descriptor, at, os.SEEK_SET)
            crc = 0
            for _, rows in _slabs(values):
                content = _bytes(np.ascontiguousarray(rows))
                crc = zlib.crc32(content, crc)
                _write(descriptor, content)
            blocks.append(Block(slot, number, at, box, crc))
            at += -(-values.nbytes // _PAGE) * _PAGE
        os.ftruncate(descriptor, at)
        os.fsync(descriptor)
    return blocks


def read_block(path: Path, block: Block, dtype: str, into: Pieces) -> None:
    """Copy the common part of a block and some boxes to these boxes' arrays.

    Raises
    ------
    DamagedCheckpoint
        If the block is not as it was written; the copied data is then invalid.
    """
    for slab, rows in read_slabs(path, block, dtype):
        copy_common(slab, rows, into)


def copy_common(slab: Box, rows: Array, into: Pieces) -> None:
    """Copy the common part of a slab and some boxes to these boxes' arrays."""
    for box, values in into:
        shared = slab & box
        if not shared.empty:
            values[shared.slices(box.lo)] = rows[shared.slices(slab.lo)]


def slabs_of(block: Block, dtype: str) -> Iterator[Box]:
    """Yield the boxes of bounded size in which a block is read, in their order."""
    lo, hi = block.box.lo, block.box.hi
    for first, count in _rows(block.box.shape, np.dtype(dtype).itemsize):
        yield Box((lo[0] + first, *lo[1:]), (lo[0] + first + count, *hi[1:]))


def read_slabs(path: Path, block: Block, dtype: str) -> Iterator[tuple[Box, Array]]:
    """Yield the slabs of a block with their values: always all of them, as others may wait for each.

    Raises
    ------
    DamagedCheckpoint
        After the last slab, if the block is not as it was written; the values are then invalid.
    """
    crc, fault = 0, None
    with contextlib.ExitStack() as opened:
        stream: Any = None
        for slab in slabs_of(block, dtype):
            rows = np.zeros(slab.shape, dtype)
            try:
                if stream is None and fault is None:
                    stream = opened.enter_context(path.open("rb", buffering=0))
                    stream.seek(block.at)
                if fault is None:
                    _read(stream, _bytes(rows))
            except (OSError, EOFError) as error:
                fault = error
            crc = zlib.crc32(_bytes(rows), crc)
            yield slab, rows
    if fault is not None:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise DamagedCheckpoint(f"{path.parent.name}/{path.name} cannot be read: {reason}") from fault
    if crc != block.crc:
        raise DamagedCheckpoint(f"{path.parent.name}/{path.name} has changed at byte {block.at}: slot {block.slot!r}")


@contextmanager
def _file(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        yield descriptor
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _bytes(values: Array) -> memoryview:
    """Return the bytes of a contiguous array, to read or to write."""
    return values.reshape(-1).view(np.uint8).data


def _slabs(values: Array) -> Iterator[tuple[int, Array]]:
    for first, count in _rows(values.shape, values.itemsize):
        yield first, values[first : first + count]


def _rows(shape: Sequence[int], itemsize: int) -> Iterator[tuple[int, int]]:
    """Yield the first index along the first axis, and the number of rows, of slabs of bounded size."""
    row = max(1, int(np.prod(shape[1:], dtype=np.int64)) * itemsize)
    most = max(1, _SLAB_BYTES // row)
    for first in range(0, shape[0], most):
        yield first, min(most, shape[0] - first)


def _write(descriptor: int, content: memoryview) -> None:
    while len(content):
        count = os.write(descriptor, content)
        if count == 0:
            raise OSError(errno.EIO, "nothing was written")
        content = content[count:]


def _read(stream: Any, content: memoryview) -> None:
    while len(content):
        count = stream.readinto(content)
        if not count:
            raise EOFError("it is shorter than it was")
        content = content[count:]
