"""Ways for a message to travel: ICMP, UDP, TCP and MPI, behind one small interface.

What is measured on all of them in the same way can be compared: what the wire can do (ICMP, answered by the other
kernel), what UDP and TCP leave of it, and what the MPI library leaves of that (F. Tinetti, thesis, Appendix C, §C.8).
"""

from __future__ import annotations

from typing import Literal, Protocol

from minga.errors import MingaError

__all__ = ["LARGEST_DATAGRAM", "TRANSPORTS", "Mode", "Pinger", "Unavailable"]

TRANSPORTS = ("icmp", "udp", "tcp", "mpi")
"""From the wire upwards."""

LARGEST_DATAGRAM = 65507
"""Bytes of payload of UDP and of an echo request of ICMP: 65535 without 20 bytes of IP and 8 of header."""

Mode = Literal["pingpong", "oneway", "both"]
"""There and back in turns; there, with an answer of one byte; or there and back at the same time."""


class Unavailable(MingaError):
    """A transport that cannot be used between two places, and why; measuring goes on without it."""


class Pinger(Protocol):
    """The end that measures; the other end echoes."""

    transport: str
    least: int
    """Bytes of the smallest message."""
    most: int
    """Bytes of the largest message."""

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """Seconds of each of ``count`` exchanges of ``size`` bytes; NaN where a message was lost.

        Ping-pong: half of the time there and back, so that clocks need not agree. One way: until the answer of one
        byte is here. Both: until the messages of both directions, sent at the same time, are here.
        """

    def close(self) -> None:
        """End the exchange, the echo at the other end too."""
