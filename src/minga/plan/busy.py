"""The ranks of a run that own cells, and the relative speeds that a person has given them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from minga.errors import CaseError
from minga.plan.plan import Plan
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.space.boxes import Ints
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.options import RunOptions

__all__ = ["busy_ranks", "owned_by", "plan_on", "unequal_weights", "weighted"]


def busy_ranks(ranks: int, options: RunOptions) -> Ints:
    """Return the ranks that own cells: neither reserved for writing frames, nor of weight 0.

    Raises
    ------
    CaseError
        If there are none, if there are not as many weights as ranks, or if a layout of equal parts is requested.
    """
    writers, weights = options.output.writers, options.run.weights
    if writers >= ranks:
        raise CaseError(
            f"{writers} of {ranks} ranks would only write, and none would compute",
            key="output.writers",
            remedy=f"start more ranks, such as -n {writers + 1}, or leave output.writers out: then ranks that compute "
            "write as well",
        )
    computing = np.arange(ranks - writers)
    if weights is None:
        return computing
    if len(weights) != ranks:
        raise CaseError(
            f"run.weights has {len(weights)} numbers for {ranks} ranks",
            key="run.weights",
            remedy="write one for each rank, or leave it out: then the ranks are timed",
        )
    if unequal_weights(options) and options.run.layout != "auto":
        raise CaseError(
            f"the parts of layout {options.run.layout!r} are equal, and weights are not",
            key="run.weights",
            remedy='leave run.layout out, or write "auto"',
        )
    busy: Ints = computing[np.asarray(weights)[computing] > 0]
    if not len(busy):
        raise CaseError(
            "no rank would compute: all weights are 0", key="run.weights", remedy="give some rank a weight above 0"
        )
    return busy


def unequal_weights(options: RunOptions) -> bool:
    """Return True if given weights say that some rank is faster than another."""
    return len(set(options.run.weights or ()) - {0.0}) > 1


def weighted(group: RankGroup, weights: Sequence[float]) -> RankGroup:
    """Return the ranks with speeds in proportion to weights; the first rank of the largest weight keeps its speed.

    Ranks of weight 0 keep some speed, which does not matter.
    """
    given = np.asarray(weights, float)
    base = group.speeds[int(group.speed_of[int(given.argmax())])]
    given = np.where(given > 0, given, given.max())
    each, speed_of = np.unique(given, return_inverse=True)
    speeds = tuple(Speed(base.cells, base.seconds * (given.max() / weight)) for weight in each)
    return replace(group, speeds=speeds, speed_of=speed_of.reshape(-1).astype(np.int64))


def owned_by(layout: Layout, owners: Ints, ranks: int) -> Layout:
    """Return a layout on some of ``ranks`` ranks: blocks of its rank ``r`` belong to ``owners[r]``."""
    return Layout(layout.domain, ranks, layout.lo, layout.hi, owners[layout.owner])


def plan_on(plan: Plan, busy: Ints, ranks: int) -> Plan:
    """Return a plan for the ranks ``busy`` as one for all ranks, where the others do nothing."""

    def spread(values: np.ndarray) -> np.ndarray:
        every = np.zeros(ranks, values.dtype)
        every[busy] = values
        return every

    told = plan.prediction
    every = replace(
        told,
        compute=spread(told.compute),
        exchange=spread(told.exchange),
        hidden=spread(told.hidden),
        memory=spread(told.memory),
    )
    return replace(plan, layout=owned_by(plan.layout, busy, ranks), prediction=every)
