"""Exchanges as they were before the paper's changes: blocking sends and receives, one pair of processes after another.

A process first receives what its lower neighbour sends, then sends to the upper one, and on the way back the other way
round; a send is over when the other side has it, as in MPI implementations of those days for messages of this size. So
the last process has its planes when all others have passed on theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minga.engine.comm import Channel, Envelope, MPIComm
from minga.engine.waiting import wait_until


class ChainComm:
    """Communicator of the ranks of an MPIComm whose channels are chains; the engine runs its programs from Python."""

    def __init__(self, inner: MPIComm) -> None:
        self._inner = inner
        self.rank, self.size = inner.rank, inner.size
        self.node, self.leads_node = inner.node, inner.leads_node

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a chain of messages."""
        return ChainChannel(self._inner.communicator, self.rank, sends, receives, tag)

    def allreduce(self, words: np.ndarray, operation: Any) -> None:
        """Reduce words over all ranks, as the inner communicator does."""
        self._inner.allreduce(words, operation)

    def gather(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks on rank 0."""
        return self._inner.gather(value)

    def bcast(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return self._inner.bcast(value)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._inner.barrier()

    def abort(self, error: BaseException) -> None:
        """End all ranks."""
        self._inner.abort(error)


class ChainChannel:
    """Channel whose messages wait for one another; they are exchanged in `wait`."""

    def __init__(
        self, communicator: Any, rank: int, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int
    ) -> None:
        self.sends = tuple(sends)
        self.started = np.zeros(1, np.int64)
        self._rank, self._receives = rank, tuple(receives)
        self._send: Callable[..., Any] = lambda e: communicator.Issend(e.buffer, e.peer, tag)
        self._receive: Callable[..., Any] = lambda e: communicator.Irecv(e.buffer, e.peer, tag)
        self._open = False

    def start(self) -> None:
        """Open the channel for one exchange."""
        self.started += bool(self.sends or self._receives)
        self._open = True

    def test(self) -> bool:
        """Return whether no exchange is open."""
        return not self._open

    def wait(self) -> None:
        """Exchange all messages, one after another."""
        if not self._open:
            return
        for upwards in (True, False):
            for envelope in self._receives:
                if (envelope.peer < self._rank) == upwards:
                    wait_until(self._receive(envelope).Test)
            for envelope in self.sends:
                if (envelope.peer > self._rank) == upwards:
                    wait_until(self._send(envelope).Test)
        self._open = False

    def close(self) -> None:
        """Close the channel."""
        self._open = False
