"""Exchange of messages between two members, or many pairs at once: the orders, and the measured times."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minga.errors import RunError
from minga.network.measuring.encodings import Encoding
from minga.network.measuring.matrix import SWITCH, Pair, PairMatrix, Round, medium, node_costs, tournament
from minga.network.measuring.sampling import Sample
from minga.network.measuring.team import Team
from minga.network.measuring.transports import Mode, Unavailable
from minga.network.measuring.worker import Order, Reply

__all__ = ["Ends", "both_sides", "exchange_times", "measure_matrix", "payload", "sample_message_sizes"]

Part = tuple[int, Mode, float, int]
"""Size in bytes, mode, minimum seconds, minimum number of exchanges."""

_TARGET, _SMALLEST, _LARGEST = 0.015, 16_384, 4_000_000
"""Time in seconds of a message that measures bandwidth, and its smallest and largest size in bytes."""
_TOGETHER, _LEAST_TOGETHER, _MOST_ROUNDS = 0.27, 16, 4
"""Seconds of simultaneous exchanges if they did not affect each other; their least number; most rounds of them."""
_LEAST_ROUNDS = 3
"""Least number of rounds of pairs alone, so that each machine meets several and three machines can be told apart."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of an exchange: the member that measures, the one that echoes, and its address for IP transports."""

    sender: int
    receiver: int
    address: str | None = None


def sample_message_sizes(
    team: Team,
    ends: Ends,
    transport: str,
    sizes: Sequence[int],
    budget: float,
    seed: int,
    *,
    least: int = 10,
    buffer: int | None = None,
    encoding: Encoding = "none",
    cold: bool = False,
) -> list[Sample]:
    """Measure ping-pong times over sizes.

    Parameters
    ----------
    team
        Team of the members.
    ends
        The two members.
    transport
        Name of the transport.
    sizes
        Message sizes in bytes.
    budget
        Time for all sizes in seconds.
    seed
        Seed of the random order of the sizes.
    least
        Least number of samples per size.
    buffer
        Socket buffer in bytes; None leaves it to the system.
    encoding
        Encoding of the messages: numbers from and to a machine of the other byte order, which the sender emulates.
    cold
        Use messages and receive buffers that are not in a cache.

    Raises
    ------
    Unavailable
        If the transport is not available.
    RunError
        If the exchange fails half-way.
    """
    order = {
        "task": "ladder",
        "sizes": list(sizes),
        "budget": budget,
        "seed": seed,
        "least": least,
        "buffer": buffer,
        "encoding": encoding,
        "cold": cold,
    }
    (reply,) = _exchange(team, [ends], transport, [order])
    return [Sample.from_dict(data) for data in reply["samples"]]


def exchange_times(team: Team, pairs: Sequence[Ends], transport: str, parts: Sequence[Part]) -> list[list[list[float]]]:
    """Measure all pairs at the same time; return the seconds of the exchanges for each pair and part."""
    order = {"task": "times", "parts": [list(part) for part in parts], "allowed": sum(10 * part[2] for part in parts)}
    replies = _exchange(team, pairs, transport, [order] * len(pairs))
    return [reply["seconds"] for reply in replies]


def both_sides(team: Team, ends: Ends, what: str, transport: str, **details: Any) -> list[dict[str, Any]]:
    """Run a measurement that both ends do together, and return the points that the first end reports.

    ``what`` is ``overhead``, ``trains``, ``one_way`` or ``overlap``.
    """
    token = secrets.token_hex(16)
    common = {"do": what, "transport": transport, "token": token, "address": ends.address, **details}
    port = _open(team, ends, transport, common) if transport != "mpi" else None
    replies = team.run(
        {
            ends.receiver: {**common, "peer": ends.sender, "first": False},
            ends.sender: {**common, "peer": ends.receiver, "first": True, "port": port},
        }
    )
    _check(team, replies)
    points: list[dict[str, Any]] = replies[ends.sender]["points"]
    return points


def measure_matrix(
    team: Team,
    members: Sequence[int],
    addresses: Mapping[tuple[int, int], str | None],
    transport: str,
    budget: float,
) -> PairMatrix:
    """Measure pairs of ``members`` alone, then in rounds at the same time, in about ``budget`` seconds.

    With many members, only some pairs are measured, but each member is in the same number of pairs. The member numbers
    in the result are indices into ``members``.
    """
    start = time.monotonic()
    names = tuple(team.names[member] for member in members)
    if len(members) < 2:
        return PairMatrix(names, transport, ())
    rounds = tournament(len(members))

    def ends(i: int, j: int) -> Ends:
        return Ends(members[i], members[j], addresses.get((members[i], members[j])))

    size = _telling_size(team, ends(0, 1), transport)
    alone: dict[tuple[int, int], Pair] = {}
    for number, met in enumerate(rounds, start=1):
        for i, j in met:
            for a, b in ((i, j), (j, i)):
                alone[a, b] = _alone(team, ends(a, b), (a, b), transport, size)
        if number >= _LEAST_ROUNDS and time.monotonic() - start > budget / 2:
            break
    together: list[Round] = []
    for met in rounds[:_MOST_ROUNDS]:
        if not all(pair in alone for pair in met) or (together and time.monotonic() - start > budget):
            break
        pairs = [ends(i, j) for i, j in met]
        once = _together(team, pairs, met, alone, transport, size)
        if once.freedom < SWITCH:  # other programs can make a switch look slow
            again = _together(team, pairs, met, alone, transport, size)
            once = max(once, again, key=lambda one: one.gain)
        together.append(once)
    matrix = PairMatrix(names, transport, tuple(alone.values()), tuple(together), medium(together))
    costs = node_costs(matrix.values("latency"))
    return PairMatrix(names, transport, matrix.pairs, matrix.rounds, matrix.medium, costs)


def _telling_size(team: Team, ends: Ends, transport: str) -> int:
    """Return a message size that takes long enough to measure bandwidth, but not too long with many pairs at once."""
    size = _SMALLEST
    while True:
        ((times,),) = exchange_times(team, [ends], transport, [(size, "pingpong", 0.0, 3)])
        seconds = float(np.nanmedian(times))
        if seconds > _TARGET / 2 or size >= _LARGEST:
            return int(max(_SMALLEST, min(_LARGEST, size * _TARGET / seconds)))
        size *= 4


def _alone(team: Team, ends: Ends, pair: tuple[int, int], transport: str, size: int) -> Pair:
    parts: list[Part] = [(1, "pingpong", 0.02, 20), (size, "oneway", 3 * _TARGET, 4)]
    ((small, large),) = exchange_times(team, [ends], transport, parts)
    # The minimum times show what the network can do, even on a busy machine.
    latency = min(small)
    return Pair(*pair, latency, size, max(min(large) - latency, 1e-9))


def _together(
    team: Team,
    pairs: Sequence[Ends],
    met: Sequence[tuple[int, int]],
    alone: Mapping[tuple[int, int], Pair],
    transport: str,
    size: int,
) -> Round:
    # All pairs make the same number of exchanges in one go, so that no pair is alone for long: on a hub, a pair that is
    # alone looks faster than it is.
    usual = float(np.median([alone[pair].seconds for pair in met]))
    count = int(max(_LEAST_TOGETHER, _TOGETHER / usual))
    measured = exchange_times(team, pairs, transport, [(size, "both", 0.0, count)])
    own = []
    for i, j in met:
        # The two directions may differ; the slower one alone is compared with both together.
        own.append(size / max(alone[i, j].seconds, alone[j, i].seconds))
    # The mean is used because an end that is late finds the next message waiting, so that long and short times
    # alternate; and only of the middle part, because not all pairs begin and end together.
    speeds = [size / float(np.mean(times[len(times) // 4 : -(len(times) // 4)])) for (times,) in measured]
    return Round(tuple(met), tuple(speeds), tuple(own))


def _exchange(team: Team, pairs: Sequence[Ends], transport: str, tasks: Sequence[Order]) -> list[Reply]:
    orders: dict[int, Order] = {}
    for ends, task in zip(pairs, tasks):
        if transport != "mpi" and ends.address is None:
            a, b = team.names[ends.sender], team.names[ends.receiver]
            raise Unavailable(f"no network was found that connects {a} and {b}")
        token = secrets.token_hex(32)  # also the key of a group
        common = {**task, "transport": transport, "token": token, "address": ends.address}
        port = None
        if transport not in ("mpi", "icmp"):
            port = _open(team, ends, transport, common)
        if transport != "icmp":  # the other machine's kernel answers
            orders[ends.receiver] = {**common, "do": "echo", "peer": ends.sender}
        orders[ends.sender] = {**common, "do": "ping", "peer": ends.receiver, "port": port}
    replies = team.run(orders)
    _check(team, {ends.sender: replies[ends.sender] for ends in pairs})
    _check(team, replies)
    return [replies[ends.sender] for ends in pairs]


def _open(team: Team, ends: Ends, transport: str, common: Order) -> int:
    replies = team.run({ends.receiver: {**common, "do": "open"}})
    _check(team, replies)
    return int(replies[ends.receiver]["port"])


def _check(team: Team, replies: Mapping[int, Reply]) -> None:
    for member, reply in replies.items():
        if "failed" in reply and reply["unavailable"]:
            raise Unavailable(reply["failed"], remedy=reply["remedy"])
        if "failed" in reply:
            raise RunError(f"{team.names[member]}: {reply['failed']}", remedy=reply["remedy"])


def payload(samples: Sequence[Sample]) -> int:
    """Return the bytes sent in one direction in a series over sizes."""
    return sum(sample.size * sum(not math.isnan(t) for t in (*sample.seconds, *sample.warmup)) for sample in samples)
