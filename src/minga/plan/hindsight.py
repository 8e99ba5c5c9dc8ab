"""Regret of a load balancer: the time of its cuts beside that of the best cut that the whole run could have kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.extras import available

__all__ = ["Hindsight", "Regret"]

Floats = NDArray[np.float64]

_MOST: Final = 128
"""Maximum number of intervals that are kept; beyond, neighbouring ones are merged."""
_MOST_LIMITS: Final = 1 << 13
"""Maximum number of inequalities of the linear program, ranks times intervals."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Seconds of computing of the slowest rank, summed over the checked steps of a run.

    Attributes
    ----------
    steps
        Number of steps that were checked.
    spent
        Seconds with the cuts as they were, without those of moves.
    moving
        Seconds of the moves.
    kept
        Seconds if the first cut had been kept.
    best
        Seconds of the best cut in hindsight, kept for the whole run, if cells could be divided at will.
    """

    steps: int
    spent: float
    moving: float
    kept: float
    best: float

    @property
    def share(self) -> float:
        """Regret relative to the best cut in hindsight; negative if cuts that moved were better than any fixed one."""
        return (self.spent + self.moving) / self.best - 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for ``ledger.json``."""
        return {
            "steps": self.steps, "spent": self.spent, "moving": self.moving, "kept": self.kept, "best": self.best,
            "regret": self.share,
        }  # fmt: skip


class Hindsight:
    """Record of the seconds that ranks took for their cells during a run."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._prices: list[Floats] = []
        """Seconds per step that each rank would take for all cells; NaN for ranks without work."""
        self._firsts: list[Floats] = []
        """Share of each rank in the costs with the first cut."""
        self._spent = self._kept = 0.0

    @property
    def loss(self) -> float:
        """Seconds by which computing took longer than with the first cut, without moves; negative if it took less."""
        return self._spent - self._kept

    @property
    def kept(self) -> float:
        """Seconds that the first cut would have taken so far, as far as known."""
        return self._kept

    def record(self, steps: int, seconds: Floats, cost: Floats, first: Floats) -> None:
        """Add an interval of some steps.

        Parameters
        ----------
        steps
            Number of steps.
        seconds
            Seconds per step of each rank, shape (ranks,).
        cost
            Cost of the cells of each rank, shape (ranks,).
        first
            The same with the first cut.
        """
        if steps < 1 or not ((seconds > 0) & (cost > 0)).any():
            return
        # Sums change with masks, and where measured costs take the place of declared ones.
        cost, first = cost / cost.sum(), first / first.sum()
        price = np.full(len(cost), np.nan)
        np.divide(seconds, cost, out=price, where=(cost > 0) & (seconds > 0))
        self._spent += steps * float(seconds.max())
        self._kept += steps * float(np.nanmax(price * first))
        self._steps.append(steps)
        self._prices.append(price)
        self._firsts.append(first)
        if len(self._steps) > _MOST:
            self._halve()

    def regret(self, moving: float = 0.0) -> Regret | None:
        """Return the regret of all cuts so far, given the seconds of moves.

        None if nothing was recorded, or without SciPy.
        """
        if not self._steps or not available("scipy"):
            return None
        steps, prices = np.array(self._steps), self._filled()
        kept = float(steps @ (prices * np.array(self._firsts)).max(axis=1))
        best = min(kept, _least(*_coarsened(steps.astype(float), prices)))
        return Regret(int(steps.sum()), self._spent, moving, kept, best)

    def _halve(self) -> None:
        """Merge each interval with the next one."""
        pairs = [(at, at + 1) for at in range(0, len(self._steps) - 1, 2)]
        last = [(len(self._steps) - 1,)] if len(self._steps) % 2 else []
        groups: list[tuple[int, ...]] = [*pairs, *last]
        weights = [np.array([self._steps[at] for at in group], float) for group in groups]
        self._prices = [_mean([self._prices[at] for at in g], w) for g, w in zip(groups, weights, strict=True)]
        self._firsts = [_mean([self._firsts[at] for at in g], w) for g, w in zip(groups, weights, strict=True)]
        self._steps = [sum(self._steps[at] for at in group) for group in groups]

    def _filled(self) -> Floats:
        """Return the prices, shape (intervals, ranks); a rank without work has its usual price, or that of others."""
        prices = np.array(self._prices)
        for column in prices.T:
            known = np.isfinite(column)
            if known.any():
                column[~known] = np.median(column[known])
        unknown = ~np.isfinite(prices)
        if unknown.any():
            prices[unknown] = np.median(prices[~unknown])
        return prices


def _mean(values: list[Floats], weights: Floats) -> Floats:
    """Return the weighted means of columns, without what is not known."""
    table = np.array(values)
    known = np.isfinite(table)
    weight = np.where(known, weights[:, None], 0.0).sum(axis=0)
    total = np.where(known, table * weights[:, None], 0.0).sum(axis=0)
    means: Floats = np.divide(total, weight, out=np.full(table.shape[1], np.nan), where=weight > 0)
    return means


def _coarsened(steps: Floats, prices: Floats) -> tuple[Floats, Floats]:
    """Return intervals so few that the linear program is small."""
    groups = max(1, _MOST_LIMITS // prices.shape[1])
    if len(steps) <= groups:
        return steps, prices
    number = np.arange(len(steps)) * groups // len(steps)
    weight = np.bincount(number, steps, groups).astype(float)
    means = np.stack([np.bincount(number, steps * column, groups) for column in prices.T], axis=1)
    return weight, means / weight[:, None]


def _least(steps: Floats, prices: Floats) -> float:
    """Return the least ``sum_t steps[t] max_r(prices[t, r] share[r])`` over all shares whose sum is 1.

    This is a linear program in the shares and the longest time of each interval.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    intervals, ranks = prices.shape
    row = np.arange(intervals * ranks)
    interval, rank = np.divmod(row, ranks)
    # Prices are scaled, since the solver's tolerances are absolute.
    scale = float(np.median(prices))
    limits = coo_array(
        (
            np.concatenate([prices.ravel() / scale, -np.ones(len(row))]),
            (np.concatenate([row, row]), np.concatenate([rank, ranks + interval])),
        ),
        shape=(len(row), ranks + intervals),
    )
    whole = np.concatenate([np.ones(ranks), np.zeros(intervals)])[None, :]
    found = linprog(
        np.concatenate([np.zeros(ranks), steps / steps.sum()]),
        A_ub=limits.tocsr(), b_ub=np.zeros(len(row)), A_eq=whole, b_eq=[1.0], method="highs",
    )  # fmt: skip
    if found.status != 0:  # equal finishing times at the mean prices are nearly as good
        mean = steps @ prices / steps.sum()
        share = (1 / mean) / (1 / mean).sum()
        return float(steps @ (prices * share).max(axis=1))
    return float(found.fun) * scale * float(steps.sum())
