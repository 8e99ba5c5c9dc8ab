"""Processes on hosts, each started by ssh or by anything else that runs a command there, that speak in lines of JSON.

They end with their standard input, so that neither an error here nor an interrupt leaves one behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from minga.errors import LaunchError
from minga.launch.hosts import Host, Launcher

__all__ = ["HostProcess", "end_all", "reach", "start"]

Heard = Callable[[dict[str, Any] | None], None]
"""What takes each message, and None at the end of the output; called by a thread of its own."""


@dataclass(frozen=True, eq=False)
class HostProcess:
    """A process on a host, as seen from here."""

    host: Host
    popen: subprocess.Popen[str]
    errors: IO[str]

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a line. OSError where the process is gone."""
        pipe = _pipe(self.popen.stdin)
        pipe.write(json.dumps(message) + "\n")
        pipe.flush()

    def how_it_ended(self) -> str:
        """In words: with which status, or by which signal."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(1.0)
        status = self.popen.poll()
        return f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"

    def last_words(self) -> str:
        """What it printed last on standard error."""
        self.errors.seek(0)
        said = [line for line in self.errors if line.strip()]
        return said[-1].strip() if said else ""


def start(host: Host, module: str, launcher: Launcher | None, heard: Heard, remedy: str) -> HostProcess:
    """Run a module of minga on a host; by its launcher, or here where that is None.

    LaunchError where the launcher itself cannot be started; ``remedy``: what there is instead.
    """
    command = [host.python or sys.executable, "-m", module]
    if launcher is not None:
        command = list(launcher(host, command))
    errors = tempfile.TemporaryFile("a+", errors="replace")  # noqa: SIM115  (no name, so nothing to remove)
    try:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # an interrupt is for us; agents then end with their standard input
        )
    except OSError as error:
        errors.close()
        raise LaunchError(
            f"{command[0]} could not be started to reach host {host.name}: {error.strerror}",
            remedy=f"install {command[0]}, or {remedy}",
        ) from error
    threading.Thread(target=_listen, args=(_pipe(popen.stdout), heard), daemon=True).start()
    return HostProcess(host, popen, errors)


def end_all(processes: Sequence[HostProcess]) -> None:
    """End them, the patient way first."""
    for process in processes:
        with contextlib.suppress(OSError):
            _pipe(process.popen.stdin).close()
    _await(processes, 2.0)
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if process.popen.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.popen.pid, sign)
        _await(processes, 1.0)
    for process in processes:
        _pipe(process.popen.stdout).close()
        process.errors.close()


def reach(host: Host) -> str:
    """What to try where a host does not answer."""
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


def _await(processes: Sequence[HostProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.popen.wait(max(0.0, deadline - time.monotonic()))


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
