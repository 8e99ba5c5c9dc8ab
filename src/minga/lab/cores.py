"""Assignment of cores to the nodes of a lab: each is bound to as few as its share needs, and no core is overbooked.

Without binding, the kernel migrates programs while quotas throttle them, and a fast node then waits behind a slow one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["assign_cores"]

_ROUNDING = 1e-9


def assign_cores(shares: Sequence[float], cores: int) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the cores of each node, given the nodes' shares (in cores) and the number of cores.

    Nodes are placed in order of decreasing share, each on the least loaded cores. If some core would be overbooked,
    the result is empty for every node, and the kernel may migrate them freely.
    """
    load = [0.0] * cores
    found: list[tuple[int, ...]] = [()] * len(shares)
    for node in sorted(range(len(shares)), key=lambda node: (-shares[node], node)):
        count = max(1, math.ceil(shares[node] - _ROUNDING))
        if count > cores:
            return ((),) * len(shares)
        chosen = sorted(range(cores), key=lambda core: (load[core], core))[:count]
        for core in chosen:
            load[core] += shares[node] / count
        found[node] = tuple(sorted(chosen))
    return tuple(found) if max(load) <= 1 + _ROUNDING else ((),) * len(shares)
