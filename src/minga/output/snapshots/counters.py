"""What the output of one rank took: what ``ledger.json`` says of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Of one rank. The solver waits for `stall` and `stage`; the rest happens beside it, in the writer thread.

    frames        taken by this run
    dropped       left out, as the queue was full
    bytes         written by this rank, after compression
    raw_bytes     the same before compression
    stall         seconds waited for a free buffer, or for earlier messages to leave
    stage         seconds of copying values out of blocks, and of messages to the writers
    encode        seconds of compressing and checksums
    write, fsync  seconds in the file system
    publish       seconds of manifest and metadata
    most_queued   frames in the queue at most, the one being written among them
    buffer_bytes  memory of the buffers of frames and messages
    direct        files written past the page cache
    buffered      files that were to be, but that the file system wanted in its cache
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
        """Add the seconds of what happens inside to one of the counters."""
        began = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - began)

    def as_dict(self) -> dict[str, int | float]:
        """All of them, for ``ledger.json``."""
        return dataclasses.asdict(self)
