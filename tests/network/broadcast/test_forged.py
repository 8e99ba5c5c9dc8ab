"""Datagrams of people who do not belong: none is believed, none costs memory, none ends anything."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.network.broadcast.datagram import (
    HEADER,
    HEADER_BYTES,
    TAG_BYTES,
    VERSION,
    Abort,
    Datagram,
    Kind,
    Reason,
    Reply,
)
from minga.network.broadcast.keys import Keys, Session
from minga.network.broadcast.lost import MembersLost
from thinned import thinned

from .virtual import World

PAYLOAD = 64


def wrong_datagrams(genuine: list[bytes], other: list[bytes], mark: int, chosen: random.Random) -> Iterator[bytes]:
    """Noise, foreign sessions, damaged, cut, lengthened and spliced datagrams, and headers that say what would hurt."""
    while True:
        packet = chosen.choice(genuine)
        way = chosen.randrange(8)
        if way == 0:
            yield chosen.randbytes(chosen.randrange(0, 200))
        elif way == 1:
            yield mark.to_bytes(2, "big") + chosen.randbytes(chosen.randrange(0, 120))
        elif way == 2:
            yield chosen.choice(other)
        elif way == 3:
            yield mark.to_bytes(2, "big") + chosen.choice(other)[2:]
        elif way == 4:
            place = chosen.randrange(8 * len(packet))
            yield packet[: place // 8] + bytes([packet[place // 8] ^ 1 << place % 8]) + packet[place // 8 + 1 :]
        elif way == 5:
            yield packet[: chosen.randrange(len(packet))] if chosen.random() < 0.5 else packet + chosen.randbytes(3)
        elif way == 6:
            body = chosen.randbytes(PAYLOAD)
            kind = VERSION << 4 | chosen.choice(list(Kind))
            huge = chosen.getrandbits(32)
            header = HEADER.pack(mark, kind, chosen.randrange(3), 1, huge, 0xFFFFFFFF, len(body), 0, 255)
            yield header + body + chosen.randbytes(TAG_BYTES)
        else:  # the header of one with the payload of another
            yield packet[:HEADER_BYTES] + chosen.choice(genuine)[HEADER_BYTES:][::-1]


def traffic_of(world: World, messages: int) -> list[bytes]:
    """What all that was sent looked like."""
    world.record = True
    for k in range(messages):
        world.broadcast(k % world.size, world.random.randbytes(7 * PAYLOAD))
    world.record = False
    return world.seen


def opened(world: World, packet: bytes) -> Datagram | None:
    return Keys(world.session).open(packet)


@pytest.mark.slow
@pytest.mark.parametrize("many", thinned([20_000, 1_000_000], 20_000))
def test_none_is_accepted_nothing_ends_and_memory_stays(many: int) -> None:
    """A flood in the middle of a message, which then arrives as if nothing had been."""
    genuine = traffic_of(World(3, ident=b"session0"), 6)  # an old session of the same group
    other = traffic_of(World(3, ident=b"session2"), 6)
    world = World(3)
    now = traffic_of(world, 6)  # of this session, over by now
    endpoint = world.endpoints[1]
    data = world.random.randbytes(50 * PAYLOAD)
    endpoint.expect(world.now, 0)
    root = world.endpoints[0].send(world.now, data)
    world.run(lambda: root.all_have > 10)
    incoming = endpoint.member._inboxes[0].current
    assert incoming is not None
    before = (incoming.have, endpoint.traffic.segments, root.all_have, endpoint.traffic.nonsense)
    wrong = wrong_datagrams(now + genuine, other, endpoint.keys.mark, random.Random(1))
    tracemalloc.start()
    try:
        for receiver in (endpoint, world.endpoints[0]):
            for _ in range(100):  # what is allocated once is there
                receiver.on_datagram(world.now, next(wrong))
        begin = tracemalloc.get_traced_memory()[0]
        for k in range(many - 200):
            packet = next(wrong)
            receiver = world.endpoints[k % 2]
            receiver.on_datagram(world.now, packet)
        end, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    refused = endpoint.refused.total + world.endpoints[0].refused.total
    assert refused == many
    assert (incoming.have, endpoint.traffic.segments, root.all_have, endpoint.traffic.nonsense) == before
    assert not endpoint.member._replies
    assert not world.endpoints[0]._notices
    assert end - begin < 100_000
    assert peak - begin < 300_000
    world.run(lambda: root.done)
    message = endpoint.take(0)
    assert message is not None
    assert message.value == data


def test_replays_of_this_session_change_nothing() -> None:
    """Every datagram of the session once more, in any order, to everybody, while the next message travels."""
    world = World(3)
    seen = traffic_of(world, 9)
    data = world.random.randbytes(40 * PAYLOAD)
    for reader in (1, 2):
        world.endpoints[reader].expect(world.now, 0)
    root = world.endpoints[0].send(world.now, data)
    for packet in world.random.sample(seen, len(seen)):
        for to in range(3):
            world.inject(to, packet, world.random.random() * 0.01)
    world.run(lambda: root.done)
    for reader in (1, 2):
        message = world.endpoints[reader].take(0)
        assert message is not None
        assert message.value == data
        assert all(world.endpoints[reader].take(other) is None for other in range(3) if other != reader)
    assert not root.lost
    assert all(endpoint.refused.total == 0 for endpoint in world.endpoints)


def test_a_request_for_repair_serves_once() -> None:
    """Its copies do not make the root send again."""
    world = World(2)
    held: list[bytes] = []

    def tap(sender: int, to: int, data: bytes) -> bool:
        datagram = opened(world, data)
        assert datagram is not None
        if datagram.kind == Kind.NACK:
            held.append(data)
        return not (datagram.kind == Kind.DATA and datagram.seq == 3 and not held)

    world.tap = tap
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(60 * PAYLOAD))
    world.run(lambda: len(held) > 0 and root.repairs > 0)
    repairs, requests = root.repairs, len(held)
    for k in range(200):
        world.inject(0, held[0], 0.01 * k)
    world.run(lambda: root.done)
    assert root.repairs - repairs <= len(held) - requests
    assert world.endpoints[0].replayed > 0


def test_a_whole_old_session_is_foreign() -> None:
    old = traffic_of(World(3, ident=b"session0"), 5)
    world = World(3)
    for packet in old:
        for to in range(3):
            world.inject(to, packet)
    assert set(world.broadcast(0, b"new").values()) == {b"new"}
    assert [endpoint.refused.foreign for endpoint in world.endpoints] == [len(old)] * 3


def test_two_groups_on_one_address_do_not_meet() -> None:
    """Each hears all that the other sends to the group."""
    here, there = World(3, seed=1, record=True), World(3, seed=2, ident=b"session2", record=True)
    passed = {id(here): 0, id(there): 0}
    for k in range(20):
        data = b"message %d" % k * 50
        for world, neighbour in ((here, there), (there, here)):
            for packet in neighbour.seen[passed[id(world)] :]:
                for to in range(3):
                    world.inject(to, packet)
            passed[id(world)] = len(neighbour.seen)
            assert set(world.broadcast(k % 3, data).values()) == {data}
    assert all(endpoint.refused.foreign > 100 for world in (here, there) for endpoint in world.endpoints)


def test_nobody_without_the_key_ends_a_message() -> None:
    world = World(3)
    for reader in (1, 2):
        world.endpoints[reader].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    attacker = Keys(Session(b"session1", bytes(32), 3, PAYLOAD))
    attacker.mark = Keys(world.session).mark
    end = Abort(Reason.CANCELLED, (1,)).pack()
    for sender in range(3):
        packet = attacker.seal(Kind.ABORT, sender, message=1, seq=9, nseg=100, root=0, payload=end)
        for to in range(3):
            world.inject(to, packet)
    world.run(lambda: root.done)
    assert not root.failed
    assert all(endpoint.refused.forged >= 3 for endpoint in world.endpoints)


def test_a_member_ends_no_message_but_its_own() -> None:
    """All know the group's key and could sign as others; what they sign with their own key is theirs."""
    world = World(3)
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    end = Abort(Reason.CANCELLED, ()).pack()
    world.inject(1, Keys(world.session).seal(Kind.ABORT, 2, message=1, seq=9, nseg=100, root=0, payload=end))
    world.run(lambda: root.done)
    message = world.endpoints[1].take(0)
    assert message is not None
    assert world.endpoints[1].traffic.nonsense == 1


def test_the_end_of_one_member_is_not_that_of_another() -> None:
    """The root leaves somebody out; a stranger repeats what it said to others."""
    world = World(3)
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(100 * PAYLOAD))
    world.run(lambda: root.all_have > 10)
    end = Abort(Reason.EXCLUDED, (2,)).pack()
    world.inject(1, Keys(world.session).seal(Kind.ABORT, 0, message=1, seq=9, nseg=100, root=0, payload=end))
    world.run(lambda: root.done)
    message = world.endpoints[1].take(0)
    assert message is not None
    assert message.value == bytes(100 * PAYLOAD)
    assert world.endpoints[1].traffic.nonsense == 1


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_a_member_that_talks_nonsense_crashes_nobody(seed: int) -> None:
    """Authenticated datagrams with any contents: at worst this member itself is taken for lost."""
    world, chosen = World(3), random.Random(seed)
    keys = Keys(world.session)
    world.endpoints[1].expect(0.0, 0)
    root = world.endpoints[0].send(0.0, bytes(40 * PAYLOAD))
    for _ in range(50):
        small, huge = chosen.randrange(46), chosen.getrandbits(32)
        ranges = ((chosen.randrange(46), chosen.randrange(46)),)
        reply = Reply(
            chosen.choice((small, huge)), chosen.choice((40, huge)), huge, chosen.choice((1, 2, huge)), ranges
        )
        packet = keys.seal(
            chosen.choice(list(Kind)),
            2,
            message=chosen.choice((0, 1, 2, 3, huge)),
            seq=chosen.choice((small, chosen.randrange(46), huge)),
            nseg=chosen.choice((0, 1, 39, 40, 41, 1 << 16, 0xFFFFFFFF)),
            root=chosen.choice((0, 2)),
            flags=chosen.randrange(256),
            payload=chosen.choice((chosen.randbytes(small), reply.pack(), bytes(PAYLOAD))),
        )
        for to in (0, 1):
            world.inject(to, packet, chosen.choice((0.0, 0.001)))
    world.run(lambda: root.done, seconds=20.0)
    world.rest(0.1)
    if root.failed:
        assert root.lost == (2,)
        with pytest.raises(MembersLost, match="member 2"):
            world.endpoints[1].take(0)
        return
    message = world.endpoints[1].take(0)
    assert message is not None
    assert message.value == bytes(40 * PAYLOAD)
