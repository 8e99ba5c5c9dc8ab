"""Starting the ranks of a run, listening to them, and ending them on request."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping

from minga.launch.events import ANSWER, dispatch
from minga.launch.exit_codes import INTERRUPTED, OK
from minga.launch.jobs import end_jobs, start_job
from minga.launch.last_words import collected
from minga.launch.launcher import Launcher
from minga.launch.processes import descendants, stopped
from minga.launch.signals import GRACE, STOP_SIGNAL, StopRequest, bytes_written
from minga.view.progress import Listener

__all__ = ["ask_to_stop", "launch"]


def launch(launcher: Launcher, ranks: int, order: Mapping[str, object], listener: Listener) -> int:
    """Start ranks, pass what they report to a listener, and return the exit status of the launcher.

    The first Ctrl-C or termination signal asks the ranks to stop after the current step and to keep what was computed.
    The second one ends them, and so does time if they do not answer (:class:`minga.launch.signals.StopRequest`).

    Parameters
    ----------
    launcher
        Starts the ranks.
    ranks
        Number of ranks.
    order
        Order that each rank carries out, see :mod:`minga.cli.rank`.
    listener
        Receives progress and notes.

    Raises
    ------
    KeyboardInterrupt
        If the ranks were ended on request, or were asked before they could listen.
    LaunchError
        If the launcher cannot be started.
    """
    text = json.dumps({**order, "ranks": ranks, "launcher": str(launcher.path)})
    command = [*launcher.command(ranks), sys.executable, "-m", "minga.cli.rank", text]
    jobs: list[subprocess.Popen[str]] = []
    request = StopRequest(
        lambda: ask_to_stop(jobs), written=lambda: bytes_written(pid for job in jobs for pid in descendants(job.pid))
    )
    environment = launcher.environment()
    with collected(environment) as interrupted:
        try:
            with request.listening():  # before there are ranks, which nobody would end
                job = start_job(command, environment, stdout=subprocess.PIPE)
                jobs.append(job)
                if request.asked:
                    ask_to_stop(jobs)
                _listen(job, listener, request)
                status = job.wait()
            if status == INTERRUPTED or (status != OK and (request.asked or interrupted())):
                raise KeyboardInterrupt
            return status
        finally:
            _end(jobs, request.late)


def ask_to_stop(jobs: Iterable[subprocess.Popen[str]]) -> None:
    """Ask the ranks of ``minga run`` that some launchers have started to stop after the current step."""
    for job in jobs:
        sys.stderr.write("\nStopping after this step; press Ctrl-C again to end at once.\n")
        with contextlib.suppress(ProcessLookupError):
            job.send_signal(STOP_SIGNAL)


def _listen(job: subprocess.Popen[str], listener: Listener, request: StopRequest) -> None:
    assert job.stdout is not None
    for line in job.stdout:
        event = dispatch(line, listener)
        if event == ANSWER:
            request.answer()
        elif event is None and not request.asked:  # once asked, launchers report ranks that were ended by signals
            sys.stderr.write(line)


def _end(jobs: list[subprocess.Popen[str]], late: bool) -> None:
    """Leave nothing running; if the ranks were ``late``, report it and give them no more time."""
    for job in jobs:
        if late and job.poll() is None:
            held = "".join(f"; process {pid} is stopped" for pid in stopped([job.pid, *descendants(job.pid)]))
            sys.stderr.write(f"minga: the ranks did not end their step within {GRACE:g} s and are ended{held}\n")
        end_jobs([job], ask=not late)
        if job.stdout is not None:
            job.stdout.close()
