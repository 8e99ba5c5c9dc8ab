"""Carrying on after losses: the ranks of a run are started again from its last checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from minga.errors import LaunchError
from minga.launch.signals import interruptible
from minga.launch.watchdog.loss import HostsChangedError, Loss, LossError
from minga.launch.watchdog.restarts import Restarts
from minga.output.checkpoint.head import heads_of
from minga.output.directory import RunDirectory
from minga.output.happenings import note_happening
from minga.output.progress import note_state, read_progress

__all__ = ["Again", "Clock", "carry_on", "with_cost"]


def _pause(seconds: float) -> None:
    with interruptible():
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of restarts: ``now`` returns the time in seconds, and ``wait`` passes some."""

    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], object] = _pause


@dataclass(frozen=True, slots=True)
class Again:
    """A further start of the ranks of a run.

    Attributes
    ----------
    barred
        Hosts that must stay out, and for how many seconds.
    losses
        Number of losses so far.
    """

    barred: Mapping[str, float]
    losses: int


def carry_on(
    start: Callable[[Again | None], int],
    directory: RunDirectory,
    tell: Callable[[str], object],
    *,
    continues: bool,
    leaves_out: bool = False,
    clock: Clock | None = None,
) -> int:
    """Start the ranks of a run, again after each loss if the run `continues`, and return their status.

    Parameters
    ----------
    start
        Starts the ranks and returns their status. Its argument is None the first time; later the ranks resume the run.
        It raises HostsChangedError where it has stopped the run to continue with other hosts.
    directory
        Directory of the run.
    tell
        Called with messages for people.
    continues
        Whether ranks are started again after a loss.
    leaves_out
        Whether `start` can leave out hosts.
    clock
        The clock; by default that of this machine.

    Raises
    ------
    LossError
        After a loss, if the run does not continue, or has lost too often.
    """
    clock = clock or Clock()
    restarts = Restarts(_newest_checkpoint(directory), leaves_out)
    again: Again | None = None
    while True:
        try:
            return start(again)
        except HostsChangedError as changed:
            _say(directory, tell, f"the run continues {changed}")
            note_state(directory, "starting")
            again = Again(restarts.barred(clock.now()), restarts.count)
            continue
        except LossError as error:
            loss = error.loss
        except LaunchError as error:
            if again is None:
                raise
            loss = Loss(f"the ranks could not be started again: {error}", starting=True)
        loss, told = with_cost(loss, directory)
        if not continues:
            raise LossError(loss, told)
        restart = restarts.after(loss, _newest_checkpoint(directory), clock.now())
        if restart.refusal is not None:
            raise LossError(loss, f"{told}; the run is given up after {restart.refusal}")
        _say(directory, tell, f"{told}; it continues in {restart.pause:g} s")
        note_state(directory, "waiting", told)
        clock.wait(restart.pause)
        note_state(directory, "starting")
        again = Again(restarts.barred(clock.now()), restarts.count)


def _say(directory: RunDirectory, tell: Callable[[str], object], text: str) -> None:
    """Tell people about a restart, and keep that for the report."""
    tell(f"minga: {text}")
    progress = read_progress(directory)
    note_happening(directory, progress["step"] if progress else 0, text)


def with_cost(loss: Loss, directory: RunDirectory) -> tuple[Loss, str]:
    """Return a loss with the larger of its steps and those that the run has reported, and a message with its cost."""
    progress = read_progress(directory)
    complete = replace(loss, step=max(loss.step, progress["step"] if progress else 0))
    return complete, f"{loss.cause}; {complete.cost(_newest_checkpoint(directory))}"


def _newest_checkpoint(directory: RunDirectory) -> int | None:
    """Return the step of the newest complete checkpoint of a run; None if there is none."""
    heads, _ = heads_of(directory.checkpoints)
    return heads[0].step if heads else None
