"""Starting the ranks of ``minga matmul``, and going on without those that are lost.

MPI ends all ranks when one is lost. What they had computed is in the partial result, so the rest is started again on
the machines that are left, with new shares, and computes only what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from minga.cli.matmul import MatmulRequest, rank_command
from minga.engine.pin import available_cores
from minga.errors import LaunchError, RunError
from minga.launch.exit_codes import OK, REPORTED
from minga.launch.hosts import Host, read_hosts, shell_command
from minga.launch.jobs import end_jobs, running_job
from minga.launch.launcher import Launcher, find_launcher
from minga.launch.reach import address_options, agent, not_started, own_address

__all__ = ["launch"]

_PATIENCE: Final = 5.0
_LOOKS: Final = 15.0
"""Seconds between two looks whether hosts still answer, and how long each may take."""
_STRIKES: Final = 2
_LAST: Final = 60
"""Lines of the launcher that are kept."""
_ENDINGS: Final = ("=====", "-----", "YOUR APPLICATION TERMINATED", "mpiexec noticed", "mpirun noticed")
_INNER: Final = ("[mpiexec@", "[proxy:")
"""How MPICH's launcher begins lines about itself; they are shown only where nothing else helps."""
_LOST_AT: Final = (re.compile(r"RUNNING AT (\S+)"), re.compile(r"on node (\S+)"))
"""Where MPICH's and Open MPI's launchers say that a rank ended."""


@dataclass(slots=True)
class _Places:
    """Where ranks are started: so many on this machine, or on hosts."""

    here: int = 0
    hosts: list[Host] = field(default_factory=list)

    @property
    def ranks(self) -> int:
        return sum(host.slots for host in self.hosts) if self.hosts else self.here

    def without(self, lost: str | None) -> _Places:
        """Those that are left, where a rank was lost on a host; all hosts, where nothing says on which."""
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
    """How ranks ended: the launcher's status, the host that was lost if something says which, and what was said last.

    ``answered``: rank 0 has printed what is to be said, which it does when all is done.
    """

    status: int
    lost: str | None
    said: list[str]
    answered: bool = False


def launch(request: MatmulRequest) -> None:
    """Start the ranks that a request asks for; they print what is to be said.

    RunError where none are left, or where ranks are lost again and again without a word which. LaunchError where the
    launcher cannot be started. Ends with the ranks' status where they have said what is wrong.
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
        if end.answered:  # whoever was lost afterwards
            return
        if status in (OK, *REPORTED):
            raise SystemExit(status)
        if places.hosts and lost is None and (fault := not_started(end.said)) is not None:
            raise LaunchError(
                f"no rank could be started: {fault}",
                remedy=f"try {shlex.join([*shell_command(request.shell), places.hosts[-1].name, 'true'])}; "
                "address=ADDRESS in the hosts file says where a host is reached",
            )
        if places.hosts and lost is None:
            unknown += 1
        left = places.without(lost)
        if left.ranks < 1 or unknown > 1:
            sys.stderr.write("".join(line for line in end.said if line.startswith(_INNER)))
            raise RunError(
                f"the ranks ended with status {status}"
                + ("" if unknown < 2 else ", and nothing says which of them did first"),
                remedy=f"run it again: what was computed is in {request.out}.partial" if request.out else None,
            )
        who = f"{lost} was lost" if lost else "a rank was lost"
        sys.stderr.write(f"minga: {who}; going on with {left}, which do what is missing\n")
        places = left


def _command(launcher: Launcher, places: _Places, request: MatmulRequest, folder: Path) -> list[str]:
    """The command line that starts the ranks; `folder` is there until they have ended."""
    command = rank_command(request)
    if not places.hosts:
        return [*launcher.command(places.ranks), sys.executable, *command]
    reach = str(agent(folder, request.shell))
    start = [str(launcher.path), *address_options(launcher.vendor, own_address(places.hosts, request.shell))]
    if launcher.vendor == "Open MPI":
        start += ["--prtemca", "plm_ssh_agent", reach, "--bind-to", "none"]
        each = [["-n", str(h.slots), "--host", f"{h.address or h.name}:{h.slots}"] for h in places.hosts]
    else:  # one list for all parts, which fill it in order
        start += ["-launcher", "ssh", "-launcher-exec", reach]
        start += ["-hosts", ",".join(f"{h.address or h.name}:{h.slots}" for h in places.hosts)]
        each = [["-n", str(h.slots), "-wdir", "/"] for h in places.hosts]  # this directory may not be there
    for number, (host, options) in enumerate(zip(places.hosts, each, strict=True)):
        start += [*([":"] if number else []), *options, host.python or sys.executable, *command]
    return start


def _environment(launcher: Launcher, places: _Places, request: MatmulRequest) -> dict[str, str]:
    """Ranks of this machine share its cores: each BLAS takes its part, unless somebody said otherwise."""
    environment = launcher.environment()
    if not places.hosts and request.threads is None and "OPENBLAS_NUM_THREADS" not in os.environ:
        threads = str(max(1, len(available_cores()) // places.ranks))
        environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    return environment


def _run(command: Sequence[str], environment: dict[str, str], places: _Places, request: MatmulRequest) -> _End:
    """Run the ranks to their end."""
    said: list[str] = []
    answer: list[str] = []
    pipe = subprocess.PIPE
    with (
        running_job(command, environment, stdout=pipe, stderr=pipe) as job,
        _watching(job, places.hosts, request.shell) as silent,
    ):
        assert job.stdout is not None
        assert job.stderr is not None
        printing = threading.Thread(target=_pass_on, args=(job.stdout, sys.stdout, said, answer), daemon=True)
        printing.start()
        _pass_on(job.stderr, sys.stderr, said, [])
        status = job.wait()
        printing.join(_PATIENCE)
    named_out = json.dumps(str(request.out.absolute()))[1:-1] if request.out else ""
    if status == 0 or (named_out and any(named_out in line for line in answer)):
        return _End(status, None, said, answered=True)
    if silent:
        return _End(-1, silent[0], said)
    if status in (OK, *REPORTED):
        return _End(status, None, said)
    found = [match[1] for line in said for pattern in _LOST_AT if (match := pattern.search(line))]
    named = [host.name for host in places.hosts if found and found[0] in (host.name, host.address)]
    return _End(status, named[0] if named else _unreachable(places.hosts, request.shell), said)


def _pass_on(stream: IO[str], target: IO[str], said: list[str], shown: list[str]) -> None:
    """Show what ranks and launcher say, but for the launcher's words about ranks that were ended."""
    dying = False
    for line in stream:
        said.append(line)
        del said[:-_LAST]
        dying = dying or line.startswith(_ENDINGS)
        if line.strip() and not dying and not line.startswith(_INNER):
            shown.append(line)
            target.write(line)
            target.flush()


@contextlib.contextmanager
def _watching(job: subprocess.Popen[str], hosts: Sequence[Host], shell: str) -> Iterator[list[str]]:
    """End the job where a host stops answering: its ranks would wait for it for hours. The list gets its name."""
    silent: list[str] = []
    over = threading.Event()

    def watch() -> None:
        strikes = dict.fromkeys((host.name for host in hosts), 0)
        while not over.wait(_LOOKS):
            for host in hosts:
                strikes[host.name] = 0 if _answers(host, shell) else strikes[host.name] + 1
                if strikes[host.name] >= _STRIKES and not over.is_set():
                    silent.append(host.name)
                    end_jobs([job])  # also a connection to the silent host, which would last for long
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
    try:
        done = subprocess.run(
            [*shell_command(shell), host.address or host.name, "true"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_LOOKS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
