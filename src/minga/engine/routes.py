"""Routes of equal payloads: how what one rank has reaches all others.

    pairwise    a message to each of them
    collective  MPI's broadcast, persistent where the library has it
    chain       from rank to rank, in segments, so that all links of a switch are busy at once
    group       a broadcast of the network itself (`minga.network.broadcast`), one transmission for all

The bits that arrive are the same. `auto` is pairwise for fewer than three receivers, where little can be won; beyond,
MPI's broadcast where there is MPI. A model of the network (`minga.plan.broadcasting`) chooses better.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np

from minga.engine.comm import Channel, Comm, Envelope, MPIBroadcast, MPIComm
from minga.engine.waiting import wait_until
from minga.errors import LayoutError

__all__ = ["ROUTES", "Broadcasting", "Router", "Routes", "Spread"]

RouteWord = Literal["pairwise", "collective", "chain", "group"]
ROUTES: Final[tuple[RouteWord, ...]] = ("pairwise", "collective", "chain", "group")
FEW: Final = 3
"""Receivers below which `auto` sends to each."""
SEGMENT: Final = 16384
"""Bytes of a piece of a chain where nobody says otherwise: what Open MPI's pipeline takes best at 100 Mb/s."""

Router = Callable[[int, int], str]
"""Bytes of a payload and number of receivers to a route, one of ROUTES; "chain:65536" says how long its pieces are."""


class Broadcasting(Protocol):
    """A group of all ranks that broadcasts by itself; its members are numbered as the ranks are."""

    def bcast(self, data: Any, root: int = 0, *, wait: str = "all") -> Any:
        """Fill `data`, writable bytes, with those of the root."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Spread:
    """What one rank has for all others: bytes (uint8) that are sent from there, or filled here; of `copies` boxes."""

    root: int
    buffer: np.ndarray
    copies: int = 1


@dataclass(slots=True)
class Routes:
    """The routes of one engine.

    choose  one word for all, "auto", or a function of payload and receivers, the same on all ranks
    group   what "group" means, or how to make it of the ranks

    Channels may be asked for while other ranks do something else; `ready`, which all call together, completes them.
    """

    choose: str | Router = "auto"
    group: Broadcasting | Callable[[Comm], Broadcasting] | None = None
    _answers: list[str] = field(default_factory=list, repr=False)
    _broadcasts: list[MPIBroadcast] = field(default_factory=list, repr=False)
    _wanted: bool = field(default=False, repr=False)
    _own: Broadcasting | None = field(default=None, repr=False)
    _sender: Sender = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._sender = Sender()
        if isinstance(self.choose, str) and self.choose != "auto":
            _parsed(self.choose)
        if self.choose == "group" and self.group is None:
            raise LayoutError(
                'route is "group", but there is none', remedy="pass group=minga.network.broadcast.Group.of(comm)"
            )

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Messages that bring every spread to all ranks. All ranks ask for the same ones in the same order."""
        if not spreads:
            return comm.channel([], [], next_tag())
        word, segment = self._chosen(comm, max(spread.buffer.nbytes for spread in spreads))
        if word == "group":
            self._wanted = True
            return GroupChannel(self._sender, comm.rank, comm.size, spreads)
        if word == "chain":
            return Together([Chain(comm, spread, next_tag(), segment) for spread in spreads])
        if word == "collective" and isinstance(comm, MPIComm):
            return self._collective(comm, spreads)
        return pairwise(comm, spreads, next_tag())

    def _chosen(self, comm: Comm, size: int) -> tuple[str, int]:
        if not isinstance(self.choose, str):
            self._answers.append(self.choose(size, comm.size - 1))
            return _parsed(self._answers[-1])
        if self.choose != "auto":
            return _parsed(self.choose)
        return ("collective" if comm.size > FEW else "pairwise"), SEGMENT

    def _collective(self, comm: MPIComm, spreads: Sequence[Spread]) -> Channel:
        """MPI's broadcasts. What they save nobody counts: each rank that gets something counts as a message."""
        from mpi4py import MPI

        sends = [e for s in spreads if s.root == comm.rank for e in _to_all(comm.rank, comm.size, s)]
        self._broadcasts.append(MPIBroadcast(MPI, comm.communicator, [(s.root, s.buffer) for s in spreads], sends))
        return self._broadcasts[-1]

    def ready(self, comm: Comm) -> None:
        """Complete the channels that were asked for since the last time; collective. LayoutError on all ranks where
        they were told different routes."""
        if self._answers:
            digest = int.from_bytes(hashlib.sha256(" ".join(self._answers).encode()).digest()[:7], "little")
            words = np.array([digest, -digest], np.int64)
            comm.allreduce(words, "max")
            self._answers.clear()
            if words[0] != -words[1]:
                self._broadcasts.clear()
                raise LayoutError(
                    "route= gives other routes on other ranks", remedy="make it of numbers that rank 0 has broadcast"
                )
        for each in self._broadcasts:
            each.prepare()
        self._broadcasts.clear()
        if self._wanted and self._sender.group is None:
            if self.group is None:
                raise LayoutError("a route needs a group, but there is none", remedy="pass group= to the engine")
            if callable(self.group):
                self._own = self._sender.group = self.group(comm)
            else:
                self._sender.group = self.group

    def close(self) -> None:
        """End the thread that broadcasts, and the group if it was made here."""
        self._sender.close()
        if self._own is not None:
            self._own.close()
        self._own = None


def _parsed(word: str) -> tuple[str, int]:
    name, _, segment = word.partition(":")
    if name not in ROUTES or (segment and (name != "chain" or not segment.isdecimal() or int(segment) < 1)):
        raise LayoutError(
            f"route is {word!r}", remedy=f'give "auto", {", ".join(map(repr, ROUTES))}, or "chain:65536" (bytes)'
        )
    return name, int(segment or SEGMENT)


def pairwise(comm: Comm, spreads: Sequence[Spread], tag: int) -> Channel:
    """A message from each root to each other rank."""
    sends, receives = [], []
    for spread in spreads:
        if spread.root == comm.rank:
            sends = _to_all(comm.rank, comm.size, spread)
        else:
            receives.append(Envelope(spread.root, spread.buffer))
    return comm.channel(sends, receives, tag)


def _to_all(rank: int, size: int, spread: Spread) -> list[Envelope]:
    return [Envelope(peer, spread.buffer, spread.copies) for peer in range(size) if peer != rank]


# Own routes ----------------------------------------------------------------------------------------------------------
class Together:
    """Several channels as one."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = tuple(channels)
        self.sends = tuple(envelope for channel in channels for envelope in channel.sends)
        self.started = np.zeros(1, np.int64)

    def start(self) -> None:
        for channel in self._channels:
            channel.start()
        self.started += 1

    def test(self) -> bool:
        return sum(not channel.test() for channel in self._channels) == 0  # all of them, so that each gets on

    def wait(self) -> None:
        # Not one after the other: the ranks behind this one wait for what it passes on of all of them.
        wait_until(self.test)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


class Chain:
    """One spread from rank to rank in pieces: each is passed on as soon as it has come.

    With k pieces of s bytes the last of P receivers has all after (k + P - 1)(alpha + s beta): little more on a switch
    than one message, whatever P. Ranks follow one another from the root on, so that those of one node are neighbours.
    """

    def __init__(self, comm: Comm, spread: Spread, tag: int, segment: int) -> None:
        self._comm, self._tag = comm, tag
        place = (comm.rank - spread.root) % comm.size
        before, behind = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        self._pieces = [spread.buffer[at : at + segment] for at in range(0, spread.buffer.nbytes, segment)]
        self._before = before if place else None
        self._behind = behind if place < comm.size - 1 else None
        self.sends = tuple(Envelope(behind, piece, 0) for piece in self._pieces) if self._behind is not None else ()
        self.started = np.zeros(1, np.int64)
        self._incoming: list[Channel] = []
        self._outgoing: list[Channel] = []
        self._passed = self._left = 0

    def start(self) -> None:
        self._passed = self._left = 0
        self._incoming, self._outgoing = [], []
        if self._before is not None:
            self._incoming = [self._comm.channel([], [Envelope(self._before, p)], self._tag) for p in self._pieces]
        if self._behind is not None:
            self._outgoing = [self._comm.channel([Envelope(self._behind, p)], [], self._tag) for p in self._pieces]
        for channel in self._incoming or self._outgoing:
            channel.start()
        self.started += 1

    def test(self) -> bool:
        if self._incoming:
            while self._passed < len(self._pieces) and self._incoming[self._passed].test():
                if self._outgoing:
                    self._outgoing[self._passed].start()
                self._passed += 1
            if self._passed < len(self._pieces):
                return False
        while self._left < len(self._outgoing):
            if not self._outgoing[self._left].test():
                return False
            self._left += 1
        self.close()
        return True

    def wait(self) -> None:
        wait_until(self.test)

    def close(self) -> None:
        for channel in (*self._incoming, *self._outgoing):
            channel.close()
        self._incoming, self._outgoing = [], []


class GroupChannel:
    """Spreads through a group that broadcasts by itself: it does so in a thread of its own, so nobody need look."""

    def __init__(self, sender: Sender, rank: int, size: int, spreads: Sequence[Spread]) -> None:
        self._sender, self._spreads = sender, tuple(spreads)
        self.sends = tuple(e for s in spreads if s.root == rank for e in _to_all(rank, size, s))
        self.started = np.zeros(1, np.int64)
        self._under_way: list[Future[None]] = []

    def start(self) -> None:
        self._under_way = [self._sender.send(spread) for spread in self._spreads]
        self.started += 1

    def test(self) -> bool:
        return all(future.done() for future in self._under_way)

    def wait(self) -> None:
        for future in self._under_way:
            future.result()
        self._under_way = []

    def close(self) -> None:
        self._under_way = []


class Sender:
    """A thread that does the broadcasts of a group in the order in which they are asked for: the same on all ranks."""

    def __init__(self) -> None:
        self.group: Broadcasting | None = None
        self._jobs: queue.SimpleQueue[tuple[Spread, Future[None]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, spread: Spread) -> Future[None]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="minga broadcasts", daemon=True)
            self._thread.start()
        future: Future[None] = Future()
        self._jobs.put((spread, future))
        return future

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            spread, future = job
            try:
                assert self.group is not None
                self.group.bcast(spread.buffer, root=spread.root, wait="all")
            except BaseException as error:  # whoever waits is told
                future.set_exception(error)
            else:
                future.set_result(None)

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(timeout=10)
        self._thread = None
