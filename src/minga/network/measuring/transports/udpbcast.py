"""Ping-pong by UDP broadcast with :mod:`minga.network.broadcast`: a group of two members, each the root in turn.

The members meet over a TCP connection, which also carries the orders; the messages themselves are datagrams to a
multicast group, or to the broadcast address if multicast does not work.
"""

from __future__ import annotations

import contextlib
import json
import struct
from time import perf_counter
from typing import Any, Final

import numpy as np

from minga.errors import MingaError
from minga.network.broadcast import Group, MembersLost
from minga.network.broadcast.joining import GroupOptions
from minga.network.measuring.transports import Mode, Unavailable
from minga.network.measuring.transports.tcp import TcpWire

__all__ = ["BroadcastPinger", "echo_broadcast"]

_LENGTH: Final = struct.Struct("!I")
_ORDER: Final = struct.Struct("!QQ")
_ECHO, _PINGER = 0, 1
"""Numbers of the two members of the group."""


class BroadcastPinger:
    """Measuring end. ``key`` are 32 bytes that both ends know.

    Raises
    ------
    Unavailable
        If no datagram gets through.
    """

    transport = "udpbcast"
    least = 1
    most = 1 << 28

    def __init__(self, wire: TcpWire, key: bytes) -> None:
        self.wire = wire
        try:
            self.group = _meet(wire, key, _PINGER)
        except BaseException:
            wire.close()
            raise
        if self.group.route == "chain":
            why = "; ".join(f"{way}: {reason}" for way, reason in self.group.rejected_routes.items())
            self.close()
            raise Unavailable(f"datagrams to a group do not get through: {why}")

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`; ping-pong only."""
        if mode != "pingpong":
            raise Unavailable(f"UDP broadcast measures ping-pong only, not {mode}")
        data, room = np.ones(size, np.uint8), np.empty(size, np.uint8)
        self.wire.send(memoryview(_ORDER.pack(size, count)))
        self.wire.receive(memoryview(bytearray(1)))
        seconds = []
        for _ in range(count):
            start = perf_counter()
            try:
                self.group.bcast(data, _PINGER, wait="local")
                self.group.bcast(room, _ECHO)
            except MembersLost as error:
                raise Unavailable(f"UDP broadcast: {error.message}", remedy=error.remedy) from error
            seconds.append((perf_counter() - start) / 2)
        return seconds

    def close(self) -> None:
        """End the exchange."""
        with contextlib.suppress(OSError, EOFError):  # the other end may be gone already
            self.wire.send(memoryview(_ORDER.pack(0, 0)))
        self.group.close()
        self.wire.close()


def echo_broadcast(wire: TcpWire, key: bytes) -> int:
    """Answer a :class:`BroadcastPinger` until it stops, and return the number of exchanges."""
    order = memoryview(bytearray(_ORDER.size))
    served = 0
    with _meet(wire, key, _ECHO) as group:
        while True:
            wire.receive(order)
            size, count = _ORDER.unpack(order)
            if size == 0:
                wire.close()
                return served
            room = np.empty(size, np.uint8)
            wire.send(memoryview(b"!"))
            try:
                for _ in range(count):
                    group.bcast(room, _PINGER)
                    group.bcast(room, _ECHO, wait="local")
            except MembersLost:
                return served
            served += count


def _meet(wire: TcpWire, key: bytes, rank: int) -> Group:
    """Form a group of both ends, which uses the addresses of their connection."""

    def ask(value: Any) -> list[Any]:
        text = json.dumps(value).encode()
        head = memoryview(bytearray(_LENGTH.size))
        wire.send(memoryview(_LENGTH.pack(len(text)) + text))
        wire.receive(head)
        other = memoryview(bytearray(_LENGTH.unpack(head)[0]))
        wire.receive(other)
        said = [value, json.loads(bytes(other))]
        return said if rank == 0 else said[::-1]

    own = wire.connection.getsockname()[0]
    try:
        return Group.by_lines(rank, 2, key, ask, GroupOptions(address=own))
    except MingaError as error:
        raise Unavailable(f"UDP broadcast: {error.message}", remedy=error.remedy) from error
