"""Starting the ranks of a run, listening to them, and ending them when a person asks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

from minga.cli.events import dispatch
from minga.cli.launcher import Launcher
from minga.errors import LaunchError
from minga.view.progress import Listener

__all__ = ["STOP_SIGNAL", "launch"]

STOP_SIGNAL = signal.SIGUSR1
"""Asks ranks to stop after the step they are at; MPICH's and Open MPI's launchers pass it on."""

_PATIENCE = 5.0


def launch(launcher: Launcher, ranks: int, order: Mapping[str, object], listener: Listener) -> int:
    """Start ``ranks`` ranks that carry out ``order`` (see :mod:`minga.cli.rank`); the exit status of the launcher.

    The first Ctrl-C asks the ranks to stop at the next step and to leave what was computed, the second one ends them.
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
        with _asking_politely(job):
            _listen(job, listener)
            return job.wait()
    finally:
        _end(job)
        if job.stdout is not None:
            job.stdout.close()


def _listen(job: subprocess.Popen[str], listener: Listener) -> None:
    assert job.stdout is not None
    for line in job.stdout:
        if not dispatch(line, listener):
            sys.stderr.write(line)


@contextlib.contextmanager
def _asking_politely(job: subprocess.Popen[str]) -> Iterator[None]:
    """Turn the first Ctrl-C or termination signal into a request to the ranks; the second one interrupts as usual."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        sys.stderr.write("\nStopping after this step; press Ctrl-C again to end at once.\n")
        with contextlib.suppress(ProcessLookupError):
            job.send_signal(STOP_SIGNAL)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
