"""Hosts without MPI: their list, how agents are started on them, and the team that the agents are.

An agent is a process on a host, started by ssh or by anything else that runs a command there. Agents end with their
standard input, so that neither an error here nor an interrupt leaves one behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from minga.errors import CaseError, LaunchError, RunError, suggest
from minga.fit.network.agent import GREETING
from minga.fit.network.worker import Order, Reply

__all__ = ["Host", "HostTeam", "Launcher", "agents", "read_hosts", "ssh"]

_CLOCK, _JUMP = 60.0, 1.0
"""Seconds by which clocks of the day may differ between hosts, and by which one may be set while measuring."""
_KEYS: Final = ("slots", "address", "python")
_COMMAND: Final = ("-m", "minga.fit.network.agent")


@dataclass(frozen=True, slots=True)
class Host:
    """A machine to measure. ``slots``: ranks it takes; ``address``: where others reach it, if not by its name."""

    name: str
    slots: int = 1
    address: str | None = None
    python: str | None = None
    """The Python there that has minga; None for the path of this one."""
    line: int = 0


Launcher = Callable[[Host, Sequence[str]], Sequence[str]]
"""The command here that runs a command on a host, with standard input and output passed on."""


def read_hosts(path: str | Path, least: int = 2) -> list[Host]:
    """A hosts file: a host a line, ``#`` before comments; ``slots=4 address=10.0.0.2 python=/opt/minga/bin/python``.

    CaseError for anything else, for a host that comes twice, and for fewer than ``least``.
    """
    file = Path(path)
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CaseError(f"the hosts file {file} cannot be read: {reason}", remedy="write one host a line") from error
    hosts: list[Host] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        host = _host(words, str(file), number)
        if any(host.name == other.name for other in hosts):
            raise CaseError(
                f"host {host.name} is listed twice", where=(str(file), number), remedy="say slots= for several ranks"
            )
        hosts.append(host)
    if len(hosts) < least:
        raise CaseError(
            f"the hosts file lists {len(hosts)} host{'' if len(hosts) == 1 else 's'}"
            + ("; a network needs two" if least == 2 else ""),
            where=str(file),
            remedy="write one host a line",
        )
    return hosts


def ssh(host: Host, command: Sequence[str]) -> list[str]:
    """Run a command on a host by ssh, without ever asking for a password."""
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"]
    return ["ssh", *options, host.name, shlex.join(command)]


@contextmanager
def agents(
    hosts: Sequence[Host], launcher: Launcher = ssh, *, patience: float = 30.0, alike: bool = True
) -> Iterator[HostTeam]:
    """A team of agents, one on each host; all are ended on the way out.

    LaunchError, naming the host, for one that cannot be reached within ``patience`` seconds, or that has another minga,
    Python or MPI than the first one or a clock that differs by more than a minute (``alike=False``: anything goes).
    """
    team = HostTeam()
    try:
        for host in hosts:
            team.members.append(_start(host, launcher))
        for member in team.members:
            member.identity = _greeting(member, patience)
        if alike:
            _compare(team.members)
        yield team
    finally:
        team.end()


@dataclass(eq=False)
class _Member:
    """An agent and the pipes to it."""

    host: Host
    process: subprocess.Popen[str]
    errors: IO[str]
    lines: queue.Queue[str | None] = field(default_factory=queue.Queue)
    identity: dict[str, Any] = field(default_factory=dict)
    number: int = 0

    def last_words(self) -> str:
        """What the host printed last on standard error."""
        self.errors.seek(0)
        said = [line for line in self.errors if line.strip()]
        return said[-1].strip() if said else ""


class HostTeam:
    """Agents on hosts, see :class:`~minga.fit.network.team.Team`."""

    def __init__(self) -> None:
        self.members: list[_Member] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts' names as they are listed."""
        return tuple(member.host.name for member in self.members)

    def run(self, orders: Mapping[int, Order]) -> dict[int, Reply]:
        """See :class:`Team`. RunError also for a host whose clock was set, or that slept, meanwhile."""
        for member, order in orders.items():
            self._tell(self.members[member], order)
        return {member: self._hear(self.members[member], orders[member]) for member in orders}

    def end(self) -> None:
        """End all agents, the patient way first."""
        for member in self.members:
            with contextlib.suppress(OSError):
                _pipe(member.process.stdin).close()
        deadline = time.monotonic() + 2.0
        for member in self.members:
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.process.wait(max(0.0, deadline - time.monotonic()))
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for member in self.members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(member.process.pid, sign)
            for member in self.members:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    member.process.wait(1.0)
        for member in self.members:
            _pipe(member.process.stdout).close()
            member.errors.close()

    def _tell(self, member: _Member, order: Order) -> None:
        member.number += 1
        try:
            pipe = _pipe(member.process.stdin)
            pipe.write(json.dumps({**order, "number": member.number}) + "\n")
            pipe.flush()
        except OSError as error:
            raise _gone(member) from error

    def _hear(self, member: _Member, order: Order) -> Reply:
        patience = float(order.get("budget", 0.0)) + float(order.get("allowed", 0.0)) + 60.0
        while True:
            answer = _line(member, patience)
            if answer is None:
                raise RunError(
                    f"host {member.host.name} did not answer for {patience:.0f} s while measuring",
                    remedy="look whether it is still up; nothing was left running there as far as it can be reached",
                )
            if answer.get("number") == member.number:
                _check_clocks(member, *answer["clocks"])
                reply: Reply = answer["reply"]
                return reply


def _host(words: Sequence[str], file: str, line: int) -> Host:
    given: dict[str, str] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if key not in _KEYS or not equals or not value:
            raise CaseError(
                f"{word!r} is not understood after a host's name",
                where=(file, line),
                suggestion=suggest(key, _KEYS),
                remedy="write slots=NUMBER, address=ADDRESS or python=PATH, without spaces around =",
            )
        given[key] = value
    slots = given.get("slots", "1")
    if not slots.isascii() or not slots.isdigit() or not 1 <= int(slots) <= 1 << 20:
        raise CaseError(f"slots={slots} is no number of ranks", where=(file, line), remedy="write slots=4")
    if words[0].startswith("-") or "=" in words[0]:
        raise CaseError(f"{words[0]!r} is no name of a host", where=(file, line), remedy="begin the line with the name")
    return Host(words[0], int(slots), given.get("address"), given.get("python"), line)


def _start(host: Host, launcher: Launcher) -> _Member:
    command = list(launcher(host, [host.python or sys.executable, *_COMMAND]))
    errors = tempfile.TemporaryFile("a+", errors="replace")  # noqa: SIM115  (no name, so nothing to remove)
    try:
        process = subprocess.Popen(
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
            remedy=f"install {command[0]}, or measure inside an MPI job",
        ) from error
    member = _Member(host, process, errors)
    threading.Thread(target=_read, args=(_pipe(process.stdout), member.lines), daemon=True).start()
    return member


def _read(pipe: IO[str], lines: queue.Queue[str | None]) -> None:
    with contextlib.suppress(ValueError, OSError):
        for line in pipe:
            lines.put(line)
    lines.put(None)


def _greeting(member: _Member, patience: float) -> dict[str, Any]:
    deadline = time.monotonic() + patience
    try:
        while True:
            answer = _line(member, deadline - time.monotonic())
            if answer is None:
                raise LaunchError(
                    f"host {member.host.name} did not answer within {patience:g} s", remedy=_reach(member)
                )
            if answer.get("greeting") == GREETING:
                # Both clocks of the day at about the same time: what is between is this machine's.
                answer["here"] = time.time()
                return answer
    except RunError as error:
        said = member.last_words()
        raise LaunchError(
            f"no agent runs on host {member.host.name}: {said or error.message}", remedy=_reach(member)
        ) from None


def _reach(member: _Member) -> str:
    python = member.host.python or sys.executable
    return (
        f'try `ssh {member.host.name} {python} -c "import minga"`; python=PATH in the hosts file names another Python'
    )


def _line(member: _Member, patience: float) -> dict[str, Any] | None:
    """The next message; None after so many seconds. Other lines, such as a greeting of the system, are passed over."""
    deadline = time.monotonic() + patience
    while True:
        try:
            line = member.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if line is None:
            raise _gone(member)
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict):
                return message


def _gone(member: _Member) -> RunError:
    with contextlib.suppress(subprocess.TimeoutExpired):
        member.process.wait(1.0)
    status = member.process.poll()
    how = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
    said = member.last_words()
    return RunError(
        f"the agent on host {member.host.name} {how} while measuring" + (f": {said}" if said else ""),
        remedy="all other agents were ended too; measure again when the host is well",
    )


def _compare(members: Sequence[_Member]) -> None:
    first = members[0]
    for member in members:
        for what, name in (("minga", "minga"), ("python", "Python"), ("mpi", "MPI")):
            ours, theirs = _version(what, first.identity), _version(what, member.identity)
            if ours != theirs:
                raise LaunchError(
                    f"host {member.host.name} has {name} {theirs or 'none'}, "
                    f"but host {first.host.name} has {ours or 'none'}",
                    remedy=f"install the same {name} on all hosts; python=PATH in the hosts file chooses another one",
                )
        ahead = member.identity["clocks"]["day"] - member.identity["here"]
        if abs(ahead) > _CLOCK:
            raise LaunchError(
                f"the clock of host {member.host.name} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
                "this machine's",
                remedy="synchronise the clocks (chrony, ntpd), so that files and logs of a run can be put in order",
            )


def _version(what: str, identity: Mapping[str, Any]) -> str | None:
    text = identity.get(what)
    return ".".join(text.split(".")[:2]) if what == "python" and text else text


def _check_clocks(member: _Member, before: Mapping[str, float], after: Mapping[str, float]) -> None:
    steady = after["steady"] - before["steady"]
    for clock, what in (("awake", "host {} slept for {:.1f} s"), ("day", "the clock of host {} jumped by {:+.1f} s")):
        jump = after[clock] - before[clock] - steady
        if abs(jump) > _JUMP:
            raise RunError(
                what.format(member.host.name, jump) + " while measuring",
                remedy="measure again when clocks are not being set and no host is suspended",
            )


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
