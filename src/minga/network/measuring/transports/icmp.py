"""ICMP echo, which the other machine's kernel answers, so that it measures the wire without a program at the far end.

An unprivileged socket is used if ``net.ipv4.ping_group_range`` permits it, otherwise a raw socket as root. Linux only.
"""

from __future__ import annotations

import math
import os
import socket
import struct
from time import perf_counter

import numpy as np

from minga.network.measuring.transports import LARGEST_DATAGRAM, Mode, Unavailable

__all__ = ["IcmpPinger"]

_REQUEST, _REPLY = 8, 0
_HEADER = struct.Struct("!BBHHH")
_SOL_RAW, _ICMP_FILTER = 255, 1
_REMEDY = "as root: sysctl net.ipv4.ping_group_range='0 2147483647', or measure as root"


class IcmpPinger:
    """Measuring end that sends echo requests; one that is not answered within ``wait`` seconds counts as lost."""

    transport = "icmp"
    least = 0
    most = LARGEST_DATAGRAM

    def __init__(self, address: str, wait: float = 1.0) -> None:
        self.socket, self._raw = _open()
        self._identity = os.getpid() & 0xFFFF
        self._number = 0
        self._buffer = bytearray(LARGEST_DATAGRAM + 100)
        try:
            self.socket.connect((address, 0))
            whole = int(wait)
            limit = struct.pack("@ll", whole, int((wait - whole) * 1e6))
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            if all(math.isnan(seconds) for seconds in self.exchange(8, 3)):
                raise Unavailable(f"{address} does not answer ICMP echo requests", remedy="let ICMP echo (ping) pass")
        except OSError as error:
            self.socket.close()
            raise Unavailable(f"ICMP to {address}: {error}") from error
        except Unavailable:
            self.socket.close()
            raise

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`; ping-pong only."""
        if mode != "pingpong":
            raise Unavailable(f"ICMP measures ping-pong only, not {mode}")
        return [self._once(size) / 2 for _ in range(count)]

    def close(self) -> None:
        """Close the socket; there is no echo to end."""
        self.socket.close()

    def _once(self, size: int) -> float:
        self._number = (self._number + 1) & 0xFFFF
        packet = bytearray(_HEADER.size + size)
        _HEADER.pack_into(packet, 0, _REQUEST, 0, 0, self._identity, self._number)
        if self._raw:
            struct.pack_into("!H", packet, 2, _checksum(packet))
        start = perf_counter()
        try:
            self.socket.send(packet)
            while True:
                count = self.socket.recv_into(self._buffer)
                seconds = perf_counter() - start
                if self._answers(count, size):
                    return seconds
        except BlockingIOError:
            return math.nan

    def _answers(self, count: int, size: int) -> bool:
        at = 4 * (self._buffer[0] & 15) if self._raw else 0
        if count != at + _HEADER.size + size:
            return False
        kind, _, _, identity, number = _HEADER.unpack_from(self._buffer, at)
        return kind == _REPLY and number == self._number and (not self._raw or identity == self._identity)


def _open() -> tuple[socket.socket, bool]:
    """Open a socket; also return True if it is raw, so that it delivers IP headers and all ICMP of the machine."""
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), False
    except OSError:
        pass
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    except OSError as error:
        raise Unavailable(f"ICMP sockets are not permitted here: {error.strerror}", remedy=_REMEDY) from error
    raw.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("@I", ~(1 << _REPLY) & 0xFFFFFFFF))
    return raw, True


def _checksum(packet: bytearray) -> int:
    """Return the Internet checksum (RFC 1071)."""
    words = np.frombuffer(bytes(packet) + b"\0" * (len(packet) % 2), ">u2")
    total = int(words.sum(dtype=np.int64))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
