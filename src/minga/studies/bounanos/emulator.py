"""Runs of the pointwise scheme in virtual time, on as many nodes as one likes.

Given what rows cost, where the mesh is cut and how a system exchanges, the times at which segments finish their
iterations follow by recurrences. With one wave an iteration (old boundaries), segment ``i`` begins iteration ``k`` at

    max(T[k-1, i], T[k-1, i-1] + message, T[k-1, i+1] + message, its node is free),

with one CPU a node and ready segments served first come, first served: while one waits for messages, another one
computes. With the sub-cycles observed, a segment begins a sub-cycle when the segment before it (in the sub-cycle's
direction) has finished the same one. A centralised system has a parent that serves one message after another. Nothing
is random, and no clock is read.
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
from minga.studies.bounanos.balancers import Balance, in_turns, queues, refine
from minga.studies.bounanos.boundaries import NUMBERS, POINTS
from minga.studies.bounanos.costs import SUBCYCLES, RowCosts
from minga.studies.bounanos.cuts import fullest
from minga.studies.bounanos.systems import System

__all__ = ["DIRECTIONS", "Emulated", "emulate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIRECTIONS: Final = tuple(SWEEPS.get(name, 0) for name in SUBCYCLES)
"""Of the sub-cycles, as the pointwise scheme has them by default; 0 where it does not sweep."""

ROW_BYTES: Final = 8 * POINTS * NUMBERS
"""Of a row that changes segments."""

LOCAL_SECONDS: Final = 2e-6
"""A message to a segment of the same node is under way."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """What a run took.

    seconds     from start to end
    serial      on one node, without messages
    nodes       that took part
    migrations  segments that changed nodes, over the run
    recuts      how often rows changed segments
    busy        seconds of computing and of messages on each node, shape (nodes,)
    """

    seconds: float
    serial: float
    nodes: int
    migrations: int
    recuts: int
    busy: Floats

    @property
    def speedup(self) -> float:
        return self.serial / self.seconds

    @property
    def efficiency(self) -> float:
        return self.speedup / self.nodes


@dataclass(slots=True)
class _Run:
    """A run under way, in seconds of one iteration a sample.

    done   when each segment finished its last task, shape (segments,)
    free   when each node is free, shape (nodes,)
    ready  which segments still computed in the middle of the last iteration, if it was centralised
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
        return float(self.done.max())


def emulate(
    costs: RowCosts, ends: ArrayLike, nodes: int, system: System, *, directions: Sequence[int] | None = None
) -> Emulated:
    """The time a run takes.

    Parameters
    ----------
    costs
        Seconds of rows; each sample is played as one iteration, and stands for many.
    ends
        Where the mesh is cut at first, shape (segments + 1,); segments are dealt out to nodes in turns.
    nodes
        Each with one CPU. With fewer segments than nodes the others are idle.
    system
        How segments exchange and are balanced.
    directions
        Observe the sub-cycles (the bits of one process, in a pipeline) instead of using old boundaries: of every
        sub-cycle 1 for down the rows, -1 for up, 0 where it does not sweep; such as `DIRECTIONS`.

    LayoutError for cuts that are not those of the rows, or a centralised system that is to observe sub-cycles.
    """
    cut = np.asarray(ends, np.int64)
    if len(cut) < 2 or cut[0] != 0 or cut[-1] != costs.rows or (np.diff(cut) < 0).any() or nodes < 1:
        raise LayoutError(
            f"{nodes} nodes with cuts at {cut[:4].tolist()} ... {cut[-1:].tolist()} of {costs.rows} rows",
            remedy=f"give at least one node, and ascending ends from 0 to {costs.rows}",
        )
    if directions is not None and system.organisation == "centralised":
        raise LayoutError(
            f"{system.name} is centralised: its segments hear of each other once an iteration",
            remedy="observe the sub-cycles with a distributed system",
        )
    segments = len(cut) - 1
    zeros = np.zeros(nodes)
    run = _Run(system, nodes, cut, in_turns(segments, nodes), np.zeros(segments), zeros.copy(), zeros.copy())
    balance, looked = system.balance, 0.0
    if system.home:  # all processes start on node 0, and leave it one after another
        run.migrations += segments - 1
        run.done[:] = (segments - 1) * (balance.move if balance else 0.0) / costs.stands_for
    window: list[int] = []
    for sample in range(costs.samples):
        window.append(sample)
        last = sample == costs.samples - 1
        # A look costs the emulator a walk over a window; windows of one sample are what it can tell apart.
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
    """About what a window will take: its busiest node's work."""
    each = costs.of_segments(window[0], run.ends).sum(axis=0)
    return float(np.bincount(run.node, weights=each, minlength=run.nodes).max()) * len(window)


def _play(run: _Run, costs: RowCosts, window: list[int], directions: Sequence[int] | None) -> None:
    """Some iterations, one after another."""
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
    """Messages each segment sends and receives in an iteration, to and from other nodes; shape (segments,)."""
    apart = (np.diff(run.node) != 0).astype(np.int64)
    found: Ints = 2 * (np.concatenate([apart, [0]]) + np.concatenate([[0], apart]))
    return found


def _under_way(run: _Run) -> Floats:
    """Seconds from segment ``i`` to ``i + 1`` or back, shape (segments - 1,)."""
    far = run.system.link.seconds(run.system.size)
    return np.where(np.diff(run.node) != 0, far, LOCAL_SECONDS)


def _barrier(run: _Run, cost: Floats) -> None:
    """An iteration that ends with a reduction everybody waits for: up and down a binary tree of the nodes in use."""
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
    """An iteration through a parent on node 0: it receives from everybody, one after another, and then sends."""
    link, segments = run.system.link, len(cost)
    begin = run.done  # when each segment heard from the parent
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
    """Tasks ``cost[w, i]`` of wave ``w`` and segment ``i``, by events: a task starts when all it reads has arrived."""
    waves, segments = cost.shape
    under_way = _under_way(run).tolist()
    begun = run.now > 0.0  # at the start all know their neighbours' rows
    node, busy, free = run.node.tolist(), run.busy, run.free.tolist()
    task: list[list[float]] = cost.tolist()
    # A task waits for this segment's last one, and for one of each neighbour.
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
        """Tell those who wait for a task: this segment's next one, and its neighbours'."""
        arrived(time, wave + 1, segment)
        for other, way, link in ((segment - 1, -1, segment - 1), (segment + 1, 1, segment)):
            if not 0 <= other < segments:
                continue
            if wave >= 0 and directions[wave % len(directions)] == way:
                arrived(time + under_way[link], wave, other)  # the same wave goes on there
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
    """Cut anew, deal out anew, and book what that takes."""
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
