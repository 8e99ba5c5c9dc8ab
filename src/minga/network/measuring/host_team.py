"""Team of agents on hosts, which measures a network without MPI."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from minga.errors import LaunchError, RunError
from minga.launch.agents import end_all, reach, start
from minga.launch.hosts import Host, Launcher, ssh
from minga.launch.signals import interruptible, uninterrupted
from minga.network.measuring.agent import GREETING
from minga.network.measuring.worker import Order, Reply

__all__ = ["HostTeam", "agents"]

_CLOCK, _JUMP = 60.0, 1.0
"""Seconds by which the time of day may differ between hosts, and may jump during a measurement."""
_AGENT: Final = "minga.network.measuring.agent"


@contextmanager
def agents(
    hosts: Sequence[Host], launcher: Launcher = ssh, *, patience: float = 30.0, alike: bool = True
) -> Iterator[HostTeam]:
    """Start a team of agents, one on each host, for the duration of a ``with`` block; all are ended on exit.

    Parameters
    ----------
    hosts
        The hosts.
    launcher
        Function that runs a command on a host.
    patience
        Seconds to wait for each agent.
    alike
        Require that all hosts have the same versions of minga, Python and MPI as the first one, and clocks that differ
        from this machine's by at most a minute.

    Raises
    ------
    LaunchError
        If a host cannot be reached or is not alike; the message names the host.
    """
    team = HostTeam()
    with interruptible():
        try:
            for host in hosts:
                with uninterrupted():
                    team.members.append(_Member(host, launcher))
            for member in team.members:
                member.identity = _greeting(member, patience)
            if alike:
                _compare(team.members)
            yield team
        finally:
            team.end()


class _Member:
    """An agent, with the queue of its unread messages."""

    def __init__(self, host: Host, launcher: Launcher) -> None:
        self.host = host
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.identity: dict[str, Any] = {}
        self.number = 0
        self.process = start(host, _AGENT, launcher, self.messages.put, "measure inside an MPI job")


class HostTeam:
    """Team of agents on hosts, see :class:`~minga.network.measuring.team.Team`."""

    def __init__(self) -> None:
        self.members: list[_Member] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hosts, in the given order."""
        return tuple(member.host.name for member in self.members)

    def run(self, orders: Mapping[int, Order]) -> dict[int, Reply]:
        """See :class:`Team`. Also raises RunError if the clock of a host was set, or a host slept, in the meantime."""
        for member, order in orders.items():
            self._tell(self.members[member], order)
        return {member: self._hear(self.members[member], orders[member]) for member in orders}

    def end(self) -> None:
        """End all agents, gracefully at first."""
        end_all([member.process for member in self.members])

    def _tell(self, member: _Member, order: Order) -> None:
        member.number += 1
        try:
            member.process.tell({**order, "number": member.number})
        except OSError as error:
            raise _gone(member) from error

    def _hear(self, member: _Member, order: Order) -> Reply:
        patience = float(order.get("budget", 0.0)) + float(order.get("allowed", 0.0)) + 60.0
        while True:
            answer = _message(member, patience)
            if answer is None:
                raise RunError(
                    f"host {member.host.name} did not answer for {patience:.0f} s while measuring",
                    remedy="check that it is still up; nothing was left running there if it can be reached",
                )
            if answer.get("number") == member.number:
                _check_clocks(member, *answer["clocks"])
                reply: Reply = answer["reply"]
                return reply


def _greeting(member: _Member, patience: float) -> dict[str, Any]:
    deadline = time.monotonic() + patience
    try:
        while True:
            answer = _message(member, deadline - time.monotonic())
            if answer is None:
                raise LaunchError(
                    f"host {member.host.name} did not answer within {patience:g} s", remedy=reach(member.host)
                )
            if answer.get("greeting") == GREETING:
                # The time of day of this machine at about the same moment, for comparing the two clocks.
                answer["here"] = time.time()
                return answer
    except RunError as error:
        said = member.process.last_words()
        raise LaunchError(
            f"no agent runs on host {member.host.name}: {said or error.message}", remedy=reach(member.host)
        ) from None


def _message(member: _Member, patience: float) -> dict[str, Any] | None:
    """Return the next message, or None after ``patience`` seconds; raise RunError if the agent has ended."""
    try:
        message = member.messages.get(timeout=max(0.0, patience))
    except queue.Empty:
        return None
    if message is None:
        raise _gone(member)
    return message


def _gone(member: _Member) -> RunError:
    how, said = member.process.how_it_ended(), member.process.last_words()
    return RunError(
        f"the agent on host {member.host.name} {how} while measuring" + (f": {said}" if said else ""),
        remedy="all other agents were ended too; measure again when the host works",
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
                    remedy=f"install the same {name} on all hosts; python=PATH in the hosts file selects another one",
                )
        ahead = member.identity["clocks"]["day"] - member.identity["here"]
        if abs(ahead) > _CLOCK:
            raise LaunchError(
                f"the clock of host {member.host.name} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
                "this machine's",
                remedy="synchronise the clocks (chrony, ntpd), so that files and logs of a run can be ordered in time",
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
