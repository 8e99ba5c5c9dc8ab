"""Numbers that a broadcast works with, the same at all members of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minga.errors import CaseError
from minga.network.broadcast.datagram import OVERHEAD, UDP_AND_IP

__all__ = ["ETHERNET", "Settings", "batch_for", "window_for", "wire_bytes"]

ETHERNET = 38
"""Bytes that a frame costs beside its contents: preamble 8, addresses and type 14, checksum 4, gap 12."""

MOST_SEGMENTS_A_SEND = 64  # Linux takes 64 before 6.9, 128 since
MOST_BYTES_A_SEND = 65507
PAGE_OVERHEAD = 900
"""Memory that Linux charges to a socket beside a datagram's bytes: 1400 bytes are charged as 2304."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a group broadcasts.

    Parameters
    ----------
    window
        Segments that may be under way beyond what the slowest member has (:func:`window_for`).
    rate
        Bits per second on the wire, frames included; None starts at ``start_rate`` and adapts to losses.
    start_rate
        Where an adaptive rate begins.
    batch
        Most datagrams handed to the system in one go.
    dead_timeout
        Seconds of silence, in spite of questions, after which a member is lost.
    on_loss
        ``"raise"``: the message ends for all; ``"exclude"``: it goes on without the lost member.
    max_bytes
        The largest message that is accepted.
    waiting_bytes
        Bytes of messages kept for a reader who has not asked for them yet; beyond it the roots wait.
    guard
        Seconds for which a missing segment may just be late.
    poll_floor, poll_ceiling
        Shortest and longest time between two questions of a root, seconds.
    """

    window: int = 64
    rate: float | None = None
    start_rate: float = 1e8
    batch: int = 44
    dead_timeout: float = 10.0
    on_loss: Literal["raise", "exclude"] = "raise"
    max_bytes: int = 1 << 34
    waiting_bytes: int = 64 << 20
    guard: float = 1e-3
    poll_floor: float = 0.01
    poll_ceiling: float = 0.5

    def __post_init__(self) -> None:
        _require(self.window >= 4, "window", "at least 4 segments", self.window)
        _require(self.batch >= 1, "batch", "at least 1 datagram", self.batch)
        _require(self.rate is None or self.rate > 0, "rate", "bits per second above 0, or None", self.rate)
        _require(self.start_rate > 0, "start_rate", "bits per second above 0", self.start_rate)
        _require(self.dead_timeout > 0, "dead_timeout", "seconds above 0", self.dead_timeout)
        _require(self.on_loss in ("raise", "exclude"), "on_loss", "'raise' or 'exclude'", self.on_loss)
        _require(0 < self.poll_floor <= self.poll_ceiling, "poll_floor", "above 0, up to poll_ceiling", self.poll_floor)

    @property
    def longest_pause(self) -> float:
        """Seconds between questions at most: several must fit in the time after which silence means loss."""
        return min(self.poll_ceiling, self.dead_timeout / 16)


def window_for(granted: int, payload: int) -> int:
    """Segments that fit in a receive buffer of ``granted`` bytes as the system counts them, with room to spare.

    Take the least of all members. Linux charges a datagram more than its bytes: the default buffer of 212 992 bytes
    holds 92 datagrams of 1400 bytes.
    """
    charged = payload + OVERHEAD + PAGE_OVERHEAD
    return max(4, int(0.7 * granted / charged))


def batch_for(payload: int) -> int:
    """Most full datagrams that one send may hand over to be cut by the system (UDP_SEGMENT)."""
    return max(1, min(MOST_SEGMENTS_A_SEND, MOST_BYTES_A_SEND // (payload + OVERHEAD)))


def wire_bytes(datagram: int) -> int:
    """Bytes that a datagram occupies on Ethernet, the pause between frames included."""
    return max(64 - 18, datagram + UDP_AND_IP) + ETHERNET


def _require(holds: bool, name: str, expected: str, found: object) -> None:
    if not holds:
        raise CaseError(f"{name} must be {expected}, found {found!r}", key=f"broadcast.{name}")
