"""Assignment of segments to nodes, and migration of segments between nodes, based on their recent costs.

Each function takes the cost of every segment and its present node, and returns its next node. The results depend on the
arguments alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Balance", "queues", "refine", "round_robin"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Balance:
    """Measures against unequal loads during a run.

    Attributes
    ----------
    every
        Interval between inspections of the loads, s.
    placement
        "refine": segments leave the busiest node as long as this reduces its load by a fraction `least`, as in
        Charm++'s RefineCommLB. "queues": a process leaves the node with the most runnable processes for the one with
        the fewest, which is what openMosix sees. None: segments stay.
    recut
        Whether rows change segments: the mesh is cut again according to the recent costs of its rows.
    move
        Time in s that the migration of a segment takes on the node that receives it.
    least
        Smallest reduction of the busiest node's load, as a fraction, that justifies a migration.
    """

    every: float
    placement: Literal["refine", "queues"] | None = None
    recut: bool = False
    move: float = 5e-3
    least: float = 0.02


def round_robin(segments: int, nodes: int) -> Ints:
    """Return the assignment of segment ``i`` to node ``i % nodes``, shape (segments,)."""
    return np.arange(segments, dtype=np.int64) % nodes


def refine(cost: Floats, node: Ints, nodes: int, least: float = 0.02) -> Ints:
    """Move segments away from the busiest node as long as each move reduces its load by a fraction `least` or more.

    Each move takes the segment that leaves the larger of the two nodes' loads smallest, to the least busy node.
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
    """Move one process from each long queue to the node with the fewest runnable processes.

    A queue is long if it has at least two more processes than the shortest one. All nodes decide at once on the same
    information, so that many processes may go to one node, and leave it again at the next inspection. `ready` marks the
    segments that were computing when the queues were inspected, shape (segments,).
    """
    length = np.bincount(node[ready], minlength=nodes)
    shortest = int(length.argmin())
    moved = node.copy()
    for busy in np.flatnonzero(length >= length[shortest] + 2):
        moved[np.flatnonzero(ready & (node == busy))[-1]] = shortest
    return moved
