"""Memory of large fields on huge pages, where the system has them.

A page of 2 MiB needs one entry of the processor's table of pages where small pages need 512. NumPy asks for huge pages
only in fresh memory, and only for the part of an array that happens to fill some.
"""

from __future__ import annotations

import contextlib
import mmap
from typing import Final

import numpy as np

__all__ = ["HUGE", "LEAST", "unused", "zeroed"]

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


def unused(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Allocate an array whose values are not set yet, on huge pages if it is large.

    Parameters
    ----------
    shape
        Shape of the array.
    dtype
        Type of its values.

    Returns
    -------
    ndarray
        The array. Its pages take memory once they are written.
    """
    return np.empty(shape, dtype)
