"""Message times between the ranks of a run, from a fraction of a second of ping-pong, for a plan.

``minga measure`` takes longer and yields more (:mod:`minga.network.measuring`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, MPIComm
from minga.plan.links import Link, Links, Segment
from minga.plan.machine.machine import SHARED_MEMORY
from minga.plan.topology import Tree

__all__ = ["links_of", "rounds_of_pairs"]

Floats = NDArray[np.float64]

_SIZES: Final = (8, 1024, 16_384, 131_072, 1_048_576)
"""Sizes of messages in bytes; larger ones are only measured as far as time allows."""
_FEWEST: Final = 3
"""Number of sizes that are measured however slow the network is."""
_MOST_ROUNDS: Final = 15
"""Maximum number of rounds, in each of which nodes are paired differently."""
_SLOWER: Final = 1.5
"""Factor by which a node's messages must be slower than those of others for the node to get its own link."""
_NO_HUB: Final = 250e6
"""Bytes per second that no shared medium has reached: faster networks are not taken for one."""
_TAG: Final = 30_001


def links_of(comm: Comm, seats: Tree, seconds: float = 0.3) -> Links:
    """Measure the links between the ranks of ``comm``; collective, equal on all ranks.

    Nodes are timed in pairs, with one rank per node and all pairs of a round at the same time; the fastest pair counts
    for each distance of their switches. A ring of all nodes reveals a shared medium. Within a node, one pair is timed
    for each number of levels that ranks have in common. A single rank, and ranks that are threads of one process, are
    assumed to have shared memory between them.
    """
    depth = len(seats.levels)
    if comm.size == 1 or not isinstance(comm, MPIComm):
        return Links((SHARED_MEMORY,) * (depth + 1))
    node = seats.nodes
    leaders = [int(np.flatnonzero(node == number)[0]) for number in range(int(node.max()) + 1)]
    inside = _pairs_inside(seats)
    rounds = rounds_of_pairs(len(leaders), _MOST_ROUNDS)
    share = seconds / max(1, len(inside) + (len(rounds) + 1 if len(leaders) > 1 else 0))
    levels: list[Link] = [SHARED_MEMORY] * (depth + 1)
    for common, pair in inside.items():
        levels[common] = _link(_meet(comm, [pair], share)[pair])
    _fill(levels, inside, seats.above)
    if len(leaders) == 1:
        return Links(tuple(levels))
    found: dict[tuple[int, int], Floats] = {}
    alone = _meet(comm, [(leaders[0], leaders[1])], share)[leaders[0], leaders[1]]
    shared = _queue_in_a_ring(comm, leaders, alone)
    for pairs in [] if shared else rounds:
        found |= _meet(comm, [(leaders[a], leaders[b]) for a, b in pairs], share)
    found.setdefault((leaders[0], leaders[1]), alone)
    size = min(len(times) for times in found.values()) - 1
    of_node = {
        number: min((times for pair, times in found.items() if leader in pair), key=lambda times: times[size])
        for number, leader in enumerate(leaders)
        if any(leader in pair for pair in found)
    }
    best = min(of_node.values(), key=lambda times: times[size])
    own = {number: _link(times) for number, times in of_node.items() if _is_slower(times, best, size)}
    levels[: seats.above + 1] = _by_distance(found, seats, best, size)
    return Links(tuple(levels), own, shared)


def rounds_of_pairs(count: int, most: int) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs of ``count`` members, without repetitions: all of them, or ``most`` spread evenly.

    This is the circle method of round-robin tournaments; with an odd number of members, one rests in each round.
    """
    if count < 2:
        return []
    even = count + count % 2
    rounds = []
    for turn in range(even - 1):
        circle = [even - 1, *((turn + place) % (even - 1) for place in range(even - 1))]
        pairs = [tuple(sorted((circle[place], circle[even - 1 - place]))) for place in range(even // 2)]
        rounds.append([(a, b) for a, b in sorted(pairs) if b < count])
    step = max(1.0, len(rounds) / most)
    return [rounds[int(number * step)] for number in range(min(most, len(rounds)))]


def _pairs_inside(seats: Tree) -> dict[int, tuple[int, int]]:
    """Return, for each number of levels in common within a node, the first pair of neighbouring ranks that has it."""
    order = seats.order
    a, b = order[:-1], order[1:]
    common = seats.common(a, b)
    pairs: dict[int, tuple[int, int]] = {}
    for number in np.unique(common[~seats.apart(common)]).tolist():
        first = int(np.flatnonzero(common == number)[0])
        pairs[number] = (int(min(a[first], b[first])), int(max(a[first], b[first])))
    return pairs


def _fill(levels: list[Link], known: dict[int, tuple[int, int]], above: int) -> None:
    """Give levels that join no two ranks the link of the nearest known level inside a node."""
    for common in range(above + 1, len(levels)):
        if common not in known:
            nearest = min(known, key=lambda other: abs(other - common), default=None)
            levels[common] = levels[nearest] if nearest is not None else SHARED_MEMORY


def _by_distance(found: dict[tuple[int, int], Floats], seats: Tree, best: Floats, size: int) -> list[Link]:
    """Return the links between nodes, the outermost level first: those of the fastest pair at each distance.

    Distances at which no pair was timed get the link of the next one inside.
    """
    links: list[Link] = []
    fastest = best
    for common in range(seats.above, -1, -1):
        times = [found[a, b] for a, b in found if int(seats.common(a, b)) == common and len(found[a, b]) > size]
        fastest = min(times, key=lambda each: each[size], default=fastest)
        links.append(_link(fastest))
    return links[::-1]


def _meet(comm: MPIComm, pairs: Sequence[tuple[int, int]], seconds: float) -> dict[tuple[int, int], Floats]:
    """Return the one-way message times by size for pairs of ranks that communicate at the same time, on all ranks."""
    mine = next((pair for pair in pairs if comm.rank in pair), None)
    _meet_up(comm)
    times = _ping_pong(comm, mine, seconds) if mine is not None else None
    _meet_up(comm)
    gathered = comm.gather((mine, times) if mine is not None and comm.rank == mine[0] else None)
    found = None if gathered is None else {pair: times for entry in gathered if entry for pair, times in [entry]}
    agreed: dict[tuple[int, int], Floats] = comm.bcast(found)
    return agreed


def _ping_pong(comm: MPIComm, pair: tuple[int, int], seconds: float) -> Floats:
    """Return the shortest half round trips by size; the first rank decides on their number for both ends."""
    world: Any = comm.communicator
    first, other = comm.rank == pair[0], pair[1] if comm.rank == pair[0] else pair[0]
    buffer = np.ones(max(_SIZES), np.uint8)
    more = np.ones(1, np.int64)
    times: list[float] = []
    ends = time.perf_counter() + seconds
    for number, size in enumerate(_SIZES):
        view = buffer[:size]
        least, turns = np.inf, 0
        until = time.perf_counter() + (ends - time.perf_counter()) / (len(_SIZES) - number)
        while True:
            began = time.perf_counter()
            if first:
                world.Send(view, other, _TAG)
                world.Recv(view, other, _TAG)
            else:
                world.Recv(view, other, _TAG)
                world.Send(view, other, _TAG)
            now = time.perf_counter()
            turns += 1
            if turns > 1 or now > until:  # the first message sets up connections
                least = min(least, (now - began) / 2)
            if first:
                more[0] = now < until and turns < 200
                world.Send(more, other, _TAG + 1)
            else:
                world.Recv(more, other, _TAG + 1)
            if not more[0]:
                break
        times.append(least)
        if first:
            grows = _SIZES[min(number + 1, len(_SIZES) - 1)] / size
            more[0] = number + 1 < _FEWEST or time.perf_counter() + 2 * least * grows < ends
            world.Send(more, other, _TAG + 1)
        else:
            world.Recv(more, other, _TAG + 1)
        if not more[0]:
            break
    return np.array(times)


def _queue_in_a_ring(comm: MPIComm, leaders: Sequence[int], alone: Floats) -> bool:
    """Return True if messages between all neighbours in a ring of nodes queue, as on a shared medium."""
    world: Any = comm.communicator
    size = _SIZES[len(alone) - 1]
    least = np.inf
    if comm.rank in leaders:
        place = leaders.index(comm.rank)
        after, before = leaders[(place + 1) % len(leaders)], leaders[place - 1]
        sent, received = np.ones(size, np.uint8), np.empty(size, np.uint8)
        for _ in range(3):
            began = time.perf_counter()
            world.Sendrecv(sent, after, _TAG, received, before, _TAG)
            least = min(least, time.perf_counter() - began)
    _meet_up(comm)
    slowest = max(entry for entry in comm.gather(least) or [0.0] if np.isfinite(entry))
    wire = max(float(alone[-1] - alone[0]), size / _NO_HUB)
    # On a shared medium, each of n simultaneous messages takes n times as long, and those of two directions twice.
    queued: bool = comm.bcast(slowest - float(alone[0]) > 0.8 * len(leaders) * wire)
    return queued


def _link(times: Floats) -> Link:
    """Return a link with straight lines between the measured sizes; time never decreases with size."""
    rising = np.maximum.accumulate(times)
    sizes = np.array(_SIZES[: len(times)], float)
    beta = np.diff(rising) / np.diff(sizes)
    alpha = rising[:-1] - beta * sizes[:-1]
    starts = [0, *_SIZES[1 : len(beta)]]
    return Link(tuple(Segment(int(s), float(a), float(b)) for s, a, b in zip(starts, alpha, beta, strict=True)))


def _is_slower(times: Floats, best: Floats, size: int) -> bool:
    return bool(times[size] > _SLOWER * best[size] or times[0] > _SLOWER * best[0])


def _meet_up(comm: MPIComm) -> None:
    """Wait at a barrier that leaves the processor to others, since ranks being timed may share a core."""
    world: Any = comm.communicator
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(1e-4)
