"""One rank of a run that ``minga run`` has launched: ``python -m minga.cli.rank ORDER``, under a launcher.

ORDER is JSON: ``target``, ``overrides`` and ``options`` say which case, as the command line did; ``run`` is the run's
directory; ``ranks`` and ``launcher`` say what was started, ``resume`` whether the run goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from minga.cli.case import find_source, read_case
from minga.engine.signals import GRACE, StopRequest
from minga.errors import CaseError, LaunchError, MingaError
from minga.launch.descendants import descendants, kill, stopped
from minga.launch.events import EventWriter, silence_stdout
from minga.launch.last_words import say_last
from minga.launch.launcher import surrounding_job, world
from minga.launch.stopping import INTERRUPTED
from minga.output.directory import RunDirectory, noticing_removal
from minga.view.progress import Listener, LogLines

__all__ = ["end_in_error", "end_late", "main"]

_PATIENCE = 30.0
"""Seconds in which rank 0 says what all have found wrong."""
_COMPANY = 5.0
"""The same where this rank may be the only one that has found it."""
_LAST = 1.0
"""Seconds in which MPI may end the job."""
_STAGGER = 0.05


def main(arguments: list[str]) -> int:
    """Carry out an order as one rank of several; the exit status."""
    order = json.loads(arguments[0])
    stop = StopRequest(late=end_late)
    with stop.listening():
        job = surrounding_job()
        try:
            everyone = world(job, order["ranks"])
        except LaunchError as error:
            if job is None or job.rank == 0:
                sys.stderr.write(f"minga: {error}\n")
            return 1
        try:
            _run(order, stop)
        except BaseException as error:
            end_in_error(error, everyone)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # everything is done
    return 0


def end_late(leave: Callable[[], object] | None = None) -> NoReturn:
    """End all ranks from a thread while the main thread of this one waits: for a message, or for native code.

    Before, ``leave`` is called for what is left to do. Where other hosts cannot be reached MPI may never come back from
    that; this rank ends in any case.
    """
    last = threading.Timer(_LAST, os._exit, (INTERRUPTED,))
    last.daemon = True
    last.start()
    mpi = sys.modules.get("mpi4py.MPI")  # no import: the main thread may be in one
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        everyone = mpi.COMM_WORLD
        time.sleep(min(_STAGGER * everyone.rank, _LAST / 2))  # one of those that wait says it for all
        who = f"rank {everyone.rank} of {everyone.size}"
        say_last(f"minga: {who} could not end its step within {GRACE:g} s; all are ended\n", everyone.rank)
        if leave is not None:
            leave()
        kill(stopped(descendants(os.getppid())))  # or the launcher waits for them
        everyone.Abort(INTERRUPTED)
    os._exit(INTERRUPTED)


def end_in_error(error: BaseException, everyone: Any, leave: Callable[[], object] | None = None) -> NoReturn:
    """Say what ended this rank, call ``leave`` for what is left to do, and end all ranks of a communicator."""
    from minga.engine.comm import end_job

    _report(error, everyone.rank, everyone.size)
    if leave is not None:
        leave()
    interrupted = isinstance(error, KeyboardInterrupt)
    end_job(everyone, INTERRUPTED if interrupted else error.exit_status if isinstance(error, MingaError) else 1)


def _report(error: BaseException, rank: int, size: int) -> None:
    """Say what ended this rank: in words where a person can act on it, with a traceback where it is a bug.

    What is wrong with a case is wrong on all ranks: rank 0 says it for all, and ends the job. So it is with a wish to
    stop that came before the first step.
    """
    if isinstance(error, CaseError | KeyboardInterrupt):
        if rank != 0:
            time.sleep(_PATIENCE)
        text = f"minga: {error}\n" if isinstance(error, CaseError) else "minga: stopped at once\n"
    elif isinstance(error, MingaError):
        if rank != 0:  # a frame that could not be written, or a value that is not finite, is told on all ranks
            time.sleep(_COMPANY)
        text = f"minga: {error}\n  on rank {rank} of {size}\n"
    else:
        text = f"rank {rank} of {size} failed; the job ends.\n" + "".join(traceback.format_exception(error))
    say_last(text, rank)


def _run(order: dict[str, object], stop: StopRequest) -> None:
    from minga.cli.perform import perform
    from minga.engine.comm import MPIComm

    comm = MPIComm()
    listener: Listener
    if comm.rank == 0:
        writer = EventWriter()
        listener = writer
    else:
        silence_stdout()
        writer, listener = None, LogLines("", sys.stderr)

    def answer() -> None:
        stop.answer()
        if writer is not None:
            writer.answer()

    directory = RunDirectory(Path(str(order["run"])))
    with noticing_removal(directory.path):
        case = read_case(find_source(str(order["target"])), list(order["overrides"]), dict(order["options"]))  # type: ignore[call-overload]
    perform(
        case,
        comm,
        directory,
        listener,
        lambda: stop.asked or (writer is not None and writer.broken),
        bool(order.get("resume")),
        answer,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
