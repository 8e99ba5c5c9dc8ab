"""Counters of the output of one rank, as ``ledger.json`` reports them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Counters of one rank.

    The solver waits for `stall` and `stage`; the rest happens beside it, in the writer thread.

    Attributes
    ----------
    frames
        Frames taken by this run.
    dropped
        Frames left out because the queue was full.
    bytes
        Bytes written by this rank, after compression.
    raw_bytes
        The same before compression.
    stall
        Seconds of waiting for a free buffer, or for earlier messages to leave.
    stage
        Seconds of copying values out of blocks, and of messages to the writers.
    encode
        Seconds of compression and checksums.
    write, fsync
        Seconds in the file system.
    publish
        Seconds of writing manifest and metadata.
    most_queued
        Largest number of frames in the queue, including the one being written.
    buffer_bytes
        Memory of the buffers of frames and messages.
    direct
        Files written past the page cache.
    buffered
        Files that were to be written past the page cache, but that the file system required in it.
    """

    frames: int = 0
    dropped: int = 0
    bytes: int = 0
    raw_bytes: int = 0
    stall: float = 0.0
    stage: float = 0.0
    encode: float = 0.0
    write: float = 0.0
    fsync: float = 0.0
    publish: float = 0.0
    most_queued: int = 0
    buffer_bytes: int = 0
    direct: int = 0
    buffered: int = 0

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        """Add the seconds spent inside the ``with`` block to one of the counters."""
        began = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - began)

    def as_dict(self) -> dict[str, int | float]:
        """Return all counters, for ``ledger.json``."""
        return dataclasses.asdict(self)
