"""Keys of a session, and the datagrams they seal and open.

The members of a group share one secret of 32 bytes. Each session derives from it one key per sender by HKDF (RFC 5869),
and each datagram carries a MAC of 16 bytes under its sender's key: keyed BLAKE2b (RFC 7693), which is designed for this
purpose and costs less than HMAC-SHA256. Datagrams from outsiders, other groups and earlier sessions fail verification,
and their content is never interpreted.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TypeAlias

from minga.errors import RunError
from minga.network.broadcast.datagram import (
    HEADER,
    HEADER_BYTES,
    LARGEST_PAYLOAD,
    OVERHEAD,
    SMALLEST_PAYLOAD,
    TAG_BYTES,
    VERSION,
    Datagram,
    Kind,
)

__all__ = ["JOINING", "Buffer", "Keys", "Refused", "Session", "derive"]

Buffer: TypeAlias = bytes | bytearray | memoryview

KEY_BYTES = 32
SESSION_BYTES = 8
LARGEST_GROUP = 255
JOINING = b"\0minga\0\0"
"""Session identifier under which members greet each other before they have a session."""

_FIRST_KIND = VERSION << 4 | min(Kind)
_LAST_KIND = VERSION << 4 | max(Kind)


@dataclass(frozen=True, slots=True)
class Session:
    """Parameters on which the members of a group have agreed.

    Parameters
    ----------
    ident
        8 bytes that are unique among the sessions of this group: random, or a hash of random numbers of all members.
        They are never sent.
    key
        Secret of the group, 32 bytes.
    size
        Number of members, 1 to 255; they are numbered from 0.
    payload
        Bytes of a message that one datagram carries (:func:`minga.network.broadcast.datagram.payload_for`).
    """

    ident: bytes
    key: bytes = field(repr=False)
    size: int
    payload: int = 1436

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES or len(self.ident) != SESSION_BYTES:
            raise RunError(
                f"a session has a key of {KEY_BYTES} bytes and a name of {SESSION_BYTES}, "
                f"found {len(self.key)} and {len(self.ident)}",
                remedy="create them with secrets.token_bytes",
            )
        if not 1 <= self.size <= LARGEST_GROUP:
            raise RunError(
                f"a group has 1 to {LARGEST_GROUP} members, found {self.size}",
                remedy="let one member of each machine join, and share its data within the machine",
            )
        if not SMALLEST_PAYLOAD <= self.payload <= LARGEST_PAYLOAD:
            raise RunError(
                f"a datagram carries {SMALLEST_PAYLOAD} to {LARGEST_PAYLOAD} bytes, found {self.payload}",
                remedy="use payload_for(mtu)",
            )


def derive(key: bytes, salt: bytes, label: bytes) -> bytes:
    """Derive 32 bytes for one purpose from ``key`` by HKDF with SHA-256 (RFC 5869).

    Different salts and labels give unrelated bytes.
    """
    extracted = hmac.digest(salt, key, "sha256")
    return hmac.digest(extracted, label + b"\x01", "sha256")


@dataclass(slots=True)
class Refused:
    """Counters of datagrams that were dropped without being interpreted."""

    foreign: int = 0  # the mark of another session, or bytes of another program
    malformed: int = 0  # invalid lengths, kinds or numbers
    forged: int = 0  # wrong tag

    @property
    def total(self) -> int:
        """Number of all dropped datagrams."""
        return self.foreign + self.malformed + self.forged


class Keys:
    """Keys of all senders of a session; ``refused`` counts the datagrams that :meth:`open` rejected."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.refused = Refused()
        self.mark = int.from_bytes(derive(session.key, session.ident, b"minga broadcast mark")[:2], "big")
        # Copying a keyed hash state is cheaper than absorbing the key for every datagram.
        self._macs = [
            hashlib.blake2b(
                digest_size=TAG_BYTES, key=derive(session.key, session.ident, b"minga broadcast sender %d" % number)
            )
            for number in range(session.size)
        ]

    def seal_pieces(
        self,
        kind: int,
        sender: int,
        message: int,
        seq: int,
        nseg: int,
        root: int,
        flags: int,
        payload: tuple[Buffer, ...],
    ) -> tuple[Buffer, ...]:
        """Return header, pieces of payload and tag, which can be sent as one datagram without being joined."""
        length = sum([len(piece) for piece in payload])
        header = HEADER.pack(self.mark, VERSION << 4 | kind, sender, message, seq, nseg, length, root, flags)
        mac = self._macs[sender].copy()
        mac.update(header)
        for piece in payload:
            mac.update(piece)
        return (header, *payload, mac.digest())

    def seal(
        self,
        kind: int,
        sender: int,
        *,
        message: int = 0,
        seq: int = 0,
        nseg: int = 0,
        root: int = 0,
        flags: int = 0,
        payload: Buffer = b"",
    ) -> bytes:
        """Return a complete datagram as bytes."""
        return b"".join(self.seal_pieces(kind, sender, message, seq, nseg, root, flags, (payload,)))

    def open(self, data: Buffer) -> Datagram | None:
        """Return the datagram in ``data`` if its sender knows the session's key; otherwise count it and return None.

        Cheap checks come first, so that a flood of noise costs little; nothing is trusted before the tag is verified.
        """
        refused = self.refused
        size = len(data)
        if not OVERHEAD <= size <= OVERHEAD + self.session.payload:
            refused.malformed += 1
            return None
        mark, kind, sender, message, seq, nseg, length, root, flags = HEADER.unpack_from(data)
        if mark != self.mark:
            refused.foreign += 1
            return None
        members = self.session.size
        if not (
            _FIRST_KIND <= kind <= _LAST_KIND and sender < members and root < members and length == size - OVERHEAD
        ):
            refused.malformed += 1
            return None
        view = memoryview(data)
        mac = self._macs[sender].copy()
        mac.update(view[:-TAG_BYTES])
        if not hmac.compare_digest(mac.digest(), view[-TAG_BYTES:]):
            refused.forged += 1
            return None
        return Datagram(kind & 15, sender, message, seq, nseg, root, flags, view[HEADER_BYTES:-TAG_BYTES])
