"""State of messages in a chain: what a member has received, what it has forwarded, and what its reader has taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Forwarding", "MessageStore", "chunk_for"]

_LEAST, _MOST = 1 << 10, 1 << 18
"""Limits of a chunk in bytes: in smaller ones the overhead of frames dominates, and larger ones gain nothing."""
_GRAIN = 1 << 10


def chunk_for(nbytes: int, receivers: int, alpha: float, beta: float) -> int:
    """Return the best chunk size, in bytes, for a message of ``nbytes`` along a chain.

    A chain of P receivers takes (n/s + P - 1) (alpha + s beta), which is minimal at s = sqrt(n alpha / ((P - 1) beta))
    (P. Patarasuk, A. Faraj, X. Yuan, IPDPS 2006). ``alpha`` is in seconds per chunk, ``beta`` in seconds per byte.
    """
    if receivers < 2 or beta <= 0:
        return _MOST
    best = math.sqrt(nbytes * max(alpha, 1e-6) / ((receivers - 1) * beta))
    return min(_MOST, max(_LEAST, math.ceil(best / _GRAIN) * _GRAIN))


@dataclass(eq=False, slots=True)
class Forwarding:
    """A message at one member. ``data`` has room for ``total`` bytes, of which the first ``have`` have arrived."""

    root: int
    number: int
    total: int
    chunk: int
    head: bytes
    data: memoryview
    have: int = 0
    passed: int = -1
    """Bytes passed to the next member; -1 before the message was announced to it."""
    acknowledged: bool = False
    """True once the next member has reported that it and all members behind it have the message."""
    answered: bool = False
    """True once this was reported to the member before."""
    taken: bool = False
    """True once the reader has the message."""

    @property
    def complete(self) -> bool:
        """True if the whole message has arrived."""
        return self.have == self.total

    def ready_to_pass(self) -> int:
        """Return the bytes of the next chunk, or of the rest; 0 if a chunk is not complete yet."""
        there = self.have - max(self.passed, 0)
        return min(self.chunk, there) if there >= self.chunk or self.complete else 0

    def resume(self, have: int) -> None:
        """Resume at a new next member, which has ``have`` bytes; -1 means that it does not know the message."""
        self.passed = have


@dataclass(eq=False, slots=True)
class MessageStore:
    """All messages in progress at a member, in order of arrival."""

    messages: dict[tuple[int, int], Forwarding] = field(default_factory=dict)
    wanted: dict[int, int] = field(default_factory=dict)
    """Number of the message that the reader takes next, by root."""

    def add(self, message: Forwarding) -> None:
        """Add a new message."""
        self.messages[message.root, message.number] = message

    def find(self, root: int, number: int) -> Forwarding | None:
        """Return the message of that root and number, or None."""
        return self.messages.get((root, number))

    def old(self, root: int, number: int) -> bool:
        """Return True if the reader has already taken that message."""
        return number < self.wanted.get(root, 1)

    def next(self, root: int) -> Forwarding | None:
        """Return the message of a root that the reader takes next, or None if nothing of it has arrived."""
        return self.messages.get((root, self.wanted.get(root, 1)))

    def take(self, message: Forwarding) -> None:
        """Note that the reader has taken a message."""
        message.taken = True
        self.wanted[message.root] = message.number + 1
        self.tidy(message)

    def tidy(self, message: Forwarding) -> None:
        """Remove a message that is no longer needed."""
        if message.taken and message.answered:
            self.messages.pop((message.root, message.number), None)

    def drop(self, message: Forwarding) -> None:
        """Remove a message that will never be complete."""
        self.messages.pop((message.root, message.number), None)

    def held(self) -> int:
        """Return the bytes of messages that the reader has not taken."""
        return sum(one.have for one in self.messages.values() if not one.taken)

    def unfinished(self) -> bool:
        """Return True if another member still needs data from this one."""
        return any(not one.answered for one in self.messages.values())

    def moved(self) -> int:
        """Return a number that grows whenever data arrive, are forwarded or are acknowledged."""
        return sum(one.have + one.passed + one.acknowledged for one in self.messages.values())
