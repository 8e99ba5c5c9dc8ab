"""Whether the root that a reader waits for still lives: a message that never begins asks nobody anything by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from minga.network.broadcast.datagram import Datagram, Kind
from minga.network.broadcast.keys import Keys
from minga.network.broadcast.member import RootSilent

__all__ = ["Liveness"]

_QUESTIONS = 8
"""Questions in the time after which silence means loss."""
_ENOUGH = 4
"""Unanswered ones at least: a reader that was itself stopped finds much time gone by, and has asked few."""


@dataclass(slots=True)
class _Waiting:
    since: float
    asked_at: float
    asked: int = 0


class Liveness:
    """Asks for signs of life, and gives them. Everything a member sends is one."""

    def __init__(self, keys: Keys, number: int, counter: Iterator[int], dead_timeout: float) -> None:
        self._keys, self._number, self._counter = keys, number, counter
        self._timeout = dead_timeout
        self._waiting: dict[int, _Waiting] = {}

    def heard(self, sender: int) -> None:
        """A member has sent something."""
        self._waiting.pop(sender, None)

    def answer(self, datagram: Datagram) -> bytes | None:
        """The answer to a question, None for anything else."""
        if datagram.kind != Kind.HELLO or datagram.root != self._number:
            return None
        return self._keys.seal(Kind.READY, self._number, seq=next(self._counter) & 0xFFFFFFFF, root=datagram.sender)

    def wait(self, now: float, root: int) -> bytes | None:
        """A reader waits for a root: a question to it, if it is time for one. Raises RootSilent where it is gone."""
        waiting = self._waiting.get(root)
        if waiting is None or now - waiting.asked_at > self._timeout / 2:  # a new wait, or this member was stopped
            waiting = self._waiting[root] = _Waiting(now, now)
        if waiting.asked >= _ENOUGH and now - waiting.since >= self._timeout:
            del self._waiting[root]
            raise RootSilent((root,), while_="its message was awaited", why=f"silent for {now - waiting.since:.1f} s")
        if now - waiting.asked_at < self._timeout / _QUESTIONS:
            return None
        waiting.asked_at = now
        waiting.asked += 1
        return self._keys.seal(Kind.HELLO, self._number, seq=next(self._counter) & 0xFFFFFFFF, root=root)
