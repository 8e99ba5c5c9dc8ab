"""Keys: derived as the standard says, different for all, and needed for every bit of a datagram."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.errors import RunError
from minga.network.broadcast.datagram import HEADER_BYTES, OVERHEAD, TAG_BYTES, Kind
from minga.network.broadcast.keys import Keys, Session, derive

KEY = bytes(range(32))


def session(ident: bytes = b"a name.1", key: bytes = KEY, size: int = 3) -> Session:
    return Session(ident, key, size, payload=200)


def test_keys_are_derived_as_rfc_5869_says() -> None:
    """Its third test case (SHA-256, no salt, no info), whose first 32 bytes are one block."""
    assert derive(b"\x0b" * 22, b"", b"").hex() == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    # The first test case: its output is 42 bytes long, the first 32 are what one block gives.
    got = derive(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)))
    assert got.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_tags_are_keyed_blake2b() -> None:
    group = session()
    sealed = Keys(group).seal(Kind.DATA, 2, message=7, nseg=1, root=2, payload=b"some bytes")
    key = derive(group.key, group.ident, b"minga broadcast sender 2")
    assert sealed[-TAG_BYTES:] == hashlib.blake2b(sealed[:-TAG_BYTES], digest_size=16, key=key).digest()


def test_every_sender_and_session_has_its_own_key() -> None:
    """The bytes of one are no datagram of another."""
    here = Keys(session())
    sealed = [here.seal(Kind.DATA, sender, payload=b"x") for sender in range(3)]
    assert len({one[-TAG_BYTES:] for one in sealed}) == 3
    swapped = sealed[0][:3] + b"\x01" + sealed[0][4:]
    assert here.open(swapped) is None
    for other in (session(ident=b"a name.2"), session(key=bytes(32))):
        keys = Keys(other)
        assert keys.open(sealed[0]) is None
        assert (keys.refused.foreign, keys.refused.total) == (1, 1)
        # With the right mark it is looked at, and still refused.
        assert keys.open(keys.mark.to_bytes(2, "big") + sealed[0][2:]) is None
        assert keys.refused.forged == 1


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_what_is_sealed_is_opened(payload: bytes, number: int, flags: int) -> None:
    keys = Keys(session())
    data = keys.seal(Kind.NACK, 2, message=number, seq=5, nseg=9, root=1, flags=flags, payload=payload)
    assert len(data) == OVERHEAD + len(payload)
    got = keys.open(bytearray(data))
    assert got is not None
    assert got[:-1] == (Kind.NACK, 2, number, 5, 9, 1, flags)
    assert bytes(got.payload) == payload
    assert keys.refused.total == 0


def test_no_bit_may_change() -> None:
    keys = Keys(session())
    data = keys.seal(Kind.DATA, 1, message=7, seq=0, nseg=1, root=1, payload=b"some bytes")
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert keys.open(changed) is None, bit
    for length in range(len(data)):
        assert keys.open(data[:length]) is None
    assert keys.open(data + b"\0") is None
    assert keys.refused.total == 8 * len(data) + len(data) + 1
    assert keys.open(data) is not None


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    keys = Keys(session())
    assert keys.open(data) is None
    assert keys.open(keys.mark.to_bytes(2, "big") + data) is None
    assert keys.refused.total == 2


def test_numbers_beyond_the_group_are_refused_even_with_the_key() -> None:
    large, small = Keys(session(size=5)), Keys(session(size=3))
    assert large.mark == small.mark
    assert small.open(large.seal(Kind.DATA, 4, root=0)) is None
    assert small.open(large.seal(Kind.DATA, 0, root=4)) is None
    assert small.open(large.seal(0, 0)) is None
    assert small.open(large.seal(15, 0)) is None
    assert small.refused.malformed == 4
    assert small.open(large.seal(Kind.DATA, 2, root=2)) is not None


def test_pieces_are_sent_without_being_copied() -> None:
    keys = Keys(session())
    payload = memoryview(b"the program's own bytes")
    pieces = keys.seal_pieces(Kind.DATA, 0, 1, 2, 3, 0, 0, (b"head", payload))
    assert pieces[2] is payload
    assert [len(piece) for piece in pieces] == [HEADER_BYTES, 4, len(payload), TAG_BYTES]
    assert keys.open(b"".join(pieces)) is not None


def test_keys_are_not_shown() -> None:
    assert KEY.hex() not in repr(session())
    assert repr(KEY) not in repr(session())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"key": b"short"}, "a key of 32 bytes"),
        ({"ident": b"short"}, "a name of 8"),
        ({"size": 0}, "1 to 255 members"),
        ({"size": 256}, "1 to 255 members"),
    ],
)
def test_sessions_that_cannot_be_are_refused(wrong: dict[str, bytes | int], says: str) -> None:
    with pytest.raises(RunError, match=says):
        session(**wrong)  # type: ignore[arg-type]
