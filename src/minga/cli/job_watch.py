"""The watchdog of a run in a job that somebody else has started, with ``mpiexec`` or ``srun``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import NoReturn

from minga.cli.case import Case
from minga.engine.comm import Comm
from minga.launch.exit_codes import FAILED, TO_BE_CONTINUED
from minga.launch.rank_end import end_after_loss
from minga.launch.watchdog.carry_on import with_cost
from minga.launch.watchdog.heart import Heart
from minga.launch.watchdog.loss import Loss, LossError
from minga.launch.watchdog.member import within_job
from minga.launch.watchdog.watched import Watched, watch_limit
from minga.output.directory import RunDirectory

__all__ = ["job_watch"]


def job_watch(
    comm: Comm, case: Case, directory: RunDirectory, leave: Callable[[BaseException], object]
) -> contextlib.AbstractContextManager[list[Heart]]:
    """Return the block in which the ranks of a job are watched, and which yields the heart of this one; collective.

    After a loss, all ranks that can be reached are ended with status 1, or 75 if the run is to continue: a script that
    starts jobs again then does so.

    Parameters
    ----------
    comm
        The ranks of the job.
    case
        The case.
    directory
        The directory of the run.
    leave
        Called on rank 0 with the loss, to finish the output.
    """
    limit = watch_limit(case.run.watch)
    watched = None if limit is None else Watched(directory.path, limit, inside=True)

    def lost(loss: Loss) -> NoReturn:
        error = LossError(*with_cost(loss, directory))
        status = TO_BE_CONTINUED if case.run.on_loss == "continue" else FAILED
        end_after_loss(str(error), status, lambda: leave(error))

    def tell(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    return within_job(watched, comm, tell, lost)
