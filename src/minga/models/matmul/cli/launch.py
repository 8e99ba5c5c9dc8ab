"""Starting the ranks of ``minga matmul``, and continuing without those that are lost.

MPI ends all ranks when one is lost. Everything computed so far is in the partial result, so ranks are started again on
the remaining machines, with new shares, and compute only the missing part.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minga.engine.pin import available_cores
from minga.errors import LaunchError, RunError
from minga.launch.exit_codes import OK, REPORTED
from minga.launch.hosts import Host, login_options, shell_command
from minga.launch.hosts_file import read_hosts
from minga.launch.jobs import end_jobs, running_job
from minga.launch.launcher import Launcher, find_launcher
from minga.launch.launcher_output import INNER, lost_at, pass_on
from minga.launch.on_hosts import Part, command_on_hosts
from minga.launch.reach import not_started
from minga.models.matmul.cli.matmul import MatmulRequest, rank_command

__all__ = ["launch"]

_PATIENCE: Final = 5.0
_LOOKS: Final = 15.0
"""Seconds between checks that hosts still answer, and the timeout of each check."""
_STRIKES: Final = 2


@dataclass(slots=True)
class _Places:
    """The places where ranks are started: a number of ranks on this machine, or hosts."""

    here: int = 0
    hosts: list[Host] = field(default_factory=list)

    @property
    def ranks(self) -> int:
        return sum(host.ranks for host in self.hosts) if self.hosts else self.here

    def without(self, lost: str | None) -> _Places:
        """Return the places that remain after a rank was lost on a host; all hosts if the host is unknown."""
        if not self.hosts:
            return _Places(self.here - 1)
        if lost is None:
            return self
        return _Places(0, [host for host in self.hosts if lost not in (host.name, host.address)])

    def __str__(self) -> str:
        if self.hosts:
            return ", ".join(host.name for host in self.hosts)
        return f"{self.here} rank{'s' if self.here != 1 else ''}"


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a job."""

    status: int
    """Exit status of the launcher."""
    lost: str | None
    """The host that was lost, if it is known."""
    said: list[str]
    """The last lines of output."""
    answered: bool = False
    """True if rank 0 has printed the result, which it does at the very end."""


def launch(request: MatmulRequest) -> None:
    """Start the ranks of a request, which print the result.

    Raises
    ------
    RunError
        If no ranks are left, or if ranks are lost repeatedly on unknown hosts.
    LaunchError
        If the launcher or the ranks cannot be started.
    SystemExit
        With the exit status of ranks that have reported an error themselves.
    """
    launcher = find_launcher()
    places = _Places(request.ranks or 1, [] if request.hosts is None else read_hosts(request.hosts, 1))
    unknown = 0
    while True:
        with tempfile.TemporaryDirectory(prefix="minga-matmul-") as folder:
            end = _run(
                _command(launcher, places, request, Path(folder)),
                _environment(launcher, places, request),
                places,
                request,
            )
        status, lost = end.status, end.lost
        if end.answered:  # ranks that were lost afterwards do not matter
            return
        if status in (OK, *REPORTED):
            raise SystemExit(status)
        if places.hosts and lost is None and (fault := not_started(end.said)) is not None:
            raise LaunchError(
                f"no rank could be started: {fault}",
                remedy=f"try {shlex.join([*shell_command(request.shell), places.hosts[-1].name, 'true'])}; "
                "address=ADDRESS in the hosts file sets the address of a host",
            )
        if places.hosts and lost is None:
            unknown += 1
        left = places.without(lost)
        if left.ranks < 1 or unknown > 1:
            sys.stderr.write("".join(line for line in end.said if line.startswith(INNER)))
            raise RunError(
                f"the ranks ended with status {status}"
                + ("" if unknown < 2 else ", and it is not known which of them ended first"),
                remedy=f"run it again: the computed part is in {request.out}.partial" if request.out else None,
            )
        who = f"{lost} was lost" if lost else "a rank was lost"
        sys.stderr.write(f"minga: {who}; continuing with {left} on the missing part\n")
        places = left


def _command(launcher: Launcher, places: _Places, request: MatmulRequest, folder: Path) -> list[str]:
    """Return the command line that starts the ranks; `folder` must exist until they have ended."""
    command = rank_command(request)
    if not places.hosts:
        return [*launcher.command(places.ranks), sys.executable, *command]
    parts = [Part(host, [host.python or sys.executable, *command]) for host in places.hosts]
    return command_on_hosts(launcher, parts, request.shell, folder)


def _environment(launcher: Launcher, places: _Places, request: MatmulRequest) -> dict[str, str]:
    """Return the environment of the ranks.

    Ranks on this machine share its cores, so each BLAS gets its share of threads unless the user has set a number.
    """
    environment = launcher.environment()
    if not places.hosts and request.threads is None and "OPENBLAS_NUM_THREADS" not in os.environ:
        threads = str(max(1, len(available_cores()) // places.ranks))
        environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    return environment


def _run(command: Sequence[str], environment: dict[str, str], places: _Places, request: MatmulRequest) -> _End:
    """Run the ranks until they end."""
    said: list[str] = []
    answer: list[str] = []
    pipe = subprocess.PIPE
    with (
        running_job(command, environment, stdout=pipe, stderr=pipe) as job,
        _watching(job, places.hosts, request.shell) as silent,
    ):
        assert job.stdout is not None
        assert job.stderr is not None
        printing = threading.Thread(target=pass_on, args=(job.stdout, sys.stdout, said, answer), daemon=True)
        printing.start()
        pass_on(job.stderr, sys.stderr, said)
        status = job.wait()
        printing.join(_PATIENCE)
    named_out = json.dumps(str(request.out.absolute()))[1:-1] if request.out else ""
    if status == 0 or (named_out and any(named_out in line for line in answer)):
        return _End(status, None, said, answered=True)
    if silent:
        return _End(-1, silent[0], said)
    if status in (OK, *REPORTED):
        return _End(status, None, said)
    lost = lost_at(said, places.hosts) or _unreachable(places.hosts, request.shell)
    return _End(status, lost, said)


@contextlib.contextmanager
def _watching(job: subprocess.Popen[str], hosts: Sequence[Host], shell: str) -> Iterator[list[str]]:
    """End the job if a host stops answering, since the other ranks would wait for hours; the list gets its name."""
    silent: list[str] = []
    over = threading.Event()

    def watch() -> None:
        strikes = dict.fromkeys((host.name for host in hosts), 0)
        while not over.wait(_LOOKS):
            for host in hosts:
                strikes[host.name] = 0 if _answers(host, shell) else strikes[host.name] + 1
                if strikes[host.name] >= _STRIKES and not over.is_set():
                    silent.append(host.name)
                    end_jobs([job])  # including the connection to the silent host, which would last long
                    return

    if not hosts:
        yield silent
        return
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield silent
    finally:
        over.set()


def _unreachable(hosts: Sequence[Host], shell: str) -> str | None:
    return next((host.name for host in hosts if not _answers(host, shell)), None)


def _answers(host: Host, shell: str) -> bool:
    command = shell_command(shell)
    try:
        done = subprocess.run(
            [*command, *login_options(host, command), host.name, "true"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_LOOKS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
