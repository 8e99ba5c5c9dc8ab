"""The bytes of datagrams and heads: what is written is read, and nothing that is read can do harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from minga.errors import CaseError, RunError
from minga.network.broadcast.datagram import Abort, Poll, Reason, Reply, newer, payload_for
from minga.network.broadcast.heads import finish, new_store, pack_head, target, unpack_head
from minga.network.broadcast.options import BroadcastOptions, batch_for, window_for, wire_bytes

DTYPES = ("<f8", ">f8", "<f4", "u1", "?", ">i4", "<i8", "<c16", "<M8[ns]", "S5", "<U3")


def sent(value: object, into: Any = None) -> Any:
    """A value after its bytes went through a network."""
    head, data = pack_head(value)
    store = new_store(len(data))
    store.data[:] = data
    return finish(store, unpack_head(head), into)


@given(hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)))
def test_arrays_arrive_as_they_were(array: np.ndarray) -> None:
    got = sent(array)
    assert got.shape == array.shape
    assert got.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(got, array)


@given(st.binary(max_size=300))
def test_bytes_arrive_as_bytes(data: bytes) -> None:
    assert sent(data) == sent(bytearray(data)) == sent(memoryview(data)) == data
    assert sent(memoryview(data)[::-2]) == data[::-2]


def test_arrays_that_do_not_lie_in_one_piece_are_copied() -> None:
    array = np.arange(24.0).reshape(4, 6)
    for view in (array.T, array[::2], array[:, ::-1]):
        np.testing.assert_array_equal(sent(view), view)
    np.testing.assert_array_equal(sent(np.float32(3.5)), np.float32(3.5))


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_receiver_makes_the_byte_order_right(order: str) -> None:
    array = np.arange(12, dtype=order + "i4").reshape(3, 4)
    apart = (np.zeros((4, 3), "<i4").T, np.zeros((6, 4), "i4")[::2])
    for place in (np.zeros((3, 4), "<i4"), np.zeros((3, 4), ">i4"), *apart):
        assert sent(array, place) is place
        np.testing.assert_array_equal(place, array)
    buffer = bytearray(48)
    sent(array, buffer)
    np.testing.assert_array_equal(np.frombuffer(buffer, "i4"), array.reshape(-1))


@pytest.mark.parametrize("order", ["<", ">"])
def test_bytes_that_were_written_to_their_place_stay_there(order: str) -> None:
    """A message may be received into the reader's own memory: then only the byte order is left to do."""
    array = np.arange(12, dtype=order + "f8").reshape(3, 4)
    head, data = pack_head(array)
    place = np.zeros((3, 4))
    direct = target(place)
    assert direct is not None
    direct.data[:] = data
    assert finish(direct, unpack_head(head), place) is place
    np.testing.assert_array_equal(place, array)


@pytest.mark.parametrize(
    "place", [np.zeros(3), np.zeros((2, 2), "f4"), np.zeros((4,)), np.zeros((2, 2), "i8"), bytearray(31)]
)
def test_a_place_that_does_not_fit_is_refused(place: Any) -> None:
    with pytest.raises(RunError, match=r"the message is float64\[2, 2\]"):
        sent(np.zeros((2, 2)), place)


def test_places_that_cannot_be_written_are_refused() -> None:
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for place in (frozen, memoryview(b"abc"), memoryview(bytearray(8))[::2]):
        with pytest.raises(RunError, match="is writable"):
            target(place)
    assert target(None) is None
    assert target(np.zeros((4, 4)).T[1:]) is None


@pytest.mark.parametrize(
    "value", [{"a": 1}, np.array([object()]), np.zeros(2, "i4,f4"), None, np.zeros(3, "V0"), [[1], "x", None]]
)
def test_values_without_meaning_elsewhere_are_refused(value: Any) -> None:
    with pytest.raises(RunError, match="a broadcast sends bytes, or arrays"):
        pack_head(value)


def test_a_head_has_room_for_many_axes_but_not_for_all() -> None:
    assert sent(np.zeros((1,) * 28)).ndim == 28
    with pytest.raises(RunError, match="32 axes"):
        pack_head(np.zeros((1,) * 32))


@given(st.binary(max_size=60))
def test_any_bytes_as_head_are_read_or_refused(head: bytes) -> None:
    try:
        kind = unpack_head(head)
    except RunError:
        return
    assert kind is None or kind.nbytes >= 0


def test_a_head_of_python_objects_is_refused() -> None:
    with pytest.raises(RunError, match="does not name a NumPy type"):
        unpack_head(b"\x01\x02|O" + bytes(8))


RANGES = st.lists(st.integers(0, 90), unique=True, max_size=20).map(
    lambda ends: tuple(zip(sorted(ends)[::2], sorted(ends)[1::2]))
)


@given(RANGES, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_replies_arrive_as_they_were(missing: tuple[tuple[int, int], ...], echo: int, incarnation: int) -> None:
    reply = Reply(missing[0][0] if missing else 7, 90, echo, incarnation, missing)
    assert Reply.unpack(memoryview(reply.pack()), 100) == reply


@pytest.mark.parametrize(
    ("have", "missing"),
    [(101, ()), (5, ((3, 6),)), (0, ((4, 4),)), (0, ((6, 2),)), (0, ((1, 5), (4, 7))), (0, ((99, 101),))],
)
def test_replies_that_cannot_be_are_no_replies(have: int, missing: tuple[tuple[int, int], ...]) -> None:
    assert Reply.unpack(memoryview(Reply(have, 99, 0, 0, missing).pack()), 100) is None


@given(st.binary(max_size=40), st.integers(0, 2**32 - 1))
def test_any_payload_is_read_or_refused(payload: bytes, nseg: int) -> None:
    view = memoryview(payload)
    reply = Reply.unpack(view, nseg)
    assert reply is None or reply.have <= nseg
    poll = Poll.unpack(view, nseg)
    assert poll is None or poll.sent <= nseg
    abort = Abort.unpack(view)
    assert abort is None or abort.pack() == payload


def test_notices_arrive_as_they_were() -> None:
    assert Abort.unpack(memoryview(Abort(Reason.LOST, (3, 254)).pack())) == Abort(Reason.LOST, (3, 254))
    assert Poll.unpack(memoryview(Poll(9).pack()), 9) == Poll(9)
    assert Poll.unpack(memoryview(Poll(9).pack()), 8) is None


def test_as_many_ranges_as_fit() -> None:
    most = Reply.ranges_that_fit(1436)
    assert most == 177
    full = Reply(0, 2 * most, 0, 0, tuple((2 * k + 1, 2 * k + 2) for k in range(most)))
    assert len(full.pack()) <= 1436 < len(full.pack()) + 8


def test_numbers_wrap_around() -> None:
    assert newer(1, 0)
    assert newer(2, 0xFFFFFFFF)
    assert newer(0x7FFFFFFF, 0)
    assert not newer(0, 0)
    assert not newer(0xFFFFFFFF, 2)
    assert not newer(0x80000000, 0)


def test_payloads_fit_the_smallest_mtu() -> None:
    assert payload_for(1500) == 1436
    assert payload_for([9000, 1500, 1400]) == 1336
    assert payload_for(65536) == 65507 - 36
    with pytest.raises(RunError, match="an MTU of 68 bytes"):
        payload_for(68)


def test_numbers_that_follow_from_the_system() -> None:
    assert window_for(212992, 1400) == 63  # the default buffer of Linux holds 92 of them
    assert window_for(100, 1436) == 4
    assert batch_for(1436) == 44
    assert batch_for(65000) == 1
    assert batch_for(64) == 64
    assert wire_bytes(1472) == 1538
    assert wire_bytes(8) == 84  # the shortest frame, with preamble and gap


@pytest.mark.parametrize(
    "wrong",
    [{"window": 3}, {"rate": 0.0}, {"batch": 0}, {"dead_timeout": 0.0}, {"on_loss": "ignore"}, {"poll_floor": 1.0}],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CaseError, match=f"broadcast.{next(iter(wrong))}"):
        BroadcastOptions(**wrong)
