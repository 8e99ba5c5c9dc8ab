"""Texts about a product: its plan and whether it pays before, a summary of time and speed afterwards."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from minga.models.matmul.plan import Plan, break_even, break_even_from_one
from minga.models.matmul.problem import Problem
from minga.models.matmul.product import Account, described_workers
from minga.models.matmul.workers import Workers

__all__ = ["plan_as_dict", "plan_text", "summary"]

_MOST = 12
"""Largest number of ranks that are listed individually."""
_WAYS: Final = {
    "pairwise": " by a message to each",
    "collective": " by MPI's broadcast",
    "chain": " in a chain from rank to rank",
    "group": " by a broadcast of the network",
}
"""Descriptions of routes."""


def plan_text(problem: Problem, workers: Workers, plan: Plan, anywhere: bool) -> str:
    """Return a text of some lines about the plan of a product."""
    rows = [
        ("product", f"{_shape(problem)}, {_flops(problem.flops_each * problem.multiply_adds)}"),
        ("operands", "readable by every rank" if anywhere else "on rank 0, which also gets the result"),
        ("speeds", f"{_speeds(problem, workers)} ({workers.origin})"),
    ]
    if workers.ranks > 1:
        rows += [("network", _network(workers)), ("pays", _pays(problem, workers, anywhere))]
    rows += [("best", f"{plan.describe()}: {_time(plan.timing.seconds)}")]
    rows += [("", f"{name}: {_time(seconds)}") for name, seconds in plan.others]
    rows += _shares(workers, plan)
    rows += [("panels", _panels(plan))]
    return "\n".join(f"{name:10}{text}" for name, text in rows)


def plan_as_dict(problem: Problem, workers: Workers, plan: Plan, anywhere: bool) -> dict[str, Any]:
    """Return the plan of a product, with its workers, as plain data for JSON."""
    return {
        "shape": [problem.rows, problem.columns, problem.depth],
        "dtype": problem.dtype.str[1:],
        "operands_seen_by_all": anywhere,
        "plan": plan.as_dict(),
        **described_workers(workers, problem),
    }


def summary(account: Account) -> str:
    """Return a text about the time that a product took, compared with the prediction."""
    problem = account.problem
    speed = f", {_rate(account.flops / account.seconds)}" if account.seconds > 0 and account.flops else ""
    lines = [f"{_shape(problem)} in {_time(account.seconds)}{speed}"]
    if account.before:
        lines.append(f"  {100 * account.before:.3g} % of the result was already there")
    plan, workers = account.plan, account.workers
    if plan is not None and workers is not None:
        possible = float(problem.flops_each * workers.rates.sum())
        lines.append(
            f"  {plan.describe()}, predicted {_time(account.predicted)}: "
            f"{100 * (account.seconds / account.predicted - 1):+.3g} %; "
            f"{100 * account.flops / account.seconds / possible:.3g} % of the sum of speeds"
        )
        if workers.ranks > 1:
            lines += _waits(account, workers)
    if account.check is not None:
        lines.append(f"  {account.check}")
    return "\n".join(lines)


def _waits(account: Account, workers: Workers) -> list[str]:
    lines = []
    for rank, ledger in enumerate(account.ledgers[:_MOST]):
        lines.append(
            f"  {workers.name(rank)}: multiplied {_time(ledger.multiply)}, waited {_time(ledger.wait)}, "
            f"read and wrote {_time(ledger.copy)}"
        )
    if len(account.ledgers) > _MOST:
        lines.append(f"  and {len(account.ledgers) - _MOST} more")
    return lines


def _shares(workers: Workers, plan: Plan) -> list[tuple[str, str]]:
    found = []
    for column in plan.columns:
        for rank, rows in zip(column.ranks, column.rows, strict=True):
            columns = f", columns {column.first} to {column.end - 1}" if len(plan.columns) > 1 else ""
            found.append((workers.name(rank), f"{rows} rows{columns}"))
    shown = [(f"{name}: {text}") for name, text in found[:_MOST]]
    if len(found) > _MOST:
        shown.append(f"and {len(found) - _MOST} more")
    return [("shares" if number == 0 else "", text) for number, text in enumerate(shown)]


def _panels(plan: Plan) -> str:
    passes = f", in {plan.passes} passes, because memory holds no more rows" if plan.passes > 1 else ""
    sent = f", sent in {_time(plan.timing.sent)}" if len(plan.ranks) > 1 else ""
    return f"{plan.width} columns, multiplied in {_time(plan.timing.panel)}{sent}{passes}"


def _speeds(problem: Problem, workers: Workers) -> str:
    rates = problem.flops_each * workers.rates
    each = [f"{workers.name(rank)} {_rate(float(rates[rank]))}" for rank in range(min(_MOST, workers.ranks))]
    if workers.ranks > _MOST:
        each.append("...")
    return ", ".join(each) + (f"; together {_rate(float(rates.sum()))}" if workers.ranks > 1 else "")


def _network(workers: Workers) -> str:
    wire = workers.wire
    slope = wire.slope(workers.ranks)
    way = _WAYS.get(workers.route.partition(":")[0], "")
    rate = f"{1e-6 / slope:.3g} MB/s" if slope > 0 else "unlimited rate"
    return f"{rate} to all {workers.ranks} ranks{way}, {_time(wire.time(0, workers.ranks))} at least" + (
        ", on one shared medium" if wire.shared else ""
    )


def _pays(problem: Problem, workers: Workers, anywhere: bool) -> str:
    """Describe the size from which on more than one rank pays, and the size of this product relative to it."""
    least = break_even(workers, problem.itemsize) if anywhere else break_even_from_one(workers, problem.itemsize)
    if not math.isfinite(least):
        return "never: rank 0 has all the speed there is"
    side = float(np.cbrt(problem.multiply_adds))
    factor = problem.itemsize // problem.flops_each
    why = f"{factor} beta S" if factor > 1 else "beta S"
    how = f"n* = {least:.0f} ({why})" if anywhere else f"n* = {least:.0f} (A and B go out, C comes back)"
    return f"from {how} on; this product is {side / least:.2g} times as large" if least > 0 else "always"


def _shape(problem: Problem) -> str:
    a, b = ("A'" if problem.a.transposed else "A"), ("B'" if problem.b.transposed else "B")
    left, right = f"{problem.rows} x {problem.depth}", f"{problem.depth} x {problem.columns}"
    return f"{left} times {right} of {problem.dtype.str[1:]} ({a} {b})"


def _flops(count: float) -> str:
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}flop"
    return f"{count:.0f} flop"


def _rate(speed: float) -> str:
    return f"{speed * 1e-9:.3g} Gflop/s" if speed < 1e12 else f"{speed * 1e-12:.3g} Tflop/s"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 600 else f"{seconds / 60:.3g} min"
