"""UDP ping-pong: each datagram is sent back unchanged. Losses are counted, never hidden."""

from __future__ import annotations

import math
import socket
import struct
import time
from time import perf_counter

from minga.network.measuring.transports import LARGEST_DATAGRAM, Mode, Unavailable

__all__ = ["UdpPinger", "bind", "echo"]

_HELLO, _STOP = b"minga?", b"minga."
_NUMBER = struct.Struct("!I")


class UdpPinger:
    """Measuring end; a datagram that has not come back within ``wait`` seconds counts as lost."""

    transport = "udp"
    least = 0
    most = LARGEST_DATAGRAM

    def __init__(self, address: str, port: int, token: bytes, wait: float = 1.0) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._token = token
        self._number = 0
        try:
            self.socket.connect((address, port))
            self._greet(address)
        except OSError as error:
            self.socket.close()
            raise Unavailable(f"UDP to {address} port {port}: {error}") from error
        except Unavailable:
            self.socket.close()
            raise
        whole = int(wait)
        limit = struct.pack("@ll", whole, int((wait - whole) * 1e6))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`; ping-pong only."""
        if mode != "pingpong":
            raise Unavailable(f"UDP measures ping-pong only, not {mode}")
        sent = bytearray(size)
        seconds = []
        for _ in range(count):
            self._number = (self._number + 1) % (1 << 32)
            if size >= _NUMBER.size:
                _NUMBER.pack_into(sent, 0, self._number)
            seconds.append(self._once(sent) / 2)
        return seconds

    def close(self) -> None:
        """End the echo, as far as that is possible with datagrams."""
        try:
            for _ in range(3):
                self.socket.send(_STOP + self._token)
        except OSError:
            pass
        self.socket.close()

    def _once(self, sent: bytearray) -> float:
        start = perf_counter()
        try:
            self.socket.send(sent)
            while True:
                answer = self.socket.recv(LARGEST_DATAGRAM)
                if len(answer) == len(sent) and answer[:4] == sent[:4]:  # not the late answer to an earlier one
                    return perf_counter() - start
        except BlockingIOError:
            return math.nan
        except ConnectionError as error:
            raise EOFError("the other end closed its socket") from error

    def _greet(self, address: str) -> None:
        self.socket.settimeout(0.25)
        for _ in range(12):
            self.socket.send(_HELLO + self._token)
            try:
                if self.socket.recv(64) == _HELLO + self._token:
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                time.sleep(0.1)
        else:
            raise Unavailable(f"no UDP answer from {address}", remedy="let UDP pass between these machines")
        self.socket.setblocking(True)


def bind(address: str) -> socket.socket:
    """Return a socket bound to a free port of ``address``."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        bound.bind((address, 0))
    except OSError:
        bound.close()
        raise
    return bound


def echo(bound: socket.socket, token: bytes, patience: float) -> int:
    """Answer the first peer that knows the token until it stops; close the socket and return the number of exchanges.

    A peer that is silent for ``patience`` seconds is assumed to have stopped, and its notice to have been lost.

    Raises
    ------
    TimeoutError
        If no peer appears within ``patience`` seconds.
    """
    served = 0
    with bound:
        deadline = time.monotonic() + patience
        while True:  # answers only a peer that knows the token, and so is no amplifier
            bound.settimeout(max(0.001, deadline - time.monotonic()))
            data, peer = bound.recvfrom(64)
            if data == _HELLO + token:
                break
        bound.connect(peer)
        bound.send(_HELLO + token)
        bound.settimeout(patience)
        buffer = bytearray(LARGEST_DATAGRAM)
        view = memoryview(buffer)
        stop, again = _STOP + token, _HELLO + token
        while True:
            try:
                count = bound.recv_into(buffer)
                if count == len(stop) and view[:count] == stop:
                    return served
                bound.send(view[:count])
            except (ConnectionError, TimeoutError):
                return served
            served += not (count == len(again) and view[:count] == again)
