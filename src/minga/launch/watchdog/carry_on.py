"""Carrying on after losses: the ranks of a run are started again from its last checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from minga.errors import LaunchError
from minga.launch.signals import interruptible
from minga.launch.watchdog.comeback import HostsBackError
from minga.launch.watchdog.loss import Loss, LossError
from minga.launch.watchdog.restarts import Restarts
from minga.output.checkpoint.head import heads_of
from minga.output.directory import RunDirectory
from minga.output.progress import note_state, read_progress

__all__ = ["carry_on", "with_cost"]


def carry_on(
    start: Callable[[Collection[str] | None], int],
    directory: RunDirectory,
    tell: Callable[[str], object],
    *,
    continues: bool,
) -> int:
    """Start the ranks of a run, again after each loss if the run `continues`, and return their status.

    Parameters
    ----------
    start
        Starts the ranks and returns their status. Its argument is None the first time; after a loss the ranks resume
        the run, and it names the hosts that must stay out. It raises HostsBackError where it has stopped the run to
        continue with hosts that answer again.
    directory
        Directory of the run.
    tell
        Called with messages for people.
    continues
        Whether ranks are started again after a loss.

    Raises
    ------
    LossError
        After a loss, if the run does not continue, or has lost too often.
    """
    restarts = Restarts(_newest_checkpoint(directory))
    barred: Collection[str] | None = None
    while True:
        try:
            return start(barred)
        except HostsBackError as back:
            tell(f"minga: the run continues with {back}")
            note_state(directory, "starting")
            barred = restarts.barred(time.monotonic())
            continue
        except LossError as error:
            loss = error.loss
        except LaunchError as error:
            if barred is None:
                raise
            loss = Loss(f"the ranks could not be started again: {error}", starting=True)
        loss, told = with_cost(loss, directory)
        if not continues:
            raise LossError(loss, told)
        restart = restarts.after(loss, _newest_checkpoint(directory), time.monotonic())
        if restart.refusal is not None:
            raise LossError(loss, f"{told}; the run is given up after {restart.refusal}")
        tell(f"minga: {told}; it continues in {restart.pause:g} s")
        note_state(directory, "waiting", told)
        with interruptible():
            time.sleep(restart.pause)
        note_state(directory, "starting")
        barred = restarts.barred(time.monotonic())


def with_cost(loss: Loss, directory: RunDirectory) -> tuple[Loss, str]:
    """Return a loss with the larger of its steps and those that the run has reported, and a message with its cost."""
    progress = read_progress(directory)
    complete = replace(loss, step=max(loss.step, progress["step"] if progress else 0))
    return complete, f"{loss.cause}; {complete.cost(_newest_checkpoint(directory))}"


def _newest_checkpoint(directory: RunDirectory) -> int | None:
    """Return the step of the newest complete checkpoint of a run; None if there is none."""
    heads, _ = heads_of(directory.checkpoints)
    return heads[0].step if heads else None
