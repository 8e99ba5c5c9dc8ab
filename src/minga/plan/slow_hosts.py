"""Hosts that have become so slow that the rest of a run is shorter without them.

A slow host gets fewer cells, but no fewer than a block needs, and its messages and the cost of a step remain. Then a
run is faster on the hosts that are left. The cost model of plans predicts how much faster, from the speeds that the
ranks have now. Since a restart takes time, and a host may recover, one is dropped once its slowness has cost as much as
the restart will (the break-even rule of renting and buying), if the remaining steps save more than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError
from minga.plan.cost import predict
from minga.plan.decisions import RankTimes
from minga.plan.drop import RESTART_SECONDS, Drop
from minga.plan.planner import make_plan
from minga.plan.ranks import RankGroup
from minga.plan.recut import costs_of_blocks
from minga.plan.speed import Speed
from minga.plan.work.work import Work
from minga.space.boxes import Ints
from minga.space.layout import Layout

__all__ = ["Drops"]

Floats = NDArray[np.float64]

_SLOWED: Final = 1.5
"""Factor by which a node must be slower than expected, relative to the others, to be dropped."""
_GAIN: Final = 1.03
"""Least factor by which steps must become faster: less is within the error of the model."""
_WORTH: Final = 1.5
"""Least ratio of what a drop saves to what it costs: both are estimates."""
_MOST: Final = 3
"""Most nodes that are dropped at once."""
_SEARCHING: Final = 0.02
"""Share of a run's time that planning without hosts may take."""
_SAME: Final = 1.1
"""Factor by which paces may change before a plan is made anew."""
_HALVINGS: Final = 4
"""Number of plans by which the speed is found with which dropped hosts pay again."""


@dataclass(eq=False)
class Drops:
    """Watch over the hosts of a run, on rank 0, whose own host is never dropped.

    Parameters
    ----------
    work, group
        The work of a step, and the ranks with the speeds that they are expected to have.
    halo_depth, overlap
        Number of steps per halo exchange of the run, and whether messages overlap with computation.
    found
        Called with a drop that pays, once.
    restart
        Seconds of a restart.
    clock
        Clock of the time that planning takes.
    """

    work: Work
    group: RankGroup
    halo_depth: int
    overlap: bool
    found: Callable[[Drop], object]
    restart: float = RESTART_SECONDS
    clock: Callable[[], float] = time.perf_counter
    _lost: float = 0.0
    """Seconds that slow hosts have cost since they were first seen to be slow."""
    _idle: float = 0.0
    """Seconds of steps until the next plan is made."""
    _known: _Comparison | None = None
    _over: bool = False

    def look(
        self, layout: Layout, pace: Floats, times: RankTimes, remaining: int, balanced: Callable[[], Layout | None]
    ) -> None:
        """Compare the present steps with those that are predicted without slow hosts, once after each check.

        Parameters
        ----------
        layout
            The present layout.
        pace
            Seconds per expected second of each rank, shape (ranks,).
        times
            Times since the last check.
        remaining
            Number of steps that remain.
        balanced
            Returns the best layout to which work can be moved without a restart; None if there is none.
        """
        self._idle -= times.step * times.steps
        slow = self._slow_nodes(pace)
        if self._over or not slow or times.step <= _GAIN * self._bound(layout, times, slow):
            self._lost = 0.0
            return
        compared = self._compared(layout, pace, slow, balanced)
        if compared is None:
            return
        # What the model leaves out is assumed to be left out of each of its predictions, by the same factor.
        error = times.step / compared.now
        step, without = error * min(compared.now, compared.balanced), error * compared.without
        if step <= _GAIN * without:
            self._lost = 0.0
            return
        self._lost += (step - without) * times.steps
        cost = self.restart + self._sending(layout, compared.ranks)
        if self._lost < cost or (step - without) * remaining <= _WORTH * cost:
            return
        self._over = True
        self.found(
            Drop(
                tuple(compared.ranks.tolist()),
                slower=float(self._relative(pace)[compared.ranks].max()),
                step=step,
                without=without,
                recovered=self._recovered(pace, compared),
            )
        )

    def _relative(self, pace: Floats) -> Floats:
        """Return the paces relative to the usual one."""
        relative: Floats = pace / np.median(pace)
        return relative

    def _slow_nodes(self, pace: Floats) -> list[int]:
        """Return the nodes that are slower than expected, the slowest first, without that of rank 0."""
        node = self.group.seats.nodes
        others = np.unique(node[node != node[0]])
        slowest = {int(each): float(self._relative(pace)[node == each].min()) for each in others}
        slow = [each for each, factor in slowest.items() if factor > _SLOWED]
        return sorted(slow, key=lambda each: -slowest[each])[:_MOST]

    def _bound(self, layout: Layout, times: RankTimes, slow: list[int]) -> float:
        """Return a lower bound of the seconds of a step without the slow nodes, as if messages took no time."""
        cost = np.bincount(layout.owner, costs_of_blocks(layout, self.work.weights), layout.ranks)
        left = ~np.isin(self.group.seats.nodes, slow) & (times.seconds > 0)
        speed = float((cost[left] / times.seconds[left]).sum())
        return float(cost.sum()) / speed if speed > 0 else np.inf

    def _compared(
        self, layout: Layout, pace: Floats, slow: list[int], balanced: Callable[[], Layout | None]
    ) -> _Comparison | None:
        """Return the predictions for the present paces; None if there is no time for them yet."""
        known = self._known
        if known is not None and known.holds(layout, pace, slow):
            return known
        if self._idle > 0.0:
            return None
        began = self.clock()
        now, best = self._predicted(pace, layout), balanced()
        moved = now if best is None else self._predicted(pace, best)
        teams = [np.flatnonzero(~np.isin(self.group.seats.nodes, slow[:count])) for count in range(1, len(slow) + 1)]
        plans = [(self._planned(pace, team), team) for team in teams]
        without, team = min(plans, key=lambda each: each[0])
        ranks = np.setdiff1d(np.arange(self.group.ranks), team)
        self._known = _Comparison(layout, pace, tuple(slow), now, moved, without, ranks)
        self._idle = (self.clock() - began) / _SEARCHING
        return self._known

    def _predicted(self, pace: Floats, layout: Layout) -> float:
        """Return the predicted seconds of a step with a layout of all ranks."""
        return predict(self.work, self._paced(pace), layout, self.halo_depth, self.overlap).seconds

    def _planned(self, pace: Floats, team: Ints) -> float:
        """Return the seconds of a step of the best plan on some ranks; infinite if they cannot do it."""
        try:
            return make_plan(self.work, self._paced(pace).part(team)).prediction.seconds
        except LayoutError:
            return np.inf

    def _paced(self, pace: Floats) -> RankGroup:
        """Return the ranks with the speeds that they have at present."""
        kinds, kind = np.unique(np.stack([self.group.speed_of, pace], axis=1), axis=0, return_inverse=True)
        speeds = [self.group.speeds[int(number)] for number, _ in kinds]
        slowed = [Speed(s.cells, s.seconds * factor) for s, (_, factor) in zip(speeds, kinds, strict=True)]
        return replace(self.group, speeds=tuple(slowed), speed_of=kind.reshape(-1).astype(np.int64))

    def _sending(self, layout: Layout, ranks: Ints) -> float:
        """Return the seconds in which the cells of some ranks reach others."""
        size = float(layout.cells()[ranks].sum()) * self.work.cell_bytes
        return float(self.group.links.between(self.group.seats).time(size))

    def _recovered(self, pace: Floats, compared: _Comparison) -> float:
        """Return the factor by which dropped ranks must become faster so that the plan with them is better."""
        ranks, usual = compared.ranks, float(np.median(pace))
        fast, slow = 1.0, float(pace[ranks].max()) / usual
        everyone = np.arange(self.group.ranks)
        for _ in range(_HALVINGS):
            middle = (fast * slow) ** 0.5
            tried = pace.copy()
            tried[ranks] = middle * usual
            pays = _GAIN * self._planned(tried, everyone) < compared.without
            fast, slow = (middle, slow) if pays else (fast, middle)
        return float(pace[ranks].max()) / usual / fast


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Predicted seconds of a step: ``now``, when work is ``balanced``, and ``without`` some ranks."""

    layout: Layout
    pace: Floats
    slow: tuple[int, ...]
    now: float
    balanced: float
    without: float
    ranks: Ints

    def holds(self, layout: Layout, pace: Floats, slow: list[int]) -> bool:
        """Return True if the predictions still hold."""
        change = np.maximum(pace / self.pace, self.pace / pace)
        return tuple(slow) == self.slow and layout == self.layout and bool((change < _SAME).all())
