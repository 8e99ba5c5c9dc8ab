"""The command ``minga bcast``: send one file to many hosts at the same time."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from minga.errors import CaseError, RunError, suggest
from minga.launch.hosts import Host, Launcher, shell_launcher
from minga.launch.hosts_file import read_hosts
from minga.network.broadcast.cli.agents import Outcome, agents
from minga.paths import plain_name
from minga.plan.machine.units import quantity

__all__ = ["BroadcastRequest", "bcast", "text"]

_ROUTES = ("auto", "multicast", "broadcast", "chain")
_AFTER = 30.0
"""Seconds, in addition to ``dead_timeout``, that the other members have to end after one of them has ended."""


@dataclass(frozen=True, slots=True)
class BroadcastRequest:
    """The options of the command line."""

    file: Path
    to: str
    hosts: Path | None = None
    lab: str | None = None
    """A lab between whose nodes the file is sent, instead of ``hosts``."""
    source: str | None = None
    """The host that has the file; None for this machine, or for the first node of a lab."""
    route: str = "auto"
    rate: str | None = None
    network: str | None = None
    on_loss: str = "raise"
    force: bool = False
    shell: str = "ssh"
    dead_timeout: float = 10.0


def bcast(request: BroadcastRequest) -> dict[str, Any]:
    """Send the file, and return the outcome as JSON-compatible data.

    A file that a host receives is either complete or absent.

    Raises
    ------
    CaseError
        If an option is invalid.
    LaunchError
        If a host cannot be reached.
    RunError
        If some hosts do not have the file in the end; the message names them.
    """
    wishes = _wishes(request)
    hosts = _hosts(request)
    names = [host.name for host, _ in hosts]
    name = plain_name(request.file.name, "the file's name")  # receivers take it from here, never from the sender
    orders = [
        {
            "rank": rank,
            "size": len(hosts),
            "key": "",
            "names": names,
            "file": str(request.file if request.source or request.lab else request.file.absolute()),
            "name": name,
            "to": request.to,
            "force": request.force,
            "wishes": {**wishes, "address": request.network or _own_address(host)},
        }
        for rank, (host, _) in enumerate(hosts)
    ]
    key = secrets.token_hex(32)
    for order in orders:
        order["key"] = key  # it goes to the agents through their standard input
    with agents(hosts) as team, _display() as told:
        outcomes = team.work(orders, told, request.dead_timeout + _AFTER)
    return _result(request, outcomes)


def text(result: dict[str, Any]) -> str:
    """Return the result as text for the terminal."""
    size, seconds = result["bytes"], result["seconds"]
    rate = f", {size / seconds / 1e6:.4g} MB/s" if seconds > 0 and size else ""
    receivers = "1 host" if len(result["received"]) == 1 else f"{len(result['received'])} hosts"
    lines = [f"{size / 1e6:.6g} MB to {receivers} in {seconds:.3g} s{rate}, by {result['route']}"]
    lines += [f"  {way} was not used: {why}" for way, why in result["passed_over"].items()]
    lines.append(f"  sha256 {result['sha256']}")
    return "\n".join(lines)


# Checking the options -------------------------------------------------------------------------------------------------
def _wishes(request: BroadcastRequest) -> dict[str, Any]:
    if request.route not in _ROUTES:
        raise CaseError(
            f"there is no route {request.route!r}",
            key="--route",
            suggestion=suggest(request.route, _ROUTES),
            remedy=f"choose {', '.join(_ROUTES)}",
        )
    if request.on_loss not in ("raise", "exclude"):
        raise CaseError(f"invalid value {request.on_loss!r}", key="--on-loss", remedy="choose raise or exclude")
    if not 0.1 <= request.dead_timeout <= 3600:
        raise CaseError(
            f"{request.dead_timeout:g} seconds is out of range",
            key="--dead-timeout",
            remedy="give 0.1 to 3600 seconds",
        )
    rate = None
    if request.rate is not None:
        try:
            rate = 8 * quantity(request.rate, "rate")
        except ValueError as error:
            raise CaseError(f"expected {error}, found {request.rate!r}", key="--rate", remedy="write 100Mb/s") from None
        if not 1e3 <= rate <= 1e12:
            raise CaseError(f"{request.rate} is out of range", key="--rate", remedy="give 1 kb/s to 1000 Gb/s")
    if request.network is not None:
        try:
            ipaddress.IPv4Network(request.network, strict=False)
        except ValueError:
            raise CaseError(
                f"{request.network!r} is not an IPv4 network", key="--network", remedy="write 10.0.0.0/24"
            ) from None
    return {
        "route": request.route,
        "rate": rate,
        "on_loss": request.on_loss,
        "dead_timeout": request.dead_timeout,
    }


def _hosts(request: BroadcastRequest) -> list[tuple[Host, Launcher | None]]:
    """Return the members, the one with the file first, each with the launcher that reaches it."""
    if (request.hosts is None) == (request.lab is None):
        raise CaseError("give either --hosts or --lab to say where the file goes", remedy="write --hosts hosts.txt")
    if not request.to:
        raise CaseError("--to is empty", key="--to", remedy="name a file or directory on the hosts")
    if request.lab is not None:
        listed, launcher = _nodes(request.lab)
    else:
        assert request.hosts is not None
        listed, launcher = read_hosts(request.hosts, 1), shell_launcher(request.shell)
    if request.source is None and request.lab is None:
        _check_file(request.file)
        here = Host(socket.gethostname())
        others = [host for host in listed if host.name != "localhost"]
        return [(here, None), *((host, launcher) for host in _somebody(others, "this machine"))]
    names = [host.name for host in listed]
    first = request.source or names[0]
    if first not in names:
        raise CaseError(
            f"{first!r} is not listed",
            key="--from",
            suggestion=suggest(first, names),
            remedy=f"choose among {', '.join(names)}",
        )
    others = _somebody([host for host in listed if host.name != first], first)
    return [(host, launcher) for host in [listed[names.index(first)], *others]]


def _somebody(others: list[Host], first: str) -> list[Host]:
    if not others:
        raise CaseError(f"no host is listed besides {first}", remedy="list the hosts that should receive the file")
    return others


def _nodes(name: str) -> tuple[list[Host], Launcher]:
    from minga.lab.cluster import existing, find

    cluster = find(name)
    if cluster is None:
        up = [one.name for one in existing()]
        raise CaseError(
            f"the lab {name!r} is not up",
            key="--lab",
            suggestion=suggest(name, up),
            remedy=f"minga lab up {name}" + (f"; labs that are up: {', '.join(up)}" if up else ""),
        )
    if fault := cluster.fault():
        raise RunError(f"the lab {name} cannot be used: {fault}", remedy=f"minga lab down {name}, then up again")
    hosts = [Host(node, address=address) for node, address in zip(cluster.names, cluster.addresses)]
    return hosts, lambda host, command: cluster.command(host.name, command)


def _check_file(file: Path) -> None:
    if not file.exists():
        beside = [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []
        raise CaseError(f"there is no file {file}", suggestion=suggest(file.name, beside), remedy="name a file")
    if not file.is_file():
        raise CaseError(f"{file} is not a regular file", remedy="send an archive of it: tar -cf")
    if not os.access(file, os.R_OK):
        raise CaseError(f"{file} cannot be read", remedy="check its permissions: ls -l")


def _own_address(host: Host) -> str | None:
    """Return the host's entry in the hosts file if it is an IPv4 address, which is that of one of its interfaces."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv4Address(host.address or ""))
    return None


# The result -----------------------------------------------------------------------------------------------------------
def _result(request: BroadcastRequest, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    root, receivers = outcomes[0], outcomes[1:]
    done = [one for one in receivers if one.done is not None]
    if root.done is None or len(done) < len(receivers):
        _raise(request, outcomes)
    assert root.done is not None
    statistics = root.done["statistics"]
    return {
        "bytes": statistics["bytes"] - 32,  # without the checksum
        "seconds": root.done["seconds"],
        "route": statistics["route"],
        "passed_over": root.done["passed_over"],
        "sha256": root.done["sha256"],
        "from": root.host,
        "received": [one.host for one in done],
        "statistics": statistics,
    }


def _raise(request: BroadcastRequest, outcomes: Sequence[Outcome]) -> None:
    """Raise a RunError that names the hosts without the file and the reasons.

    Hosts that vanished take precedence over those that failed by themselves.
    """
    have = [one.host for one in outcomes[1:] if one.done is not None]
    kept = f"{', '.join(have)} {'has' if len(have) == 1 else 'have'} the whole file" if have else "no host has the file"
    named = {number for one in outcomes for number in one.lost}
    gone = [one for number, one in enumerate(outcomes) if one.vanished or (number in named and one.done is None)]
    own = [one for one in outcomes if one.failed and not one.vanished and not one.lost]
    said = [
        f"host {one.host}: {one.failed or 'it was lost'}"
        for one in gone or own or outcomes
        if one.failed or one in gone
    ]
    remedy = "send it again when these hosts are available; --on-loss exclude sends it to the others"
    if not gone and own:
        remedy = own[0].remedy or remedy
        if all(isinstance(one.failed, str) and one.failed == own[0].failed for one in own):
            said = [own[0].failed]
    raise RunError(f"{'; '.join(said)}; {kept}", remedy=remedy)


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
