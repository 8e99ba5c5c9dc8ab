"""Routes of equal payloads: methods of distributing one rank's data to all others.

    pairwise    one message to each rank
    collective  MPI's broadcast, persistent if the library supports it
    chain       from rank to rank, in segments, so that all links of a switch are busy at once

Packages add others through the group ``minga.routes``; minga registers its own in the same way, among them "group", a
broadcast by the network itself (`minga.network.broadcast`), with one transmission for all.

All routes deliver the same bits. `auto` is pairwise for fewer than three receivers, where there is little to gain, and
otherwise MPI's broadcast if there is MPI. A model of the network (`minga.plan.broadcasting`) makes a better choice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from minga.engine.comm import Channel, Comm, Envelope, MPIBroadcast, MPIComm
from minga.engine.waiting import wait_until
from minga.errors import CaseError, LayoutError
from minga.plugins import load, names

__all__ = [
    "CHAIN",
    "COLLECTIVE",
    "GROUP",
    "PAIRWISE",
    "Broadcasting",
    "Carrier",
    "Route",
    "Router",
    "Routes",
    "Spread",
    "to_all",
]

GROUP: Final = "minga.routes"
"""Entry point group of routes; each entry point is a Route."""
FEW: Final = 3
"""Number of receivers below which `auto` sends to each."""
SEGMENT: Final = 16384
"""Default size in bytes of a piece of a chain: the best size for Open MPI's pipeline at 100 Mb/s."""

Router = Callable[[int, int], str]
"""Function of the bytes of a payload and the number of receivers that returns a route; "chain:65536" includes the size
of a chain's pieces."""


class Broadcasting(Protocol):
    """A group of all ranks with its own broadcast; its members have the same numbers as the ranks."""

    def bcast(self, data: Any, root: int = 0, *, wait: str = "all") -> Any:
        """Fill `data`, writable bytes, with those of the root."""

    def close(self) -> None:
        """Leave the group."""


Members = Broadcasting | Callable[[Comm], Broadcasting] | None
"""Argument ``group`` of an engine: a group of all ranks, or a function that creates one from the communicator."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The data of one rank for all others: bytes (uint8) sent by the root and filled elsewhere, from `copies` boxes."""

    root: int
    buffer: np.ndarray
    copies: int = 1


class Carrier(Protocol):
    """A route in use by one engine."""

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Return messages that deliver every spread to all ranks, which request the same ones in the same order."""

    def ready(self, comm: Comm) -> None:
        """Complete the channels requested since the last call. Collective."""

    def close(self) -> None:
        """Release the resources of the route."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method of distributing equal payloads to all ranks.

    Parameters
    ----------
    make
        ``make(argument, group)`` returns the `Carrier` of one engine. ``argument`` is the text after the colon of
        "name:argument", or "", and ``group`` the argument of that name of the engine. It raises ValueError, with a
        description of what was expected, for an invalid argument.
    description
        One line for lists of routes.
    """

    make: Callable[[str, Members], Carrier]
    description: str = ""


@dataclass(slots=True)
class Routes:
    """The routes of one engine.

    Parameters
    ----------
    choose
        One route for all payloads, "auto", or a function of payload and receivers, the same on all ranks.
    group
        A group of all ranks with its own broadcast, or a function that creates one from the communicator.

    Channels may be requested while other ranks do something else; `ready`, which all call together, completes them.
    """

    choose: str | Router = "auto"
    group: Members = None
    _answers: list[str] = field(default_factory=list, repr=False)
    _carriers: dict[str, Carrier] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.choose, str) and self.choose != "auto":
            self._carrier(self.choose)

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Return messages that deliver every spread to all ranks, which request the same ones in the same order."""
        if not spreads:
            return comm.channel([], [], next_tag())
        word = self._chosen(comm, max(spread.buffer.nbytes for spread in spreads))
        return self._carrier(word).channel(comm, spreads, next_tag)

    def _chosen(self, comm: Comm, size: int) -> str:
        if not isinstance(self.choose, str):
            self._answers.append(self.choose(size, comm.size - 1))
            return self._answers[-1]
        if self.choose != "auto":
            return self.choose
        return "collective" if comm.size > FEW else "pairwise"

    def _carrier(self, word: str) -> Carrier:
        """Return the carrier of a route, created at first use. Raise LayoutError for an unknown route."""
        if word not in self._carriers:
            name, _, argument = word.partition(":")
            remedy = f'give "auto", {", ".join(map(repr, names(GROUP)))}, or "chain:65536" (bytes)'
            try:
                route: Route = load(GROUP, name, "route")
                self._carriers[word] = route.make(argument, self.group)
            except CaseError as error:
                raise LayoutError(f"route is {word!r}: {error.message}", remedy=remedy) from error
            except ValueError as error:
                raise LayoutError(f"route is {word!r}: {name} takes {error}", remedy=remedy) from None
        return self._carriers[word]

    def ready(self, comm: Comm) -> None:
        """Complete the channels requested since the last call. Collective.

        Raise LayoutError on all ranks if they were given different routes.
        """
        if self._answers:
            digest = int.from_bytes(hashlib.sha256(" ".join(self._answers).encode()).digest()[:7], "little")
            words = np.array([digest, -digest], np.int64)
            comm.allreduce(words, "max")
            self._answers.clear()
            if words[0] != -words[1]:
                self.close()
                raise LayoutError(
                    "route= gives different routes on different ranks",
                    remedy="compute it from numbers that rank 0 has broadcast",
                )
        for carrier in self._carriers.values():
            carrier.ready(comm)

    def close(self) -> None:
        """Release the resources of the routes."""
        for carrier in self._carriers.values():
            carrier.close()
        self._carriers.clear()


def to_all(rank: int, size: int, spread: Spread) -> list[Envelope]:
    """Return the messages of a root to each other rank, which are also how payloads are counted."""
    return [Envelope(peer, spread.buffer, spread.copies) for peer in range(size) if peer != rank]


# minga's own routes --------------------------------------------------------------------------------------------------
class Pairwise:
    """Sends a message from each root to each other rank."""

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Return the messages of this rank."""
        sends, receives = [], []
        for spread in spreads:
            if spread.root == comm.rank:
                sends = to_all(comm.rank, comm.size, spread)
            else:
                receives.append(Envelope(spread.root, spread.buffer))
        return comm.channel(sends, receives, next_tag())

    def ready(self, comm: Comm) -> None:
        """Do nothing: the messages are complete."""
        return

    def close(self) -> None:
        """Do nothing: there are no resources to release."""
        return


class Collective(Pairwise):
    """Uses MPI's broadcasts, or pairwise messages without MPI."""

    def __init__(self) -> None:
        self._broadcasts: list[MPIBroadcast] = []

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Return the broadcasts of the spreads."""
        if not isinstance(comm, MPIComm):
            return super().channel(comm, spreads, next_tag)
        from mpi4py import MPI

        # The savings of broadcasts are not counted: each receiving rank counts as one message.
        sends = [e for s in spreads if s.root == comm.rank for e in to_all(comm.rank, comm.size, s)]
        self._broadcasts.append(MPIBroadcast(MPI, comm.communicator, [(s.root, s.buffer) for s in spreads], sends))
        return self._broadcasts[-1]

    def ready(self, comm: Comm) -> None:
        """Prepare the broadcasts requested since the last call."""
        for each in self._broadcasts:
            each.prepare()
        self._broadcasts.clear()

    def close(self) -> None:
        """Drop broadcasts that were not prepared."""
        self._broadcasts.clear()


class Chains(Pairwise):
    """Passes data from rank to rank in pieces of a given number of bytes."""

    def __init__(self, segment: int) -> None:
        self._segment = segment

    def channel(self, comm: Comm, spreads: Sequence[Spread], next_tag: Callable[[], int]) -> Channel:
        """Return a chain for each spread."""
        return Together([Chain(comm, spread, next_tag(), self._segment) for spread in spreads])


def _pairwise(argument: str, group: Members) -> Carrier:
    return Pairwise() if not argument else _refuse("nothing")


def _collective(argument: str, group: Members) -> Carrier:
    return Collective() if not argument else _refuse("nothing")


def _chain(argument: str, group: Members) -> Carrier:
    if argument and not (argument.isdecimal() and int(argument) > 0):
        _refuse("the bytes of a piece, 1 or more")
    return Chains(int(argument or SEGMENT))


def _refuse(expected: str) -> Any:
    raise ValueError(expected)


PAIRWISE = Route(_pairwise, "a message to each rank")
COLLECTIVE = Route(_collective, "MPI's broadcast")
CHAIN = Route(_chain, "from rank to rank in pieces, such as chain:65536")


class Together:
    """Several channels combined into one."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = tuple(channels)
        self.sends = tuple(envelope for channel in channels for envelope in channel.sends)
        self.started = np.zeros(1, np.int64)

    def start(self) -> None:
        """Start all channels."""
        for channel in self._channels:
            channel.start()
        self.started += 1

    def test(self) -> bool:
        """Return True if all channels are complete."""
        return sum(not channel.test() for channel in self._channels) == 0  # tests all, so that each makes progress

    def wait(self) -> None:
        """Wait until all channels are complete."""
        # Not one after another: later ranks wait for the data of all channels that this rank passes on.
        wait_until(self.test)

    def close(self) -> None:
        """Close all channels."""
        for channel in self._channels:
            channel.close()


class Chain:
    """One spread passed from rank to rank in pieces, each forwarded as soon as it arrives.

    With k pieces of s bytes the last of P receivers has everything after (k + P - 1)(alpha + s beta): on a switch
    little more than one message, for any P. Ranks are ordered by number starting at the root, so that the ranks of one
    node are neighbours.
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
        """Start receiving, or sending at the root."""
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
        """Forward the pieces that have arrived; return True if everything is complete."""
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
        """Wait until everything is complete."""
        wait_until(self.test)

    def close(self) -> None:
        """Close the channels of all pieces."""
        for channel in (*self._incoming, *self._outgoing):
            channel.close()
        self._incoming, self._outgoing = [], []
