"""The chain: what goes along it arrives whole, and members that go away are named or done without."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minga.errors import RunError
from minga.network.broadcast.chain import Chain, Costs
from minga.network.broadcast.forwarding import chunk_for
from minga.network.broadcast.link import Link, LinkError, connect, listen
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.ring import Ring

SESSION = b"a sessio"
HOME = "127.0.0.1"


class Gone(Exception):
    """Ends a member as a kill does: without a word."""


def crew(
    size: int,
    act: Callable[[Chain], Any],
    *,
    around: bool = False,
    patience: float = 20.0,
    chunk: int | None = None,
    order: list[int] | None = None,
) -> list[Any]:
    """What ``act`` returns or raises on each of ``size`` members of a chain, which are threads."""
    key = secrets.token_bytes(32)
    listeners = [listen(HOME) for _ in range(size)]
    places = [listener.getsockname() for listener in listeners]
    results: list[Any] = [None] * size
    all_there = threading.Barrier(size)

    def member(number: int) -> None:
        chain = Chain(number, size, Costs(chunk=chunk))
        ring = Ring(
            chain, listeners[number], number, order or list(range(size)), places, key, SESSION,
            patience=patience, around=around,
        )  # fmt: skip
        chain.start(ring)
        try:
            assert chain.connect(20)
            all_there.wait(20)
            results[number] = act(chain)
            chain.linger(20)
            chain.close()
        except Gone:
            ring.close()
        except Exception as error:
            results[number] = error
            chain.close()

    threads = [threading.Thread(target=member, args=(number,)) for number in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def test_the_chunk_is_the_best_one() -> None:
    """By the formula's own time: no other chunk on a fine grid is better by more than the rounding."""
    nbytes, receivers, alpha, beta = 1_000_000, 7, 1e-4, 8e-8

    def seconds(chunk: float) -> float:
        return (nbytes / chunk + receivers - 1) * (alpha + chunk * beta)

    best = seconds(chunk_for(nbytes, receivers, alpha, beta))
    assert best <= 1.01 * min(seconds(chunk) for chunk in range(1024, 200_000, 512))
    assert chunk_for(nbytes, 1, alpha, beta) > chunk_for(nbytes, 2, alpha, beta)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_messages_of_all_roots_arrive(size: int) -> None:
    rng = np.random.default_rng(size)
    said = [rng.integers(0, 256, n).astype(np.uint8).tobytes() for n in (0, 1, 999, 1000, 1001, 20_000, 100_003)]

    def act(chain: Chain) -> list[bytes]:
        got = []
        for number, message in enumerate(said):
            root = number % size
            if root == chain.own:
                chain.broadcast(message, wait=number % 2 == 0)
                got.append(message)
            else:
                got.append(bytes(chain.receive(root, timeout=30)))
        return got

    assert crew(size, act, chunk=1000, order=[*range(1, size), 0]) == [said] * size


def test_arrays_arrive_in_place_and_in_any_byte_order() -> None:
    sent = np.arange(12.0).reshape(3, 4).astype(">f8")

    def act(chain: Chain) -> np.ndarray:
        if chain.own == 0:
            chain.broadcast(sent)
            return sent
        place = np.zeros((3, 4)) if chain.own == 1 else None
        got = chain.receive(0, place, timeout=30)
        assert isinstance(got, np.ndarray)
        assert place is None or got is place
        return got

    for got in crew(3, act):
        np.testing.assert_array_equal(got, sent)


def test_what_others_still_pass_on_is_not_what_the_reader_changes() -> None:
    sent = np.arange(300_000, dtype="u4")

    def act(chain: Chain) -> np.ndarray:
        if chain.own == 0:
            chain.broadcast(sent)
            return sent
        got = chain.receive(0, timeout=30)
        assert isinstance(got, np.ndarray)
        copy = got.copy()
        got[...] = 0
        return copy

    for got in crew(4, act, chunk=2048):
        np.testing.assert_array_equal(got, sent)


def vanishing(after: int, how: Callable[[], None], who: int) -> Callable[[Chain], Any]:
    """Member ``who`` goes in the midst of a message of member 0: others receive that one and one more."""
    sent = np.arange(200_000, dtype="u4")

    def act(chain: Chain) -> Any:
        if chain.own == who:
            while sum(message.have for message in chain.shelf.messages.values()) < after:
                chain.progress(0.01)
            how()
            raise Gone
        for factor in (1, 3):
            if chain.own == 0:
                chain.broadcast(sent * factor)
            else:
                np.testing.assert_array_equal(chain.receive(0, timeout=30), sent * factor)
        return sorted(chain.lost)

    return act


@pytest.mark.parametrize("who", [1, 2, 4])
def test_a_member_that_breaks_off_is_named_by_all(who: int) -> None:
    results = crew(5, vanishing(100_000, lambda: None, who), chunk=4096)
    for number, result in enumerate(results):
        if number != who:
            assert isinstance(result, MembersLost), result
            assert result.members == (who,)


@pytest.mark.few(2)
@pytest.mark.parametrize("who", [1, 2, 4])
def test_the_chain_closes_without_a_member_that_breaks_off(who: int) -> None:
    results = crew(5, vanishing(100_000, lambda: None, who), chunk=4096, around=True)
    assert [result for number, result in enumerate(results) if number != who] == [[who]] * 4


@pytest.mark.slow
def test_silence_is_noticed() -> None:
    """A member that stops without closing anything: its neighbours know by the signs of life that do not come."""
    everyone, knowing = threading.Event(), set[int]()
    act = vanishing(100_000, lambda: everyone.wait(60), 2)

    def watched(chain: Chain) -> Any:
        """Keep connections open, and show signs of life, until all others know."""
        try:
            return act(chain)
        finally:
            knowing.add(chain.own)
            while chain.own != 2 and not everyone.wait(0.01):
                with contextlib.suppress(MembersLost):
                    chain.progress()
                if len(knowing) == 3:
                    everyone.set()

    results = crew(4, watched, chunk=4096, patience=2.0)
    assert all(isinstance(result, MembersLost) and result.members == (2,) for result in (results[0], results[3]))
    assert "silent for 2 s" in str(results[0])


@pytest.mark.parametrize("around", [False, True])
def test_silence_of_the_only_other_member_ends_both_connections(around: bool) -> None:
    """It is before and behind at the same time."""
    over = threading.Event()

    def act(chain: Chain) -> Any:
        if chain.own == 1:
            assert over.wait(60)
            raise Gone
        began = time.monotonic()
        chain.ring.clock = lambda: began + 40 * (time.monotonic() - began)  # a jump would count as a suspension
        try:
            return chain.receive(1, timeout=30)
        finally:
            over.set()

    first, _ = crew(2, act, around=around)
    assert isinstance(first, MembersLost), first
    assert first.members == (1,)
    assert "silent for 20 s" in str(first)


def test_too_long_a_message_is_not_begun() -> None:
    def act(chain: Chain) -> bool:
        chain._max_bytes = 10
        with pytest.raises(RunError, match="at most 10 bytes, found 11"):
            chain.broadcast(bytes(11))
        return chain.broadcast(bytes(10)).answered

    assert crew(1, act) == [True]


def test_a_lost_root_is_named_where_its_message_is_not_whole() -> None:
    def act(chain: Chain) -> Any:
        if chain.own == 1:
            raise Gone
        return chain.receive(1, timeout=30)

    results = crew(3, act, around=True)
    assert all(isinstance(result, MembersLost) and result.members == (1,) for result in (results[0], results[2]))


def test_a_member_that_left_is_missed_when_it_is_needed() -> None:
    def act(chain: Chain) -> Any:
        if chain.own == 1:
            return "left"
        while chain.own == 0 and 1 not in chain.ring._left and not chain.lost:
            chain.progress(0.01)
        return chain.broadcast(b"x" * 10) if chain.own == 0 else chain.receive(0, timeout=30)

    results = crew(3, act)
    assert results[1] == "left"
    assert isinstance(results[0], MembersLost)
    assert "left the group" in str(results[0])


# Links ----------------------------------------------------------------------------------------------------------------
def pair(key: bytes = b"k" * 32, other: bytes = b"k" * 32, session: bytes = SESSION) -> tuple[Link, Link]:
    """Both ends of a connection."""
    with listen(HOME) as listener:
        first = connect(listener.getsockname(), 1, 2, key, SESSION)
        listener.settimeout(10)
        connection, _ = listener.accept()
    return first, Link(connection, 2, other, session, None)


def talk(*links: Link, until: Callable[[], bool]) -> dict[Link, list[tuple[int, bytes]]]:
    heard: dict[Link, list[tuple[int, bytes]]] = {link: [] for link in links}
    deadline = time.monotonic() + 20
    while not until():
        assert time.monotonic() < deadline
        for link in links:
            link.write()
            heard[link] += [(kind, bytes(content)) for kind, content in link.read()]
    return heard


def test_both_ends_know_each_other_and_frames_come_in_order() -> None:
    one, two = pair()
    talk(one, two, until=lambda: one.ready and two.ready)
    assert (one.peer, two.peer) == (2, 1)
    frames = [(kind, bytes([kind]) * (kind * 40_000)) for kind in range(6)]
    for kind, content in frames:
        one.send(kind, content[:100], content[100:])
    got: list[tuple[int, bytes]] = []

    def all_there() -> bool:
        got.extend((kind, bytes(content)) for kind, content in two.read())
        return len(got) == len(frames)

    talk(one, until=all_there)
    assert got == frames
    one.close()
    with pytest.raises(LinkError, match="closed"):
        talk(two, until=lambda: False)
    two.close()


@pytest.mark.parametrize(("key", "session"), [(b"x" * 32, SESSION), (b"k" * 32, b"another!")])
def test_an_end_without_the_key_or_of_another_session_is_turned_away(key: bytes, session: bytes) -> None:
    one, two = pair(other=key, session=session)
    with pytest.raises(LinkError, match="does not know the group's key"):
        talk(one, two, until=lambda: False)
    assert not one.ready
    assert not two.ready
    one.close()
    two.close()


def changed_stream(change: Callable[[bytes], bytes]) -> LinkError:
    """What the receiver says of frames that were changed on their way."""
    one, two = pair()
    talk(one, two, until=lambda: one.ready and two.ready)
    for content in (b"first" * 20, b"second" * 20):
        one.send(1, content)
    data = b"".join(bytes(part) for part in one._out)
    one.socket.sendall(change(data))
    with pytest.raises(LinkError) as caught:
        talk(two, until=lambda: False)
    one.close()
    two.close()
    return caught.value


FRAME = 5 + 100 + 16


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:],
        lambda data: data[:4] + bytes([data[4] ^ 1]) + data[5:],
        lambda data: data[:FRAME] + data[:FRAME],  # once more
        lambda data: data[FRAME:],  # the first one left out
    ],
    ids=["content", "kind", "repeated", "left out"],
)
def test_frames_that_were_changed_are_refused(change: Callable[[bytes], bytes]) -> None:
    assert "did not write" in str(changed_stream(change))


def test_frames_of_absurd_length_are_refused() -> None:
    assert "bytes" in str(changed_stream(lambda data: b"\xff" * 4 + data[4:]))


def test_strangers_do_not_disturb_a_ring() -> None:
    """Somebody who connects and says anything, or nothing, is turned away; messages go on."""
    strangers: list[socket.socket] = []

    def act(chain: Chain) -> bytes:
        if chain.own == 0:
            for number, text in enumerate((b"", b"GET / HTTP/1.1\r\n\r\n" * 10, b"mingal1\0" + bytes(300))):
                strangers.append(socket.create_connection(chain.ring.places[1 + number % 2]))
                strangers[-1].sendall(text)
            chain.broadcast(b"all the same")
            return b"all the same"
        return bytes(chain.receive(0, timeout=30))

    assert crew(3, act) == [b"all the same"] * 3
    for stranger in strangers:
        stranger.close()


def test_of_many_strangers_only_the_latest_are_heard() -> None:
    strangers: list[socket.socket] = []

    def act(chain: Chain) -> int:
        if chain.own == 0:
            strangers.extend(socket.create_connection(chain.ring.places[1]) for _ in range(40))
            chain.broadcast(b"all the same")
            return 0
        assert bytes(chain.receive(0, timeout=30)) == b"all the same"
        for _ in range(100):  # takes them all
            chain.progress()
        return len(chain.ring._guests)

    assert crew(2, act)[1] in range(17)
    for stranger in strangers:
        stranger.close()
