"""The end of one rank that cannot go on: it reports why, and ends all other ranks of its job."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Final, NoReturn

from minga.errors import CaseError, MingaError
from minga.launch.exit_codes import FAILED, INTERRUPTED
from minga.launch.last_words import say_last
from minga.launch.processes import descendants, kill, stopped
from minga.launch.signals import GRACE

__all__ = ["end_after_loss", "end_in_error", "end_late"]

_PATIENCE: Final = 30.0
"""Seconds in which rank 0 reports an error that all ranks have found."""
_COMPANY: Final = 5.0
"""Seconds that another rank waits for rank 0 if it may be the only one that has found the error."""
_LAST: Final = 1.0
"""Seconds that MPI gets to end the job."""
_STAGGER: Final = 0.05
_LEAVING: Final = 10.0
"""Seconds that rank 0 gets to note the loss of others."""
_ABORTING: Final = 3.0
"""Seconds that MPI gets to end the job after a loss: it may never return if hosts cannot be reached."""


def end_late(leave: Callable[[], object] | None = None) -> NoReturn:
    """End all ranks from a thread, while the main thread of this one waits for a message or for native code.

    ``leave`` is called first, to do what is left to do. Ending the job by MPI may never return if other hosts cannot be
    reached; this rank ends in any case.
    """
    _exit_soon(_LAST, INTERRUPTED)
    mpi = sys.modules.get("mpi4py.MPI")  # do not import it: the main thread may be in an import
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        everyone = mpi.COMM_WORLD
        time.sleep(min(_STAGGER * everyone.rank, _LAST / 2))  # the first rank that waits reports it for all
        who = f"rank {everyone.rank} of {everyone.size}"
        say_last(
            f"minga: {who} could not end its step within {GRACE:g} s; all are ended\n", everyone.rank, interrupted=True
        )
        if leave is not None:
            leave()
        kill(stopped(descendants(os.getppid())))  # the launcher would wait for stopped processes
        everyone.Abort(INTERRUPTED)
    os._exit(INTERRUPTED)


def end_after_loss(text: str, status: int, leave: Callable[[], object]) -> NoReturn:
    """End all ranks of a job from a thread of rank 0, because others were lost, with a status; call `leave` first."""
    _exit_soon(_LEAVING, status)
    everyone = sys.modules["mpi4py.MPI"].COMM_WORLD
    say_last(f"minga: {text}\n", everyone.rank)
    leave()
    _exit_soon(_ABORTING, status)  # MPI does not end what it cannot reach, and may wait for it
    everyone.Abort(status)
    os._exit(status)


def _exit_soon(seconds: float, status: int) -> None:
    """End this process after a time, whatever it waits for."""
    last = threading.Timer(seconds, os._exit, (status,))
    last.daemon = True
    last.start()


def end_in_error(error: BaseException, everyone: Any, leave: Callable[[], object] | None = None) -> NoReturn:
    """Report the error that ends this rank, call ``leave`` to finish up, and end all ranks of a communicator."""
    from minga.engine.comm import end_job

    _report(error, everyone.rank, everyone.size)
    if leave is not None:
        leave()
    interrupted = isinstance(error, KeyboardInterrupt)
    end_job(everyone, INTERRUPTED if interrupted else error.exit_status if isinstance(error, MingaError) else FAILED)


def _report(error: BaseException, rank: int, size: int) -> None:
    """Report an error: in words if a person can act on it, with a traceback if it is a bug.

    A mistake in a case is found by all ranks: rank 0 reports it for all and ends the job. The same holds for a request
    to stop that came before the first step.
    """
    if isinstance(error, CaseError | KeyboardInterrupt):
        if rank != 0:
            time.sleep(_PATIENCE)
        text = f"minga: {error}\n" if isinstance(error, CaseError) else "minga: stopped at once\n"
    elif isinstance(error, MingaError):
        if (
            rank != 0
        ):  # some errors are raised on all ranks: a frame that could not be written, a value that is not finite
            time.sleep(_COMPANY)
        text = f"minga: {error}\n  on rank {rank} of {size}\n"
    else:
        text = f"rank {rank} of {size} failed; the job ends.\n" + "".join(traceback.format_exception(error))
    say_last(text, rank)
