"""Ranges of a content that a receiver has verified, each with its digest, and those that must be sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from minga.errors import RunError

__all__ = ["Extent", "Range", "confirmed", "covers", "gaps", "intersection", "merged", "pieces"]

Range: TypeAlias = tuple[int, int]
"""Half-open range of bytes, ``(begin, end)``."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes ``[offset, offset + length)`` of a content, whose SHA-256 is ``digest``."""

    offset: int
    length: int
    digest: bytes

    @property
    def range(self) -> Range:
        """Range of its bytes."""
        return self.offset, self.offset + self.length

    def as_list(self) -> list[object]:
        """Return the extent as JSON-serialisable data."""
        return [self.offset, self.length, self.digest.hex()]

    @classmethod
    def read(cls, said: object) -> Extent:
        """Return the extent described by :meth:`as_list`.

        Raises
        ------
        RunError
            If the description is malformed.
        """
        if not isinstance(said, list) or len(said) != 3:
            raise _malformed(said)
        offset, length, text = said
        try:
            digest = bytes.fromhex(text)
        except (TypeError, ValueError):
            raise _malformed(said) from None
        whole = type(offset) is int and type(length) is int and len(digest) == hashlib.sha256().digest_size
        if not whole or offset < 0 or length <= 0:
            raise _malformed(said)
        return cls(offset, length, digest)


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return the union of ranges as disjoint ranges in ascending order; adjacent ones are joined."""
    found: list[Range] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif begin < end:
            found.append((begin, end))
    return found


def gaps(size: int, ranges: Iterable[Range]) -> list[Range]:
    """Return the ranges of ``[0, size)`` that ``ranges`` do not contain."""
    found, at = [], 0
    for begin, end in merged(ranges):
        if at < min(begin, size):
            found.append((at, min(begin, size)))
        at = max(at, end)
    return [*found, (at, size)] if at < size else found


def intersection(size: int, sets: Sequence[Iterable[Range]]) -> list[Range]:
    """Return the ranges of ``[0, size)`` that every one of the sets contains; nothing if there are no sets."""
    if not sets:
        return []
    return gaps(size, [gap for one in sets for gap in gaps(size, one)])


def covers(size: int, ranges: Iterable[Range]) -> bool:
    """Return True if ``ranges`` contain all of ``[0, size)``."""
    return not gaps(size, ranges)


def pieces(ranges: Iterable[Range], length: Callable[[], int]) -> Iterator[Range]:
    """Yield consecutive pieces of ranges; ``length`` returns the largest length of the next piece."""
    for begin, end in ranges:
        at = begin
        while at < end:
            upto = min(end, at + length())
            yield at, upto
            at = upto


def confirmed(
    size: int, claims: Sequence[Sequence[Extent]], digest: Callable[[int, int], bytes]
) -> tuple[list[list[Range]], int]:
    """Compare the extents that receivers have with the present content.

    Parameters
    ----------
    size
        Bytes of the content.
    claims
        Extents of each receiver.
    digest
        Function of an offset and a length that returns the SHA-256 of these bytes of the content.

    Returns
    -------
    tuple
        The ranges in which each receiver's bytes equal the content, and the bytes of extents that differ, each counted
        once.
    """
    found: dict[Range, bytes] = {}
    refuted: set[Range] = set()
    valid: list[list[Range]] = []
    for extents in claims:
        mine = []
        for one in extents:
            if one.offset + one.length > size:
                refuted.add(one.range)
                continue
            if one.range not in found:
                found[one.range] = digest(one.offset, one.length)
            if found[one.range] == one.digest:
                mine.append(one.range)
            else:
                refuted.add(one.range)
        valid.append(merged(mine))
    return valid, sum(end - begin for begin, end in merged(refuted))


def _malformed(said: object) -> RunError:
    return RunError(
        f"a member reported an invalid part of a file: {str(said)[:80]}",
        remedy="run the same version of minga on all hosts",
    )
