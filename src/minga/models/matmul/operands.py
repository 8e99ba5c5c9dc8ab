"""Operands of a matrix product as they are stored, and stripes of them: some rows or columns, ready for BLAS."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import CaseError
from minga.paths import same_file

__all__ = ["TYPES", "Array", "Operand", "Range", "length", "mapped_part", "opened", "operand_of", "shared"]

Array = NDArray[Any]
Range = tuple[int, int]
"""A half-open range of rows or columns."""

TYPES: Final = ("f4", "f8", "c8", "c16")
"""Supported types of elements, in any byte order."""
_SAMPLES: Final = 4096
"""Number of elements that are sampled to distinguish matrices."""


@dataclass(frozen=True, eq=False)
class Operand:
    """An operand op(X): a matrix X or its transpose.

    A stripe consists of all elements of op(X) with some indices of one axis. It keeps the stored order of axes, so that
    reading it never strides across memory, and BLAS gets a transposed view.

    Attributes
    ----------
    name
        Name of the operand, for error messages.
    extent
        Shape of the stored matrix.
    dtype
        Type of the elements, in this machine's byte order.
    transposed
        Whether op(X) is the transpose.
    stored
        The matrix as it lies in memory or in a file, in any byte order; None on a rank that cannot see it. Stripes are
        converted as they are copied, once, so that BLAS always finds its own order.
    """

    name: str
    extent: Range
    dtype: np.dtype[Any]
    transposed: bool = False
    stored: Array | None = None

    @property
    def shape(self) -> Range:
        """Numbers of rows and columns of op(X)."""
        return self.extent[::-1] if self.transposed else self.extent

    @property
    def whole(self) -> Array:
        """View of op(X); only on ranks that can see it."""
        assert self.stored is not None
        return self.stored.T if self.transposed else self.stored

    def stripe(self, axis: int, flat: Array, count: int) -> Array:
        """Return the stripe of ``count`` indices of an axis that lies in the first elements of ``flat``."""
        stored_axis = axis ^ self.transposed
        other = self.shape[1 - axis]
        held = flat[: count * other].reshape((count, other) if stored_axis == 0 else (other, count))
        return held.T if self.transposed else held

    def take(self, axis: int, ranges: Sequence[Range], flat: Array) -> Array:
        """Copy a stripe into the first elements of ``flat``, and return the stripe."""
        stripe = self.stripe(axis, flat, length(ranges))
        source, at = self.whole, 0
        for first, end in ranges:
            here = slice(at, at + end - first)
            if axis == 0:
                stripe[here] = source[first:end]
            else:
                stripe[:, here] = source[:, first:end]
            at += end - first
        return stripe

    def view(self, ranges: Sequence[Range]) -> Array | None:
        """Return rows without a copy if they lie in memory in one piece that BLAS accepts, else None."""
        if self.stored is None or not self.in_memory or len(ranges) != 1:
            return None
        rows = self.whole[slice(*ranges[0])]
        return rows if self.dtype.itemsize in rows.strides and min(rows.strides) > 0 else None

    def columns(self, first: int, end: int) -> Array | None:
        """Return columns without a copy if they lie in memory in a way that BLAS accepts, else None."""
        if self.stored is None or not self.in_memory:
            return None
        found = self.whole[:, first:end]
        return found if self.dtype.itemsize in found.strides and min(found.strides) > 0 else None

    @property
    def in_memory(self) -> bool:
        """Flag that is set if BLAS could read the matrix where it lies."""
        return self.stored is not None and not isinstance(self.stored, np.memmap) and self.stored.dtype.isnative

    def fingerprint(self) -> str:
        """Return a hash of shape, type and an even sample of the elements, equal on ranks that see the same matrix."""
        found = hashlib.sha256(f"{self.extent} {self.dtype.str[1:]} {self.transposed}".encode())
        if self.stored is not None and self.stored.size:
            step = max(1, self.stored.size // _SAMPLES) | 1
            places = np.unravel_index(np.arange(0, self.stored.size, step), self.extent)
            found.update(np.ascontiguousarray(self.stored[places]).tobytes())
        return found.hexdigest()

    def hidden(self) -> Operand:
        """Return the operand as on a rank that cannot see it."""
        return Operand(self.name, self.extent, self.dtype, self.transposed)


def length(ranges: Sequence[Range]) -> int:
    """Return the number of indices in ranges."""
    return sum(end - first for first, end in ranges)


def operand_of(name: str, value: ArrayLike | Path | str, transposed: bool = False) -> Operand:
    """Return an operand from an array, or from a ``.npy`` file, which is mapped and not read.

    Raises
    ------
    CaseError
        If it is not a matrix of f4, f8, c8 or c16.
    """
    stored = opened(name, value) if isinstance(value, str | Path) else np.asanyarray(value)
    if isinstance(value, str | Path):
        name = str(value)
    if stored.ndim != 2:
        raise CaseError(
            f"{name} has {stored.ndim} axes, but the operands of a product are matrices, which have two",
            remedy="reshape it: a vector of n elements is a matrix of n x 1",
        )
    if stored.dtype.kind not in "fc" or stored.dtype.str[1:] not in TYPES:
        raise CaseError(
            f"{name} has elements of type {stored.dtype.str}, but products need f4, f8, c8 or c16",
            remedy=f'convert it: {name if name.isidentifier() else "matrix"}.astype("f8")',
        )
    if stored.size and stored.dtype.itemsize not in stored.strides:
        stored = np.ascontiguousarray(stored)
    if (
        stored.flags.f_contiguous and not stored.flags.c_contiguous
    ):  # in column-major order, it is the transpose of its transpose
        stored, transposed = stored.T, not transposed
    return Operand(name, (stored.shape[0], stored.shape[1]), stored.dtype.newbyteorder("="), transposed, stored)


@dataclass(frozen=True, slots=True)
class Mapped:
    """The bytes of a file, from ``first`` to before ``end``, that an array maps."""

    file: Path
    first: int
    end: int


def mapped_part(array: Array) -> Mapped | None:
    """Return the part of a file that an array maps; None if it lies in memory, or maps a file without a name."""
    low, high = np.lib.array_utils.byte_bounds(array)
    while isinstance(array.base, np.ndarray):
        array = array.base
    if not isinstance(array, np.memmap) or array.filename is None:
        return None
    first = array.offset + low - np.lib.array_utils.byte_bounds(array)[0]
    return Mapped(Path(str(array.filename)), first, first + high - low)


def shared(one: Array, other: Array) -> bool:
    """Return whether two arrays may share bytes, in memory or in a file that both map."""
    if np.may_share_memory(one, other):
        return True
    here, there = mapped_part(one), mapped_part(other)
    if here is None or there is None or not same_file(here.file, there.file):
        return False
    return here.first < there.end and there.first < here.end


def opened(name: str, path: Path | str) -> Array:
    """Return the array in a ``.npy`` file, mapped.

    Raises
    ------
    CaseError
        If the file does not exist or holds no array.
    """
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError:
        raise CaseError(f"there is no file {str(path)!r}", key=name) from None
    except (OSError, ValueError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CaseError(
            f"{path} cannot be read as a .npy file: {why}", key=name, remedy="write it with numpy.save"
        ) from None
