"""Starting the ranks of a run, listening to them, and ending them when a person asks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping

from minga.cli.events import dispatch
from minga.cli.launcher import Launcher
from minga.cli.stopping import StopRequest
from minga.errors import LaunchError
from minga.view.progress import Listener

__all__ = ["STOP_SIGNAL", "launch"]

STOP_SIGNAL = signal.SIGUSR1
"""Asks ranks to stop after the step they are at; MPICH's and Open MPI's launchers pass it on."""

_PATIENCE = 5.0


def launch(launcher: Launcher, ranks: int, order: Mapping[str, object], listener: Listener) -> int:
    """Start ``ranks`` ranks that carry out ``order`` (see :mod:`minga.cli.rank`); the exit status of the launcher.

    The first Ctrl-C asks the ranks to stop at the next step and to leave what was computed, the second one ends them.
    Raises KeyboardInterrupt for the second, and where the first one met ranks that could not listen yet.
    """
    words = json.dumps({**order, "ranks": ranks, "launcher": str(launcher.path)})
    command = [*launcher.command(ranks), sys.executable, "-m", "minga.cli.rank", words]
    try:
        job = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=launcher.environment(),
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # a Ctrl-C reaches this process alone, which then asks the ranks
        )
    except OSError as error:
        raise LaunchError(f"{launcher.path} could not be started: {error.strerror}") from error
    try:
        with StopRequest(lambda: _ask_ranks(job)).listening() as request:
            _listen(job, listener, request)
            status = job.wait()
        if request.asked and status != 0:
            raise KeyboardInterrupt
        return status
    finally:
        _end(job)
        if job.stdout is not None:
            job.stdout.close()


def _listen(job: subprocess.Popen[str], listener: Listener, request: StopRequest) -> None:
    assert job.stdout is not None
    for line in job.stdout:
        if not dispatch(line, listener) and not request.asked:  # what launchers say of ranks that a signal ended
            sys.stderr.write(line)


def _ask_ranks(job: subprocess.Popen[str]) -> None:
    sys.stderr.write("\nStopping after this step; press Ctrl-C again to end at once.\n")
    with contextlib.suppress(ProcessLookupError):
        job.send_signal(STOP_SIGNAL)


def _end(job: subprocess.Popen[str]) -> None:
    """Leave nothing running: the launcher takes its ranks along."""
    if job.poll() is None:
        job.terminate()
        try:
            job.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()
