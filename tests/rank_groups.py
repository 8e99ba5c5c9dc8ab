"""Groups of ranks and works made by hand, for tests of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minga.plan.links import Link, Links, Segment
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound, Work
from minga.space.box import Box

PLENTY = 1 << 40


def group_of(
    tree: str,
    speeds: Sequence[float | Speed],
    speed_of: Sequence[int] | None = None,
    between: Sequence[tuple[float, float]] = ((50e-6, 1e-8), (1e-6, 1e-10)),
    *,
    overlap: float = 1.0,
    memory: Sequence[int] | int = PLENTY,
    shared: bool = False,
) -> RankGroup:
    """A rank on each core; ``between``: (latency, seconds a byte) by levels in common, the last for all deeper ones."""
    cores = Tree.parse(tree)
    count = len(cores) if speed_of is None else len(speed_of)
    levels = [between[min(level, len(between) - 1)] for level in range(len(cores.levels) + 1)]
    links = Links(tuple(Link((Segment(0, alpha, beta),), overlap) for alpha, beta in levels), {}, shared)
    curves = tuple(s if isinstance(s, Speed) else Speed.constant(s) for s in speeds)
    kinds = np.zeros(count, np.int64) if speed_of is None else np.array(speed_of, np.int64)
    return RankGroup(
        curves, kinds, np.broadcast_to(np.array(memory, np.int64), (count,)).copy(), cores.seats(count), links
    )


def work_on(*shape: int, periodic: bool = False, corners: bool = False, width: int = 1, **other: Any) -> Work:
    """A step that reads ``width`` cells around each of its cells of 8 bytes, kept twice."""
    count = len(shape)
    given: dict[str, Any] = {
        "granule": (1,) * count,
        "least": (min(2 * width, *shape),) * count,
        "cell_bytes": 16,
        "exchanges": (HaloRound((width,) * count, (width,) * count, 8, corners),),
        "deepest": 8,
    }
    return Work("test", "0", Box((0,) * count, shape), (periodic,) * count, **(given | other))
