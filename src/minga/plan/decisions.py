"""Observations and decisions of a load balancer; see :mod:`minga.plan.balance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.space.layout import Layout

__all__ = ["Decision", "Proposal", "RankTimes", "Seen", "Trial"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Decision:
    """One move of work.

    Attributes
    ----------
    step
        Number of steps done before it.
    imbalance
        Seconds of the slowest rank divided by those of the best cut that was found.
    gain
        Expected savings in seconds per step.
    expected
        Expected seconds of the move itself.
    bytes
        Bytes sent between ranks.
    seconds
        Seconds that the move took, without binding Programs again.
    peak
        Maximum bytes that fields and messages of one rank filled during the move.
    """

    step: int
    imbalance: float
    gain: float
    expected: float
    bytes: int
    seconds: float
    peak: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for ``ledger.json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class RankTimes:
    """Times of all ranks since the last check.

    Attributes
    ----------
    seconds
        Seconds per step that each rank worked, shape (ranks,).
    blocks
        Seconds per step by number of block, if blocks are timed separately.
    step
        Seconds per step, including waits; 0 if unknown.
    steps
        Number of steps.
    """

    seconds: Floats
    blocks: Mapping[int, float] = field(default_factory=dict)
    step: float = 0.0
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Proposal:
    """A layout to move to, with the reasons (see :class:`Decision`).

    ``sending`` are the seconds of the transfer according to the links, ``step_seconds`` those of a step before.
    """

    layout: Layout
    imbalance: float
    gain: float
    expected: float
    sending: float
    step_seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A move that has yet to prove itself: the previous layout, its observations, and the expectations.

    ``noise`` is the relative noise of the time of steps before the move.
    """

    layout: Layout
    step: float
    gain: float
    imbalance: float
    pace: Floats
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Counters of one rank at a moment, or their difference between two moments.

    Attributes
    ----------
    step
        Number of steps.
    busy
        Seconds of work.
    spent
        Seconds of work and waits.
    binding
        Seconds of binding Programs.
    blocks
        Seconds of each block.
    """

    step: int = 0
    busy: float = 0.0
    spent: float = 0.0
    binding: float = 0.0
    blocks: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def now(cls, step: int, engine: Engine) -> Seen:
        """Read the counters of an engine after ``step`` steps."""
        return cls(step, engine.busy, engine.spent, engine.binding_seconds, engine.block_seconds)

    def since(self, before: Seen) -> Seen:
        """Return the differences from earlier counters."""
        blocks = {block: seconds - before.blocks.get(block, 0.0) for block, seconds in self.blocks.items()}
        return replace(
            self, step=self.step - before.step, busy=self.busy - before.busy, spent=self.spent - before.spent,
            binding=self.binding - before.binding, blocks=blocks,
        )  # fmt: skip
