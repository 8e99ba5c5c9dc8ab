"""Who does which segment: deals and moves of segments among nodes, by what they cost lately.

Each takes what every segment costs and the node that has it, and returns the node that shall have it. They depend on
their arguments alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Balance", "in_turns", "queues", "refine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Balance:
    """What is done about unequal loads while a run goes on.

    every       seconds from one look at the loads to the next
    placement   "refine": segments leave the busiest node while that makes it less busy by `least` of its load, as
                Charm++'s RefineCommLB does; "queues": a process leaves the node where most processes are ready to run
                for the one with fewest, which is what openMosix sees; None: segments stay
    recut       rows change segments: the mesh is cut anew by what its rows cost lately
    move        seconds that moving a segment takes the node that gets it
    least       least part of the busiest node's load that a move must win
    """

    every: float
    placement: Literal["refine", "queues"] | None = None
    recut: bool = False
    move: float = 5e-3
    least: float = 0.02


def in_turns(segments: int, nodes: int) -> Ints:
    """Segment ``i`` on node ``i % nodes``, shape (segments,)."""
    return np.arange(segments, dtype=np.int64) % nodes


def refine(cost: Floats, node: Ints, nodes: int, least: float = 0.02) -> Ints:
    """Move segments away from the busiest node as long as its load shrinks by `least` or more with each move.

    Each time the segment whose move leaves the larger of the two nodes' loads smallest goes to the least busy node.
    """
    node = node.copy()
    for _ in range(4 * len(cost)):
        load = np.bincount(node, weights=cost, minlength=nodes)
        busiest, idlest = int(load.argmax()), int(load.argmin())
        own = np.flatnonzero(node == busiest)
        after = np.maximum(load[busiest] - cost[own], load[idlest] + cost[own])
        best = int(after.argmin()) if len(own) else 0
        if not len(own) or after[best] > (1.0 - least) * load[busiest]:
            return node
        node[own[best]] = idlest
    return node


def queues(ready: NDArray[np.bool_], node: Ints, nodes: int) -> Ints:
    """Each node with two ready processes more than the one with fewest sends one of them there.

    All decide at once on the same news, so that many may go to one node, and leave it again at the next look.
    `ready` says which segments still computed when the queues were looked at, shape (segments,).
    """
    length = np.bincount(node[ready], minlength=nodes)
    shortest = int(length.argmin())
    moved = node.copy()
    for busy in np.flatnonzero(length >= length[shortest] + 2):
        moved[np.flatnonzero(ready & (node == busy))[-1]] = shortest
    return moved
