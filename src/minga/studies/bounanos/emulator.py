"""Emulation of runs of the pointwise scheme in virtual time, on any number of nodes.

Given the costs of rows, the cuts of the mesh and the communication of a system, the times at which segments finish
their iterations follow from recurrences. With one wave per iteration (old boundaries), segment ``i`` starts iteration
``k`` at

    max(T[k-1, i], T[k-1, i-1] + message, T[k-1, i+1] + message, its node is free),

with one CPU per node and ready segments served first come, first served: while one waits for messages, another one
computes. If the sub-cycles are observed, a segment starts a sub-cycle when the preceding segment (in the direction of
the sub-cycle) has finished the same one. A centralised system has a parent that serves one message after another.
Nothing is random, and no clock is read.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import LayoutError
from minga.models.photodiode.pointwise.setup import DIRECTIONS as SWEEPS
from minga.studies.bounanos.balancers import Balance, queues, refine, round_robin
from minga.studies.bounanos.boundaries import NUMBERS, POINTS
from minga.studies.bounanos.costs import SUBCYCLES, RowCosts
from minga.studies.bounanos.cuts import fullest
from minga.studies.bounanos.systems import System

__all__ = ["DIRECTIONS", "Emulated", "emulate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIRECTIONS: Final = tuple(SWEEPS.get(name, 0) for name in SUBCYCLES)
"""Default directions of the sub-cycles in the pointwise scheme; 0 for those that do not sweep."""

ROW_BYTES: Final = 8 * POINTS * NUMBERS
"""Bytes of a row that changes segments."""

LOCAL_SECONDS: Final = 2e-6
"""Latency of a message between segments of the same node, s."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """Result of an emulated run.

    Attributes
    ----------
    seconds
        Time from start to end.
    serial
        Time on one node, without messages.
    nodes
        Number of nodes.
    migrations
        Number of segments that changed nodes over the run.
    recuts
        Number of times that rows changed segments.
    busy
        Time of computing and of messages on each node, s, shape (nodes,).
    """

    seconds: float
    serial: float
    nodes: int
    migrations: int
    recuts: int
    busy: Floats

    @property
    def speedup(self) -> float:
        """Serial time over the time of the run."""
        return self.serial / self.seconds

    @property
    def efficiency(self) -> float:
        """Speed-up over the number of nodes."""
        return self.speedup / self.nodes


@dataclass(slots=True)
class _Run:
    """State of a run, in seconds with one iteration per sample.

    Attributes
    ----------
    done
        Times at which the segments finished their last tasks, shape (segments,).
    free
        Times at which the nodes become free, shape (nodes,).
    ready
        Segments that were computing in the middle of the last iteration, if it was centralised.
    """

    system: System
    nodes: int
    ends: Ints
    node: Ints
    done: Floats
    free: Floats
    busy: Floats
    migrations: int = 0
    recuts: int = 0
    ready: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def now(self) -> float:
        """Time at which the last segment finished."""
        return float(self.done.max())


def emulate(
    costs: RowCosts, ends: ArrayLike, nodes: int, system: System, *, directions: Sequence[int] | None = None
) -> Emulated:
    """Return the emulated result of a run.

    Parameters
    ----------
    costs
        Costs of rows; each sample is emulated as one iteration, and represents many.
    ends
        Initial cuts of the mesh, shape (segments + 1,); segments are assigned to nodes in turns.
    nodes
        Number of nodes with one CPU each. With fewer segments than nodes the others are idle.
    system
        Communication and balancing of segments.
    directions
        Observe the sub-cycles (the bits of a single process, in a pipeline) instead of using old boundaries: for every
        sub-cycle 1 for down the rows, -1 for up, 0 if it does not sweep; for example `DIRECTIONS`.

    Raises
    ------
    LayoutError
        If the cuts do not match the rows, or a centralised system is to observe sub-cycles.
    """
    cut = np.asarray(ends, np.int64)
    if len(cut) < 2 or cut[0] != 0 or cut[-1] != costs.rows or (np.diff(cut) < 0).any() or nodes < 1:
        raise LayoutError(
            f"{nodes} nodes with cuts at {cut[:4].tolist()} ... {cut[-1:].tolist()} of {costs.rows} rows",
            remedy=f"give at least one node, and ascending ends from 0 to {costs.rows}",
        )
    if directions is not None and system.organisation == "centralised":
        raise LayoutError(
            f"{system.name} is centralised: its segments exchange data once per iteration",
            remedy="observe the sub-cycles with a distributed system",
        )
    segments = len(cut) - 1
    zeros = np.zeros(nodes)
    run = _Run(system, nodes, cut, round_robin(segments, nodes), np.zeros(segments), zeros.copy(), zeros.copy())
    balance, looked = system.balance, 0.0
    if system.home:  # all processes start on node 0, and leave it one after another
        run.migrations += segments - 1
        run.done[:] = (segments - 1) * (balance.move if balance else 0.0) / costs.stands_for
    window: list[int] = []
    for sample in range(costs.samples):
        window.append(sample)
        last = sample == costs.samples - 1
        # An inspection costs the emulator a pass over a window; windows of one sample are the shortest it can resolve.
        expected = run.now + _expected(run, costs, window)
        if not last and (balance is None or (expected - looked) * costs.stands_for < balance.every):
            continue
        _play(run, costs, window, directions)
        if balance is not None and not last:
            _balanced(run, costs, window, balance)
            looked = run.now
        window = []
    return Emulated(
        run.now * costs.stands_for,
        costs.serial,
        nodes,
        run.migrations,
        run.recuts,
        run.busy * costs.stands_for,
    )


def _expected(run: _Run, costs: RowCosts, window: list[int]) -> float:
    """Return the approximate duration of a window: the work of its busiest node."""
    each = costs.of_segments(window[0], run.ends).sum(axis=0)
    return float(np.bincount(run.node, weights=each, minlength=run.nodes).max()) * len(window)


def _play(run: _Run, costs: RowCosts, window: list[int], directions: Sequence[int] | None) -> None:
    """Emulate iterations, one after another."""
    system = run.system
    each = np.stack([costs.of_segments(sample, run.ends) for sample in window])
    crowd = np.maximum(np.bincount(run.node, minlength=run.nodes) - 1, 0)[run.node]
    shared = np.bincount(run.node, minlength=run.nodes)[run.node]
    switching = system.crowd * crowd / shared  # all of a node's segments together pay for its crowd
    if system.organisation == "centralised":
        for cost in each.sum(axis=1):
            _centralised(run, cost + switching)
    elif directions is not None:
        sent = _messages(run) * system.link.overhead
        tasks = each + (switching + sent)[None, None, :] / len(directions)
        _waves(run, tasks.reshape(-1, len(run.node)), tuple(directions))
    else:
        cost = each.sum(axis=1) + switching + _messages(run) * system.link.overhead
        if system.reduction == "blocking":
            for one in cost:
                _barrier(run, one)
        else:
            _waves(run, cost, (0,))


def _messages(run: _Run) -> Ints:
    """Return the messages of each segment to and from other nodes in an iteration, shape (segments,)."""
    apart = (np.diff(run.node) != 0).astype(np.int64)
    found: Ints = 2 * (np.concatenate([apart, [0]]) + np.concatenate([[0], apart]))
    return found


def _under_way(run: _Run) -> Floats:
    """Return the latencies in s between segments ``i`` and ``i + 1``, shape (segments - 1,)."""
    far = run.system.link.seconds(run.system.size)
    return np.where(np.diff(run.node) != 0, far, LOCAL_SECONDS)


def _barrier(run: _Run, cost: Floats) -> None:
    """Emulate an iteration with a blocking reduction: up and down a binary tree of the nodes in use."""
    load = np.bincount(run.node, weights=cost, minlength=run.nodes)
    used = np.count_nonzero(np.bincount(run.node, minlength=run.nodes))
    link = run.system.link
    depth = int(np.ceil(np.log2(used))) if used > 1 else 0
    boundary = float(_under_way(run).max(initial=0.0))
    end = run.now + float(load.max()) + max(boundary, 2 * depth * (link.seconds(8) + link.overhead))
    run.busy += load
    run.done[:] = end
    run.free[:] = end


def _centralised(run: _Run, cost: Floats) -> None:
    """Emulate an iteration with a parent on node 0, which receives from all, one after another, and then sends."""
    link, segments = run.system.link, len(cost)
    begin = run.done  # when each segment has received the parent's answer
    finish = np.empty(segments)
    free = run.free.copy()
    for segment in np.argsort(begin, kind="stable"):
        place = run.node[segment]
        finish[segment] = max(begin[segment], free[place]) + cost[segment] + link.overhead
        free[place] = finish[segment]
    run.ready = finish > 0.5 * (float(begin.min()) + float(finish.max()))
    arrive = np.sort(finish + np.where(run.node == 0, LOCAL_SECONDS, link.seconds(run.system.size)))
    parent = free[0] if (run.node == 0).any() else 0.0
    for time in arrive:
        parent = max(parent, time) + link.overhead
    run.busy += np.bincount(run.node, weights=cost + link.overhead, minlength=run.nodes)
    run.busy[0] += 2 * segments * link.overhead
    sent = parent + link.overhead * (1 + np.arange(segments))
    run.done[:] = sent + np.where(run.node == 0, LOCAL_SECONDS, link.seconds(run.system.size))
    free[0] = float(sent[-1])
    run.free[:] = free


def _waves(run: _Run, cost: Floats, directions: tuple[int, ...]) -> None:
    """Emulate tasks ``cost[w, i]`` of wave ``w`` and segment ``i`` by events; a task starts once its input is there."""
    waves, segments = cost.shape
    under_way = _under_way(run).tolist()
    begun = run.now > 0.0  # at the start all know their neighbours' rows
    node, busy, free = run.node.tolist(), run.busy, run.free.tolist()
    task: list[list[float]] = cost.tolist()
    # A task waits for the last task of its segment, and for one of each neighbour.
    needs = [[1 + (i > 0) + (i < segments - 1) for i in range(segments)] for _ in range(waves)]
    ready = [[0.0] * segments for _ in range(waves)]
    waiting: list[tuple[float, int, int]] = []

    def arrived(time: float, wave: int, segment: int) -> None:
        if wave >= waves:
            return
        ready[wave][segment] = max(ready[wave][segment], time)
        needs[wave][segment] -= 1
        if not needs[wave][segment]:
            heapq.heappush(waiting, (ready[wave][segment], wave, segment))

    def finished(time: float, wave: int, segment: int) -> None:
        """Notify those waiting for a task: the next one of this segment, and those of its neighbours."""
        arrived(time, wave + 1, segment)
        for other, way, link in ((segment - 1, -1, segment - 1), (segment + 1, 1, segment)):
            if not 0 <= other < segments:
                continue
            if wave >= 0 and directions[wave % len(directions)] == way:
                arrived(time + under_way[link], wave, other)  # the same wave continues there
            if wave + 1 < waves and directions[(wave + 1) % len(directions)] != way:
                arrived(time + (under_way[link] if wave >= 0 or begun else 0.0), wave + 1, other)

    for segment, time in enumerate(run.done.tolist()):
        finished(time, -1, segment)
    done = run.done.tolist()
    while waiting:
        time, wave, segment = heapq.heappop(waiting)
        place = node[segment]
        end = max(time, free[place]) + task[wave][segment]
        free[place] = done[segment] = end
        finished(end, wave, segment)
    busy += np.bincount(run.node, weights=cost.sum(axis=0), minlength=run.nodes)
    run.done[:], run.free[:] = done, free


def _balanced(run: _Run, costs: RowCosts, window: list[int], balance: Balance) -> None:
    """Cut and assign segments again, and account for the time that this takes."""
    begin = run.now
    if balance.recut:
        weights = costs.seconds[window].sum(axis=1).mean(axis=0)
        better = fullest(weights, len(run.node))
        moved = int(np.abs(better - run.ends).max())
        if moved:
            run.ends, run.recuts = better, run.recuts + 1
            pause = run.system.link.seconds(moved * ROW_BYTES) + balance.move
            run.done[:] = run.free[:] = begin + pause / costs.stands_for
    if balance.placement is None:
        return
    before = run.node
    if balance.placement == "refine":
        recent = np.mean([costs.of_segments(sample, run.ends).sum(axis=0) for sample in window], axis=0)
        run.node = refine(recent, before, run.nodes, balance.least)
    else:
        run.node = queues(run.ready, before, run.nodes)
    moved_segments = np.flatnonzero(run.node != before)
    run.migrations += len(moved_segments)
    for segment in moved_segments:
        place = run.node[segment]
        run.done[segment] = max(run.done[segment], run.free[place]) + balance.move / costs.stands_for
        run.free[place] = run.done[segment]
