"""Digest of the state that does not depend on its layout, on the order of cells, or on who computes it.

Every cell of every field contributes ``mix(index * PHI + bits + salt(field))`` modulo 2**64, where ``index`` is the
row-major number of the cell in the whole field and ``bits`` its value as an unsigned integer; the digest is the sum of
all contributions, also modulo 2**64. Sums commute, so layouts and ranks drop out; equal digests of equal states are
certain, equal digests of different states have odds of about 2**-64.

``mix`` is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.space.box import Box

__all__ = ["combine", "digest_of_arrays", "digest_of_blocks", "field_digest", "mix64"]

Words = NDArray[np.uint64]

_PHI = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_SLAB = 1 << 18
"""Number of cells that are mixed at once, so that digests of large fields need little memory."""


def mix64(words: Words) -> Words:
    """Apply the finaliser of SplitMix64, a bijection, to each 64-bit word."""
    with np.errstate(over="ignore"):
        mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def field_digest(values: NDArray[Any], box: Box, domain: Box, number: int) -> int:
    """Return the contribution of the cells of ``box`` to the digest.

    Parameters
    ----------
    values
        Their values, of shape ``box.shape`` and any dtype of a field.
    box, domain
        The cells, and all cells of the field: they give each cell its number.
    number
        The place of the field among the fields of the digest.
    """
    if box.empty:
        return 0
    salt = np.uint64(int(mix64(np.array([number + 1], np.uint64))[0]))
    bits = _bits(values)
    total = 0
    rows = max(1, _SLAB // max(1, box.size // box.shape[0]))
    for first in range(0, box.shape[0], rows):
        part = bits[first : first + rows]
        numbers = _numbers(box, domain, first, part.shape)
        with np.errstate(over="ignore"):
            words = mix64(numbers * np.uint64(_PHI) + part + salt)
            total += int(words.sum(dtype=np.uint64))
    return total & _MASK


def digest_of_blocks(fields: Sequence[tuple[Box, Iterable[tuple[Box, NDArray[Any]]]]]) -> int:
    """Return the contribution of one rank, given for each field its domain and the rank's boxes and values."""
    total = 0
    for number, (domain, blocks) in enumerate(fields):
        for box, values in blocks:
            total += field_digest(values, box, domain, number)
    return total & _MASK


def digest_of_arrays(arrays: Sequence[NDArray[Any]]) -> str:
    """Return the digest of whole fields given as arrays, in the order of the fields: 16 hexadecimal digits."""
    boxes = [Box.of(array.shape) for array in arrays]
    return combine([digest_of_blocks([(box, [(box, array)]) for box, array in zip(boxes, arrays)])])


def combine(contributions: Iterable[int]) -> str:
    """Return the digest from the contributions of all ranks: 16 hexadecimal digits."""
    return f"{sum(contributions) & _MASK:016x}"


def _bits(values: NDArray[Any]) -> Words:
    """Return the values as unsigned 64-bit words: floats by their bits with one NaN, integers sign-extended."""
    if values.dtype.kind == "f":
        words = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)
        canonical = np.array(np.nan, values.dtype).view(f"u{values.dtype.itemsize}")
        return np.where(np.isnan(values), canonical.astype(np.uint64), words)
    if values.dtype.kind == "i":
        return values.astype(np.int64).view(np.uint64)
    return values.astype(np.uint64)


def _numbers(box: Box, domain: Box, first: int, shape: tuple[int, ...]) -> Words:
    """Return the row-major numbers within ``domain`` of the cells of ``box`` from row ``first`` on."""
    numbers = np.zeros(shape, np.uint64)
    stride = 1
    for axis in reversed(range(box.ndim)):
        low = box.lo[axis] - domain.lo[axis] + (first if axis == 0 else 0)
        along = np.arange(low, low + shape[axis], dtype=np.uint64) * np.uint64(stride)
        numbers += along.reshape((-1,) + (1,) * (box.ndim - 1 - axis))
        stride *= domain.shape[axis]
    return numbers
