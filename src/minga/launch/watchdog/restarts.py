"""The decision about a run that has lost a host or rank: when to continue, without which hosts, and when to give up."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Final

from minga.launch.watchdog.loss import Loss

__all__ = ["Restart", "Restarts"]

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_HOURLY: Final = 12
"""Most restarts in an hour."""
_HOUR: Final = 3600.0
_VAIN: Final = 2
"""Number of losses in a row without a new checkpoint after which a run is given up.

Losses of hosts that can be left out do not count: the run continues without one that is lost often.
"""
_FAILURES: Final = 3
"""Number of losses within an hour after which a host stays out for the rest of it.

A loss costs about a minute: silence, restart, and repeated steps. An hour without one of eight hosts costs seven
minutes and a half.
"""


@dataclass(frozen=True, slots=True)
class Restart:
    """Decision after a loss.

    Attributes
    ----------
    pause
        Seconds to wait before the restart.
    refusal
        Reason in words why the run is given up; None if it is restarted.
    """

    pause: float = 0.0
    refusal: str | None = None


@dataclass(slots=True)
class Restarts:
    """History of the losses of a run.

    Attributes
    ----------
    checkpoint
        Step of the newest checkpoint when the ranks were started last; None if there was none.
    leaves_out
        Whether hosts can be left out, other than this machine.
    here
        Name of this machine.
    count
        Number of losses so far.
    """

    checkpoint: int | None = None
    leaves_out: bool = False
    here: str = field(default_factory=platform.node)
    count: int = 0
    _times: list[float] = field(default_factory=list)
    _vain: int = 0
    _barren: int = 0
    """Number of losses in a row without a new checkpoint, whatever was lost."""
    _losses: dict[str, list[float]] = field(default_factory=dict)

    def barred(self, now: float) -> dict[str, float]:
        """Return the hosts that were lost too often within an hour, and for how many seconds more each stays out."""
        recent = {name: [time for time in times if now - time < _HOUR] for name, times in self._losses.items()}
        return {name: times[-_FAILURES] + _HOUR - now for name, times in recent.items() if len(times) >= _FAILURES}

    def after(self, loss: Loss, checkpoint: int | None, now: float) -> Restart:
        """Decide what follows a loss.

        Parameters
        ----------
        loss
            The loss.
        checkpoint
            Step of the newest checkpoint, None if there is none.
        now
            Present time in seconds.
        """
        gained = (-1 if checkpoint is None else checkpoint) > (-1 if self.checkpoint is None else self.checkpoint)
        self.checkpoint = checkpoint
        self.count += 1
        self._barren = 0 if gained or self.count == 1 else self._barren + 1
        if gained and not loss.starting:
            self._vain = 0
        elif not loss.starting and not (self.leaves_out and loss.host not in (None, self.here)):
            self._vain += 1
        self._times = [time for time in self._times if now - time < _HOUR]
        if loss.host is not None:
            self._losses.setdefault(loss.host, []).append(now)
        if self._vain >= _VAIN:
            return Restart(refusal=f"{_VAIN} losses in a row, and no checkpoint was written between them")
        if len(self._times) >= _HOURLY:
            return Restart(refusal=f"{_HOURLY} restarts within an hour")
        self._times.append(now)
        return Restart(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._barren))
