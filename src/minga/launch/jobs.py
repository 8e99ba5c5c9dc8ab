"""Jobs: programs that are started together with all that they start themselves, and are ended together.

Each job leads a session of its own, so a Ctrl-C reaches minga alone, which then ends the job. Every command of minga
that starts processes does so through :func:`running_job`, or calls :func:`end_jobs` itself: after that nothing is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

from minga.errors import LaunchError
from minga.launch.processes import Process, descendants, end, process_here
from minga.launch.signals import interruptible, uninterrupted

__all__ = ["await_jobs", "end_jobs", "finished_job", "running_job", "start_job"]

_PATIENCE: Final = 5.0
"""Seconds that a job gets to end by itself: launchers of MPI take their ranks along, also those on other hosts."""
_PAUSE: Final = 0.02


def start_job(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    stdin: int | IO[str] | None = subprocess.DEVNULL,
    stdout: int | IO[str] | None = None,
    stderr: int | IO[str] | None = None,
    purpose: str = "",
    remedy: str | None = None,
) -> subprocess.Popen[str]:
    """Start a program that leads a session of its own; the caller has to end it with :func:`end_jobs`.

    Without a terminal, ssh asks for no password. Raises LaunchError if the program cannot be started; ``purpose`` (as
    in "to reach host a") and ``remedy`` become part of its message.
    """
    try:
        return subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=None if environment is None else dict(environment),
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        wanted = f" {purpose}" if purpose else ""
        raise LaunchError(f"{command[0]} could not be started{wanted}: {error.strerror}", remedy=remedy) from error


@contextlib.contextmanager
def running_job(
    command: Sequence[str], environment: Mapping[str, str] | None = None, **streams: Any
) -> Iterator[subprocess.Popen[str]]:
    """Start a job for the time of a ``with`` block, and end it on the way out, also at Ctrl-C, SIGTERM and SIGHUP.

    ``streams`` as for :func:`start_job`; those that are pipes are closed afterwards.
    """
    jobs: list[subprocess.Popen[str]] = []
    with interruptible():
        try:
            with uninterrupted():  # a signal between the start and the next line would leave the job behind
                jobs.append(start_job(command, environment, **streams))
            yield jobs[0]
        finally:
            end_jobs(jobs)
            for job in jobs:
                _close(job)


def finished_job(
    command: Sequence[str], environment: Mapping[str, str] | None = None, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a job to its end and return its status and what it printed.

    Raises LaunchError where the program cannot be started, and ``subprocess.TimeoutExpired`` where it does not end
    within ``timeout`` seconds. Nothing of the job is left running.
    """
    with running_job(command, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        out, err = job.communicate(timeout=timeout)
    return subprocess.CompletedProcess(list(command), job.returncode, out, err)


def end_jobs(
    jobs: Sequence[subprocess.Popen[str]],
    *,
    ask: bool = True,
    patience: float = _PATIENCE,
    also: Callable[[], Iterable[int]] = tuple,
) -> None:
    """Leave nothing of some jobs running: ask their leaders to end, wait, and kill what is left.

    Launchers of MPI end their ranks when they are asked, so only leaders are. What is left then are the leaders
    themselves, their process groups, and what they had started before; the ranks are in sessions of their own.
    Signals that ask this process to end wait meanwhile.

    Parameters
    ----------
    jobs
        Started by :func:`start_job`. Their pipes stay open.
    ask
        False: kill everything at once.
    patience
        Seconds that the leaders get to end, all together.
    also
        Returns further processes that belong to the jobs, which get a moment to end by themselves.
    """
    with uninterrupted():
        running = [job for job in jobs if job.poll() is None]
        tree = {process for job in running if (process := process_here(job.pid))}
        _grow(tree)
        if ask:
            for job in running:
                job.terminate()
            deadline = time.monotonic() + patience
            while any(job.poll() is None for job in running) and time.monotonic() < deadline:
                time.sleep(_PAUSE)
                _grow(tree)
        end(lambda: _grow(tree), patience=0.0)
        for job in jobs:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(job.pid, signal.SIGKILL)
        end(also)
        for job in jobs:
            job.wait()


def _grow(tree: set[Process]) -> list[int]:
    """Add to a set of processes what they have started, and return those that exist."""
    pids = [process.pid for process in tree if process.lives]
    tree |= {process for pid in descendants(*pids) if (process := process_here(pid))}
    return [process.pid for process in tree if process.lives]


def await_jobs(jobs: Sequence[subprocess.Popen[str]], seconds: float) -> None:
    """Wait until jobs have ended, for at most some seconds all together."""
    deadline = time.monotonic() + seconds
    for job in jobs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(max(0.0, deadline - time.monotonic()))


def _close(job: subprocess.Popen[str]) -> None:
    for stream in (job.stdin, job.stdout, job.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
