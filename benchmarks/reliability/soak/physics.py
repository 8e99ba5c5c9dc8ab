"""How long things take on simulated machines: steps, messages with loss, moves of work and checkpoints.

Every cell of the field that is really computed stands for a column of `DEPTH` cells, which is never cut: compute,
messages and memory all grow by this factor. None of this is minga's cost model, which has to predict it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.reliability.soak.pile import Machine
from minga.plan.contacts import contacts_of
from minga.space.layout import Layout

__all__ = ["CELL_BYTES", "DEPTH", "LATENCY", "SECONDS_A_BYTE", "Physics"]

Floats = NDArray[np.float64]

DEPTH: Final = 1024
CELL_BYTES: Final = 8 * DEPTH
"""Bytes of a level of a field, of each cell that is really computed."""
LATENCY: Final = 60e-6
SECONDS_A_BYTE: Final = 8.5e-9
"""Of gigabit Ethernet."""
_DISK: Final = 5e-9
"""Seconds a byte of a disk that writes 200 MB/s."""
_MEMORY: Final = 1e-9
"""Seconds a byte to allocate and copy blocks when work moves."""
_BIND: Final = 0.02
"""Seconds to bind Programs again."""
_PACKET: Final = 1448
_TIMEOUT: Final = 0.2
"""Least time after which Linux sends a packet again if nothing else tells that it was lost; it doubles each time."""
_STEP_FIXED: Final = 2e-4
"""Seconds of a step that do not depend on the cells."""
_NOISE: Final = 0.01
_HICCUP: Final = (0.002, 1.5)
"""Probability and factor of a step that something else disturbs."""


@dataclass(eq=False)
class Physics:
    """The machines that take part in one start, one rank each, and the chance that all times contain."""

    team: Sequence[Machine]
    chance: np.random.Generator

    def computing(self, layout: Layout) -> Floats:
        """Return the seconds that each rank computes in a step."""
        rate = np.array([machine.speed / machine.slow for machine in self.team])
        seconds: Floats = layout.cells() * DEPTH / rate + _STEP_FIXED
        seconds *= np.exp(_NOISE * self.chance.standard_normal(len(seconds)))
        seconds[self.chance.random(len(seconds)) < _HICCUP[0]] *= _HICCUP[1]
        return seconds

    def exchanging(self, contacts: Sequence[tuple[int, int, int]]) -> Floats:
        """Return the seconds that each rank waits for messages in a step, given the neighbours of a layout."""
        seconds = np.zeros(len(self.team))
        for one, other, size in contacts:
            for sender, receiver in ((one, other), (other, one)):
                seconds[receiver] += self.message(size, max(self.team[sender].loss, self.team[receiver].loss))
        return seconds

    def message(self, size: float, loss: float) -> float:
        """Return the seconds of a message on a connection that loses some packets.

        Losses inside a message halve the window of TCP: its rate is at most packet / round trip * sqrt(3 / 2 loss)
        (Mathis et al. 1997). The loss of the last packet is only noticed by a timeout, which doubles (RFC 6298).
        """
        alone = LATENCY + SECONDS_A_BYTE * size
        if loss == 0.0:
            return alone
        slowest = _PACKET / (2 * LATENCY) * math.sqrt(1.5 / loss)
        waits, timeout = 0.0, _TIMEOUT
        while self.chance.random() < loss:
            waits, timeout = waits + timeout, 2 * timeout
        return max(alone, LATENCY + size / slowest) + waits

    def moving(self, sender: Floats, receiver: Floats, layout: Layout) -> float:
        """Return the seconds of a move of work, given the bytes that each rank sends and receives."""
        loss = np.array([machine.loss for machine in self.team])
        wire = max(
            self.message(float(size), float(part))
            for size, part in zip(np.maximum(sender, receiver), loss, strict=True)
        )
        return wire + _BIND + 2 * _MEMORY * CELL_BYTES * float(layout.cells().max())

    def keeping(self, layout: Layout) -> float:
        """Return the seconds of a checkpoint: each host writes its part, sends it to a partner and writes another's."""
        sizes = CELL_BYTES * layout.cells().astype(float)
        copied = max(self.message(float(size), machine.loss) for size, machine in zip(sizes, self.team, strict=True))
        return 2 * _DISK * float(sizes.max()) + (copied if len(self.team) > 1 else 0.0)


def neighbours(layout: Layout, periodic: Sequence[bool]) -> list[tuple[int, int, int]]:
    """Return the pairs of ranks that exchange halos of one cell, with the bytes that go each way in a step."""
    found: dict[tuple[int, int], int] = {}
    for each in contacts_of(layout, tuple(periodic), False):
        cells = each.shared.prod(axis=1)
        for one, other, count in zip(each.block.tolist(), each.beyond.tolist(), cells.tolist(), strict=True):
            pair = int(layout.owner[one]), int(layout.owner[other])
            if pair[0] != pair[1]:
                found[pair] = found.get(pair, 0) + CELL_BYTES * count
    return [(one, other, size) for (one, other), size in found.items()]
