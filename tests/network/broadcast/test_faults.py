"""Thousands of messages over networks that lose, double, delay and damage, to members that stop and go on."""

from __future__ import annotations

import random

import pytest

from minga.network.broadcast.datagram import Kind
from minga.network.broadcast.options import BroadcastOptions
from thinned import thinned

from .virtual import Faults, World

LOSSES = (0.0, 0.01, 0.05, 0.1, 0.2)
DEAD = 4.0  # seconds; members stop for less


@pytest.mark.parametrize("messages", thinned([200, 10_000], 200))
def test_every_byte_arrives_right_once_and_in_order(messages: int) -> None:
    """Messages of all sizes from all roots, a new network every few messages, readers that stop now and then."""
    chosen = random.Random(7)
    settings = BroadcastOptions(window=16, rate=None, dead_timeout=DEAD, waiting_bytes=1 << 14)
    groups = ((2, 64), (4, 200), (9, 100))
    worlds = [World(size, seed=size, settings=settings, payload=payload) for size, payload in groups]
    read = 0
    for number in range(messages):
        world = worlds[number % len(worlds)]
        if number % 10 == 0:
            loss = LOSSES[number // 10 % len(LOSSES)]
            world.faults = Faults(drop=loss, double=loss, reorder=2 * loss, damage=loss / 10, cut_short=loss / 10)
        if chosen.random() < 0.1:
            world.stop(chosen.randrange(world.size), chosen.uniform(0, DEAD / 2))
        # Most are short, some are long enough to fill the window several times.
        length = chosen.choice((0, 1, 8, 63, 64, 65, 200, 1000, 1000, 4000, 12000 if number % 7 == 0 else 100))
        data = number.to_bytes(4, "big") + chosen.randbytes(length)
        root = chosen.randrange(world.size)
        got = world.broadcast(root, data)
        assert got == {reader: data for reader in range(world.size) if reader != root}, number
        read += len(got)
    assert read > messages
    for world in worlds:  # once: nothing is left to be read
        for endpoint in world.endpoints:
            assert all(endpoint.take(other) is None for other in range(world.size) if other != endpoint.number)
            assert endpoint.member.waiting_bytes() == 0
            assert endpoint.traffic.nonsense == 0


@pytest.mark.parametrize("size", thinned([13, 64], 13))
def test_requests_of_many_members_do_not_drown_the_root(size: int) -> None:
    """When all miss the same segments, few ask, and one repair serves all."""
    world = World(size, payload=100, settings=BroadcastOptions(window=64, rate=1e8, dead_timeout=4.0))
    data = world.random.randbytes(300 * 100)
    dropped = {k: set(range(size)) for k in range(50, 60)}

    def tap(sender: int, to: int, packet: bytes) -> bool:
        datagram = world.endpoints[0].keys.open(packet)
        assert datagram is not None
        if sender == 0 and datagram.kind == Kind.DATA and datagram.seq in dropped and to in dropped[datagram.seq]:
            dropped[datagram.seq].discard(to)
            return False
        return True

    world.tap = tap
    assert set(world.broadcast(0, data).values()) == {data}
    root = world.endpoints[0].root
    assert root is not None
    assert root.repairs <= 2 * 10
    assert sum([endpoint.traffic.nacks for endpoint in world.endpoints]) <= 2 * size


PAYLOAD = 1436
WIRE_SHARE = PAYLOAD / 1538  # of a full frame, what is the message's


def share_of_wire(world: World, length: int) -> float:
    """Rate at which a message reached all, as a share of what the medium carries of payload at best."""
    assert world.hub is not None
    began = world.now
    world.broadcast(0, bytes(length))
    return 8 * length / (world.now - began) / (WIRE_SHARE * world.hub)


@pytest.mark.parametrize("rate", thinned([None, 1e7], 1e7))
def test_a_hub_of_10_megabit_is_filled_whatever_the_number_of_receivers(rate: float | None) -> None:
    """The old network of laboratories: all share one medium, answers take their part of it."""
    times = {}
    for receivers in (1, 3, 13):
        settings = BroadcastOptions(window=256, rate=rate)
        world = World(receivers + 1, payload=PAYLOAD, settings=settings, hub=1e7)
        times[receivers] = 1 / share_of_wire(world, 600_000)
        assert world.endpoints[0].root is not None
        assert world.endpoints[0].root.repairs == 0
    assert max(times.values()) < 1.1 * times[1]
    assert all(1 / time > 0.9 for time in times.values())


@pytest.mark.parametrize("rate", thinned([None, 1e7], None))
def test_random_losses_cost_little_more_than_what_is_repaired(rate: float | None) -> None:
    settings = BroadcastOptions(window=256, rate=rate)
    world = World(4, payload=PAYLOAD, settings=settings, hub=1e7, faults=Faults(drop=0.01))
    assert share_of_wire(world, 1_000_000) > 0.8


@pytest.mark.parametrize("hub", [1e7, 1e8])
def test_a_rate_is_found_without_drowning_the_queue(hub: float) -> None:
    """A switch that keeps 150 kB: a root that starts at 100 Mb/s and knows no better fills its line all the same."""
    settings = BroadcastOptions(window=1000, rate=None)
    world = World(4, payload=PAYLOAD, settings=settings, hub=hub, queue=150e3 * 8 / hub, faults=Faults(delay=1e-4))
    assert share_of_wire(world, 2_000_000) > 0.9
    root = world.endpoints[0].root
    assert root is not None
    assert root.repairs < 0.02 * root.message.nseg


def test_a_rate_falls_when_the_network_has_less_to_give_and_grows_when_it_has_more() -> None:
    settings = BroadcastOptions(window=256, rate=None, start_rate=1e7)
    world = World(3, payload=PAYLOAD, settings=settings, hub=1e8, queue=10e-3, faults=Faults(delay=1e-4))
    pace = world.endpoints[0].pace
    share_of_wire(world, 1_000_000)
    assert 0.7e8 < pace.rate < 4e8
    world.hub, world.queue = 1e7, 100e-3
    share_of_wire(world, 1_000_000)
    assert pace.rate < 5e7
    world.hub, world.queue = 1e8, 10e-3
    share_of_wire(world, 2_000_000)
    assert pace.rate > 6e7
