"""Costs and savings of moves: work continues to be moved only if this pays."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

__all__ = ["Budget"]

_FAITH: Final = 0.01
"""Share of the time so far that moves may have cost without having saved as much."""
_SAME: Final = 1.25
"""Factor by which the time of a step may differ from that after a move and still be attributed to the move."""
_LATEST: Final = 3
_WINDOW: Final = 16


class Budget:
    """Seconds that moves took and saved, according to the steps before and after them.

    The first move is made on trust. Each further one must be covered: by the savings of earlier moves, by a small share
    of the time so far, or by its own savings, assuming that the present state lasts as long as the run has lasted.
    """

    def __init__(self) -> None:
        self.spent = self.saved = self.elapsed = 0.0
        self._done = 0
        self._steps: deque[float] = deque(maxlen=_WINDOW)
        self._before: float | None = None

    def record(self, step: float, steps: int) -> None:
        """Record that ``steps`` steps took ``step`` seconds each."""
        self.elapsed += step * steps
        self._done += steps
        self._steps.append(step)
        if len(self._steps) < _LATEST:
            return
        usual = float(np.median(self._steps))
        latest = float(np.median(list(self._steps)[-_LATEST:]))
        if max(latest / usual, usual / latest) > _SAME:
            self._before = None  # something else happened
            for _ in range(len(self._steps) - _LATEST):
                self._steps.popleft()
        elif self._before is not None:
            self.saved += (self._before - usual) * steps * (_LATEST if len(self._steps) == _LATEST else 1)

    def usual(self) -> tuple[float, float]:
        """Return the usual seconds of a step since the last move or change, and their relative noise."""
        steps = np.array(self._steps)
        middle = float(np.median(steps))
        return middle, 1.4826 * float(np.median(np.abs(steps - middle))) / middle

    def allows(self, gain: float, cost: float, remaining: int, *, clear: bool) -> bool:
        """Return True if a move is allowed that takes ``cost`` seconds and saves ``gain`` seconds per step.

        ``clear`` is True for an imbalance that is large and not noise.
        """
        owed = max(0.0, self.spent - self.saved) + cost
        if not self.spent or owed <= cost or owed <= _FAITH * self.elapsed:
            return True
        return clear and gain * min(remaining, self._done) > owed

    def begin(self, cost: float) -> None:
        """Record that a move is made."""
        self.spent += cost
        self._before = self.usual()[0] if self._steps else None
        self._steps.clear()

    def correct(self, more: float) -> None:
        """Record that a move took so many seconds more than expected."""
        self.spent = max(0.0, self.spent + more)
