"""Transports of messages: ICMP, UDP, TCP and MPI, behind one small interface.

Because all of them are measured in the same way, they can be compared: the capability of the wire (ICMP, answered by
the other kernel), how much of it UDP and TCP deliver, and how much of that the MPI library delivers (F. Tinetti,
thesis, Appendix C, §C.8).
"""

from __future__ import annotations

from typing import Literal, Protocol

from minga.errors import MingaError

__all__ = ["LARGEST_DATAGRAM", "TRANSPORTS", "Mode", "Pinger", "Unavailable"]

TRANSPORTS = ("icmp", "udp", "tcp", "mpi")
"""All transports, from the wire upwards."""

LARGEST_DATAGRAM = 65507
"""Largest payload of UDP and of an ICMP echo request in bytes: 65535 minus 20 bytes of IP and 8 bytes of header."""

Mode = Literal["pingpong", "oneway", "both"]
"""Exchange mode: there and back in turns; there, with an answer of one byte; or both directions at the same time."""


class Unavailable(MingaError):
    """Error of a transport that cannot be used between two members, with the reason; it is left out."""


class Pinger(Protocol):
    """Measuring end of a transport; the other end echoes."""

    transport: str
    least: int
    """Bytes of the smallest message."""
    most: int
    """Bytes of the largest message."""

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """Return the seconds of each of ``count`` exchanges of ``size`` bytes; NaN for lost messages.

        Ping-pong: half of the round trip, so that no common clock is needed. One way: until the answer of one byte
        arrives. Both: until the messages of both directions, sent at the same time, have arrived.
        """

    def close(self) -> None:
        """End the exchange, and the echo at the other end."""
