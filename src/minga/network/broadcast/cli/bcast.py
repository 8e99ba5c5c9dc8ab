"""The command ``minga bcast``: send a file, a directory or a pipe to many hosts at the same time."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

from minga.errors import LaunchError
from minga.launch.hosts import Host, Launcher
from minga.network.broadcast.cli.agents import Agents, Outcome, agents
from minga.network.broadcast.cli.outcome import failure, result, text
from minga.network.broadcast.cli.request import PIPE, BroadcastRequest, members, order

__all__ = ["BroadcastRequest", "bcast", "text"]

_START: Final = 30.0
"""Seconds in which agents must run, if hosts may not come late."""
_RETRY: Final = 1.0


def bcast(request: BroadcastRequest, team: Sequence[tuple[Host, Launcher | None]] | None = None) -> dict[str, Any]:
    """Send the file or directory, and return the outcome as JSON-compatible data.

    The members are those of the request, or a `team`, the first of which has the file.

    What a host receives is either complete or absent; of a broken transfer, hosts keep hidden what they have verified.
    Hosts that do not answer at first are tried again while ``request.late`` seconds last, and get everything in a
    further transfer.

    Raises
    ------
    CaseError
        If an option is invalid.
    LaunchError
        If the program that reaches hosts cannot be started.
    BroadcastError
        If some hosts do not have the file in the end; the message names them.
    """
    source, *receivers = team or members(request)
    waiting = receivers
    order(request, [source[0]], 0, "")  # checks the options before anything is started
    begin = time.monotonic()
    rounds: list[list[Outcome]] = []
    late: list[str] = []
    while True:
        outcomes, absent = _round(request, [source, *waiting])
        if outcomes:
            late += [one.host for one in outcomes[1:] if rounds and one.done is not None]
            rounds.append(outcomes)
            waiting = [member for member in waiting if member[0].name in absent]
        over = time.monotonic() - begin
        if not waiting or over > request.late or request.file == PIPE or not _whole(rounds):
            break
        time.sleep(_RETRY)
    if waiting and request.late:
        absent = {name: _missed(name, error, over) for name, error in absent.items()}
    if (error := failure(rounds, absent, [host.name for host, _ in receivers])) is not None:
        raise error
    return result(rounds, late)


def _round(
    request: BroadcastRequest, hosts: Sequence[tuple[Host, Launcher | None]]
) -> tuple[list[Outcome], dict[str, LaunchError]]:
    """Send to all hosts whose agents run; return the outcomes, and the errors of hosts whose agents do not."""
    waits = request.file == PIPE and request.late > 0  # a pipe can be read only once
    patience = request.late if waits else _START
    with agents(hosts, patience, few=request.late > 0 and not waits) as team, _display() as told:
        begins = request.late > 0 or not team.absent
        if not begins or not _enough(team, hosts[0][0]):
            return [], team.absent
        listed = [agent.host for agent in team.members]
        key = secrets.token_hex(32)
        orders = [order(request, listed, rank, key) for rank in range(len(listed))]
        return team.work(orders, told, request.dead_timeout), team.absent


def _enough(team: Agents, source: Host) -> bool:
    return len(team.members) > 1 and team.members[0].host == source


def _whole(rounds: Sequence[Sequence[Outcome]]) -> bool:
    """Return True if the source is still able to send."""
    return all(outcomes[0].done is not None for outcomes in rounds)


def _missed(name: str, error: LaunchError, seconds: float) -> LaunchError:
    return LaunchError(f"host {name} did not come within {seconds:.3g} s: {error.message}", remedy=error.remedy)


@contextmanager
def _display(stream: TextIO | None = None) -> Iterator[Any]:
    """Show a progress bar on a terminal, and nothing elsewhere, since the result contains everything."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield lambda number, message: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def told(number: int, message: dict[str, Any]) -> None:
            if number == 0 and "route" in message:
                bars.update(task, description=str(message["route"]))
            elif number == 0 and "sent" in message:
                bars.update(task, total=message["of"], completed=message["sent"])

        yield told
