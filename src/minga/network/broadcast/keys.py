"""Keys of a session, and the datagrams they seal and open.

One secret of 32 bytes is shared by the members of a group. Each session draws from it one key per sender by HKDF
(RFC 5869), and each datagram carries a MAC of 16 bytes made with its sender's key: keyed BLAKE2b (RFC 7693), which is
made for this and costs less than HMAC-SHA256. Datagrams of strangers, of other groups and of earlier sessions fail, and
nothing they say is looked at.
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
"""The session under which members greet each other before they have one."""

_FIRST_KIND = VERSION << 4 | min(Kind)
_LAST_KIND = VERSION << 4 | max(Kind)


@dataclass(frozen=True, slots=True)
class Session:
    """What the members of a group agreed on.

    Parameters
    ----------
    ident
        8 bytes that no other session of this group has: random, or a hash of random numbers of all members. It is
        never sent.
    key
        The group's secret, 32 bytes.
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
                remedy="make them with secrets.token_bytes",
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
    """32 bytes for one use: HKDF with SHA-256 (RFC 5869) of ``key``; other salts and labels give unrelated bytes."""
    extracted = hmac.digest(salt, key, "sha256")
    return hmac.digest(extracted, label + b"\x01", "sha256")


@dataclass(slots=True)
class Refused:
    """Counts of datagrams that were dropped before anything was done with them."""

    foreign: int = 0  # another session's mark, another program's bytes
    malformed: int = 0  # lengths, kinds or numbers that cannot be
    forged: int = 0  # wrong tag

    @property
    def total(self) -> int:
        return self.foreign + self.malformed + self.forged


class Keys:
    """The keys of all senders of a session; ``refused`` counts what :meth:`open` turned away."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.refused = Refused()
        self.mark = int.from_bytes(derive(session.key, session.ident, b"minga broadcast mark")[:2], "big")
        # Copying a hash that has taken the key in is cheaper than taking it in for every datagram.
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
        """Header, pieces of payload and tag, to be sent as one datagram without being copied together."""
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
        """A whole datagram."""
        return b"".join(self.seal_pieces(kind, sender, message, seq, nseg, root, flags, (payload,)))

    def open(self, data: Buffer) -> Datagram | None:
        """The datagram in ``data`` if its sender holds the session's key; None, and one more in ``refused``, if not.

        Cheap looks come first, so that a flood of noise costs little; nothing is believed before the tag is right.
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
