"""Real sockets on the loopback interface: multicast among members of one machine."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from minga.errors import RunError
from minga.network.broadcast.driver import Driver
from minga.network.broadcast.endpoint import Endpoint
from minga.network.broadcast.keys import Session
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.member import Aborted
from minga.network.broadcast.options import BroadcastOptions, batch_for, window_for
from minga.network.broadcast.sockets import Arrival, Sockets

from .virtual import NO_MULTICAST

LOCAL = "127.0.0.1"
GROUP = "239.255.77.1"
KEY = bytes(range(32))


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])


def multicast_works() -> bool:
    with Sockets.open((LOCAL, 0), group=(GROUP, port := free_port()), loop=True) as one:
        one.send((GROUP, port), [b"x"])
        return one.wait(1.0) and any(arrival.by_group for arrival in one.receive())


@contextmanager
def group(size: int, *, segmenting: bool = True, payload: int = 1436, **changes: Any) -> Iterator[list[Driver]]:
    """Drivers of a group on this machine."""
    if not multicast_works():
        pytest.skip(NO_MULTICAST)
    address = (GROUP, free_port())
    sockets = [Sockets.open((LOCAL, 0), group=address, loop=True, segmenting=segmenting) for _ in range(size)]
    window = window_for(min(one.granted for one in sockets), payload)
    settings = BroadcastOptions(**{"window": window, "batch": batch_for(payload), "dead_timeout": 60.0, **changes})
    session = Session(b"loopback", KEY, size, payload)
    addresses = [one.address for one in sockets]
    try:
        yield [Driver(one, Endpoint(session, n, settings), addresses, address) for n, one in enumerate(sockets)]
    finally:
        for one in sockets:
            one.close()


def at_once(*tasks: Callable[[], Any]) -> list[Any]:
    """Results of tasks that run in threads of their own; raises what the first of them raised."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result(timeout=120) for future in [pool.submit(task) for task in tasks]]


def stay(driver: Driver, over: threading.Event) -> None:
    """Answer others until something is over."""
    while not over.is_set():
        driver.progress(0.01)


def receive_and_stay(driver: Driver, over: threading.Event, many: int, into: Any = None) -> list[Any]:
    """Receive messages of member 0, then answer until it has finished."""
    got = [driver.receive(0, into, timeout=60.0).value for _ in range(many)]
    stay(driver, over)
    return got


def exchange(drivers: list[Driver], messages: list[Any], into: Any = None) -> list[list[Any]]:
    """Member 0 sends messages to the others; what each of them got."""
    over = threading.Event()

    def send() -> None:
        try:
            for data in messages:
                drivers[0].broadcast(data)
        finally:
            over.set()

    tasks = [lambda driver=driver: receive_and_stay(driver, over, len(messages), into) for driver in drivers[1:]]
    return at_once(send, *tasks)[1:]


@pytest.mark.parametrize("segmenting", [True, False])
def test_messages_arrive_through_sockets(segmenting: bool) -> None:
    messages = [b"", b"short", bytes(range(256)) * 1000, bytes(1436), bytes(1437)]
    with group(3, segmenting=segmenting) as drivers:
        assert [driver.sockets.segmenting for driver in drivers] == [segmenting and drivers[0].sockets.segmenting] * 3
        assert exchange(drivers, messages) == [messages] * 2
        assert drivers[0].endpoint.refused.total == 0


def test_arrays_arrive_in_place() -> None:
    place = np.zeros((100, 300))
    array = np.random.default_rng(1).random((100, 300))
    with group(2) as drivers:
        assert exchange(drivers, [array], place)[0][0] is place
    np.testing.assert_array_equal(place, array)


def test_noise_from_others_on_the_machine_is_refused() -> None:
    with group(2) as drivers, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for driver in drivers:
            for length in (0, 1, 36, 500, 3000, 60000):
                stranger.sendto(bytes(length), driver.sockets.address)
        assert exchange(drivers, [b"data" * 1000]) == [[b"data" * 1000]]
        assert [driver.endpoint.refused.total for driver in drivers] == [6, 6]


def test_a_message_may_be_finished_later() -> None:
    with group(2) as drivers:
        root = drivers[0].broadcast(bytes(50_000), wait=False)
        assert root.all_sent
        over = threading.Event()

        def finish() -> None:
            drivers[0].finish()
            over.set()

        assert at_once(finish, lambda: receive_and_stay(drivers[1], over, 1))[1] == [bytes(50_000)]
        assert root.done
        assert not drivers[0].unfinished()


def test_a_member_that_is_not_there_is_named() -> None:
    with group(3, dead_timeout=0.3) as drivers:
        over = threading.Event()

        def send() -> tuple[int, ...]:
            try:
                with pytest.raises(MembersLost, match="member 2 of the group was lost") as caught:
                    drivers[0].broadcast(bytes(10_000))
            finally:
                over.set()
            return caught.value.members

        # Member 1 has all of it before the root learns that another has not.
        assert at_once(send, lambda: receive_and_stay(drivers[1], over, 1)) == [(2,), [bytes(10_000)]]


@pytest.mark.slow
def test_a_loss_that_nobody_waited_for_is_told_with_the_next_message() -> None:
    with group(3, dead_timeout=1.0) as drivers:
        told = threading.Event()

        def send() -> None:
            root = drivers[0].broadcast(b"first", wait=False)
            while not root.done:
                drivers[0].progress(0.01)
            assert root.failed
            with pytest.raises(MembersLost, match="member 2 of the group was lost while an earlier message"):
                drivers[0].broadcast(b"second")
            stay(drivers[0], told)

        def receive() -> None:
            try:
                assert drivers[1].receive(0, timeout=60.0).value == b"first"
                with pytest.raises(MembersLost) as caught:
                    drivers[1].receive(0, timeout=60.0)
                assert caught.value.members == (2,)
            finally:
                told.set()

        at_once(send, receive)


def test_a_flood_does_not_hold_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something arrives whenever it looks, and still its calls end with their time."""
    with group(2) as drivers:
        one = drivers[1].sockets
        noise = Arrival(memoryview(b"noise"), one.address, True)
        monkeypatch.setattr(one, "receive", lambda: iter([noise]))
        drivers[1].progress()
        with pytest.raises(RunError, match="no message from member 0"):
            drivers[1].receive(0, timeout=0.01)
        drivers[1].linger(0.01)
        assert drivers[1].endpoint.refused.malformed > 3


def test_an_interrupted_root_tells_the_others() -> None:
    class Impatient(Exception):
        pass

    with group(2, waiting_bytes=1) as drivers:
        rounds = []

        def interrupted() -> bool:
            rounds.append(1)
            if len(rounds) > 20:
                raise Impatient
            return False

        root = drivers[0].endpoint.send(0.0, bytes(10_000_000))
        with pytest.raises(Impatient):
            drivers[0]._finish(root, interrupted)
        over = threading.Event()

        def receive() -> None:
            try:
                with pytest.raises(Aborted, match="member 0 cancelled"):
                    drivers[1].receive(0, timeout=60.0)
            finally:
                over.set()

        at_once(receive, lambda: stay(drivers[0], over))


def test_receiving_ends_with_its_time() -> None:
    with group(2) as drivers, pytest.raises(RunError, match=r"no message from member 0 within 0\.05 s"):
        drivers[1].receive(0, timeout=0.05)


def test_lingering_ends_when_all_is_quiet() -> None:
    with group(2, dead_timeout=1.0) as drivers:
        drivers[1].linger(3600.0)


def test_systems_that_do_not_segment_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first refusal switches to one datagram a send, and nothing is lost."""

    class Old:
        """A socket of a kernel that does not know UDP_SEGMENT."""

        def __init__(self, real: socket.socket) -> None:
            self.real = real

        def sendmsg(self, pieces: Any, ancillary: Any, *rest: Any) -> int:
            if ancillary:
                raise OSError(errno.EINVAL, "Invalid argument")
            return self.real.sendmsg(pieces, ancillary, *rest)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    with group(2) as drivers:
        one = drivers[0].sockets
        monkeypatch.setattr(one, "_own", Old(one._own))
        monkeypatch.setattr(one, "segmenting", True)
        assert exchange(drivers, [bytes(100_000)]) == [[bytes(100_000)]]
        assert not one.segmenting


def test_a_full_system_takes_the_rest_later(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A socket whose send buffer is full every other time."""

        def __init__(self, real: socket.socket) -> None:
            self.real = real
            self.calls = 0

        def sendmsg(self, *rest: Any) -> int:
            self.calls += 1
            if self.calls % 2:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            return self.real.sendmsg(*rest)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    with group(2, segmenting=False) as drivers:
        one = drivers[0].sockets
        full = Full(one._own)
        monkeypatch.setattr(one, "_own", full)
        monkeypatch.setattr(one, "wait", lambda seconds, write=False: True)
        assert exchange(drivers, [bytes(30_000)]) == [[bytes(30_000)]]
        assert full.calls > 40
        assert one.dropped == 0


def test_what_the_system_refuses_to_send_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sockets.open((LOCAL, 0), group=None) as one:
        assert one.send(("240.0.0.1", 9), [b"x"]) == 1  # no route to there
        assert one.dropped == 1
        assert one.last_error is not None


def test_addresses_that_cannot_be_bound_are_refused() -> None:
    with pytest.raises(RunError, match=r"multicast to 239\.255\.77\.1:9 cannot be opened at 192\.0\.2\.1:0"):
        Sockets.open(("192.0.2.1", 0), group=(GROUP, 9))


def test_the_address_a_datagram_came_on_is_known() -> None:
    if not multicast_works():
        pytest.skip(NO_MULTICAST)
    with Sockets.open((LOCAL, 0), group=(GROUP, port := free_port()), loop=True) as one:
        one.send((GROUP, port), [b"to all"])
        one.send(one.address, [(b"to ", b"one")])
        got: dict[bool, bytes] = {}
        while len(got) < 2 and one.wait(5.0):
            for arrival in one.receive():
                assert arrival.source == one.address
                got[arrival.by_group] = bytes(arrival.data)
        assert got == {True: b"to all", False: b"to one"}
