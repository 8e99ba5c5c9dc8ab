"""Memory of large fields on huge pages, where the system has them.

A page of 2 MiB needs one entry of the processor's table of pages where small pages need 512. NumPy asks for huge pages
only in fresh memory, and only for the part of an array that happens to fill some.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

__all__ = ["HUGE", "LEAST", "borrowed", "filed", "zeroed"]

HUGE: Final = 2 << 20
"""Bytes of a huge page."""
LEAST: Final = 4 << 20
"""Bytes from which on memory is put on huge pages."""


def zeroed(size: int) -> np.ndarray:
    """Allocate zeroed host memory; if it is large, on huge pages.

    Parameters
    ----------
    size
        Number of bytes.

    Returns
    -------
    ndarray
        The memory as bytes. It is freed with the last view of it.
    """
    if size >= LEAST and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            return _on_huge_pages(size)
    return np.zeros(size, np.uint8)


def _on_huge_pages(size: int) -> np.ndarray:
    """Map memory that begins with a huge page; its last page is huge if it is filled to at least one half."""
    memory = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    buffer = np.frombuffer(memory, np.uint8)
    start = -buffer.ctypes.data % HUGE
    with contextlib.suppress(OSError):  # a kernel may have no huge pages
        memory.madvise(mmap.MADV_HUGEPAGE, start, min((size + HUGE // 2) // HUGE * HUGE, size + HUGE - start))
    return buffer[start : start + size]


@contextlib.contextmanager
def filed(size: int, folder: str | os.PathLike[str]) -> Iterator[np.ndarray]:
    """Lend memory of a file, which the system writes and reads as it needs room; contents are 0.

    Parameters
    ----------
    size
        Number of bytes.
    folder
        Where the file is. It has no name, so that nothing is left of it.

    Yields
    ------
    ndarray
        The memory as bytes; it must not be used after the context.

    Raises
    ------
    OSError
        If the folder does not exist or the disk has no room.
    """
    if not Path(folder).is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        _allocate(file.fileno(), max(size, 1))
        memory = mmap.mmap(file.fileno(), max(size, 1))
        yield np.frombuffer(memory, np.uint8)[:size]


def _allocate(file: int, size: int) -> None:
    """Give a file its size, and room for it: a lack of room that is found later would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    zeros = bytes(min(size, HUGE))
    for start in range(0, size, len(zeros)):
        os.write(file, zeros[: size - start])


@contextlib.contextmanager
def borrowed(size: int) -> Iterator[np.ndarray]:
    """Lend memory whose contents are not defined.

    Large memory that was lent before is lent again: the system takes longer to provide fresh pages than a processor
    takes to fill them. In the meantime it may take them back.

    Parameters
    ----------
    size
        Number of bytes.

    Yields
    ------
    ndarray
        The memory as bytes; it must not be used after the context.
    """
    if size < LEAST:
        yield np.empty(size, np.uint8)
        return
    with _LOCK:
        spare = _SPARE.pop() if _SPARE and len(_SPARE[-1]) >= size else None
    memory = spare or mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if spare is None and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel may have no huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    try:
        yield np.frombuffer(memory, np.uint8)[:size]
    finally:
        _keep(memory)


def _keep(memory: mmap.mmap) -> None:
    """Keep memory to be lent again, unless a larger piece is kept, or the system could not take back its pages."""
    if not hasattr(mmap, "MADV_FREE"):
        return
    with contextlib.suppress(OSError):
        memory.madvise(mmap.MADV_FREE)
        with _LOCK:
            if not _SPARE or len(_SPARE[-1]) < len(memory):
                _SPARE[:] = [memory]


_SPARE: Final[list[mmap.mmap]] = []
"""Memory to be lent again: one piece at most."""
_LOCK: Final = threading.Lock()
