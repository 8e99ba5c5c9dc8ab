"""Members of the broadcast of files: an agent on each host, started by ssh or a similar program.

Orders and answers are lines of JSON on the standard input and output of the agents; the key of the group is also sent
there.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

from minga.errors import LaunchError
from minga.launch.agents import HostProcess, end_all, reach, start
from minga.launch.hosts import Host, Launcher
from minga.launch.signals import interruptible, uninterrupted
from minga.network.broadcast.agent import GREETING

__all__ = ["Agents", "Outcome", "agents"]

_AGENT: Final = "minga.network.broadcast.agent"


_IDLE: Final = 0.25
"""Seconds, besides ``dead_timeout``, of silence of an agent for which others wait while nothing is sent."""
_AFTER: Final = 30.0
"""The same while something may be sent, which delays reports; the group itself notices losses earlier."""
_GRACE: Final = 0.25
"""Seconds that agents have to report for themselves after the sender has failed."""
_GLANCE: Final = 0.1
_STOPPED: Final = 1.0
"""Seconds without a look at the agents that mean that this process was stopped."""
_FEW: Final = 5.0
"""Seconds after which a transfer begins without hosts that may come late."""


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
    heard: float = 0.0


Told = Callable[[int, dict[str, Any]], None]
"""Function that is told the number of a member and its report."""


@dataclass(eq=False)
class Agents:
    """Running agents, in the order of the members.

    Attributes
    ----------
    absent
        Hosts whose agents did not begin, with the reasons.
    """

    members: list[_Agent] = field(default_factory=list)
    absent: dict[str, LaunchError] = field(default_factory=dict)
    lines: queue.Queue[tuple[HostProcess, dict[str, Any] | None]] = field(default_factory=queue.Queue)
    strict: bool = True
    """True if no host is to have what not all have."""
    judged: float = -math.inf
    """When silence was judged last."""
    failed_at: float | None = None
    """When the sender's failure was noticed."""

    def greet(self, patience: float, *, few: bool) -> None:
        """Wait until all agents run, for ``patience`` seconds; the others become ``absent``.

        With ``few``, those that run after a few seconds suffice, if the first one and any other are among them.
        """
        waiting = list(self.members)
        begin = time.monotonic()
        while waiting and (left := begin + patience - time.monotonic()) > 0:
            some = self.members[0] not in waiting and len(waiting) < len(self.members) - 1
            if few and some and time.monotonic() - begin > _FEW:
                break
            with contextlib.suppress(queue.Empty):
                process, message = self.lines.get(timeout=min(left, _GLANCE))
                agent = next((one for one in waiting if one.process is process), None)
                if agent is None:
                    continue
                if message is None:
                    why = f"no agent runs on host {agent.host.name}: {_end(process)}"
                    self.absent[agent.host.name] = LaunchError(why, remedy=reach(agent.host))
                    waiting.remove(agent)
                elif message.get("greeting") == GREETING:
                    waiting.remove(agent)
                    if message["minga"] != version("minga"):
                        self.absent[agent.host.name] = _other_version(agent.host, message["minga"])
        for agent in waiting:
            why = f"host {agent.host.name} did not answer within {time.monotonic() - begin:.3g} s"
            self.absent[agent.host.name] = LaunchError(why, remedy=reach(agent.host))
        gone = [agent for agent in self.members if agent.host.name in self.absent]
        self.members = [agent for agent in self.members if agent not in gone]
        end_all([agent.process for agent in gone])

    def work(self, orders: Sequence[Mapping[str, Any]], told: Told, dead_timeout: float) -> list[Outcome]:
        """Send each agent its order, and relay their messages until all have ended in some way.

        Parameters
        ----------
        orders
            The order of each agent.
        told
            Function that is told the reports of the members.
        dead_timeout
            Seconds of silence after which the group considers a member lost.

        Returns
        -------
        list
            The outcome of each member.
        """
        self.strict = orders[0]["wishes"]["on_loss"] == "raise"
        for agent, order in zip(self.members, orders, strict=True):
            self._send(agent, order)
        while self._talking():
            self._listen(told)
            self._judge(dead_timeout)
        return [agent.outcome for agent in self.members if agent.outcome is not None]

    def end(self) -> None:
        """End all agents, gently at first unless they are silent."""
        for agent in self.members:
            if agent.outcome is not None and agent.outcome.vanished:
                agent.process.popen.kill()
        end_all([agent.process for agent in self.members])

    def _listen(self, told: Told) -> None:
        """Process all messages that have arrived, after waiting a moment for the first."""
        wait = _GLANCE
        with contextlib.suppress(queue.Empty):
            while True:
                process, message = self.lines.get(timeout=wait)
                number = next((at for at, one in enumerate(self.members) if one.process is process), None)
                if number is not None:
                    self._take(number, message, told)
                    self._relay()
                wait = 0.0

    def _talking(self) -> list[_Agent]:
        return [agent for agent in self.members if agent.outcome is None]

    def _take(self, number: int, message: dict[str, Any] | None, told: Told) -> None:
        agent = self.members[number]
        agent.heard = time.monotonic()
        name = agent.host.name
        if message is None:
            if agent.outcome is None:
                agent.outcome = Outcome(name, failed=f"the agent {_end(agent.process)}", vanished=True)
        elif "ask" in message:
            agent.asked = [message["ask"]]
        elif "done" in message:
            agent.outcome = Outcome(name, done=message["done"], lost=tuple(message["done"]["lost"]))
        elif "failed" in message:
            lost = tuple(message["lost"])
            agent.outcome = Outcome(name, failed=message["failed"], remedy=message["remedy"], lost=lost)
        else:
            told(number, message)

    def _relay(self) -> None:
        """Send the messages of all agents to all of them, as soon as each has sent one."""
        if all(agent.asked is not None and agent.outcome is None for agent in self.members):
            said = [agent.asked[0] if agent.asked else None for agent in self.members]
            for agent in self.members:
                agent.asked = None
                self._send(agent, {"all": said})

    def _judge(self, dead_timeout: float) -> None:
        """Decide which agents have nothing more to report: they are silent, or wait for one that has ended."""
        now = time.monotonic()
        talking = self._talking()
        if now - self.judged > _STOPPED:  # the beginning, or this process was suspended, and received no report
            for agent in talking:
                agent.heard = now
        self.judged = now
        ended = len(talking) < len(self.members)
        asking = any(agent.asked is not None for agent in talking)
        hopeless = self._is_hopeless(now)
        limit = dead_timeout + (_IDLE if self._is_idle() else _AFTER if ended or asking else math.inf)
        named = self._named()
        believed = hopeless or all(agent.host.name in named for agent in talking)
        for agent in talking:
            silent = now - agent.heard
            if silent > (dead_timeout / 2 if believed and agent.host.name in named else limit):
                agent.outcome = Outcome(agent.host.name, failed=f"silent for {silent:.1f} s", vanished=True)
            elif hopeless or (ended and agent.asked is not None):
                agent.outcome = Outcome(agent.host.name)

    def _is_idle(self) -> bool:
        """Return True if the sender waits for others, or all others for the sender, so that nothing is sent."""
        root, *others = self.members
        return root.asked is not None or all(agent.asked is not None for agent in others if agent.outcome is None)

    def _is_hopeless(self, now: float) -> bool:
        """Return True if the sender failed some time ago, and no host is to have what not all have."""
        root = self.members[0].outcome
        if root is None or root.done is not None or not self.strict:
            return False
        if self.failed_at is None:
            self.failed_at = now
        return now - self.failed_at > _GRACE

    def _named(self) -> set[str]:
        """Return the hosts that agents have reported as lost."""
        lost = {number for agent in self.members if agent.outcome is not None for number in agent.outcome.lost}
        return {agent.host.name for number, agent in enumerate(self.members) if number in lost}

    def _send(self, agent: _Agent, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the end of an agent is noticed from its output
            agent.process.tell(message)


@contextmanager
def agents(
    hosts: Sequence[tuple[Host, Launcher | None]], patience: float = 30.0, *, few: bool = False
) -> Iterator[Agents]:
    """Start agents on hosts, each by its launcher, or on this machine if that is None; end all of them on exit.

    With ``few``, hosts that come late are not waited for (:meth:`Agents.greet`).

    Raises
    ------
    LaunchError
        If the program that reaches a host cannot be started.
    """
    team = Agents()
    with interruptible():
        try:
            for host, launcher in hosts:
                with uninterrupted():
                    starting = _Starting(team.lines)
                    starting.process = start(host, _AGENT, launcher, starting.hear, "name another program with --shell")
                    starting.ready.set()
                    team.members.append(_Agent(host, starting.process))
            team.greet(patience, few=few)
            yield team
        finally:
            team.end()


@dataclass(eq=False)
class _Starting:
    """The connection of the messages of a process to the process, which is known only after it has started."""

    lines: queue.Queue[tuple[HostProcess, dict[str, Any] | None]]
    process: HostProcess | None = None
    ready: threading.Event = field(default_factory=threading.Event)

    def hear(self, message: dict[str, Any] | None) -> None:
        self.ready.wait()
        assert self.process is not None
        self.lines.put((self.process, message))


def _other_version(host: Host, found: str) -> LaunchError:
    return LaunchError(
        f"host {host.name} has minga {found}, this machine {version('minga')}",
        remedy="install the same minga there; python=PATH in the hosts file chooses another Python",
    )


def _end(process: HostProcess) -> str:
    """Describe how an agent ended, with its last output."""
    how, said = process.how_it_ended(), process.last_words()
    return how + (f": {said}" if said else "")
