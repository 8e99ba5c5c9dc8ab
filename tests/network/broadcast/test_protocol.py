"""What roots and members say to each other, in virtual time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.errors import ProgramError, RunError
from minga.network.broadcast.datagram import ASK, Kind, Reason
from minga.network.broadcast.keys import Keys
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.member import Aborted, RootSilent
from minga.network.broadcast.options import BroadcastOptions
from minga.network.broadcast.root import Root

from .virtual import Faults, World

PAYLOAD = 64


def kinds(world: World) -> Counter[str]:
    """What was sent while the world recorded."""
    keys = Keys(world.session)
    found: Counter[str] = Counter()
    for data in world.seen:
        datagram = keys.open(data)
        assert datagram is not None
        asks = datagram.kind == Kind.DATA and datagram.flags & ASK
        found[Kind(datagram.kind).name + ("?" if asks else "")] += 1
    return found


def with_settings(**changes: Any) -> BroadcastOptions:
    return BroadcastOptions(**{"window": 16, "rate": 1e8, "dead_timeout": 2.0, **changes})


@pytest.mark.parametrize(
    "length", [0, 1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 5 * PAYLOAD - 1, 5 * PAYLOAD, 5 * PAYLOAD + 1]
)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_every_length_arrives(length: int, size: int) -> None:
    world = World(size)
    data = world.random.randbytes(length)
    assert world.broadcast(0, data) == dict.fromkeys(range(1, size), data)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (7, 11), (0, 4)])
def test_arrays_arrive_with_type_and_shape(shape: tuple[int, ...]) -> None:
    world = World(3)
    array = np.asarray(np.arange(np.prod(shape, dtype=int), dtype=">f4").reshape(shape))
    for got in world.broadcast(1, array).values():
        assert isinstance(got, np.ndarray)
        assert (got.shape, got.dtype) == (shape, np.dtype("f4"))
        np.testing.assert_array_equal(got, array)


def test_a_small_message_costs_one_datagram_and_one_answer_a_member() -> None:
    world = World(4, record=True)
    world.broadcast(0, b"short")
    assert kinds(world) == {"DATA?": 1, "ACK": 3}


def test_without_faults_nothing_is_sent_twice() -> None:
    world = World(4, record=True)
    world.broadcast(0, bytes(100 * PAYLOAD))
    assert kinds(world)["DATA"] + kinds(world)["DATA?"] == 100
    assert kinds(world)["NACK"] == 0
    # A member tells how far it is every quarter of the window, and is asked twice a window when that is full.
    assert kinds(world)["ACK"] <= 3 * (100 // 4 + 100 // 8)
    root = world.endpoints[0].root
    assert root is not None
    assert (root.repairs, root.polls, root.all_have) == (0, 0, 100)


@pytest.mark.parametrize("lost", ["first", "middle", "last"])
def test_one_lost_segment_is_repaired_for_the_one_who_misses_it(lost: str) -> None:
    """By unicast, once; the others do not get it again."""
    world = World(4, record=True)
    seq = {"first": 0, "middle": 5, "last": 9}[lost]
    world.tap = drops_once(world, lambda datagram: datagram.kind == Kind.DATA and datagram.seq == seq, to=2)
    data = world.random.randbytes(10 * PAYLOAD)
    assert set(world.broadcast(0, data).values()) == {data}
    root = world.endpoints[0].root
    assert root is not None
    assert root.repairs == 1
    assert [world.endpoints[n].traffic.duplicates for n in (1, 2, 3)] == [0, 0, 0]


def test_a_segment_that_two_miss_is_repaired_for_all_at_once() -> None:
    world = World(4, record=True)
    dropped = [drops_once(world, lambda one: one.kind == Kind.DATA and one.seq == 5, to=to) for to in (1, 2)]
    world.tap = lambda sender, to, data: all(tap(sender, to, data) for tap in dropped)
    data = world.random.randbytes(10 * PAYLOAD)
    assert set(world.broadcast(0, data).values()) == {data}
    root = world.endpoints[0].root
    assert root is not None
    assert root.repairs <= 2


@pytest.mark.parametrize("kind", [Kind.ACK, Kind.POLL, Kind.NACK])
@pytest.mark.parametrize("many", [1, 3])
def test_a_lost_answer_question_or_request_costs_time_only(kind: Kind, many: int) -> None:
    world = World(3)
    left = {1: many, 2: many, 0: 2 * many}

    def tap(sender: int, to: int, data: bytes) -> bool:
        datagram = Keys(world.session).open(data)
        assert datagram is not None
        if datagram.kind == Kind.DATA and datagram.seq == 3 and left[0]:
            left[0] -= 1
            return False
        if datagram.kind == kind and sender in left and left[sender]:
            left[sender] -= 1
            return False
        return True

    world.tap = tap
    data = world.random.randbytes(6 * PAYLOAD)
    assert set(world.broadcast(0, data).values()) == {data}


def test_the_final_answer_is_given_again() -> None:
    """The member is done and gone on with its work; the root still asks."""
    world = World(2)
    lost: list[int] = []

    def tap(sender: int, to: int, data: bytes) -> bool:
        if sender == 1 and len(lost) < 5:
            lost.append(1)
            return False
        return True

    world.tap = tap
    assert world.broadcast(0, b"all of it") == {1: b"all of it"}
    assert len(lost) == 5
    assert world.broadcast(0, b"and more") == {1: b"and more"}


def test_messages_of_a_root_arrive_in_order_and_wait_for_their_reader() -> None:
    world = World(3, faults=Faults(reorder=0.5, drop=0.1))
    messages = [world.random.randbytes(world.random.randrange(300)) for _ in range(20)]
    for data in messages:
        root = world.endpoints[0].send(world.now, data)
        world.run(lambda root=root: root.done)
    for reader in (1, 2):
        got = [world.endpoints[reader].take(0) for _ in messages]
        assert [message.value for message in got if message is not None] == messages
        assert world.endpoints[reader].take(0) is None


def test_several_roots_send_at_the_same_time() -> None:
    world = World(5, faults=Faults(drop=0.1, reorder=0.2))
    data = {n: world.random.randbytes(20 * PAYLOAD + n) for n in range(5)}
    roots = [world.endpoints[n].send(world.now, data[n]) for n in range(5)]
    world.run(lambda: all(root.done for root in roots))
    for reader in range(5):
        for root in set(range(5)) - {reader}:
            message = world.endpoints[reader].take(root)
            assert message is not None
            assert message.value == data[root]


def test_a_root_sends_one_message_at_a_time() -> None:
    world = World(2)
    world.endpoints[0].send(0.0, b"one")
    with pytest.raises(ProgramError, match="before its previous one had reached all"):
        world.endpoints[0].send(0.0, b"two")


@pytest.mark.parametrize("first_message", [0xFFFFFFF0, 0x7FFFFFF0, 0])
def test_message_numbers_wrap_around(first_message: int) -> None:
    world = World(2, first_message=first_message, faults=Faults(drop=0.05, double=0.1, reorder=0.1))
    for k in range(40):
        assert world.broadcast(0, b"message %d" % k) == {1: b"message %d" % k}


def test_bytes_are_written_straight_to_where_they_are_wanted() -> None:
    world = World(2, faults=Faults(drop=0.2))
    array = np.arange(500.0)
    place = np.zeros(500)
    world.endpoints[1].expect(0.0, 0, place)
    root = world.endpoints[0].send(0.0, array)
    world.run(lambda: root.all_have > 20)
    assert (place[:100] == array[:100]).all()  # before the message is whole
    world.run(lambda: root.done)
    message = world.endpoints[1].take(0)
    assert message is not None
    assert message.value is place
    np.testing.assert_array_equal(place, array)


def test_a_place_may_be_named_while_the_message_arrives() -> None:
    world = World(2)
    array = np.arange(500, dtype=">i2").reshape(50, 10)
    place = np.zeros((50, 10), "i2")
    root = world.endpoints[0].send(0.0, array)
    world.run(lambda: root.all_have > 5)
    world.endpoints[1].expect(world.now, 0, place)
    world.run(lambda: root.done)
    message = world.endpoints[1].take(0)
    assert message is not None
    assert message.value is place
    np.testing.assert_array_equal(place, array)


@pytest.mark.parametrize(
    "place", [np.zeros(499), np.zeros(501), np.zeros(500, "f4"), np.zeros((500, 1)), bytearray(4001)]
)
def test_a_message_that_does_not_fit_hinders_nobody_else(place: Any) -> None:
    world = World(3)
    world.endpoints[1].expect(0.0, 0, place)
    world.endpoints[2].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, np.arange(500.0))
    world.run(lambda: root.done)
    assert not root.lost
    with pytest.raises(RunError, match=r"the message is float64\[500\], but its destination is"):
        world.endpoints[1].take(0)
    message = world.endpoints[2].take(0)
    assert message is not None
    np.testing.assert_array_equal(message.value, np.arange(500.0))
    assert world.broadcast(0, b"next") == {1: b"next", 2: b"next"}


def test_too_large_a_message_is_not_begun() -> None:
    world = World(2, settings=with_settings(max_bytes=1000))
    with pytest.raises(RunError, match="at most 1000 bytes, found 1001"):
        world.endpoints[0].send(0.0, bytes(1001))
    assert world.broadcast(0, bytes(1000)) == {1: bytes(1000)}


def test_a_slow_reader_makes_the_root_wait_and_nobody_is_overrun() -> None:
    """A member that has no room answers, so it is not lost; the window holds the root back; all get all in the end."""
    world = World(4, settings=with_settings(waiting_bytes=1000))
    data = world.random.randbytes(200 * PAYLOAD)
    for reader in (1, 2):
        world.endpoints[reader].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, data)
    with pytest.raises(AssertionError, match="not reached"):
        world.run(lambda: root.done, seconds=30.0)  # far longer than a silent member may be
    assert not root.lost
    assert root.sent == 16  # the window
    assert world.endpoints[3].member.waiting_bytes() == 0
    world.endpoints[3].expect(world.now, 0)
    world.run(lambda: root.done, seconds=5.0)
    for reader in (1, 2, 3):
        message = world.endpoints[reader].take(0)
        assert message is not None
        assert message.value == data


def test_what_waits_for_readers_is_bounded() -> None:
    """Many small messages that nobody reads: the members' memory does not grow, and in the end none is missing."""
    world = World(2, settings=with_settings(waiting_bytes=10 * PAYLOAD))
    sent = 0
    for sent in range(100):
        root = world.endpoints[0].send(world.now, b"%d" % sent)
        try:
            world.run(lambda root=root: root.done, seconds=3.0)
        except AssertionError:
            break
    assert sent == 10
    assert world.endpoints[1].member.waiting_bytes() <= 10 * PAYLOAD
    for k in range(11):
        world.endpoints[1].expect(world.now, 0)
        if k == 10:
            world.run(lambda: root.done)
        message = world.endpoints[1].take(0)
        assert message is not None
        assert message.value == b"%d" % k


def test_a_silent_member_is_named_and_all_are_told() -> None:
    world = World(4)
    for reader in (1, 3):
        world.endpoints[reader].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    world.cut = {(2, 0), (0, 2)}
    stopped_at = world.now
    world.run(lambda: root.done)
    assert (root.failed, root.lost) == (True, (2,))
    assert 2.0 <= world.now - stopped_at < 2 * 2.0
    world.rest(0.1)
    for reader in (1, 3):
        with pytest.raises(MembersLost, match="member 2 of the group was lost") as caught:
            world.endpoints[reader].take(0)
        assert caught.value.members == (2,)
    # The others go on without it.
    assert world.broadcast(0, b"next", readers=[1, 3]) == {1: b"next", 3: b"next"}


def test_a_silent_member_may_be_left_out() -> None:
    world = World(4, settings=with_settings(on_loss="exclude"))
    for reader in (1, 2, 3):
        world.endpoints[reader].expect(0.0, 0)
    data = world.random.randbytes(100 * PAYLOAD)
    root = world.endpoints[0].send(0.0, data)
    world.run(lambda: root.all_have > 10)
    world.cut = {(2, 0), (0, 2)}
    world.run(lambda: root.done)
    assert (root.failed, root.lost, world.endpoints[0].lost) == (False, (2,), {2})
    for reader in (1, 3):
        message = world.endpoints[reader].take(0)
        assert message is not None
        assert message.value == data
    # It was only cut off: as soon as it is heard again, it learns what happened.
    world.cut = set()
    world.run(lambda: len(world.endpoints[2].member._inboxes[0].ready) > 0)
    with pytest.raises(RunError, match=r"took this member|silent"):
        world.endpoints[2].take(0)


def test_a_member_that_stops_for_a_while_is_not_lost() -> None:
    world = World(3)
    for reader in (1, 2):
        world.endpoints[reader].expect(0.0, 0)
    data = world.random.randbytes(300 * PAYLOAD)
    root = world.endpoints[0].send(0.0, data)
    for _ in range(3):
        world.stop(2, 1.5)
        have = root.all_have
        world.run(lambda have=have: root.all_have > have + 20)
    world.run(lambda: root.done)
    assert not root.lost


def test_a_root_that_stops_for_long_does_not_take_members_for_lost() -> None:
    """Its clock has run, but it has not asked anybody."""
    world = World(3)
    for reader in (1, 2):
        world.endpoints[reader].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    world.now += 1.9  # nobody hears of it for almost as long as they may wait
    world.run(lambda: root.done)
    assert not root.lost


def test_a_member_whose_root_dies_is_told() -> None:
    world = World(3)
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    world.cut = {(0, 1), (0, 2)}
    world.stop(0, 1e9)
    world.run(lambda: len(world.endpoints[1].member._inboxes[0].ready) > 0, seconds=10.0)
    with pytest.raises(RootSilent, match="silent for"):
        world.endpoints[1].take(0)


def test_a_member_that_gave_a_message_up_does_not_say_that_it_has_it() -> None:
    """Its root was stopped for so long that the reader was told; then it goes on, and asks."""
    world = World(2)
    keys = Keys(world.session)

    def tap(sender: int, to: int, data: bytes) -> bool:
        datagram = keys.open(data)
        assert datagram is not None
        return datagram.kind != Kind.DATA or datagram.seq != 3

    world.tap = tap
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(6 * PAYLOAD))
    world.run(lambda: root.all_sent)
    world.stop(0, 30.0)
    world.run(lambda: len(world.endpoints[1].member._inboxes[0].ready) > 0, seconds=10.0)
    with pytest.raises(RootSilent):
        world.endpoints[1].take(0)
    world.run(lambda: root.done)
    assert root.lost == (1,)


def test_a_member_that_restarts_in_the_middle_is_lost() -> None:
    """It has forgotten what it had: its answers are not those of the member that the root knew."""
    world = World(3)
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    world.endpoints[2] = world.new_endpoint(2)
    begun = world.now
    world.run(lambda: root.done, seconds=10.0)
    assert root.lost == (2,)
    assert world.now - begun < 2 * 2.0
    assert world.endpoints[0].replayed > 0


def half_way() -> tuple[World, Root]:
    """A message to one member, of which a part has arrived."""
    world = World(2)
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    return world, root


def test_a_message_can_be_cancelled() -> None:
    world, root = half_way()
    root.abort(Reason.CANCELLED)
    world.run(lambda: len(world.endpoints[1].member._inboxes[0].ready) > 0)
    with pytest.raises(Aborted, match="member 0 cancelled its message"):
        world.endpoints[1].take(0)
    assert world.broadcast(0, b"next") == {1: b"next"}


def test_an_end_that_was_not_heard_is_told_again() -> None:
    world, root = half_way()
    world.cut = {(0, 1)}
    root.abort(Reason.CANCELLED)
    world.rest(0.01)
    world.run(lambda: world.endpoints[0].next_timer() is None)
    world.cut = set()
    world.run(lambda: len(world.endpoints[1].member._inboxes[0].ready) > 0, seconds=1.9)
    with pytest.raises(Aborted):
        world.endpoints[1].take(0)


def test_a_next_message_ends_one_whose_end_was_lost() -> None:
    world, root = half_way()
    world.cut = {(0, 1)}
    root.abort(Reason.CANCELLED)
    world._flush(0)
    world.cut = set()
    root = world.endpoints[0].send(world.now, b"next")
    world.run(lambda: root.done)
    with pytest.raises(Aborted, match="began its next message"):
        world.endpoints[1].take(0)
    message = world.endpoints[1].take(0)
    assert message is not None
    assert message.value == b"next"


@given(
    size=st.integers(1, 6),
    window=st.integers(4, 64),
    payload=st.integers(64, 200),
    rate=st.sampled_from([None, 1e6, 1e9]),
    lengths=st.lists(st.integers(0, 4000), min_size=1, max_size=4),
    drop=st.floats(0, 0.4),
    double=st.floats(0, 0.2),
    reorder=st.floats(0, 0.5),
    damage=st.floats(0, 0.1),
    seed=st.integers(0, 2**32),
)
def test_everything_arrives_whatever_the_network_does(
    size: int,
    window: int,
    payload: int,
    rate: float | None,
    lengths: list[int],
    drop: float,
    double: float,
    reorder: float,
    damage: float,
    seed: int,
) -> None:
    faults = Faults(drop=drop, double=double, reorder=reorder, damage=damage, cut_short=damage)
    # Four members of ten may miss each question: they are lost only if they miss very many.
    settings = BroadcastOptions(window=window, rate=rate, dead_timeout=60.0)
    world = World(size, seed, faults, settings, payload)
    for length in lengths:
        root = world.random.randrange(size)
        data = world.random.randbytes(length)
        got = world.broadcast(root, data)
        assert got == {reader: data for reader in range(size) if reader != root}


def drops_once(world: World, chosen: Any, *, to: int) -> Any:
    """A tap that lets everything pass but the first datagram that is chosen, on its way to one member."""
    left = [1]
    keys = Keys(world.session)

    def tap(sender: int, receiver: int, data: bytes) -> bool:
        datagram = keys.open(data)
        assert datagram is not None
        if left and receiver == to and chosen(datagram):
            left.clear()
            return False
        return True

    return tap
