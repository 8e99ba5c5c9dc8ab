"""What was planned and what came of it: ``plan.json``, and in the ledger where the time of a run went and what it cost.

Wall time in steps is split in parts. With ``n[r]`` cells and ``b[r]`` seconds of computing on rank ``r``, all ranks
would end together after ``ideal = sum(n) / sum(n[r] / b[r])``: the time that is computed with the sum of their speeds
(Milano et al., section 2.2). ``imbalance = max(b) - ideal`` is what the cut cost beyond, ``network`` what the rank that
computed longest spent on messages and agreements, ``balance`` moving blocks, ``other`` the rest: starting loops, and
clocks read a moment apart. Where blocks were moved, ``n[r]`` is the mean over the steps.
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
    """``plan.json``: how the run is done and why, who does what, and the whole plan where one was made.

    ``hosts`` are those of the ranks, ``cells`` says who owns which cells of the model. Each rank has ``cells`` and,
    where something was predicted, seconds a step: ``compute``, ``exchange``, ``hidden`` of that; bytes of ``memory``.
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
        "layout": resolved.word,
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
    """Where the wall time of so many steps went: seconds, and for each rank seconds a step next to those predicted.

    ``ranks`` are the lines of the ledger in order, ``cells`` what each held on average; by default those of its line.
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
    """Seconds a step of the ranks; of the run ``seconds``, and ``error``: the share by which that is too long."""
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
    """How often a balancer looked, and every time that it moved something, as plain data."""
    return {"looks": balancer.looks, "decisions": [decision.as_dict() for decision in balancer.decisions]}
