"""What a balancer sees and decides; see :mod:`minga.plan.balance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.space.layout import Layout

__all__ = ["Decision", "Look", "Proposal", "Seen", "Trial"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Decision:
    """One time that work was moved.

    step        after which
    imbalance   seconds of the slowest rank over those of the best cut that was found
    gain        seconds a step that the move was to save
    expected    seconds that the move itself was to take
    bytes       that went between ranks
    seconds     it took; binding Programs anew comes on top
    peak        most bytes that fields and messages of one rank filled meanwhile
    """

    step: int
    imbalance: float
    gain: float
    expected: float
    bytes: int
    seconds: float
    peak: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``ledger.json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What every rank did since the last look.

    seconds  a step that each rank worked, shape (ranks,)
    blocks   seconds a step by number of block, where they are timed one by one
    step     seconds that a step took, waits included; 0 where that is not known
    steps    how many there were
    """

    seconds: Floats
    blocks: Mapping[int, float] = field(default_factory=dict)
    step: float = 0.0
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Proposal:
    """A layout to move to, and why: see :class:`Decision`.

    ``sending`` is what links say of it, ``step_seconds`` what a step takes before.
    """

    layout: Layout
    imbalance: float
    gain: float
    expected: float
    sending: float
    step_seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A move that has still to show that it was right: from where, what was seen there, and what was expected.

    ``noise`` is that of what steps took before, as a part of it.
    """

    layout: Layout
    step: float
    gain: float
    imbalance: float
    pace: Floats
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one rank had done at a moment, or between two.

    Steps, seconds of work, of work and waits, of binding, and of each block.
    """

    step: int = 0
    busy: float = 0.0
    spent: float = 0.0
    binding: float = 0.0
    blocks: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def now(cls, step: int, engine: Engine) -> Seen:
        return cls(step, engine.busy, engine.spent, engine.binding_seconds, engine.block_seconds)

    def since(self, before: Seen) -> Seen:
        blocks = {block: seconds - before.blocks.get(block, 0.0) for block, seconds in self.blocks.items()}
        return replace(
            self, step=self.step - before.step, busy=self.busy - before.busy, spent=self.spent - before.spent,
            binding=self.binding - before.binding, blocks=blocks,
        )  # fmt: skip
