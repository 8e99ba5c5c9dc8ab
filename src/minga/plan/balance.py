"""Load balancing: work is moved between ranks while a model runs, according to measured times.

At regular intervals, rank 0 receives from every rank the seconds that it has worked, without those that it has waited.
A rank's pace is its measured time divided by the time expected from its speed: the median of the last three checks,
smoothed, so that a hiccup moves nothing but the loss of half a node does. If the slowest rank takes longer than the
best cut allows, twice in a row, the cuts move (:mod:`minga.plan.recut`) part of the way, provided that this saves more
in the remaining steps than moving costs. The time of later steps shows whether the move helped; if it did not, work is
moved back, and an imbalance of that size is ignored. If all moves together have lost against the first cut, work goes
back to it for a while. Like the load balancer of HOOMD-blue
(``hoomd.tune.LoadBalancer``), this one is kept stable by a tolerance and by small moves; it also weighs the cost of
moving.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.live import dead_slots
from minga.engine.matching import check_layouts
from minga.engine.model import Model
from minga.engine.storage import Storage
from minga.errors import LayoutError
from minga.lang.types import itemsize
from minga.plan.budget import Budget
from minga.plan.certainty import Certainty
from minga.plan.cost import compute_seconds
from minga.plan.decisions import Decision, Proposal, RankTimes, Seen, Trial
from minga.plan.hindsight import Hindsight, Regret
from minga.plan.move_cost import MoveCost
from minga.plan.ranks import RankGroup
from minga.plan.recut import costs_of_blocks, moved_cells, reassign, recut
from minga.plan.slow_hosts import Drops
from minga.plan.work.masks import MaskWatch
from minga.plan.work.recorded import applies_of
from minga.plan.work.weights import Weights, measured_weights
from minga.plan.work.work import Work
from minga.space.field import Slot
from minga.space.layout import Layout

__all__ = ["Balancer"]

Floats = NDArray[np.float64]

_SHORT: Final = 0.2
"""Seconds of work below which times are unreliable; checks that are not at fixed steps wait until then."""
_SAMPLES: Final = 3
_SMOOTH: Final = 0.5
"""Weight of the latest median in the smoothed pace."""
_SHIFT: Final = 1.25
"""Factor from which on a change of pace is not noise: it counts at once, and at such an imbalance cuts move all the
way."""
_STRONG: Final = 1.5
"""Imbalance from which on half as many checks in a row suffice for a move that patience forbids, or even the second
one of three if the imbalance is far beyond noise."""
_BEYOND: Final = 1 / 8
"""Power of the imbalance that has to be beyond noise then."""
_PATIENCE: Final = 2
_MOST_PATIENCE: Final = 64
"""Initial and maximum number of checks in a row that must show an imbalance before work moves. Every move doubles the
number, so that times which never settle do not move work forever."""
_QUIET: Final = 8
"""Patience is halved after this many times as many checks without a move."""
_CURED: Final = 0.25
"""Share of the expected gain that must be seen in the time of steps after a move."""
_DOUBT: Final = 32
"""Number of checks for which an imbalance that a move did not cure is ignored; doubled each time."""
_LOST: Final = 0.015
"""Share of the time with the first cut that all moves together may lose before work returns to that cut."""
_RETURN: Final = 0.1
"""Largest share of the remaining time that the return may take."""
_REST: Final = 16
"""Number of checks for which nothing moves then; doubled each time."""
_WORSE: Final = 1.03
"""Factor by which steps must take longer after a move for the move to be undone."""
_SLOWED: Final = 1.1
"""Factor by which the pace of a rank must grow for the rank to count as slower."""
_WORTH: Final = 1.5
"""Minimum ratio of what a move saves to what it costs: both are estimates."""
_SEARCHING: Final = 0.02
"""Share of a run's time that the search for better cuts may take."""
_FILLED: Final = 0.9
"""Share of a rank's memory that cells may fill; halos take the rest."""


class Balancer:
    """Load balancer that moves work between the ranks of a run. Results do not depend on it.

    Parameters
    ----------
    work, group
        The work of a step, and the ranks; speeds need only be right relative to each other.
    every
        Steps from one check to the next; "auto" for about five checks per second.
    tolerance
        Factor by which the slowest rank may be slower than with the best cut.
    part
        Share of the way to the best cut that one move covers, unless a rank clearly lost its share.
    cause
        The reason why ranks take longer than expected: "ranks" if ranks are slower, "cells" if their cells cost more.
        In the latter case the given speeds hold, and the times of blocks show where costly cells are.
    drops
        Watch on rank 0 over hosts without which the run would be faster; None if hosts cannot be dropped.
    clock
        Clock of the time that the search for better cuts takes.

    Attributes
    ----------
    decisions
        All moves so far, on all ranks.
    looks
        Number of checks so far.
    """

    def __init__(
        self,
        work: Work,
        group: RankGroup,
        every: int | Literal["auto"] = "auto",
        *,
        tolerance: float = 1.03,
        part: float = 0.5,
        cause: Literal["ranks", "cells"] = "ranks",
        drops: Drops | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if every != "auto" and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise LayoutError(f"balance every {every!r} steps", remedy='give 1 or more, or "auto"')
        if tolerance < 1 or not 0 < part <= 1:
            raise LayoutError(
                f"a balancer with tolerance {tolerance} that goes {part} of the way",
                remedy="give a tolerance of 1 or more, such as 1.05, and a part between 0 and 1",
            )
        self.work, self.group, self.every = work, group, every
        self.tolerance, self.part, self.cause = tolerance, part, cause
        self._drops, self._clock = drops, clock
        self.decisions: list[Decision] = []
        self.looks = 0
        self._held: list[tuple[int, NDArray[np.int64]]] = []
        """Steps after which layouts changed, with the number of cells that each rank held from then on."""
        self._model: Model | None = None
        self._mask: MaskWatch | None = None
        self._dead: frozenset[Slot] = frozenset()
        self._seen = Seen()
        self._paces: deque[Floats] = deque(maxlen=_SAMPLES)
        self._pace: Floats | None = None
        self._strikes = self._shifts = 0
        """Number of checks in a row that showed an imbalance, and of those that showed one beyond noise."""
        self._patience = _PATIENCE
        self._calm = 0
        """Number of checks since patience changed."""
        self._tolerance = tolerance
        """The requested tolerance, or a larger one for the next `_doubt` checks if moves did not help."""
        self._doubt, self._next_doubt = 0, _DOUBT
        self._steps: deque[float] = deque(maxlen=_SAMPLES)
        """Seconds of a step since the last move."""
        self._trial: Trial | None = None
        self._idle = 0.0
        """Seconds of steps until the next search for better cuts."""
        self.price = MoveCost()
        self._certainty = Certainty()
        self._budget = Budget()
        self._hindsight = Hindsight()
        self._first: Layout | None = None
        self._rest, self._next_rest = 0, _REST
        """Number of checks for which nothing moves, now and the next time."""
        self._latest = 0.0
        """Expected seconds of the last move."""

    @property
    def interval(self) -> int | None:
        """Steps from one check to the next; None if checks go by the clock."""
        return None if self.every == "auto" else self.every

    @property
    def regret(self) -> Regret | None:
        """Regret of the moves so far against the best cut in hindsight; known on rank 0 only."""
        return self._hindsight.regret(sum(decision.seconds for decision in self.decisions))

    def start(self, model: Model, engine: Engine) -> None:
        """Prepare for a model; collective, before its first step."""
        self._model, self._dead = model, dead_slots(model)
        self._mask = MaskWatch.of(model)
        if self.work.domain != model.planned_grid.box or self.group.ranks != engine.comm.size:
            raise LayoutError(
                f"a balancer of {self.work.domain} on {self.group.ranks} ranks for model {model.name!r}, whose planned "
                f"grid is {model.planned_grid!r}, on {engine.comm.size}",
                remedy="make work and group for this model and these ranks: work_of(model)",
            )
        layout = engine.storage.layout(model.planned_grid)
        self._held = [(0, layout.cells())]
        several = len(layout) > len(np.unique(layout.owner))
        if several or self.cause == "cells":
            engine.time_blocks(model.planned_grid)
        self._seen = Seen.now(0, engine)

    def mean_cells(self, steps: int) -> Floats:
        """Return the average cells of each rank over the first ``steps`` steps, shape (ranks,)."""
        begins = [begin for begin, _ in self._held]
        lengths = np.diff([*begins, max(steps, begins[-1] + 1)])
        return np.average([cells for _, cells in self._held], axis=0, weights=lengths)

    def check(self, engine: Engine, step: int, remaining: int) -> bool:
        """Compare the times of ranks, and move work if this pays; collective.

        Parameters
        ----------
        engine
            The engine that holds the model.
        step, remaining
            Numbers of steps that are done and that remain.

        Returns
        -------
        bool
            True if layouts changed.
        """
        assert self._model is not None, "start comes before look"
        grid = self._model.planned_grid
        layout = engine.storage.layout(grid)
        seen = Seen.now(step, engine)
        since = seen.since(self._seen)
        gathered = engine.comm.gather(since)
        self._look_at_mask(engine)
        answer: tuple[bool, Proposal | None] = (False, None)
        if gathered is not None and step > self._seen.step:
            enough = self.every != "auto" or max(each.busy for each in gathered) >= _SHORT
            answer = enough, self._propose(layout, gathered, remaining) if enough else None
        enough, proposal = engine.comm.bcast(answer)
        if enough:
            self.looks += 1
            self.price.rebind = max(since.binding, 1e-4) if since.binding else self.price.rebind
            self._seen = seen
        if proposal is None:
            return False
        self._move(engine, proposal, step)
        return True

    def _look_at_mask(self, engine: Engine) -> None:
        """Update the costs of cells if a mask changes while the model runs."""
        if self._mask is None:
            return
        parts = engine.comm.gather(self._mask.part(engine))
        weights = None if parts is None else self._mask.weights(parts)
        if weights is not None:
            self.work = replace(self.work, weights=weights)

    def _propose(self, layout: Layout, gathered: list[Seen], remaining: int) -> Proposal | None:
        """Return the decision of rank 0 after a check."""
        steps = gathered[0].step
        blocks = {block: seconds / steps for each in gathered for block, seconds in each.blocks.items()}
        longest = max(each.spent for each in gathered) / steps
        look = RankTimes(np.array([each.busy / steps for each in gathered]), blocks, longest, steps)
        return self.look(layout, look, remaining)

    def look(self, layout: Layout, times: RankTimes, remaining: int) -> Proposal | None:
        """Decide as :meth:`decide` does; where nothing moves, look for hosts without which the run would be faster."""
        proposal = self.decide(layout, times, remaining)
        pace = self._pace
        if proposal is None and self._drops is not None and pace is not None:
            self._drops.look(layout, pace, times, remaining, lambda: self._best(layout, self.work.weights, pace))
        return proposal

    def decide(self, layout: Layout, times: RankTimes, remaining: int) -> Proposal | None:
        """Return a better layout if moving to it pays in the remaining steps, otherwise None.

        The balancer remembers all observations: call this once per check, in order.
        """
        self._calm += 1
        self._doubt -= 1
        if not self._doubt:
            self._tolerance = self.tolerance
        if self._calm > _QUIET * self._patience:
            self._patience, self._calm = max(_PATIENCE, self._patience // 2), 0
        weights = self._weights(layout, times)
        self._first = self._first or layout
        self._hindsight.record(times.steps, times.seconds, _costs(layout, weights), _costs(self._first, weights))
        pace = self._learn(self._expected(layout, weights), times.seconds)
        now = pace * self._expected(layout, weights)
        self._rest -= 1
        if times.step > 0.0:
            self._steps.append(times.step)
            self._budget.record(times.step, times.steps)
            if self._has_lost():
                return self._returned(layout, now, remaining)
            if self._trial is not None:
                return self._judge(layout, remaining)
        # No cut is better by more than this factor.
        above = self._above(layout, weights, now)
        sure = self._is_no_noise(layout, weights)
        self._strikes = self._strikes + 1 if above > self._tolerance and sure else 0
        self._shifts = self._shifts + 1 if self._strikes and above >= _SHIFT else 0
        self._idle -= times.step * times.steps
        settled = 1 if self._is_obvious(layout, weights) else _PATIENCE if above >= _STRONG else 2 * _PATIENCE
        if self._rest > 0 or self._idle > 0.0 or (self._strikes < self._patience and self._shifts < settled):
            return None
        if self._shifts and self._shifts < min(_PATIENCE, settled):
            return None  # times that have only just begun to change have not settled yet
        began = self._clock()
        proposal = self._search(layout, weights, pace)
        if times.step > 0.0:
            self._idle = (self._clock() - began) / _SEARCHING
        if proposal is None or proposal.gain * remaining <= _WORTH * proposal.expected:
            return None
        clear = self._shifts > 0
        if times.step > 0.0 and not self._budget.allows(proposal.gain, proposal.expected, remaining, clear=clear):
            return None
        if self._steps:
            usual, noise = self._budget.usual()
            self._trial = Trial(layout, usual, proposal.gain, proposal.imbalance, pace, noise)
        self._patience = min(2 * self._patience, _MOST_PATIENCE)
        return self._begun(proposal)

    def _has_lost(self) -> bool:
        """Return True if all moves have lost against the first cut; the last one has yet to earn its cost."""
        lost = self._hindsight.loss + self._budget.spent - self._latest
        return self._budget.spent > 0.0 and lost > _LOST * self._hindsight.kept

    def _returned(self, layout: Layout, now: Floats, remaining: int) -> Proposal | None:
        """Return the way back to the first cut, and let nothing move for a while; None if it is in use."""
        self._trial = None
        if self._rest <= 0:
            self._rest, self._next_rest = self._next_rest, 2 * self._next_rest
        assert self._first is not None
        if layout == self._first:
            return None
        step = float(now.max())
        back = self._proposal(layout, self._first, 1.0, 0.0, step)
        return self._begun(back) if _RETURN * step * remaining > back.expected else None

    def _search(self, layout: Layout, weights: Weights | None, pace: Floats) -> Proposal | None:
        """Return the best cut, or a cut part of the way to it if it is not much better."""
        best = self._best(layout, weights, pace)
        if best is None:
            return None
        now = float((pace * self._expected(layout, weights)).max())
        least = float((pace * self._expected(best, weights)).max())
        imbalance = now / least if least > 0 else 1.0
        if imbalance <= self._tolerance:
            self._strikes = self._shifts = 0
            return None
        chosen = best if imbalance >= _SHIFT else self._towards(layout, best, weights)
        gain = now - float((pace * self._expected(chosen, weights)).max())
        return self._proposal(layout, chosen, imbalance, gain, now) if gain > 0 else None

    def _proposal(self, old: Layout, new: Layout, imbalance: float, gain: float, step: float) -> Proposal:
        sending = self._sending(old, new)
        return Proposal(new, imbalance, gain, self.price.of(step, sending), sending, step)

    def _begun(self, proposal: Proposal) -> Proposal:
        """Reset the observations, since the following steps are done with another layout."""
        self._calm = self._strikes = self._shifts = 0
        self._steps.clear()
        self._budget.begin(proposal.expected)
        self._latest = proposal.expected
        return proposal

    def _judge(self, layout: Layout, remaining: int) -> Proposal | None:
        """Judge the last move by the time of steps; return the way back if steps became longer."""
        trial = self._trial
        if trial is None or len(self._steps) < _SAMPLES:
            return None
        self._trial = None
        found = float(np.median(self._steps))
        relieved = layout.cells() <= trial.layout.cells()
        slower = np.median(np.array(self._paces), axis=0) > _SLOWED * trial.pace
        if trial.step - found >= _CURED * trial.gain or (relieved & slower).any():
            return None  # the move was right, or something else happened: less work does not make a rank slower
        # Ranks that wait seem faster than they are if a quota or a shared core slows down only those that work.
        self._tolerance = max(self._tolerance, trial.imbalance * self.tolerance)
        self._doubt, self._next_doubt = self._next_doubt, 2 * self._next_doubt
        back = self._proposal(layout, trial.layout, found / trial.step, found - trial.step, found)
        worse = max(_WORSE, 1 + 2 * trial.noise / len(self._steps) ** 0.5)
        if found < worse * trial.step or back.gain * remaining <= _WORTH * back.expected:
            return None
        return self._begun(back)

    def _weights(self, layout: Layout, times: RankTimes) -> Weights | None:
        """Return the costs of cells: measured on the blocks if that is informative, otherwise as declared."""
        if not times.blocks or (self.cause == "ranks" and self.work.weights is not None):
            return self.work.weights
        ranks, blocks = self.group.ranks, sorted(times.blocks)
        owner = layout.owner[blocks]
        cells = (layout.hi - layout.lo)[blocks].prod(axis=1).astype(float)
        kernels = np.array([times.blocks[block] for block in blocks])
        # All other work of a rank is attributed evenly to its cells.
        rest = np.maximum(times.seconds - np.bincount(owner, kernels, ranks), 0.0)
        seconds = kernels + rest[owner] * cells / np.bincount(owner, cells, ranks)[owner]
        if self.cause == "cells":
            unit = np.divide(
                self._expected(layout, None), layout.cells(), out=np.zeros(ranks), where=layout.cells() > 0
            )
        else:  # the blocks of a rank differ in their cells, ranks in their pace
            total = np.bincount(owner, cells, ranks)
            unit = np.divide(np.bincount(owner, seconds, ranks), total, out=np.zeros(ranks), where=total > 0)
        known = unit[owner] > 0
        cost = np.divide(seconds, unit[owner], out=np.zeros(len(blocks)), where=known)
        return measured_weights(layout, {b: c for b, c, k in zip(blocks, cost.tolist(), known, strict=True) if k})

    def _expected(self, layout: Layout, weights: Weights | None) -> Floats:
        """Return the seconds per step that are expected from the speeds of ranks, shape (ranks,)."""
        cells = layout.cells().astype(float) * self.work.points
        if weights is None:
            return compute_seconds(self.group, cells)
        return compute_seconds(self.group, cells, _costs(layout, weights) * self.work.points)

    def _learn(self, expected: Floats, seconds: Floats) -> Floats:
        """Return the pace of every rank: seconds per expected second; ranks without work get that of the others."""
        working = (expected > 0) & (seconds > 0)
        pace = np.divide(seconds, expected, out=np.ones(len(seconds)), where=working)
        if not working.all():
            pace[~working] = float(np.median(pace[working])) if working.any() else 1.0
        if self.cause == "cells":
            pace = np.full(len(pace), float(np.median(pace)))
        self._paces.append(pace)
        self._certainty.learn(pace)
        median: Floats = np.median(np.array(self._paces), axis=0)
        if self._pace is None:
            self._pace = median
        else:
            shifted = np.maximum(median / self._pace, self._pace / median) > _SHIFT
            self._pace = np.where(shifted, median, _SMOOTH * median + (1 - _SMOOTH) * self._pace)
        return self._pace

    def _above(self, layout: Layout, weights: Weights | None, now: Floats) -> float:
        """Return an upper bound of the factor by which any cut is better if ranks take ``now`` seconds per step."""
        return float(now.max()) / max(self._ideal(layout, weights, now), np.finfo(float).tiny)

    def _is_no_noise(self, layout: Layout, weights: Weights | None) -> bool:
        """Return True if all observations since the last change of ranks show an imbalance beyond noise."""
        seconds = self._certainty.level * self._expected(layout, weights)
        above = self._above(layout, weights, seconds)
        return above > self._tolerance and self._certainty.beyond_noise(int(seconds.argmax()), above)

    def _is_obvious(self, layout: Layout, weights: Weights | None) -> bool:
        """Return True if an imbalance is so far beyond noise that nothing else can explain it."""
        seconds = self._certainty.level * self._expected(layout, weights)
        above = self._above(layout, weights, seconds)
        known = self._certainty.knows_noise
        return known and above >= _STRONG and self._certainty.beyond_noise(int(seconds.argmax()), above**_BEYOND)

    def _ideal(self, layout: Layout, weights: Weights | None, now: Floats) -> float:
        """Return the seconds per step if all working ranks finished together: a bound for cuts at present speeds."""
        cost = _costs(layout, weights)
        working = now > 0
        speed = float((cost[working] / now[working]).sum())
        return float(cost.sum()) / speed if speed > 0 else 0.0

    def _best(self, layout: Layout, weights: Weights | None, pace: Floats) -> Layout | None:
        """Return the best cut; speeds depend on sizes, so sizes and speeds are found alternately."""
        best, found = layout, None
        for _ in range(3):
            cost = _costs(best, weights)
            seconds = pace * self._expected(best, weights)
            speed = np.divide(cost, seconds, out=np.zeros(layout.ranks), where=seconds > 0)
            usual = float(np.median(speed[speed > 0])) if (speed > 0).any() else 1.0
            found = self._cut(layout, np.where(speed > 0, speed, usual), weights)
            if found is None or found == best:
                break
            best = found
        return found

    def _towards(self, layout: Layout, best: Layout, weights: Weights | None) -> Layout:
        """Return a layout part of the way to the best one."""
        before, after = _costs(layout, weights), _costs(best, weights)
        return self._cut(layout, before + self.part * (after - before), weights) or best

    def _cut(self, layout: Layout, shares: Floats, weights: Weights | None) -> Layout | None:
        """Return the layout with new cuts or with whole blocks moved, whichever is nearer to ``shares``.

        ``shares`` has shape (ranks,). Return None if neither is possible or allowed by the model's step.
        """
        cost = costs_of_blocks(layout, weights)
        total = np.bincount(layout.owner, cost, layout.ranks)
        shares = self._bounded(shares, layout, total.astype(float))
        blocks = np.bincount(layout.owner, minlength=layout.ranks)
        even = 1.0 / np.maximum(blocks, 1)[layout.owner]
        within = np.divide(cost, total[layout.owner], out=even, where=total[layout.owner] > 0)
        ways = recut(layout, self.work, shares[layout.owner] * within, weights), reassign(layout, shares, cost)
        aligned = [self.work.aligned(way) for way in ways if way is not None]
        found = [way for way in aligned if self._allowed(way)]
        held = np.maximum(shares, np.finfo(float).tiny)
        return min(found, key=lambda way: float((_costs(way, weights) / held).max()), default=None)

    def _bounded(self, shares: Floats, layout: Layout, cost: Floats) -> Floats:
        """Limit shares of the whole to what ranks have memory for; the excess goes to the other ranks."""
        cells = layout.cells()
        price = np.divide(cost, cells, out=np.full(len(cost), cost.sum() / cells.sum()), where=cells > 0)
        room = np.maximum(self.group.memory - self.work.rank_bytes, 0) / max(1, self.work.cell_bytes)
        most = np.maximum(_FILLED * room, cells) * price / cost.sum() if cost.sum() > 0 else np.ones(len(cost))
        shares = shares / shares.sum()
        for _ in range(len(shares)):
            over = shares > most
            free = ~over & (cells > 0)
            if not over.any() or not free.any():
                break
            spare = float((shares - most)[over].sum())
            shares = np.where(over, most, shares)
            shares[free] *= 1 + spare / float(shares[free].sum())
        return shares

    def _allowed(self, layout: Layout) -> bool:
        """Return True if the model's operations can be bound to a layout: sweeps and strides have more requirements."""
        if self.work.swept and sum(len(cuts) > 1 for cuts in layout.cuts) > 1:
            return False  # neighbouring blocks that are cut in different places may wait for each other
        if self._model is None or len(self._model.grids) == 1:
            return True
        storage = Storage(self._model.layouts_like(layout), 0)
        try:
            for apply in applies_of(self._model.step.operations):
                check_layouts(apply, storage)
        except LayoutError:
            return False
        return True

    def _sending(self, old: Layout, new: Layout) -> float:
        """Return the transfer time of the rank with most to send or receive, according to the links."""
        sender, receiver, cells = moved_cells(old, new)
        if not len(cells):
            return 0.0
        seconds = self.group.links.time(self.group.seats, sender, receiver, cells * self._live_bytes())
        if self.group.links.shared:
            return float(seconds.sum())
        ends = [np.bincount(end, seconds, self.group.ranks).max() for end in (sender, receiver)]
        return float(max(ends))

    def _live_bytes(self) -> float:
        """Return the bytes that move with a cell of the planned grid."""
        if self._model is None:
            return float(self.work.cell_bytes)
        moving = sum(
            (item.slots - sum(item.slot(k) in self._dead for k in range(item.slots)))
            * item.points.size
            * itemsize(item.dtype)
            for item in self._model.fields
            if not item.replicated
        )
        return moving / self.work.domain.size

    def _move(self, engine: Engine, proposal: Proposal, step: int) -> None:
        """Carry out the proposal of rank 0 and record its cost."""
        assert self._model is not None
        began = time.perf_counter()
        moved = engine.relayout(self._model.layouts_like(proposal.layout), dead=self._dead)
        self._held.append((step, proposal.layout.cells()))
        if self._mask is not None:
            self._mask.forget()
        took = np.array([moved.bytes], np.int64)
        engine.comm.allreduce(took, "sum")
        longest = np.array([round((time.perf_counter() - began) * 1e9), moved.peak], np.int64)
        engine.comm.allreduce(longest, "max")
        self.moved(proposal, step, int(took[0]), float(longest[0]) * 1e-9, int(longest[1]))

    def moved(self, proposal: Proposal, step: int, size: int, seconds: float, peak: int) -> None:
        """Record a move, and learn from its cost.

        Parameters
        ----------
        proposal
            What was proposed.
        step
            Number of steps done before it.
        size, seconds, peak
            Bytes that were sent, seconds that it took, and maximum bytes that it filled on a rank.
        """
        self.decisions.append(Decision(step, proposal.imbalance, proposal.gain, proposal.expected, size, seconds, peak))
        self.price.learn(proposal.step_seconds, proposal.sending, seconds)
        self._budget.correct(seconds - proposal.expected)


def _costs(layout: Layout, weights: Weights | None) -> Floats:
    """Return the cost of the cells of each rank, shape (ranks,)."""
    return np.bincount(layout.owner, costs_of_blocks(layout, weights), layout.ranks).astype(float)
