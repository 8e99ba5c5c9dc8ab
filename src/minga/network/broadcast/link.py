"""Connection between two members: frames over TCP, each with a MAC under a key that is unique to the connection.

Both ends prove that they know the group's key before anything else is accepted. No call blocks: the owner of a link
calls :meth:`Link.read` and :meth:`Link.write` when its socket is ready.

The end that connects sends a hello: a magic number, its own number, the number that it wants to reach, and a nonce. The
other end answers with a nonce and a proof, and the first end replies with its own proof. A frame consists of its length
and kind, the content, and a MAC of 16 bytes that covers a counter of frames as well, so that no frame can be repeated,
omitted or reordered.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import secrets
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

from minga.network.broadcast.keys import derive

__all__ = ["LARGEST", "Link", "LinkError", "connect", "listen"]

_MAGIC: Final = b"mingal1\0"
_HELLO: Final = struct.Struct("!8sHH16s")
_ANSWER: Final = struct.Struct("!16s16s")
_FRAME: Final = struct.Struct("!IB")
_COUNT: Final = struct.Struct("!Q")
_TAG: Final = 16
LARGEST: Final = 1 << 20
"""Largest content of a frame in bytes."""
_READ: Final = 1 << 18
_READS: Final = 8
"""Largest number of system calls in one :meth:`Link.read`, so that a busy connection does not delay others."""
_PIECES: Final = 64
"""Parts that are passed to the kernel at once; it accepts at most 1024."""


class LinkError(Exception):
    """Error of a connection that is no longer usable: closed, broken, silent, or without the group's key."""


class Link:
    """One end of a connection. ``peer`` is the number of the other end, known once the link is ``ready``.

    ``key`` and ``session`` are those of the group. ``wanted`` is None at the end that accepts the connection.
    """

    def __init__(self, connection: socket.socket, own: int, key: bytes, session: bytes, wanted: int | None) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.own = own
        self.peer = -1 if wanted is None else wanted
        self.ready = False
        self.pending = 0
        """Bytes that have not been passed to the kernel yet."""
        self._key, self._session = key, session
        self._connects = wanted is not None
        self._hello = b""
        self._stage = 0
        self._out: deque[memoryview] = deque()
        self._buffer = bytearray(2 * _READ)
        self._filled = 0
        self._sent = self._received = 0
        self._send_key = self._receive_key = self._proof_key = b""
        if wanted is not None:
            self._hello = _HELLO.pack(_MAGIC, own, wanted, secrets.token_bytes(16))
            self._push(self._hello)

    def fileno(self) -> int:
        """Return the file descriptor of the socket, for selectors."""
        return self.socket.fileno()

    def send(self, kind: int, *parts: bytes | bytearray | memoryview) -> None:
        """Queue a frame. ``parts`` must not change until they have been sent."""
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        head = _FRAME.pack(sum(map(len, views)), kind)
        mac = blake2b(_COUNT.pack(self._sent), key=self._send_key, digest_size=_TAG)
        mac.update(head)
        for view in views:
            mac.update(view)
        self._sent += 1
        self._push(head, *views, mac.digest())

    def write(self) -> None:
        """Pass to the kernel as much as it accepts; raise LinkError if the other end is gone."""
        while self._out:
            pieces = [self._out[index] for index in range(min(_PIECES, len(self._out)))]
            try:
                count = self.socket.sendmsg(pieces)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno == errno.ENOTCONN:
                    return  # the connection is being established
                raise LinkError(error.strerror or "broken") from error
            self.pending -= count
            while count:
                first = self._out[0]
                if count < len(first):
                    self._out[0] = first[count:]
                    break
                count -= len(first)
                self._out.popleft()

    def read(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the frames that have arrived as (kind, content); a content is valid until the next one is requested.

        Raises
        ------
        LinkError
            If the other end is gone, or did not write what arrived.
        """
        for _ in range(_READS):
            if self._filled == len(self._buffer):
                self._buffer = self._buffer + bytes(len(self._buffer))  # not in place: a reader may hold a view
            try:
                with memoryview(self._buffer) as whole:
                    count = self.socket.recv_into(whole[self._filled :])
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                raise LinkError(error.strerror or "broken") from error
            if count == 0:
                raise LinkError("the connection was closed")
            self._filled += count
            short = self._filled < len(self._buffer)
            yield from self._frames()
            if short:
                return

    def drain(self, deadline: float) -> None:
        """Stop sending, and discard input until the other end stops too, or until a deadline of the monotonic clock."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self.socket.settimeout(left)
                if not self.socket.recv(_READ):
                    return

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _frames(self) -> Iterator[tuple[int, memoryview]]:
        at = 0
        view = memoryview(self._buffer)
        try:
            while True:
                if self._stage < 2:
                    used = self._shake(view[at : self._filled])
                    if not used:
                        break
                    at += used
                    continue
                if self._filled - at < _FRAME.size:
                    break
                length, kind = _FRAME.unpack_from(self._buffer, at)
                if length > LARGEST:
                    raise LinkError(f"a frame of {length} bytes")
                end = at + _FRAME.size + length
                if self._filled < end + _TAG:
                    break
                mac = blake2b(_COUNT.pack(self._received), key=self._receive_key, digest_size=_TAG)
                mac.update(view[at:end])
                if not hmac.compare_digest(mac.digest(), view[end : end + _TAG]):
                    raise LinkError("a frame that the other end did not write")
                self._received += 1
                yield kind, view[at + _FRAME.size : end]
                at = end + _TAG
        finally:
            view.release()
            rest = self._filled - at
            self._buffer[:rest] = self._buffer[at : self._filled]
            self._filled = rest

    def _shake(self, data: memoryview) -> int:
        """Process the next part of the handshake in ``data``; return its bytes, 0 if it is incomplete."""
        if self._connects:
            if len(data) < _ANSWER.size:
                return 0
            nonce, proof = _ANSWER.unpack_from(data)
            self._agree(nonce)
            if not hmac.compare_digest(proof, self._proof(b"accepted")):
                raise LinkError("the other end does not know the group's key")
            self._push(self._proof(b"connected"))
            self._stage, self.ready = 2, True
            return _ANSWER.size
        if self._stage == 0:
            if len(data) < _HELLO.size:
                return 0
            magic, who, wanted, _ = _HELLO.unpack_from(data)
            if magic != _MAGIC or wanted != self.own:
                raise LinkError("no member of this group")
            self._hello, self.peer = bytes(data[: _HELLO.size]), who
            nonce = secrets.token_bytes(16)
            self._agree(nonce)
            self._push(nonce, self._proof(b"accepted"))
            self._stage = 1
            return _HELLO.size
        if len(data) < _TAG:
            return 0
        if not hmac.compare_digest(data[:_TAG], self._proof(b"connected")):
            raise LinkError("the other end does not know the group's key")
        self._stage, self.ready = 2, True
        return _TAG

    def _agree(self, nonce: bytes) -> None:
        """Derive the keys of this connection, one for each direction, so that frames cannot be reflected."""
        said = self._hello + nonce
        there, back = (derive(self._key, self._session, b"link " + label + said) for label in (b"there ", b"back "))
        self._send_key, self._receive_key = (there, back) if self._connects else (back, there)
        self._proof_key = derive(self._key, self._session, b"link proof " + said)

    def _proof(self, label: bytes) -> bytes:
        return blake2b(label, key=self._proof_key, digest_size=_TAG).digest()

    def _push(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            if len(part):
                self._out.append(memoryview(part))
                self.pending += len(part)


def listen(address: str, port: int = 0) -> socket.socket:
    """Return a non-blocking socket that accepts connections."""
    family, place = _resolved(address, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(256)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def connect(place: tuple[str, int], own: int, peer: int, key: bytes, session: bytes) -> Link:
    """Begin a connection to a member; raise LinkError if it is refused at once."""
    try:
        family, address = _resolved(*place)
    except OSError as error:
        raise LinkError(error.strerror or "unknown") from error
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        with contextlib.suppress(BlockingIOError):
            connection.connect(address)
    except OSError as error:
        connection.close()
        raise LinkError(error.strerror or "refused") from error
    return Link(connection, own, key, session, peer)


def _resolved(host: str, port: int) -> tuple[int, Any]:
    """Return the family and the address of a socket for a name or an address, of IPv4 if it has one."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, address
