"""TCP messages, with or without ``TCP_NODELAY``, and with default or given socket buffers."""

from __future__ import annotations

import hmac
import select
import socket
import struct
import time
from dataclasses import dataclass

from minga.network.measuring.transports import Unavailable

__all__ = ["Options", "TcpWire", "accept", "connect", "listen"]

_MOST = 1 << 28
_HEADER = 8
"""Bytes of the first piece of messages that are written in two pieces."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a connection.

    ``nodelay`` sets ``TCP_NODELAY``. ``buffer`` is the size of the socket buffers in bytes, None for the system's
    default. With ``split``, each message is written in two pieces, as by programs that write a header first; with
    Nagle's algorithm the second piece waits until the other end acknowledges the first, which it may delay (by 40 ms on
    Linux).
    """

    nodelay: bool = True
    buffer: int | None = None
    split: bool = False


class TcpWire:
    """One end of a connection. A silence of ``patience`` seconds raises a TimeoutError."""

    least = 1
    most = _MOST

    def __init__(self, connection: socket.socket, options: Options, patience: float) -> None:
        self.transport = "tcp" if options.nodelay else "tcp-nagle"
        self.connection = connection
        self.patience = patience
        self._first = _HEADER if options.split else 0
        connection.setblocking(True)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(options.nodelay))
        # The kernel enforces the timeout: Python's own timeouts would cost another system call for each message.
        whole = int(patience)
        limit = struct.pack("@ll", whole, int((patience - whole) * 1e6))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, option, limit)

    def send(self, data: memoryview) -> None:
        """Pass all of ``data`` to the kernel."""
        try:
            if 0 < self._first < len(data):
                self.connection.sendall(data[: self._first])
                data = data[self._first :]
            self.connection.sendall(data)
        except BlockingIOError as error:
            raise TimeoutError(f"nothing could be sent for {self.patience:g} s") from error

    def receive(self, data: memoryview) -> None:
        """Fill ``data``."""
        have, whole = 0, len(data)
        while have < whole:
            try:
                count = self.connection.recv_into(data[have:], 0, socket.MSG_WAITALL)
            except BlockingIOError as error:
                raise TimeoutError(f"nothing arrived for {self.patience:g} s") from error
            if count == 0:
                raise EOFError("the other end closed the connection")
            have += count

    def both(self, sent: memoryview, received: memoryview) -> None:
        """Send and receive at the same time."""
        connection = self.connection
        gone, have = 0, 0
        poll = select.poll()
        poll.register(connection, select.POLLIN | select.POLLOUT)
        while gone < len(sent) or have < len(received):
            wanted = (select.POLLOUT if gone < len(sent) else 0) | (select.POLLIN if have < len(received) else 0)
            poll.modify(connection, wanted)
            ready = poll.poll(self.patience * 1000)
            if not ready:
                raise TimeoutError(f"nothing was transferred for {self.patience:g} s")
            events = ready[0][1]
            if events & select.POLLOUT:
                gone += _some(connection.send, sent[gone:])
            if events & (select.POLLIN | select.POLLHUP | select.POLLERR) and have < len(received):
                try:
                    count = connection.recv_into(received[have:], 0, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue
                if count == 0:
                    raise EOFError("the other end closed the connection")
                have += count

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def listen(address: str, options: Options) -> socket.socket:
    """Return a socket that waits for a connection on a free port of ``address``."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        _buffers(listener, options)  # before connecting, because the window scale is negotiated then
        listener.bind((address, 0))
        listener.listen(4)
    except OSError:
        listener.close()
        raise
    return listener


def accept(listener: socket.socket, token: bytes, options: Options, patience: float) -> TcpWire:
    """Accept the first connection that presents the token, and reject others; the listener is closed."""
    deadline = time.monotonic() + patience
    with listener:
        while True:
            listener.settimeout(max(0.001, deadline - time.monotonic()))
            connection, _ = listener.accept()
            wire = TcpWire(connection, options, patience)
            given = memoryview(bytearray(len(token)))
            try:
                connection.settimeout(2.0)
                _whole(connection, given)
            except (OSError, EOFError):
                connection.close()
                continue
            if hmac.compare_digest(given, token):
                connection.setblocking(True)
                return wire
            connection.close()


def connect(address: str, port: int, token: bytes, options: Options, patience: float) -> TcpWire:
    """Connect to an echo; raise Unavailable if nothing answers."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        _buffers(connection, options)
        connection.settimeout(min(patience, 10.0))
        connection.connect((address, port))
    except OSError as error:
        connection.close()
        raise Unavailable(f"no TCP connection to {address} port {port}: {error}", remedy=_REMEDY) from error
    wire = TcpWire(connection, options, patience)
    wire.send(memoryview(token))
    return wire


_REMEDY = "allow these machines to reach each other on all ports (firewall), or correct the address in the hosts file"


def _buffers(connection: socket.socket, options: Options) -> None:
    if options.buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.buffer)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.buffer)


def _whole(connection: socket.socket, data: memoryview) -> None:
    have = 0
    while have < len(data):
        count = connection.recv_into(data[have:])
        if count == 0:
            raise EOFError
        have += count


def _some(send: object, data: memoryview) -> int:
    assert callable(send)
    try:
        return int(send(data, socket.MSG_DONTWAIT))
    except BlockingIOError:
        return 0
