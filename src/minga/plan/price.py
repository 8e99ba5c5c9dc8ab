"""What it takes to move work: learned from the moves of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

__all__ = ["Price"]

_COPYING: Final = 3.0
"""Steps' time that a move takes without any sending, before one was seen: blocks that change are allocated anew and
copied."""
_REBIND: Final = 0.02
"""Seconds until Programs are bound anew, before it was measured."""
_TRUST: Final = (0.002, 0.2)
"""Weights of the first guesses beside that of one move: links were measured, copying was not."""
_LEAST: Final = 0.1
"""Of what was taken for granted: no move takes less."""


@dataclass(slots=True)
class Price:
    """Seconds of a move are `rebind`, and `copying` times those of a step, and `slower` times what links say of it.

    The two factors come from all moves so far, by least squares of relative errors, drawn towards the first guess: one
    move says what it took and not what of it.
    """

    rebind: float = _REBIND
    copying: float = _COPYING
    slower: float = 1.0
    _moves: list[tuple[float, float, float]] = field(default_factory=list)

    def of(self, step: float, sending: float) -> float:
        """Seconds of a move where a step takes `step`, and links say `sending`."""
        return self.rebind + self.copying * step + self.slower * sending

    def learn(self, step: float, sending: float, took: float) -> None:
        """A move took so long."""
        if took <= 0.0:
            return
        self._moves.append((_COPYING * step / took, sending / took, 1.0))
        seen, prior = np.array(self._moves), np.sqrt(_TRUST)[:, None] * np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        rows = np.concatenate((seen, prior))
        factors = np.maximum(np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0], _LEAST)
        self.copying, self.slower = _COPYING * float(factors[0]), float(factors[1])
