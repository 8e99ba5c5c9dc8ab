"""Teams of members that carry out orders together, such as the ranks of an MPI job, one of which gives the orders."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from minga.errors import RunError
from minga.network.measuring.worker import Order, Reply, Worker

__all__ = ["JobTeam", "Team", "one_job"]

_ORDERS, _REPLIES, _NAP = 11, 12, 1e-3


class Team(Protocol):
    """Members, numbered from 0, to which a measurement gives orders."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members."""

    def run(self, orders: Mapping[int, Order]) -> dict[int, Reply]:
        """Let some members carry out one order each at the same time, and return their replies.

        Raises
        ------
        RunError
            If a member is lost or does not answer.
        """


class JobTeam:
    """Team of the ranks of a communicator; rank 0 gives the orders and is also a member."""

    def __init__(self, communicator: Any, worker: Worker, names: tuple[str, ...]) -> None:
        self.communicator = communicator
        self.worker = worker
        self.names = names

    def run(self, orders: Mapping[int, Order]) -> dict[int, Reply]:
        """See :class:`Team`. Rank 0 carries out its own order after all others have been sent."""
        for member, order in orders.items():
            if member != 0:
                self.communicator.send(order, member, _ORDERS)
        replies = {0: self.worker.do(orders[0])} if 0 in orders else {}
        for member in orders:
            if member != 0:
                replies[member] = _calmly(self.communicator, member, _REPLIES)
        return replies


@contextmanager
def one_job(communicator: Any, members: int | None = None) -> Iterator[JobTeam | None]:
    """Provide a team of the ranks of an mpi4py ``communicator``; collective. Yield the team on rank 0, None elsewhere.

    The other ranks carry out orders until rank 0 leaves the block; if it leaves with an error, they raise an error too.
    """
    own = communicator.Dup()
    try:
        worker = Worker(own.Dup())
        names = own.gather(socket.gethostname())
        if own.rank == 0:
            trouble = None
            try:
                yield JobTeam(own, worker, tuple(names))
            except BaseException as error:
                trouble = str(error) or type(error).__name__
                raise
            finally:
                for member in range(1, own.size):
                    own.send({"do": "stop", "trouble": trouble}, member, _ORDERS)
        else:
            _attend(own, worker)
            yield None
        worker.close()
        worker.communicator.Free()
    finally:
        own.Free()


def _attend(communicator: Any, worker: Worker) -> None:
    while True:
        order = _calmly(communicator, 0, _ORDERS)
        if order["do"] == "stop":
            if order["trouble"] is not None:
                raise RunError(f"the measurement of the network failed on rank 0: {order['trouble']}")
            return
        communicator.send(worker.do(order), 0, _REPLIES)


def _calmly(communicator: Any, source: int, tag: int) -> Any:
    """Receive without the library's busy waiting, which would slow down measurements on the same machine."""
    while not communicator.Iprobe(source, tag):
        time.sleep(_NAP)
    return communicator.recv(None, source, tag)
