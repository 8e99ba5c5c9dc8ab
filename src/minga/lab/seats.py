"""Which cores the nodes of a lab run on: each keeps to as few as its share needs, packed so that no core is overbooked.

Left alone, the kernel moves programs about while quotas stop them, and a fast node then waits behind a slow one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["seats"]

_ROUNDING = 1e-9


def seats(shares: Sequence[float], cores: int) -> tuple[tuple[int, ...], ...]:
    """For each node the numbers of its cores, the largest share first and always to the emptiest cores.

    Empty for all nodes where some core would have more than there is of it: then the kernel may move them about.
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
