"""Groups of ranks that multiply the same columns: over MPI, or as threads of one process."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from minga.engine.comm import Channel, Comm, Envelope, MPIComm, Operation

__all__ = ["Team", "leave", "team_of"]

_TAG: Final = 30_110


class Team:
    """A communicator of some ranks of another one.

    ``members[place]`` is a rank of ``comm``, and ``rank`` is the place of this rank.
    """

    def __init__(self, comm: Comm, members: Sequence[int]) -> None:
        self._comm = comm
        self.members = tuple(members)
        self.rank = self.members.index(comm.rank)
        self.size = len(self.members)
        self.node = self.members.index(comm.node) if comm.node in self.members else 0
        self.leads_node = self.node == self.rank

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a channel of messages among members, whose peers are given by place."""
        return self._comm.channel(self._among(sends), self._among(receives), tag)

    def _among(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        return [replace(envelope, peer=self.members[envelope.peer]) for envelope in envelopes]

    def allreduce(self, words: np.ndarray, operation: Operation) -> None:
        """Combine int64 words over all members, in place."""
        combine: Any = {"sum": np.add, "max": np.maximum, "min": np.minimum}[operation]
        gathered = self.gather(words)
        with np.errstate(over="ignore"):
            words[...] = self.bcast(None if gathered is None else combine.reduce(gathered))

    def gather(self, value: Any) -> list[Any] | None:
        """Return all members' values at place 0; None elsewhere."""
        if self.rank:
            self._send(0, value)
            return None
        return [value, *(self._receive(place) for place in range(1, self.size))]

    def bcast(self, value: Any) -> Any:
        """Return the value at place 0 on all members."""
        if self.rank:
            return self._receive(0)
        for place in range(1, self.size):
            self._send(place, value)
        return value

    def barrier(self) -> None:
        """Wait for all members."""
        self.gather(None)
        self.bcast(None)

    def abort(self, error: BaseException) -> None:
        """End all ranks."""
        self._comm.abort(error)

    def _send(self, place: int, value: Any) -> None:
        text = np.frombuffer(pickle.dumps(value), np.uint8)
        for words in (np.array([len(text)], np.int64).view(np.uint8), text):
            self._finish(self.channel([Envelope(place, words)], [], _TAG))

    def _receive(self, place: int) -> Any:
        size = np.zeros(1, np.int64)
        self._finish(self.channel([], [Envelope(place, size.view(np.uint8))], _TAG))
        text = np.empty(int(size[0]), np.uint8)
        self._finish(self.channel([], [Envelope(place, text)], _TAG))
        return pickle.loads(text.tobytes())

    @staticmethod
    def _finish(channel: Channel) -> None:
        channel.start()
        channel.wait()
        channel.close()


def team_of(comm: Comm, teams: Sequence[Sequence[int]]) -> Comm | None:
    """Return the communicator of the team that this rank belongs to, or None. Collective.

    Teams have no rank in common. The communicator is ``comm`` itself if all ranks are in one team, in order.
    """
    if len(teams) == 1 and tuple(teams[0]) == tuple(range(comm.size)):
        return comm
    number = next((at for at, members in enumerate(teams) if comm.rank in members), None)
    if isinstance(comm, MPIComm):
        from mpi4py import MPI

        key = 0 if number is None else list(teams[number]).index(comm.rank)
        inner = comm.communicator.Split(MPI.UNDEFINED if number is None else number, key)
        if number is None:
            return None
        hook = sys.excepthook
        found = MPIComm(inner)
        sys.excepthook = hook  # the hook of `comm`, which outlives the team, still ends the job on uncaught errors
        inner.Free()
        return found
    return None if number is None else Team(comm, teams[number])


def leave(team: Comm, comm: Comm) -> None:
    """Release the communicator of a team. Collective among its members."""
    if isinstance(team, MPIComm) and team is not comm:
        team.communicator.Free()
