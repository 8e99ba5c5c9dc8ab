"""Predicted strong and weak scaling: the time of a step on more and more ranks, for a fixed and for a growing grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minga.errors import LayoutError
from minga.plan.cost import compute_seconds
from minga.plan.planner import make_plan
from minga.plan.ranks import RankGroup
from minga.plan.work.work import Work
from minga.space.box import Box

__all__ = ["Point", "Scaling", "rank_counts", "scaling"]


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a scaling curve.

    Attributes
    ----------
    ranks, used
        Number of ranks, and of those that get cells.
    cells
        Cells of the model.
    seconds
        Predicted seconds per step.
    naive
        The same for equal Cartesian parts.
    ideal
        The same if messages cost nothing: all cells divided by the sum of the speeds.
    word
        Kind of the layout.
    """

    ranks: int
    used: int
    cells: int
    seconds: float
    naive: float
    ideal: float
    word: str

    @property
    def efficiency(self) -> float:
        """Parallel efficiency: the share of the ranks' speed that is used, 0 to 1."""
        return min(1.0, self.ideal / self.seconds)

    @property
    def cells_per_second(self) -> float:
        """Cell updates per second of all ranks together."""
        return self.cells / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        names = ("ranks", "used", "cells", "seconds", "naive", "ideal", "efficiency", "cells_per_second", "word")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Scaling:
    """A strong scaling curve (for the given grid) and a weak one (with cells in proportion to the ranks)."""

    strong: tuple[Point, ...]
    weak: tuple[Point, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"strong": [p.as_dict() for p in self.strong], "weak": [p.as_dict() for p in self.weak]}


def rank_counts(most: int, points: int = 10) -> list[int]:
    """Return 1, 2, 4, ... or 1, 4, 16, ... up to ``most``, which is always last; at most about ``points`` numbers."""
    powers = most.bit_length()
    return [*(count for power in range(0, powers, -(-powers // points)) if (count := 2**power) < most), most]


def scaling(work: Work, group: RankGroup, counts: Sequence[int] | None = None) -> Scaling:
    """Predict the time of a step on the first ranks, in their order, for several numbers of ranks.

    Each point has its own plan. On the weak curve, one rank has as many cells as its share of the grid on all ranks;
    longer axes shrink first. Numbers of ranks whose memory does not hold the grid are left out.
    """
    counts = rank_counts(group.ranks) if counts is None else counts
    strong = [_point(work, group, count) for count in counts]
    weak = [_point(_grown(work, count / group.ranks), group, count) for count in counts]
    return Scaling(*(tuple(point for point in curve if point is not None) for curve in (strong, weak)))


def _point(work: Work, group: RankGroup, count: int) -> Point | None:
    part = group.part(np.arange(count))
    try:
        plan = make_plan(work, part)
    except LayoutError:
        return None
    cells = work.domain.size * work.points
    share = np.full(count, cells / count)
    ideal = cells / float((share / compute_seconds(part, share)).sum())
    seconds = plan.prediction.seconds
    used = len(np.unique(plan.layout.owner))
    return Point(count, used, cells, seconds, plan.naive, ideal, plan.name)


def _grown(work: Work, factor: float) -> Work:
    """Return the work on a grid with about ``factor`` (at most 1) times as many cells: the longest axes are halved."""
    if factor == 1:
        return work
    lengths = list(work.domain.shape)
    left = 1 / factor
    while left > 1:
        axis = max(range(len(lengths)), key=lambda a: lengths[a] / work.granule[a])
        lengths[axis] = max(work.least[axis], round(lengths[axis] / min(left, 2.0)))
        left /= 2
    return replace(work, domain=Box((0,) * len(lengths), tuple(lengths)), weights=None)
