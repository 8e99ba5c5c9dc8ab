"""Messages on their way along a chain: what has come, what was passed on, and what the reader still has to take."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Passing", "Shelf", "chunk_for"]

_LEAST, _MOST = 1 << 10, 1 << 18
"""Bytes of a chunk: below, frames cost more than what they carry; above, nothing is gained."""
_GRAIN = 1 << 10


def chunk_for(nbytes: int, receivers: int, alpha: float, beta: float) -> int:
    """Bytes that a chain passes on at a time.

    A chain of P receivers takes (n/s + P - 1) (alpha + s beta), which is least at s = sqrt(n alpha / ((P - 1) beta))
    (P. Patarasuk, A. Faraj, X. Yuan, IPDPS 2006). ``alpha`` in seconds a chunk, ``beta`` in seconds a byte.
    """
    if receivers < 2 or beta <= 0:
        return _MOST
    best = math.sqrt(nbytes * max(alpha, 1e-6) / ((receivers - 1) * beta))
    return min(_MOST, max(_LEAST, math.ceil(best / _GRAIN) * _GRAIN))


@dataclass(eq=False, slots=True)
class Passing:
    """A message at one member. ``data`` holds ``total`` bytes, of which the first ``have`` are there."""

    root: int
    number: int
    total: int
    chunk: int
    head: bytes
    data: memoryview
    have: int = 0
    passed: int = -1
    """Bytes given to the next member; -1 before it was told that there is a message."""
    acknowledged: bool = False
    """The next member said that it and all after it have the message."""
    answered: bool = False
    """The member before was told so."""
    taken: bool = False
    """The reader has it."""

    @property
    def complete(self) -> bool:
        """Whether all of it is here."""
        return self.have == self.total

    def ready_to_pass(self) -> int:
        """Bytes from ``passed`` on that make a chunk, or the rest."""
        there = self.have - max(self.passed, 0)
        return min(self.chunk, there) if there >= self.chunk or self.complete else 0

    def resume(self, have: int) -> None:
        """The next member is another one, which has so many bytes; -1: it knows nothing of the message."""
        self.passed = have


@dataclass(eq=False, slots=True)
class Shelf:
    """All messages that are under way at a member, in the order in which they came."""

    messages: dict[tuple[int, int], Passing] = field(default_factory=dict)
    wanted: dict[int, int] = field(default_factory=dict)
    """By root: the number of the message that the reader takes next."""

    def add(self, message: Passing) -> None:
        """A message begins."""
        self.messages[message.root, message.number] = message

    def find(self, root: int, number: int) -> Passing | None:
        """The message of that root and number."""
        return self.messages.get((root, number))

    def old(self, root: int, number: int) -> bool:
        """Whether the reader had that message already."""
        return number < self.wanted.get(root, 1)

    def next(self, root: int) -> Passing | None:
        """The message that the reader of a root's messages takes next, if any of it is here."""
        return self.messages.get((root, self.wanted.get(root, 1)))

    def take(self, message: Passing) -> None:
        """The reader has got a message."""
        message.taken = True
        self.wanted[message.root] = message.number + 1
        self.tidy(message)

    def tidy(self, message: Passing) -> None:
        """Forget a message that nobody needs any more."""
        if message.taken and message.answered:
            self.messages.pop((message.root, message.number), None)

    def drop(self, message: Passing) -> None:
        """Forget a message that will never be complete."""
        self.messages.pop((message.root, message.number), None)

    def held(self) -> int:
        """Bytes that are here for a reader who has not taken them."""
        return sum(one.have for one in self.messages.values() if not one.taken)

    def unfinished(self) -> bool:
        """Whether another member still needs something of this one."""
        return any(not one.answered for one in self.messages.values())

    def moved(self) -> int:
        """Grows whenever something comes in, is passed on or is answered."""
        return sum(one.have + one.passed + one.acknowledged for one in self.messages.values())
