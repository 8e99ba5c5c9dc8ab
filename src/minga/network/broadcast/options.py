"""Parameters of the broadcast protocol, the same at all members of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minga.errors import CaseError
from minga.network.broadcast.datagram import OVERHEAD, UDP_AND_IP

__all__ = ["DEAD_TIMEOUT", "ETHERNET", "BroadcastOptions", "batch_for", "window_for", "wire_bytes"]

DEAD_TIMEOUT = 2.0
"""Default of the seconds of silence, in spite of questions, after which a member is considered lost."""
ETHERNET = 38
"""Overhead of a frame in bytes: preamble 8, addresses and type 14, checksum 4, gap 12."""

MOST_SEGMENTS_A_SEND = 64  # Linux accepts 64 before version 6.9, 128 since
MOST_BYTES_A_SEND = 65507
PAGE_OVERHEAD = 900
"""Memory that Linux charges to a socket in addition to a datagram's bytes: 1400 bytes are charged as 2304."""


@dataclass(frozen=True, slots=True)
class BroadcastOptions:
    """Settings of the broadcast protocol.

    Parameters
    ----------
    window
        Segments that may be in flight beyond those that the slowest member has (:func:`window_for`).
    rate
        Bits per second on the wire, including frame overhead; None starts at ``start_rate`` and adapts to losses.
    start_rate
        Initial value of an adaptive rate in bits per second.
    batch
        Largest number of datagrams passed to the kernel at once.
    dead_timeout
        Seconds of silence, in spite of questions, after which a member is considered lost.
    on_loss
        ``"raise"`` aborts the message for all; ``"exclude"`` continues without the lost member.
    max_bytes
        Largest message that is accepted, in bytes.
    waiting_bytes
        Bytes of messages kept for readers that have not requested them yet; beyond that, the roots must wait.
    guard
        Seconds for which a missing segment is assumed to be merely late.
    poll_floor, poll_ceiling
        Shortest and longest time between two questions of a root, in seconds.
    headers
        Bytes of the headers of UDP and IP.
    """

    window: int = 64
    rate: float | None = None
    start_rate: float = 1e8
    batch: int = 44
    dead_timeout: float = DEAD_TIMEOUT
    on_loss: Literal["raise", "exclude"] = "raise"
    max_bytes: int = 1 << 34
    waiting_bytes: int = 64 << 20
    guard: float = 1e-3
    poll_floor: float = 0.01
    poll_ceiling: float = 0.5
    headers: int = UDP_AND_IP

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
        """Longest pause between questions in seconds; several must fit into the time after which silence means loss."""
        return min(self.poll_ceiling, self.dead_timeout / 16)


def window_for(granted: int, payload: int) -> int:
    """Return the number of segments that fit, with a margin, into a receive buffer of ``granted`` bytes.

    A group uses the smallest value among its members. ``granted`` is as the system counts it: Linux charges a datagram
    more than its bytes, so the default buffer of 212 992 bytes holds 92 datagrams of 1400 bytes.
    """
    charged = payload + OVERHEAD + PAGE_OVERHEAD
    return max(4, int(0.7 * granted / charged))


def batch_for(payload: int) -> int:
    """Return the largest number of full datagrams that one call can send by kernel segmentation (UDP_SEGMENT)."""
    return max(1, min(MOST_SEGMENTS_A_SEND, MOST_BYTES_A_SEND // (payload + OVERHEAD)))


def wire_bytes(datagram: int, headers: int = UDP_AND_IP) -> int:
    """Return the bytes that a datagram occupies on Ethernet, including headers and the inter-frame gap."""
    return max(64 - 18, datagram + headers) + ETHERNET


def _require(holds: bool, name: str, expected: str, found: object) -> None:
    if not holds:
        raise CaseError(f"{name} must be {expected}, found {found!r}", key=f"broadcast.{name}")
