"""Options of ``minga bcast``, their checks, and the hosts that they name."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from minga.errors import CaseError, RunError, suggest
from minga.launch.hosts import Host, Launcher, shell_launcher
from minga.launch.hosts_file import read_hosts
from minga.network.broadcast.compression import COMPRESSIONS
from minga.network.broadcast.options import DEAD_TIMEOUT
from minga.paths import plain_name
from minga.plan.machine.units import quantity

__all__ = ["PIPE", "BroadcastRequest", "group_options", "members", "order"]

PIPE: Final = Path("-")
"""Path that stands for the standard input."""
_ROUTES: Final = ("auto", "multicast", "broadcast", "chain")
_LONGEST: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class BroadcastRequest:
    """The options of the command line."""

    file: Path
    """A file or a directory; ``-`` for the standard input, a pipe."""
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
    dead_timeout: float = DEAD_TIMEOUT
    compress: str = "auto"
    resume: bool = True
    late: float = 0.0
    """Seconds for which hosts that do not answer at first are tried again."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Destinations on single hosts, by their names, instead of ``to``."""


def group_options(request: BroadcastRequest) -> dict[str, Any]:
    """Return the options of the group; raise CaseError if an option is invalid."""
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
    if not 0 <= request.late <= _LONGEST:
        raise CaseError(f"{request.late:g} seconds is out of range", key="--late", remedy="give 0 to 86400 seconds")
    if request.compress not in COMPRESSIONS:
        raise CaseError(
            f"there is no compression {request.compress!r}",
            key="--compress",
            suggestion=suggest(request.compress, COMPRESSIONS),
            remedy=f"choose {', '.join(COMPRESSIONS)}",
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
            ipaddress.ip_network(request.network, strict=False)
        except ValueError:
            raise CaseError(
                f"{request.network!r} is not a network", key="--network", remedy="write 10.0.0.0/24 or fd00::/64"
            ) from None
    return {
        "route": request.route,
        "rate": rate,
        "on_loss": request.on_loss,
        "dead_timeout": request.dead_timeout,
    }


def order(request: BroadcastRequest, hosts: list[Host], rank: int, key: str) -> dict[str, Any]:
    """Return the order of one member; it goes to the agent through its standard input."""
    file, name = _what(request)
    options = group_options(request)
    return {
        "rank": rank,
        "size": len(hosts),
        "key": key,
        "names": [host.name for host in hosts],
        "file": file,
        "name": name,
        "to": request.places.get(hosts[rank].name, request.to),
        "force": request.force,
        "compress": request.compress,
        "resume": request.resume,
        "beat": min(0.25, request.dead_timeout / 8),
        "wishes": {**options, "address": request.network or _own_address(hosts[rank])},
    }


def _what(request: BroadcastRequest) -> tuple[str, str]:
    """Return the path for the sending host, and the name for receivers, who take it from here, not from the sender."""
    if request.file == PIPE:
        _check_pipe(request)
        return f"/proc/{os.getpid()}/fd/0", "-"
    if request.source or request.lab:
        return str(request.file), plain_name(request.file.name, "the file's name")
    path = os.path.abspath(request.file)  # not resolved: the name of a symbolic link is the link's  # noqa: PTH100
    return path, plain_name(Path(path).name, "the file's name")


def _check_pipe(request: BroadcastRequest) -> None:
    if request.source is not None or request.lab is not None:
        raise CaseError("only a pipe into this command, on this machine, can be sent", key="-", remedy="leave --from")
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        mode = 0
    if not stat.S_ISFIFO(mode) and not stat.S_ISREG(mode):
        raise CaseError("the standard input is no pipe", key="-", remedy="write PROGRAM | minga bcast - --to FILE")


def members(request: BroadcastRequest) -> list[tuple[Host, Launcher | None]]:
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
        if request.file != PIPE:
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
    if not file.is_file() and not file.is_dir():
        raise CaseError(
            f"{file} is neither a file nor a directory",
            remedy="name one, or send what a program writes: PROGRAM | minga bcast -",
        )
    if not os.access(file, os.R_OK):
        raise CaseError(f"{file} cannot be read", remedy="check its permissions: ls -l")


def _own_address(host: Host) -> str | None:
    """Return the address in the host's line of the hosts file if it is no name: that of one of its interfaces."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address((host.address or "").strip("[]")))
    return None
