"""Helper processes on hosts, started by ssh or any other program that runs a command there; they exchange JSON lines.

They end when their standard input is closed, so that neither an error here nor an interrupt leaves one behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from minga.errors import LaunchError
from minga.launch.hosts import Host, Launcher
from minga.launch.jobs import await_jobs, end_jobs, start_job
from minga.launch.signals import uninterrupted

__all__ = ["HostProcess", "end_all", "reach", "start"]

_PATIENCE: Final = 2.0
"""Seconds that processes get to end with their standard input, and again after they are asked by a signal."""
_PASSED: Final = ("PYTHONPATH", "MPI4PY_LIBMPI")
"""Variables that decide which packages and which MPI library are loaded; launchers of MPI pass them on to ranks."""

Heard = Callable[[dict[str, Any] | None], None]
"""Function that receives each message, and None at the end of the output, in a thread of its own."""


@dataclass(frozen=True, eq=False)
class HostProcess:
    """A process on a host, represented by the local process that connects to it."""

    host: Host
    popen: subprocess.Popen[str]
    errors: IO[str]

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message. Raises OSError if the process is gone."""
        pipe = _pipe(self.popen.stdin)
        pipe.write(json.dumps(message) + "\n")
        pipe.flush()

    def how_it_ended(self) -> str:
        """Return in words with which status, or by which signal, the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(1.0)
        status = self.popen.poll()
        return f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"

    def last_words(self) -> str:
        """Return the last line that it printed on standard error."""
        self.errors.seek(0)
        said = [line for line in self.errors if line.strip()]
        return said[-1].strip() if said else ""


def start(host: Host, module: str, launcher: Launcher | None, heard: Heard, remedy: str) -> HostProcess:
    """Run a module of minga on a host by its launcher, or on this machine if that is None.

    Raises LaunchError if the launcher itself cannot be started; ``remedy`` names an alternative.
    """
    command = [host.python or sys.executable, "-m", module]
    if launcher is not None:
        given = [f"{name}={value}" for name in _PASSED if (value := os.environ.get(name))]
        command = list(launcher(host, [*(["env", *given] if given else []), *command]))
    errors = tempfile.TemporaryFile("a+", errors="replace")  # noqa: SIM115  (no name, so nothing to remove)
    try:
        popen = start_job(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            purpose=f"to reach host {host.name}", remedy=f"install {command[0]}, or {remedy}",
        )  # fmt: skip
    except LaunchError:
        errors.close()
        raise
    threading.Thread(target=_listen, args=(_pipe(popen.stdout), heard), daemon=True).start()
    return HostProcess(host, popen, errors)


def end_all(processes: Sequence[HostProcess]) -> None:
    """End processes: first by closing their standard input, then as any other job."""
    with uninterrupted():
        for process in processes:
            with contextlib.suppress(OSError):
                _pipe(process.popen.stdin).close()
        jobs = [process.popen for process in processes]
        await_jobs(jobs, _PATIENCE)
        end_jobs(jobs, patience=_PATIENCE)
    for process in processes:
        _pipe(process.popen.stdout).close()
        process.errors.close()


def reach(host: Host) -> str:
    """Return what to try if a host does not answer."""
    python = shlex.quote(host.python or sys.executable)
    return f'try `ssh {host.name} {python} -c "import minga"`; python=PATH in the hosts file names another Python'


def _listen(lines: Iterable[str], heard: Heard) -> None:
    with contextlib.suppress(ValueError, OSError):
        for line in lines:
            with contextlib.suppress(ValueError):  # a greeting of the system is no message
                message = json.loads(line)
                if isinstance(message, dict):
                    heard(message)
    heard(None)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
