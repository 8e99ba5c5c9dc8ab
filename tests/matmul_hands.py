"""Workers and matrices made by hand, so that nothing is timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minga.models.matmul.plan import Plan, Size, make_plan
from minga.models.matmul.workers import Wire, Workers
from rank_groups import PLENTY, group_of


def workers_of(
    speeds: Sequence[float], *, beta: float = 1e-9, alpha: float = 1e-5, hub: bool = False, memory: Any = PLENTY
) -> Workers:
    """A node for each of these multiply-adds a second, at a switch or a hub with a broadcast of its own."""
    count = len(speeds)
    group = group_of(f"{count}x1", speeds, list(range(count)), shared=hub, memory=memory)
    return Workers(group, (1e-10,) * count, (0.0,) * count, Wire(alpha, beta, count, hub, hub), "made by hand")


def plan_for(
    rows: int,
    columns: int,
    depth: int,
    speeds: Sequence[float],
    *,
    anywhere: bool = True,
    memory: Any = PLENTY,
    **how: Any,
) -> Plan:
    """The plan of a product of f8 on such workers."""
    size = Size(rows, columns, depth, 8, anywhere, anywhere)
    return make_plan(size, workers_of(speeds, memory=memory), **how)


def matrix(rows: int, columns: int, dtype: str = "f8", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)


def close(found: np.ndarray, a: np.ndarray, b: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two products agree within the rounding errors of both."""
    unit = np.finfo(found.dtype).eps
    bound = 4 * (a.shape[1] + 2) * unit * (np.abs(a.astype("f8")) @ np.abs(b.astype("f8")) + np.abs(expected))
    return bool((np.abs(found.astype("f8") - expected) <= bound).all())
