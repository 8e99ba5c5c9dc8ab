"""Messages over the loopback: every transport, and what goes wrong with them."""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minga.network.measuring.transports import Mode, Unavailable, icmp, tcp, udp
from minga.network.measuring.transports.stream import Room, StreamPinger, echo
from minga.network.measuring.transports.udpbcast import BroadcastPinger, echo_broadcast
from missing import missing

HERE, TOKEN = "127.0.0.1", bytes(range(16))


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


@pytest.mark.parametrize("options", [tcp.Options(), tcp.Options(nodelay=False), tcp.Options(buffer=8192)])
def test_tcp_there_and_back(options: tcp.Options) -> None:
    listener = tcp.listen(HERE, options)
    port = listener.getsockname()[1]
    thread, served = in_background(lambda: echo(tcp.accept(listener, TOKEN, options, 5.0)))
    pinger = StreamPinger(tcp.connect(HERE, port, TOKEN, options, 5.0))
    modes: tuple[Mode, ...] = ("pingpong", "oneway", "both")
    for mode in modes:
        for size in (1, 1000, 3_000_000):
            times = pinger.exchange(size, 4, mode)
            assert len(times) == 4
            assert all(0 < time < 5 for time in times)
    pinger.close()
    thread.join(5)
    assert served == [36]
    assert pinger.transport == ("tcp" if options.nodelay else "tcp-nagle")


def test_tcp_turns_away_who_does_not_know_the_token() -> None:
    listener = tcp.listen(HERE, tcp.Options())
    address = listener.getsockname()
    thread, served = in_background(lambda: echo(tcp.accept(listener, TOKEN, tcp.Options(), 5.0)))
    with socket.create_connection(address) as stranger:
        stranger.sendall(bytes(16))
        assert stranger.recv(1) == b""
    pinger = StreamPinger(tcp.connect(HERE, address[1], TOKEN, tcp.Options(), 5.0))
    assert len(pinger.exchange(10, 2)) == 2
    pinger.close()
    thread.join(5)
    assert served == [2]


def test_tcp_without_an_answer() -> None:
    with socket.socket() as unused:
        unused.bind((HERE, 0))
        with pytest.raises(Unavailable, match="no TCP connection"):
            tcp.connect(HERE, unused.getsockname()[1], TOKEN, tcp.Options(), 1.0)


def test_tcp_silence_and_a_peer_that_leaves() -> None:
    listener = tcp.listen(HERE, tcp.Options())
    port = listener.getsockname()[1]
    thread, served = in_background(lambda: tcp.accept(listener, TOKEN, tcp.Options(), 5.0))
    wire = tcp.connect(HERE, port, TOKEN, tcp.Options(), 0.1)
    thread.join(5)
    with pytest.raises(TimeoutError):
        wire.receive(memoryview(bytearray(1)))
    served[0].close()
    with pytest.raises(EOFError):
        wire.receive(memoryview(bytearray(1)))
    wire.close()


def test_two_writes_with_nagle_wait_for_an_acknowledgement() -> None:
    nagle, plain = tcp.Options(nodelay=False, split=True), tcp.Options(split=True)
    once, waited = {}, {}
    for options in (nagle, plain):
        listener = tcp.listen(HERE, options)
        thread, _ = in_background(lambda: echo(tcp.accept(listener, TOKEN, options, 5.0)))
        pinger = StreamPinger(tcp.connect(HERE, listener.getsockname()[1], TOKEN, options, 5.0))
        once[options] = min(pinger.exchange(8, 5))  # one write
        waited[options] = sorted(pinger.exchange(100, 5))
        pinger.close()
        thread.join(5)
    assert waited[nagle][2] > 0.02  # Linux delays it by 40 ms
    assert waited[nagle][2] > 3 * max(waited[plain][0], once[nagle], once[plain])


def test_cold_messages_move_through_the_arena() -> None:
    room = Room(arena=1 << 20)
    places = [room.take(1000) for _ in range(3)]
    shared = [np.shares_memory(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))
              for at, (a, _) in enumerate(places) for pair in places[:at] for b in pair]  # fmt: skip
    assert not any(shared)
    assert all(len(view) == 1000 for pair in places for view in pair)
    assert [len(view) for view in room.take(1 << 20)] == [1 << 20, 1 << 20]  # too large for it
    for _ in range(1000):
        sent, received = room.take(1000)
        assert (sent[0], received[-1]) == (1, 1)
    warm = Room()
    assert warm.take(10)[0].obj is warm.take(8)[0].obj


def test_broadcast_there_and_back() -> None:
    listener, key = tcp.listen(HERE, tcp.Options()), bytes(range(32))
    port = listener.getsockname()[1]
    thread, served = in_background(lambda: echo_broadcast(tcp.accept(listener, key, tcp.Options(), 5.0), key))
    try:
        pinger = BroadcastPinger(tcp.connect(HERE, port, key, tcp.Options(), 5.0), key)
    except Unavailable as error:
        pytest.skip(missing(error))
    for size in (1, 1000, 100_000):
        assert all(0 < time < 5 for time in pinger.exchange(size, 2))
    with pytest.raises(Unavailable):
        pinger.exchange(8, 1, "both")
    pinger.close()
    thread.join(10)
    assert served == [6]


def test_udp_there_and_back() -> None:
    bound = udp.bind(HERE)
    port = bound.getsockname()[1]
    thread, served = in_background(lambda: udp.echo(bound, TOKEN, 5.0))
    pinger = udp.UdpPinger(HERE, port, TOKEN)
    for size in (0, 1, 1000, udp.UdpPinger.most):
        assert all(0 < time < 1 for time in pinger.exchange(size, 5))
    pinger.close()
    thread.join(5)
    assert served == [20]


def test_udp_counts_what_is_lost() -> None:
    bound = udp.bind(HERE)

    def forgetful() -> None:
        with bound:
            data, peer = bound.recvfrom(64)
            bound.sendto(data, peer)
            for count in range(6):
                data, peer = bound.recvfrom(2000)
                if count % 2:
                    bound.sendto(data, peer)

    thread, _ = in_background(forgetful)
    pinger = udp.UdpPinger(HERE, bound.getsockname()[1], TOKEN, wait=0.05)
    assert [math.isnan(time) for time in pinger.exchange(100, 6)] == [True, False] * 3
    thread.join(5)
    pinger.close()


def test_udp_answers_only_who_knows_the_token() -> None:
    bound = udp.bind(HERE)
    thread, served = in_background(lambda: udp.echo(bound, TOKEN, 0.4))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.settimeout(0.1)
        stranger.sendto(b"minga?" + bytes(16), bound.getsockname())
        with pytest.raises(TimeoutError):
            stranger.recv(100)
    thread.join(5)
    assert isinstance(served[0], TimeoutError)


@pytest.mark.slow
def test_udp_whose_last_words_are_lost() -> None:
    """What was measured is good all the same."""
    bound = udp.bind(HERE)
    thread, served = in_background(lambda: udp.echo(bound, TOKEN, 1.0))
    pinger = udp.UdpPinger(HERE, bound.getsockname()[1], TOKEN)
    assert len(pinger.exchange(100, 3)) == 3
    thread.join(5)
    assert served == [3]
    pinger.close()


def test_icmp_there_and_back() -> None:
    try:
        pinger = icmp.IcmpPinger(HERE)
    except Unavailable as error:
        pytest.skip(missing(error))
    for size in (0, 1, 1001, pinger.most):
        assert all(0 < time < 1 for time in pinger.exchange(size, 3))
    with pytest.raises(Unavailable):
        pinger.exchange(8, 1, "both")
    pinger.close()


def test_checksum_of_rfc_1071() -> None:
    assert icmp._checksum(bytearray.fromhex("0001f203f4f5f6f7")) == 0x220D
    assert icmp._checksum(bytearray(b"\x01")) == 0xFEFF
