"""Plan and outcome of a run: ``plan.json``, and the time account in the ledger.

The wall time in steps is split into parts. With ``n[r]`` cells and ``b[r]`` seconds of computing on rank ``r``, all
ranks would end together after ``ideal = sum(n) / sum(n[r] / b[r])``: the time of computing with the sum of their speeds
(Milano et al., section 2.2). ``imbalance = max(b) - ideal`` is the additional cost of the cut, ``network`` the time
that the rank that computed longest spent on messages and agreements, ``balance`` that of moving blocks, ``other`` the
rest: starting loops, and clocks read a moment apart. If blocks were moved, ``n[r]`` is the mean over the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minga.output.ledger import blocks_entry
from minga.plan.plan import Prediction
from minga.plan.resolve import ResolvedPlan
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.plan.balance import Balancer

__all__ = ["account_entry", "balance_entry", "plan_entry"]

_COMPUTING = ("compute", "boundary", "call", "other")
_TALKING = ("pack", "send", "wait", "reduce")


def plan_entry(resolved: ResolvedPlan, hosts: Sequence[str], cells: Layout) -> dict[str, Any]:
    """Return ``plan.json``: how the run is done and why, the work of each rank, and the whole plan if one was made.

    Parameters
    ----------
    resolved
        The resolved plan.
    hosts
        Hosts of the ranks.
    cells
        Layout of the cells of the model.

    Returns
    -------
    entry
        Each rank has ``cells`` and, if something was predicted, seconds for each step: ``compute``, ``exchange``, and
        ``hidden``, the part of that behind computation; and bytes of ``memory``.
    """
    ranks: list[dict[str, Any]] = [
        {"rank": rank, "host": host, "cells": count}
        for rank, (host, count) in enumerate(zip(hosts, cells.cells().tolist(), strict=True))
    ]
    plan = resolved.plan
    if plan is not None:
        for name in ("compute", "exchange", "hidden", "memory"):
            for line, value in zip(ranks, getattr(plan.prediction, name).tolist(), strict=True):
                line[name] = value
    return {
        "layout": resolved.name,
        "mapping": resolved.mapping,
        "halo_depth": resolved.halo_depth,
        "overlap": resolved.overlap,
        "source": resolved.source,
        "unmeasured": resolved.unmeasured,
        "seconds": resolved.seconds,
        "seconds_a_step": None if plan is None else plan.prediction.seconds,
        "ranks": ranks,
        "blocks": blocks_entry(cells),
        "plan": None if plan is None else plan.as_dict(),
    }


def account_entry(
    ranks: Sequence[Mapping[str, Any]],
    steps: int,
    seconds: float,
    prediction: Prediction | None,
    cells: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Return the time account of a run: seconds, and for each rank seconds for each step next to the predicted ones.

    Parameters
    ----------
    ranks
        Lines of the ledger in order.
    steps, seconds
        Number of steps, and their wall time.
    prediction
        The prediction of the plan, if there is one.
    cells
        Mean number of cells of each rank; by default that of its line.
    """
    held = [line["cells"] for line in ranks] if cells is None else cells
    computing = [sum(line["seconds"].get(name, 0.0) for name in _COMPUTING) for line in ranks]
    talking = [sum(line["seconds"].get(name, 0.0) for name in _TALKING) for line in ranks]
    longest = max(range(len(ranks)), key=computing.__getitem__)
    speeds = sum(count / busy for count, busy in zip(held, computing, strict=True) if busy > 0)
    everything = sum(count for count, busy in zip(held, computing, strict=True) if busy > 0)
    ideal = min(everything / speeds, computing[longest]) if speeds > 0 else 0.0
    moving = max(line["seconds"].get("balance", 0.0) for line in ranks)
    network = max(0.0, min(talking[longest], seconds - computing[longest] - moving))
    return {
        "steps": steps,
        "seconds": seconds,
        "ideal": ideal,
        "imbalance": computing[longest] - ideal,
        "network": network,
        "balance": moving,
        "other": max(0.0, seconds - computing[longest] - network - moving),
        "ranks": [
            {"rank": rank, "compute": busy / max(1, steps), "exchange": waited / max(1, steps)}
            for rank, (busy, waited) in enumerate(zip(computing, talking, strict=True))
        ],
        "predicted": None if prediction is None else _predicted(prediction, steps, seconds),
    }


def _predicted(prediction: Prediction, steps: int, seconds: float) -> dict[str, Any]:
    """Return predicted seconds for each step of the ranks, and for the run ``seconds`` and ``error``.

    The error is the share by which the predicted time is too long.
    """
    expected = prediction.seconds * steps
    shown = (prediction.exchange - prediction.hidden).tolist()
    return {
        "seconds": expected,
        "error": expected / seconds - 1 if seconds > 0 else 0.0,
        "ranks": [
            {"rank": rank, "compute": compute, "exchange": exchange + prediction.reduce}
            for rank, (compute, exchange) in enumerate(zip(prediction.compute.tolist(), shown, strict=True))
        ],
    }


def balance_entry(balancer: Balancer) -> dict[str, Any]:
    """Return the checks of a balancer, all its decisions to move blocks, and its regret in hindsight, as plain data."""
    regret = balancer.regret
    return {
        "looks": balancer.looks,
        "decisions": [decision.as_dict() for decision in balancer.decisions],
        "hindsight": None if regret is None else regret.as_dict(),
    }
