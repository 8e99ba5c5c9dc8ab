"""What moves cost and what they have saved: work goes on moving only where it pays."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

__all__ = ["Budget"]

_FAITH: Final = 0.01
"""Part of the time so far that moves may have cost without having saved as much."""
_SAME: Final = 1.25
"""A step that takes longer or shorter by this factor than after the move is no longer that move's doing."""
_LATEST: Final = 3
_WINDOW: Final = 16


class Budget:
    """Seconds that moves took and saved, as steps before and after them show.

    The first move is made on trust. Each further one has to be paid: by what earlier moves saved, by a small part of
    the time so far, or by saving it back, if what is found holds on for as long as the run has lasted.
    """

    def __init__(self) -> None:
        self.spent = self.saved = self.elapsed = 0.0
        self._done = 0
        self._steps: deque[float] = deque(maxlen=_WINDOW)
        self._before: float | None = None

    def look(self, step: float, steps: int) -> None:
        """So many steps took ``step`` seconds each."""
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
        """Seconds of a step since the last move or change, and the noise in them as a part of it."""
        steps = np.array(self._steps)
        middle = float(np.median(steps))
        return middle, 1.4826 * float(np.median(np.abs(steps - middle))) / middle

    def allows(self, gain: float, cost: float, remaining: int, *, clear: bool) -> bool:
        """Whether a move may be made that takes ``cost`` seconds and saves ``gain`` seconds a step.

        ``clear``: what it mends is no noise, and large.
        """
        owed = max(0.0, self.spent - self.saved) + cost
        if not self.spent or owed <= cost or owed <= _FAITH * self.elapsed:
            return True
        return clear and gain * min(remaining, self._done) > owed

    def begin(self, cost: float) -> None:
        """A move is made."""
        self.spent += cost
        self._before = self.usual()[0] if self._steps else None
        self._steps.clear()

    def correct(self, more: float) -> None:
        """A move took so many seconds more than was thought."""
        self.spent = max(0.0, self.spent + more)
