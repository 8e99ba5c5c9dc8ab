"""Members of the broadcast of a file: an agent on each host, started by ssh or a similar program.

Orders and answers are lines of JSON on the standard input and output of the agents; the key of the group is also sent
there.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from minga.errors import LaunchError, RunError
from minga.launch.agents import HostProcess, end_all, reach, start
from minga.launch.hosts import Host, Launcher
from minga.launch.signals import interruptible, uninterrupted
from minga.network.broadcast.agent import GREETING

__all__ = ["Agents", "Outcome", "agents"]

_AGENT: Final = "minga.network.broadcast.agent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome on a host: the report of its agent, or what went wrong."""

    host: str
    done: dict[str, Any] | None = None
    failed: str = ""
    remedy: str | None = None
    lost: tuple[int, ...] = ()
    """Members that this member reported as lost."""
    vanished: bool = False
    """True if the agent itself is gone."""


@dataclass(eq=False)
class _Agent:
    host: Host
    process: HostProcess
    asked: list[Any] | None = None
    outcome: Outcome | None = None


@dataclass(eq=False)
class Agents:
    """Running agents, in the order of the members."""

    members: list[_Agent] = field(default_factory=list)
    lines: queue.Queue[tuple[int, dict[str, Any] | None]] = field(default_factory=queue.Queue)

    def greet(self, patience: float) -> None:
        """Wait until all agents are running.

        Raises
        ------
        LaunchError
            If an agent does not run within ``patience`` seconds, or has another version of minga; names the host.
        """
        waiting = set(range(len(self.members)))
        deadline = time.monotonic() + patience
        while waiting:
            try:
                number, message = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                host = self.members[min(waiting)].host
                raise LaunchError(
                    f"host {host.name} did not answer within {patience:g} s", remedy=reach(host)
                ) from None
            agent = self.members[number]
            if message is None:
                ended = _end(agent.process)
                raise LaunchError(f"no agent runs on host {agent.host.name}: {ended}", remedy=reach(agent.host))
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
        """Send each agent its order, and relay their messages until all have ended in some way.

        Parameters
        ----------
        orders
            The order of each agent.
        told
            Called with the number of a member and a message for each report.
        patience
            Seconds of silence, after another agent has ended, after which an agent counts as gone.

        Returns
        -------
        list
            The outcome of each member.

        Raises
        ------
        RunError
            If others wait for an agent that is silent or has ended; names the host.
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
                        f"host {silent} did not answer for {patience:g} s", remedy="check that it is still up"
                    ) from None
                for agent in self.members:
                    if agent.outcome is None:
                        agent.outcome = Outcome(agent.host.name, failed=f"silent for {patience:g} s", vanished=True)
                break
            self._take(self.members[number], number, message, told)
            self._relay()
        return [agent.outcome for agent in self.members if agent.outcome is not None]

    def end(self) -> None:
        """End all agents, gently at first."""
        end_all([agent.process for agent in self.members])

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
                agent.outcome = Outcome(name, failed=f"the agent {_end(agent.process)}", vanished=True)
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
        """Send the messages of all agents to all of them, as soon as each has sent one."""
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
        with contextlib.suppress(OSError):  # the end of an agent is noticed from its output
            agent.process.tell(message)


@contextmanager
def agents(hosts: Sequence[tuple[Host, Launcher | None]], patience: float = 30.0) -> Iterator[Agents]:
    """Start agents on hosts, each by its launcher, or on this machine if that is None; end all of them on exit.

    Raises
    ------
    LaunchError
        If a host cannot be reached; names the host.
    """
    team = Agents()
    with interruptible():
        try:
            for number, (host, launcher) in enumerate(hosts):
                heard = partial(_hear, team.lines, number)
                with uninterrupted():
                    process = start(host, _AGENT, launcher, heard, "name another program with --shell")
                    team.members.append(_Agent(host, process))
            team.greet(patience)
            yield team
        finally:
            team.end()


def _hear(lines: queue.Queue[tuple[int, dict[str, Any] | None]], number: int, message: dict[str, Any] | None) -> None:
    lines.put((number, message))


def _end(process: HostProcess) -> str:
    """Describe how an agent ended, with its last output."""
    how, said = process.how_it_ended(), process.last_words()
    return how + (f": {said}" if said else "")
