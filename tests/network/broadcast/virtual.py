"""A group of endpoints in virtual time, joined by a channel that does to datagrams what networks do.

Everything follows from a seed: what is dropped, doubled, delayed, damaged, and when a member is stopped.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from minga.network.broadcast.endpoint import Endpoint
from minga.network.broadcast.keys import Session
from minga.network.broadcast.options import BroadcastOptions, wire_bytes
from minga.network.broadcast.outgoing import GROUP

KEY = bytes(range(32))
NO_MULTICAST = "multicast does not reach this machine's own sockets (try `ip route add 239.0.0.0/8 dev lo` as root)"
"""Why a test is skipped."""


@dataclass
class Faults:
    """Probabilities, each for one datagram at one receiver; times in seconds."""

    drop: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    damage: float = 0.0
    cut_short: float = 0.0
    delay: float = 2e-4
    late: float = 3e-3  # how much later a reordered datagram comes


@dataclass
class World:
    """Endpoints, their clock, and what is under way between them."""

    size: int
    seed: int = 0
    faults: Faults = field(default_factory=Faults)
    settings: BroadcastOptions = field(default_factory=lambda: BroadcastOptions(window=16, rate=1e8, dead_timeout=2.0))
    payload: int = 64
    first_message: int = 1
    ident: bytes = b"session1"
    record: bool = False  # keep in `seen` what is put on the wire
    hub: float | None = None  # bits per second of a medium that all share; None for one without end
    queue: float = float("inf")  # seconds of that medium that may wait; what comes then is lost

    def __post_init__(self) -> None:
        self.now = 0.0
        self.random = random.Random(self.seed)
        self.session = Session(self.ident, KEY, self.size, self.payload)
        self.endpoints = [self.new_endpoint(number) for number in range(self.size)]
        self.stopped: dict[int, float] = {}  # member -> when it goes on
        self.cut: set[tuple[int, int]] = set()  # (from, to): nothing passes
        self.seen: list[bytes] = []
        self.tap: Callable[[int, int, bytes], bool] | None = None  # (from, to, bytes) -> whether it passes
        self.sent_datagrams = 0
        self._medium_free_at = 0.0
        self._timers: list[float | None] = [None] * self.size  # of each endpoint, when it was last heard
        self._queue: list[tuple[float, int, int, bytes]] = []
        self._order = itertools.count()

    def new_endpoint(self, number: int) -> Endpoint:
        return Endpoint(
            self.session,
            number,
            self.settings,
            incarnation=self.random.getrandbits(32),
            first_message=self.first_message,
        )

    # -- the channel

    def inject(self, to: int, data: bytes, after: float = 0.0) -> None:
        heapq.heappush(self._queue, (self.now + after, next(self._order), to, data))

    def _through_the_hub(self, data: bytes) -> float | None:
        """Seconds until a frame has left, once for all who hear it; None where there is no room to wait."""
        if self.hub is None:
            return 0.0
        wait = max(0.0, self._medium_free_at - self.now)
        if wait > self.queue:
            return None
        self._medium_free_at = self.now + wait + 8 * wire_bytes(len(data)) / self.hub
        return self._medium_free_at - self.now

    def _carry(self, sender: int, receivers: Iterable[int], data: bytes) -> None:
        if self.record:
            self.seen.append(data)
        leaves_after = self._through_the_hub(data)
        if leaves_after is None:
            return
        for to in receivers:
            if to == sender or (sender, to) in self.cut or (self.tap is not None and not self.tap(sender, to, data)):
                continue
            faults, chance = self.faults, self.random.random
            copies = (chance() >= faults.drop) + (faults.double > 0 and chance() < faults.double)
            for _ in range(copies):
                after = leaves_after + faults.delay
                if faults.reorder and chance() < faults.reorder:
                    after += chance() * faults.late
                self.inject(to, self._mangled(data), after)

    def _mangled(self, data: bytes) -> bytes:
        faults = self.faults
        if faults.damage and self.random.random() < faults.damage:
            place = self.random.randrange(8 * len(data))
            data = data[: place // 8] + bytes([data[place // 8] ^ 1 << place % 8]) + data[place // 8 + 1 :]
        if faults.cut_short and self.random.random() < faults.cut_short:
            data = data[: self.random.randrange(len(data))]
        return data

    # -- time

    def stop(self, member: int, seconds: float) -> None:
        """The member does nothing for a while; what arrives waits for it."""
        self.stopped[member] = self.now + seconds

    def _flush(self, number: int) -> None:
        endpoint = self.endpoints[number]
        while batches := endpoint.poll_output(self.now):
            for batch in batches:
                receivers = range(self.size) if batch.destination == GROUP else (batch.destination,)
                for pieces in batch.datagrams:
                    self.sent_datagrams += 1
                    self._carry(number, receivers, b"".join(pieces))
        self._timers[number] = endpoint.next_timer()

    def step(self) -> bool:
        """Let one thing happen; False when nothing ever will."""
        due = [(max(time, self.stopped.get(n, 0.0)), n) for n, time in enumerate(self._timers) if time is not None]
        next_timer = min(due, default=(float("inf"), -1))
        if self._queue and self._queue[0][0] <= next_timer[0]:
            time, _, to, data = heapq.heappop(self._queue)
            self.now = max(self.now, time)
            if self.stopped.get(to, 0.0) > self.now:
                self.inject(to, data, self.stopped[to] - self.now)
                return True
            endpoint = self.endpoints[to]
            endpoint.on_datagram(self.now, memoryview(data))
            if not (self._queue and self._queue[0][0] <= self.now and self._queue[0][2] == to):
                self._flush(to)
            return True
        if next_timer[1] < 0:
            return False
        self.now = max(self.now, next_timer[0])
        self.endpoints[next_timer[1]].on_timer(self.now)
        self._flush(next_timer[1])
        return True

    def run(self, until: Callable[[], bool], *, most_steps: int = 2_000_000, seconds: float = 1e6) -> None:
        """Go on until something holds; fails when it never does."""
        deadline = self.now + seconds
        for number, endpoint in enumerate(self.endpoints):
            self._timers[number] = endpoint.next_timer()
            if self.stopped.get(number, 0.0) <= self.now:
                self._flush(number)
        for _ in range(most_steps):
            if until():
                return
            assert self.step(), f"nothing happens any more at {self.now:.3f} s"
            assert self.now <= deadline, f"not reached after {seconds} s"
        raise AssertionError(f"not reached in {most_steps} steps, {self.now:.3f} s")

    def rest(self, seconds: float) -> None:
        """Let some time pass."""
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            self.step()
        self.now = end

    def broadcast(self, root: int, data: object, *, readers: Iterable[int] | None = None) -> dict[int, object]:
        """Send one message to all; what each reader got."""
        readers = [n for n in range(self.size) if n != root] if readers is None else list(readers)
        for reader in readers:
            self.endpoints[reader].expect(self.now, root)
        sending = self.endpoints[root].send(self.now, data)
        got: dict[int, object] = {}

        def all_there() -> bool:
            for reader in readers:
                if reader not in got and (message := self.endpoints[reader].take(root)) is not None:
                    got[reader] = message.value
            return sending.done and len(got) == len(readers)

        self.run(all_there)
        assert not sending.lost
        return got
