"""Starting the ranks of a run, listening to them, and ending them when a person asks."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from minga.engine.signals import GRACE, StopRequest, bytes_written
from minga.errors import LaunchError
from minga.launch.descendants import descendants, kill, stopped
from minga.launch.events import ANSWER, dispatch
from minga.launch.last_words import collected
from minga.launch.launcher import Launcher
from minga.launch.stopping import INTERRUPTED
from minga.view.progress import Listener

__all__ = ["STOP_SIGNAL", "launch"]

STOP_SIGNAL = signal.SIGUSR1
"""Asks ranks to stop after the step they are at; MPICH's and Open MPI's launchers pass it on."""

_PATIENCE: Final = 3.0


def launch(launcher: Launcher, ranks: int, order: Mapping[str, object], listener: Listener) -> int:
    """Start ``ranks`` ranks that carry out ``order`` (see :mod:`minga.cli.rank`); the exit status of the launcher.

    The first Ctrl-C or termination signal asks the ranks to stop at the next step and to leave what was computed. The
    second one ends them, and so does time where they do not answer (:class:`minga.engine.signals.StopRequest`).
    Raises KeyboardInterrupt for both, and where the first signal met ranks that could not listen yet.
    """
    words = json.dumps({**order, "ranks": ranks, "launcher": str(launcher.path)})
    command = [*launcher.command(ranks), sys.executable, "-m", "minga.cli.rank", words]
    jobs: list[subprocess.Popen[str]] = []
    request = StopRequest(
        lambda: _ask_ranks(jobs), written=lambda: bytes_written(pid for job in jobs for pid in descendants(job.pid))
    )
    environment = launcher.environment()
    with collected(environment):
        try:
            with request.listening():  # before there are ranks, which nobody would end
                job = _start(command, launcher, environment)
                jobs.append(job)
                if request.asked:
                    _ask_ranks(jobs)
                _listen(job, listener, request)
                status = job.wait()
            if status == INTERRUPTED or (request.asked and status != 0):
                raise KeyboardInterrupt
            return status
        finally:
            for job in jobs:
                _end(job, request.late)
                if job.stdout is not None:
                    job.stdout.close()


def _start(command: list[str], launcher: Launcher, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # signals reach this process alone, which then asks the ranks
        )
    except OSError as error:
        raise LaunchError(f"{launcher.path} could not be started: {error.strerror}") from error


def _listen(job: subprocess.Popen[str], listener: Listener, request: StopRequest) -> None:
    assert job.stdout is not None
    for line in job.stdout:
        event = dispatch(line, listener)
        if event == ANSWER:
            request.answer()
        elif event is None and not request.asked:  # what launchers say of ranks that a signal ended
            sys.stderr.write(line)


def _ask_ranks(jobs: list[subprocess.Popen[str]]) -> None:
    for job in jobs:
        sys.stderr.write("\nStopping after this step; press Ctrl-C again to end at once.\n")
        with contextlib.suppress(ProcessLookupError):
            job.send_signal(STOP_SIGNAL)


def _end(job: subprocess.Popen[str], late: bool) -> None:
    """Leave nothing running. Where the ranks were ``late``, say so, and give them no more time."""
    if job.poll() is not None:
        return
    there = [job.pid, *descendants(job.pid)]
    if late:
        held = "".join(f"; process {process} is stopped" for process in stopped(there))
        sys.stderr.write(f"minga: the ranks did not end their step within {GRACE:g} s and are ended{held}\n")
    else:
        job.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(_PATIENCE)
    kill(there)
    job.wait()
