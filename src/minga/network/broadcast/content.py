"""Transfer of a content through a group: pieces of a stream of bytes, each with its place and digest.

Each piece is preceded by a message with its head. While a piece is sent, the next one is read, hashed and compressed,
and receivers verify and store the previous one.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from minga.errors import RunError
from minga.network.broadcast.compression import Compressor, decode
from minga.network.broadcast.extents import Extent, Range, confirmed, gaps, intersection, pieces
from minga.network.broadcast.files import Arriving
from minga.network.broadcast.keys import Buffer
from minga.network.broadcast.source import Source

__all__ = ["Channel", "Plan", "Sent", "Telling", "plan", "receive", "send"]

_HEAD: Final = struct.Struct("!QQQB32s")
_FIRST: Final = 1 << 19
"""Bytes of the first pieces, which measure the network."""
_SHORTEST, _LONGEST = 1 << 20, 1 << 25
"""Limits of a piece in bytes; members hold about three pieces in memory."""
_SECONDS: Final = 1.5
"""Duration of a piece: what a broken transfer loses at most, apart from the pieces in work."""


class Channel(Protocol):
    """Part of a group that a transfer needs."""

    def bcast(self, data: Any = None, root: int = 0) -> Any:
        """Send data from the root to all members."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Ranges of the stream that are sent, and bytes that receivers had from an earlier state of the source."""

    ranges: list[Range]
    refuted: int = 0


@dataclass(slots=True)
class Sent:
    """Account of a transfer at its sender: bytes of the content, bytes sent for them, and SHA-256 of the content."""

    size: int = 0
    raw: int = 0
    packed: int = 0
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class _Piece:
    head: bytes
    body: Buffer
    length: int


def plan(source: Source, claims: list[list[Any]]) -> tuple[Plan, list[list[Range]]]:
    """Return what must be sent, and the confirmed ranges of each receiver.

    Parameters
    ----------
    source
        The source.
    claims
        Extents that each receiver says it has.

    Raises
    ------
    RunError
        If a claim is malformed.
    """
    size = source.manifest.size
    if size is None:
        return Plan([]), [[] for _ in claims]
    extents = [[Extent.read(one) for one in said] for said in claims]
    valid, refuted = confirmed(size, extents, source.digest)
    return Plan(gaps(size, intersection(size, valid)), refuted), valid


Telling = Callable[[int, int | None], None]
"""Function that is told the bytes sent so far, and those to send if known."""


def send(
    group: Channel,
    source: Source,
    ranges: list[Range],
    compressor: Compressor,
    begin: Telling,
    rate: float | None = None,
) -> Sent:
    """Send ranges of a source, or all that a pipe contains.

    Parameters
    ----------
    group
        The group, of which this is member 0.
    source, ranges
        The source, and the ranges of it to send.
    compressor
        Compressor of the pieces.
    begin
        Function that is called before each piece.
    rate
        Bytes per second that the network carries, if known.
    """
    sent = Sent()
    whole = hashlib.sha256(source.manifest.pack() if source.manifest.kind == "tree" else b"")
    size = source.manifest.size
    total = None if size is None else sum(upto - at for at, upto in ranges)
    pace = _Pace(rate)
    at = 0

    def prepared(place: Range) -> _Piece:
        nonlocal at
        _skip(whole, source, at, place[0])
        data = source.read(place[0], place[1] - place[0])
        at = place[0] + len(data)
        whole.update(data)
        kind, body = compressor.encode(data, pace.rate)
        digest = hashlib.sha256(data).digest()
        return _Piece(_HEAD.pack(place[0], len(data), len(body), kind, digest), body, len(data))

    places = pieces(ranges, pace.length) if size is not None else _endless(pace.length)
    with ThreadPoolExecutor(1) as worker:
        for ready in _ahead(worker, prepared, places):
            if not ready.length:
                break
            begin(sent.raw, total)
            start = time.perf_counter()
            group.bcast(ready.head)
            group.bcast(ready.body)
            pace.took(ready.length, len(ready.body), time.perf_counter() - start)
            sent.raw += ready.length
            sent.packed += len(ready.body)
    if size is not None:
        _skip(whole, source, at, size)
    sent.size = sent.raw if size is None else size
    sent.digest = whole.digest()
    source.check()
    group.bcast(_HEAD.pack(sent.size, 0, 0, 0, sent.digest))
    return sent


def receive(group: Channel, arriving: Arriving) -> tuple[int, bytes]:
    """Receive and store pieces until the end; return the size of the content and its SHA-256 as the sender says."""
    storing: Future[None] | None = None
    with ThreadPoolExecutor(1) as worker:
        while True:
            offset, length, packed, kind, digest = _head(group.bcast())
            if not length:
                break
            body = bytearray(packed)
            group.bcast(body)
            if storing is not None:
                storing.result()
            storing = worker.submit(_store, arriving, Extent(offset, length, digest), kind, body)
        if storing is not None:
            storing.result()
    return offset, digest


def _store(arriving: Arriving, extent: Extent, kind: int, body: Buffer) -> None:
    arriving.store(extent, decode(kind, body, extent.length))


def _head(message: Any) -> tuple[int, int, int, int, bytes]:
    with suppress(struct.error, TypeError):
        offset, length, packed, kind, digest = _HEAD.unpack(message)
        if length <= _LONGEST and packed <= length:
            return offset, length, packed, kind, digest
    raise RunError("the sender sent an invalid piece", remedy="check the host that sends, and its version of minga")


def _ahead(
    worker: ThreadPoolExecutor, prepared: Callable[[Range], _Piece], places: Iterator[Range]
) -> Iterator[_Piece]:
    """Yield the pieces at consecutive places; each is prepared while the previous one is used."""
    first = next(places, None)
    ready = None if first is None else worker.submit(prepared, first)
    while ready is not None:
        piece = ready.result()
        place = next(places, None) if piece.length else None
        ready = None if place is None else worker.submit(prepared, place)
        yield piece


def _endless(length: Callable[[], int]) -> Iterator[Range]:
    at = 0
    while True:
        upto = at + length()
        yield at, upto
        at = upto


def _skip(whole: Any, source: Source, at: int, upto: int) -> None:
    """Hash what is not sent."""
    for begin in range(at, upto, _LONGEST):
        whole.update(source.read(begin, min(_LONGEST, upto - begin)))


class _Pace:
    """Rate of the network, and the length of the pieces that follows from it."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        """Bytes of messages per second."""
        self._content: float | None = None

    def length(self) -> int:
        """Return the largest length of the next piece."""
        if self._content is None:
            return _FIRST
        return int(min(_LONGEST, max(_SHORTEST, self._content * _SECONDS)))

    def took(self, length: int, packed: int, seconds: float) -> None:
        """Note the duration of a piece of ``length`` bytes, sent as ``packed`` bytes."""
        self.rate = packed / max(seconds, 1e-6)
        self._content = length / max(seconds, 1e-6)
