"""The members of a file's broadcast: an agent on each host, started by ssh or by another program that does so.

Orders and answers are lines of JSON through the agents' standard input and output; the group's key goes there too.
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
from importlib.metadata import version
from typing import IO, Any, Final

from minga.broadcast.agent import GREETING
from minga.errors import LaunchError, RunError
from minga.fit.network.hosts import Host, Launcher

__all__ = ["Agents", "Outcome", "agents"]

_COMMAND: Final = ("-m", "minga.broadcast.agent")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended on a host: what its agent reported, or what went wrong."""

    host: str
    done: dict[str, Any] | None = None
    failed: str = ""
    remedy: str | None = None
    lost: tuple[int, ...] = ()
    """Members that this one found gone."""
    vanished: bool = False
    """The agent itself is gone."""


@dataclass(eq=False)
class _Agent:
    host: Host
    process: subprocess.Popen[str]
    errors: IO[str]
    asked: list[Any] | None = None
    outcome: Outcome | None = None


@dataclass(eq=False)
class Agents:
    """The agents that are running, in the order of the members."""

    members: list[_Agent] = field(default_factory=list)
    lines: queue.Queue[tuple[int, dict[str, Any] | None]] = field(default_factory=queue.Queue)

    def greet(self, patience: float) -> None:
        """Wait until all are there. LaunchError, naming the host, for one that is not, or has another minga."""
        waiting = set(range(len(self.members)))
        deadline = time.monotonic() + patience
        while waiting:
            try:
                number, message = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                host = self.members[min(waiting)].host
                raise LaunchError(
                    f"host {host.name} did not answer within {patience:g} s", remedy=_reach(host)
                ) from None
            agent = self.members[number]
            if message is None:
                raise LaunchError(f"no agent runs on host {agent.host.name}: {_end(agent)}", remedy=_reach(agent.host))
            if message.get("greeting") != GREETING:
                continue
            if message["minga"] != version("minga"):
                raise LaunchError(
                    f"host {agent.host.name} has minga {message['minga']}, this machine {version('minga')}",
                    remedy="install the same minga there; python=PATH in the hosts file chooses another Python",
                )
            waiting.remove(number)

    def work(
        self, orders: Sequence[Mapping[str, Any]], told: Callable[[int, dict[str, Any]], None], patience: float
    ) -> list[Outcome]:
        """Give each agent its order and let them talk, until all have ended in some way.

        ``told`` hears what they report meanwhile: (member, message). An agent that says nothing for ``patience``
        seconds after another one has ended is taken for gone; RunError, naming it, where others wait for it.
        """
        for agent, order in zip(self.members, orders, strict=True):
            self._send(agent, order)
        while any(agent.outcome is None for agent in self.members):
            ended = any(agent.outcome is not None for agent in self.members)
            asking = any(agent.asked is not None for agent in self.members)
            try:
                number, message = self.lines.get(timeout=patience if ended or asking else None)
            except queue.Empty:
                if not ended:
                    silent = next(agent.host.name for agent in self.members if agent.asked is None)
                    raise RunError(
                        f"host {silent} did not answer for {patience:g} s", remedy="look whether it is still up"
                    ) from None
                for agent in self.members:
                    if agent.outcome is None:
                        agent.outcome = Outcome(agent.host.name, failed=f"silent for {patience:g} s", vanished=True)
                break
            self._take(self.members[number], number, message, told)
            self._relay()
        return [agent.outcome for agent in self.members if agent.outcome is not None]

    def end(self) -> None:
        """End all agents, the patient way first."""
        for agent in self.members:
            with contextlib.suppress(OSError):
                _pipe(agent.process.stdin).close()
        deadline = time.monotonic() + 2.0
        for agent in self.members:
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.process.wait(max(0.0, deadline - time.monotonic()))
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for agent in self.members:
                if agent.process.poll() is None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(agent.process.pid, sign)
            for agent in self.members:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    agent.process.wait(1.0)
        for agent in self.members:
            _pipe(agent.process.stdout).close()
            agent.errors.close()

    def _take(
        self,
        agent: _Agent,
        number: int,
        message: dict[str, Any] | None,
        told: Callable[[int, dict[str, Any]], None],
    ) -> None:
        name = agent.host.name
        if message is None:
            if agent.outcome is None:
                agent.outcome = Outcome(name, failed=f"the agent {_end(agent)}", vanished=True)
        elif "ask" in message:
            agent.asked = [message["ask"]]
        elif "done" in message:
            agent.outcome = Outcome(name, done=message["done"])
        elif "failed" in message:
            lost = tuple(message["lost"])
            agent.outcome = Outcome(name, failed=message["failed"], remedy=message["remedy"], lost=lost)
        else:
            told(number, message)

    def _relay(self) -> None:
        """When all have said something, tell all what all have said."""
        talking = [agent for agent in self.members if agent.outcome is None]
        if talking and all(agent.asked is not None for agent in self.members):
            said = [agent.asked[0] if agent.asked else None for agent in self.members]
            for agent in self.members:
                agent.asked = None
                self._send(agent, {"all": said})
        elif any(agent.asked is not None for agent in talking) and len(talking) < len(self.members):
            gone = next(agent for agent in self.members if agent.outcome is not None)
            assert gone.outcome is not None
            raise RunError(
                f"host {gone.host.name}: {gone.outcome.failed or 'ended too early'}", remedy=gone.outcome.remedy
            )

    def _send(self, agent: _Agent, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # its end is reported by its output
            pipe = _pipe(agent.process.stdin)
            pipe.write(json.dumps(message) + "\n")
            pipe.flush()


@contextmanager
def agents(hosts: Sequence[tuple[Host, Launcher | None]], patience: float = 30.0) -> Iterator[Agents]:
    """Agents on hosts, each reached by its launcher, or started here where that is None; all are ended on the way out.

    LaunchError, naming the host, for one that cannot be reached.
    """
    team = Agents()
    try:
        for number, (host, launcher) in enumerate(hosts):
            team.members.append(_start(host, launcher))
            pipe = _pipe(team.members[-1].process.stdout)
            threading.Thread(target=_read, args=(pipe, number, team.lines), daemon=True).start()
        team.greet(patience)
        yield team
    finally:
        team.end()


def _start(host: Host, launcher: Launcher | None) -> _Agent:
    command = [host.python or sys.executable, *_COMMAND]
    if launcher is not None:
        command = list(launcher(host, command))
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
            remedy=f"install {command[0]}, or name another program with --shell",
        ) from error
    return _Agent(host, process, errors)


def _read(pipe: IO[str], number: int, lines: queue.Queue[tuple[int, dict[str, Any] | None]]) -> None:
    with contextlib.suppress(ValueError, OSError):
        for line in pipe:
            with contextlib.suppress(json.JSONDecodeError):  # a greeting of the system comes before
                message = json.loads(line)
                if isinstance(message, dict):
                    lines.put((number, message))
    lines.put((number, None))


def _end(agent: _Agent) -> str:
    """How an agent ended, and what it printed last."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        agent.process.wait(1.0)
    status = agent.process.poll()
    how = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
    agent.errors.seek(0)
    said = [line.strip() for line in agent.errors if line.strip()]
    return how + (f": {said[-1]}" if said else "")


def _reach(host: Host) -> str:
    python = shlex.quote(host.python or sys.executable)
    return f'try `ssh {host.name} {python} -c "import minga"`; python=PATH in the hosts file names another Python'


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
