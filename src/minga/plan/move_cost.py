"""The cost of moving work, learned from the moves of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

__all__ = ["MoveCost"]

_COPYING: Final = 3.0
"""Initial estimate of the time of a move without transfers, in steps: changed blocks are allocated again and copied."""
_REBIND: Final = 0.02
"""Initial estimate of the seconds to bind Programs again."""
_TRUST: Final = (0.002, 0.2)
"""Weights of the initial estimates relative to that of one move: copying was not measured, links were."""
_LEAST: Final = 0.1
"""Lower bound of both factors, relative to the initial estimates."""


@dataclass(slots=True)
class MoveCost:
    """The seconds of a move: `rebind` + `copying` * seconds of a step + `slower` * seconds according to the links.

    The two factors are fitted to all moves so far, by least squares of relative errors, regularised towards the initial
    estimates: a single move shows its total time, but not the contributions to it.
    """

    rebind: float = _REBIND
    copying: float = _COPYING
    slower: float = 1.0
    _moves: list[tuple[float, float, float]] = field(default_factory=list)

    def of(self, step: float, sending: float) -> float:
        """Return the seconds of a move if a step takes `step` seconds and the transfer `sending` seconds."""
        return self.rebind + self.copying * step + self.slower * sending

    def learn(self, step: float, sending: float, took: float) -> None:
        """Record that a move took `took` seconds."""
        if took <= 0.0:
            return
        self._moves.append((_COPYING * step / took, sending / took, 1.0))
        seen, prior = np.array(self._moves), np.sqrt(_TRUST)[:, None] * np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        rows = np.concatenate((seen, prior))
        factors = np.maximum(np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0], _LEAST)
        self.copying, self.slower = _COPYING * float(factors[0]), float(factors[1])
