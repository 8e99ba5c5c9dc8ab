"""Signs of life in datagrams, which may carry a report.

After a cut of a few seconds TCP waits as long again before it repeats what was lost; a datagram arrives as soon as the
way is open. Each carries a number that grows, and a code that only those can make who have the key.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["LONGEST", "Beacon", "Sign", "Signs"]

LONGEST: Final = 65507
"""Most bytes of a datagram."""
_HEAD: Final = struct.Struct("!QB")
_CODE: Final = 16


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of life: the name of its sender, and what it carries."""

    name: str
    content: bytes = b""


class Signs:
    """Signs of life that two processes with the same key exchange.

    Parameters
    ----------
    key
        The key, in hexadecimal digits.
    """

    def __init__(self, key: str) -> None:
        self._key = bytes.fromhex(key)
        self._sent = 0
        self._last: dict[str, int] = {}

    def make(self, sign: Sign) -> bytes:
        """Return the next datagram of a sender."""
        self._sent += 1
        name = sign.name.encode()[:255]
        content = _HEAD.pack(self._sent, len(name)) + name + sign.content
        return self._code(content) + content

    def read(self, datagram: bytes) -> Sign | None:
        """Return the sign in a datagram; None for one that is none of these, or that came before."""
        code, content = datagram[:_CODE], datagram[_CODE:]
        if len(content) < _HEAD.size or not hmac.compare_digest(code, self._code(content)):
            return None
        number, length = _HEAD.unpack_from(content)
        name = content[_HEAD.size : _HEAD.size + length].decode(errors="replace")
        if number <= self._last.get(name, 0):
            return None
        self._last[name] = number
        return Sign(name, content[_HEAD.size + length :])

    def _code(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, "sha256")[:_CODE]


class Beacon:
    """Receiver of signs of life of hosts, which answers each with one of its own.

    Parameters
    ----------
    heard
        Called with each sign, in a thread.

    Attributes
    ----------
    answer
        Content of the answers.

    Raises
    ------
    OSError
        If there is no port for it.
    """

    def __init__(self, heard: Callable[[Sign], object]) -> None:
        self.key = secrets.token_hex(16)
        self.answer = b""
        self._signs, self._heard = Signs(self.key), heard
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(("", 0))
        except OSError:
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        self._over = False
        self._thread = threading.Thread(target=self._serve, name="beacon", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop receiving."""
        self._over = True
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._over:
            with contextlib.suppress(OSError):
                datagram, sender = self._socket.recvfrom(LONGEST)
                sign = self._signs.read(datagram)
                if sign is not None:
                    self._heard(sign)
                    self._socket.sendto(self._signs.make(Sign("", self.answer)), sender)
