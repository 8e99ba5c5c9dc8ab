"""Counts of the messages that a rank sends, recorded by receiving rank when they start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from minga.engine.comm import Channel

__all__ = ["Traffic", "count_sent"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages, bytes and copies sent from one rank to another.

    One message carries everything that an exchange sends to a rank; `copies` counts the boxes of cells in it. On a
    torus two blocks wide, for example, a rank neighbours another on both sides, and a message carries two copies.
    """

    messages: int = 0
    bytes: int = 0
    copies: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.messages + other.messages, self.bytes + other.bytes, self.copies + other.copies)


def count_sent(channels: Iterable[Channel], before: Mapping[int, Traffic]) -> dict[int, Traffic]:
    """Return what was sent through the channels plus `before`, by receiving rank in ascending order."""
    total = dict(before)
    for channel in channels:
        times = int(channel.started[0])
        for envelope in channel.sends if times else ():
            sent = Traffic(times, times * envelope.buffer.nbytes, times * envelope.copies)
            total[envelope.peer] = total.get(envelope.peer, Traffic()) + sent
    return dict(sorted(total.items()))
