"""Starting the ranks of a run, listening to them, and ending them on request."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from minga.errors import LaunchError
from minga.launch.events import ANSWER, dispatch
from minga.launch.exit_codes import INTERRUPTED, OK, REPORTED
from minga.launch.jobs import end_jobs, start_job
from minga.launch.last_words import collected
from minga.launch.launcher_output import KEPT, lost_at, pass_on
from minga.launch.processes import descendants, stopped
from minga.launch.ranks import Ranks
from minga.launch.reach import not_started
from minga.launch.signals import GRACE, STOP_SIGNAL, StopRequest, bytes_written
from minga.launch.watchdog.comeback import Comeback
from minga.launch.watchdog.dropped import Dropping
from minga.launch.watchdog.loss import Loss, LossError
from minga.launch.watchdog.watch import Watch, watching
from minga.launch.watchdog.watched import Watched
from minga.plan.drop import Drop
from minga.view.progress import Listener, ranks_text

__all__ = ["ask_to_stop", "launch"]

_PATIENCE: Final = 5.0
"""Seconds in which the last lines of ranks must come."""
_REPORT: Final = 1.5
"""Seconds in which the watchdog reports why a job has ended."""
_BLAMED: Final = re.compile(r"\bPID (\d+)\b")
"""Words with which launchers of MPI name a process that has ended."""


def launch(
    ranks: Ranks,
    order: Mapping[str, object],
    listener: Listener,
    watched: Watched | None = None,
    comeback: Comeback | None = None,
    dropping: Dropping | None = None,
) -> int:
    """Start ranks, pass what they report to a listener, and return the exit status of the launcher.

    The first Ctrl-C or termination signal asks the ranks to stop after the current step and to keep what was computed.
    The second one ends them, and so does time if they do not answer (:class:`minga.launch.signals.StopRequest`).

    Parameters
    ----------
    ranks
        The ranks.
    order
        Order that each rank carries out, see :mod:`minga.cli.rank`.
    listener
        Receives progress and notes.
    watched
        What the watchdog needs to know; None for ranks that are not watched.
    comeback
        Watch for hosts that are missing; if they answer again, it has the ranks stop as a person would.
    dropping
        Takes the wish of ranks to continue without slow hosts; if it can be met, they stop in the same way.

    Raises
    ------
    KeyboardInterrupt
        If the ranks were ended on request, or were asked before they could listen.
    LaunchError
        If the launcher cannot be started, or no rank can be started on hosts.
    LossError
        If ranks, or the host of some, were lost; the others are ended then.
    """
    jobs: list[subprocess.Popen[str]] = []
    request = StopRequest(
        lambda: ask_to_stop(jobs), written=lambda: bytes_written(pid for job in jobs for pid in descendants(job.pid))
    )
    environment = ranks.environment()
    said: list[str] = []
    shown: list[str] = []
    with (
        collected(environment) as interrupted,
        watching(watched, environment, listener.note, lambda loss: end_jobs(jobs, ask=False)) as watch,
        ranks.command({**order, "watch": None if watch is None else watch.offer}, environment) as command,
    ):
        try:
            with request.listening():  # before there are ranks, which nobody would end
                errors = subprocess.PIPE if ranks.places else None
                job = start_job(command, environment, stdout=subprocess.PIPE, stderr=errors)
                jobs.append(job)
                if request.asked:
                    ask_to_stop(jobs)
                with _passing_on(job, said, shown), _returning(comeback, jobs):
                    heard = _listen(
                        job,
                        lambda line: dispatch(line, listener, lambda drop: _asked_to_drop(drop, dropping, jobs)),
                        request,
                        (said, shown),
                        lambda: watch is None or watch.loss is None,
                    )
                    status = job.wait()
            if comeback is not None and request.asked:
                comeback.back = ()
            if dropping is not None and (request.asked or (comeback is not None and comeback.back)):
                dropping.forget()
            if status == INTERRUPTED or (status != OK and (request.asked or interrupted())):
                raise KeyboardInterrupt
            if status not in (OK, *REPORTED) or (status != OK and watch is not None and watch.loss is not None):
                raise LossError(_loss(ranks, status, said, shown, watch))
            if status != OK and not heard:
                _check_started(ranks, said)
            return status
        finally:
            _end(jobs, request.late)


def _loss(ranks: Ranks, status: int, said: Sequence[str], shown: Sequence[str], watch: Watch | None) -> Loss:
    """Return the loss that has ended a job; raise LaunchError if no rank was started.

    If nothing else explains it, the lines of the launcher that were not shown are shown after all.
    """
    host = lost_at(said, ranks.hosts)
    blamed = [int(found[1]) for line in said if (found := _BLAMED.search(line))]
    known = None if watch is None else watch.settle(_REPORT, blamed)
    if known is not None:
        return known
    if host is None:
        _check_started(ranks, said)
    if ranks.places and host is None:
        sys.stderr.write("".join(line for line in said if line not in shown))
    cause = f"the run on {ranks_text(ranks.count)} ended with status {status}"
    cause += "" if host is None else f": a rank was lost on host {host}"
    return Loss(cause, host, step=0 if watch is None else watch.step)


def _check_started(ranks: Ranks, said: Sequence[str]) -> None:
    """Raise LaunchError if a launcher says why it started no rank on hosts."""
    if ranks.places and (fault := not_started(said)) is not None:
        raise LaunchError(
            f"no rank could be started: {fault}",
            remedy="address=ADDRESS in the hosts file sets the address of a host; `minga doctor` shows the launcher",
        )


@contextlib.contextmanager
def _passing_on(job: subprocess.Popen[str], said: list[str], shown: list[str]) -> Iterator[None]:
    """Pass on the error stream of ranks on hosts in a thread, and keep lines as :func:`pass_on` does."""
    if job.stderr is None:
        yield
        return
    thread = threading.Thread(target=pass_on, args=(job.stderr, sys.stderr, said, shown), daemon=True)
    thread.start()
    yield
    thread.join(_PATIENCE)


def _asked_to_drop(drop: Drop, dropping: Dropping | None, jobs: Sequence[subprocess.Popen[str]]) -> None:
    """Ask the ranks to stop if they can be started again without the hosts that they want to drop."""
    if dropping is not None and dropping.hear(drop):
        _signal_stop(jobs)


def _returning(
    comeback: Comeback | None, jobs: Sequence[subprocess.Popen[str]]
) -> contextlib.AbstractContextManager[None]:
    """Watch for missing hosts while a job runs, which is asked to stop when they are back."""
    return contextlib.nullcontext() if comeback is None else comeback.watching(lambda: _signal_stop(jobs))


def ask_to_stop(jobs: Iterable[subprocess.Popen[str]]) -> None:
    """Ask the ranks of ``minga run`` that some launchers have started to stop after the current step."""
    for job in jobs:
        sys.stderr.write("\nStopping after this step; press Ctrl-C again to end at once.\n")
        _signal_stop([job])


def _signal_stop(jobs: Iterable[subprocess.Popen[str]]) -> None:
    for job in jobs:
        with contextlib.suppress(ProcessLookupError):
            job.send_signal(STOP_SIGNAL)


def _listen(
    job: subprocess.Popen[str],
    pass_event: Callable[[str], str | None],
    request: StopRequest,
    lines: tuple[list[str], list[str]],
    whole: Callable[[], bool],
) -> bool:
    """Pass on what ranks report, and return whether they have reported anything; after a loss they are not `whole`.

    `pass_event` passes on a line if it is an event, and returns the name of that. Of other `lines` the last ones are
    kept: all of them, and those that were shown.
    """
    said, shown = lines
    heard = False
    assert job.stdout is not None
    for line in job.stdout:
        event = pass_event(line)
        heard = heard or event is not None
        if event == ANSWER:
            request.answer()
        elif event is None:
            said.append(line)
            del said[:-KEPT]
            if not request.asked and whole():  # else launchers report ranks that were ended
                shown.append(line)
                sys.stderr.write(line)
    return heard


def _end(jobs: list[subprocess.Popen[str]], late: bool) -> None:
    """Leave nothing running; if the ranks were ``late``, report it and give them no more time."""
    for job in jobs:
        if late and job.poll() is None:
            held = "".join(f"; process {pid} is stopped" for pid in stopped([job.pid, *descendants(job.pid)]))
            sys.stderr.write(f"minga: the ranks did not end their step within {GRACE:g} s and are ended{held}\n")
        end_jobs([job], ask=not late)
        for stream in (job.stdout, job.stderr):
            if stream is not None:
                stream.close()
