"""The route "group" of an engine: a broadcast of the network itself, one transmission for all ranks.

Small payloads take MPI's broadcast, which needs no answers. To three receivers, both take the same time at 8 KiB on a
switch of 100 Mb/s, above 64 KiB at 1 Gb/s, and at less than 1 KiB on a hub of 10 Mb/s (docs/broadcast.md). A function
that knows the network (`minga.plan.router`) decides better than the number used here.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

import numpy as np

from minga.engine.comm import Channel, Comm
from minga.engine.routes import COLLECTIVE, Broadcasting, Carrier, Members, Route, Spread, to_all
from minga.errors import LayoutError

__all__ = ["ROUTE"]

LEAST: Final = 1024
"""Bytes below which payloads take MPI's broadcast, unless the route says otherwise."""


class GroupCarrier:
    """Channels through a group of all ranks, which is made when it is first needed if the engine has a function.

    Payloads of fewer than ``least`` bytes take MPI's broadcast.
    """

    def __init__(self, group: Broadcasting | Callable[[Comm], Broadcasting], least: int) -> None:
        self._given = group
        self._least = least
        self._by_mpi = COLLECTIVE.make("", None)
        self._wanted = False
        self._own: Broadcasting | None = None
        self._sender = Sender()

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Return a channel that broadcasts all spreads."""
        if max(spread.buffer.nbytes for spread in spreads) < self._least:
            return self._by_mpi.channel(comm, spreads, next_tag)
        self._wanted = True
        return GroupChannel(self._sender, comm.rank, comm.size, spreads)

    def ready(self, comm: Comm) -> None:
        """Make the group, if a channel needs it; collective."""
        self._by_mpi.ready(comm)
        if not self._wanted or self._sender.group is not None:
            return
        if callable(self._given):
            self._own = self._given(comm)
        self._sender.group = self._own if callable(self._given) else self._given

    def close(self) -> None:
        """End the thread that broadcasts, and the group if it was made here."""
        self._by_mpi.close()
        self._sender.close()
        if self._own is not None:
            self._own.close()
        self._own = None


class GroupChannel:
    """Spreads through a group that broadcasts by itself: it does so in a thread of its own, so nobody need look."""

    def __init__(self, sender: Sender, rank: int, size: int, spreads: Sequence[Spread]) -> None:
        self._sender, self._spreads = sender, tuple(spreads)
        self.sends = tuple(e for s in spreads if s.root == rank for e in to_all(rank, size, s))
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


def _make(argument: str, group: Members) -> Carrier:
    if argument and not argument.isdecimal():
        raise ValueError("the least bytes of a payload")
    if group is None:
        raise LayoutError(
            'route is "group", but there is none', remedy="pass group=minga.network.broadcast.Group.of(comm)"
        )
    return GroupCarrier(group, int(argument or LEAST))


ROUTE = Route(_make, "a broadcast of the network itself: one transmission for all; group:65536 for payloads from there")
