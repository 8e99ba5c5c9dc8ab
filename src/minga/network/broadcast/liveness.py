"""Check that the root for which a reader waits is alive; without it, a message that never begins would go unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from minga.network.broadcast.datagram import Datagram, Kind
from minga.network.broadcast.keys import Keys
from minga.network.broadcast.member import RootSilent

__all__ = ["Liveness"]

_QUESTIONS = 8
"""Questions asked within the time after which silence means loss."""
_ENOUGH = 4
"""Unanswered questions needed for a loss: a reader that was itself stopped for long has asked only a few."""


@dataclass(slots=True)
class _Waiting:
    since: float
    asked_at: float
    asked: int = 0


class Liveness:
    """Requests and gives signs of life. Every datagram of a member counts as one."""

    def __init__(self, keys: Keys, number: int, counter: Iterator[int], dead_timeout: float) -> None:
        self._keys, self._number, self._counter = keys, number, counter
        self._timeout = dead_timeout
        self._waiting: dict[int, _Waiting] = {}

    def heard(self, sender: int) -> None:
        """Note that a member has sent something."""
        self._waiting.pop(sender, None)

    def answer(self, datagram: Datagram) -> bytes | None:
        """Return the answer to a question; None for any other datagram."""
        if datagram.kind != Kind.HELLO or datagram.root != self._number:
            return None
        return self._keys.seal(Kind.READY, self._number, seq=next(self._counter) & 0xFFFFFFFF, root=datagram.sender)

    def wait(self, now: float, root: int) -> bytes | None:
        """Note that a reader waits for a root; return a question to send if one is due, otherwise None.

        Raises
        ------
        RootSilent
            If the root has not answered for the timeout.
        """
        waiting = self._waiting.get(root)
        if waiting is None or now - waiting.asked_at > self._timeout / 2:  # a new wait, or this member was suspended
            waiting = self._waiting[root] = _Waiting(now, now)
        if waiting.asked >= _ENOUGH and now - waiting.since >= self._timeout:
            del self._waiting[root]
            raise RootSilent((root,), while_="its message was awaited", why=f"silent for {now - waiting.since:.1f} s")
        if now - waiting.asked_at < self._timeout / _QUESTIONS:
            return None
        waiting.asked_at = now
        waiting.asked += 1
        return self._keys.seal(Kind.HELLO, self._number, seq=next(self._counter) & 0xFFFFFFFF, root=root)
