"""Reaching hosts from launchers of MPI, and reaching this machine from the processes that they start there.

MPICH's launcher tells hosts to connect to this machine by its name. No rank starts where that name is unknown or means
another address: Debian lists it as 127.0.1.1. So the launcher is given the address of the interface to the hosts.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import platform
import re
import shlex
import socket
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minga.launch.hosts import Host, login_options, shell_command

__all__ = ["address_options", "agent", "interface_of", "is_here", "not_started", "own_address", "own_addresses"]

_ADDRESS: Final = 0x8915
"""Request SIOCGIFADDR of Linux: the address of an interface."""
_MASK: Final = 0x891B
"""Request SIOCGIFNETMASK of Linux."""
_ANY: Final = 22
"""Any port; nothing is sent to it."""
_PATIENCE: Final = 10.0

_REASONS: Final = (
    (re.compile(r'unable to connect from "([^"]*)" to "([^"]*)"'), "{0} cannot reach this machine as {1}"),
    (re.compile(r"unable to get host address for (\S+)"), "this machine's name, {0}, is unknown on the hosts"),
    (re.compile(r"((?:ssh: )?(?:connect to host|Could not resolve hostname).*)"), "{0}"),
    (re.compile(r"(.*Permission denied \(.*\)\.?)"), "{0}"),
    (re.compile(r"(.*(?:hydra_pmi_proxy|prted): No such file.*)"), "{0}: the hosts need the same MPI at the same path"),
)
"""Patterns of messages by launchers and ssh when no rank was started, and their meaning."""


def agent(folder: Path, shell: str, hosts: Sequence[Host] = ()) -> Path:
    """Write a program to a folder that launchers call in place of ssh; ``shell`` is a command line.

    Users and ports of hosts become options, which launchers do not know.
    """
    path, command = folder / "shell", shell_command(shell)
    special = [(host.name, options) for host in hosts if (options := login_options(host, command))]
    lines = ["#!/bin/sh"]
    if special:
        run = {name: shlex.join([*command, *options]) for name, options in special}
        cases = [f'  {shlex.quote(name)}) exec {words} "$@" ;;' for name, words in run.items()]
        lines += ['for word; do case "$word" in', *cases, "esac; done"]
    path.write_text("\n".join([*lines, f'exec {shlex.join(command)} "$@"', ""]))
    path.chmod(0o755)
    return path


def own_address(hosts: Sequence[Host], shell: str) -> str | None:
    """Return this machine's address on the route to the first host that is another machine; None if none is known."""
    here = None
    for host in hosts:
        found = _way_to(host.address or host.name) or _way_to(_alias(host.address or host.name, shell))
        if found is not None and not ipaddress.ip_address(found).is_loopback:
            return found
        here = here or found
    return here


def is_here(host: Host, shell: str) -> bool:
    """Return True if a host is this machine, by its name or by an address of an interface."""
    if host.name in ("localhost", platform.node()):
        return True
    for name in (host.name, _alias(host.name, shell)):
        with contextlib.suppress(OSError, UnicodeError), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if name:
                probe.bind((name, 0))  # refused unless the address is one of this machine
                return True
    return False


def address_options(vendor: str, address: str | None) -> list[str]:
    """Return the options that tell a launcher which address of this machine to use; none if it is unknown."""
    found = None if address is None else interface_of(address)
    if address is None or found is None:
        return []
    name, network = found
    if vendor == "Open MPI":
        if ipaddress.ip_address(address).is_loopback:
            return []  # all hosts are this machine, and its launcher takes no loopback
        return ["--prtemca", "oob_tcp_if_include", network, "--mca", "btl_tcp_if_include", network]
    return ["-localhost", address] if vendor == "MPICH" else ["-iface", name]


def interface_of(address: str) -> tuple[str, str] | None:
    """Return the name of the network interface with an address, and its network, such as 10.77.0.0/24."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                if _asked(probe, name, _ADDRESS) == address:
                    mask = _asked(probe, name, _MASK)
                    return name, str(ipaddress.ip_network(f"{address}/{mask}", strict=False))
    return None


def own_addresses() -> list[str]:
    """Return the addresses of this machine's interfaces, 127.0.0.1 last."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                found.append(_asked(probe, name, _ADDRESS))
    return sorted(set(found), key=lambda address: (ipaddress.ip_address(address).is_loopback, address))


def not_started(said: Sequence[str]) -> str | None:
    """Return why no rank was started on hosts, from the last lines of a launcher; None if no line tells."""
    for pattern, meaning in _REASONS:
        for line in said:
            if match := pattern.search(line):
                return meaning.format(*match.groups())
    return None


def _way_to(host: str | None) -> str | None:
    """Return the address of this machine from which packets to a host are sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError, UnicodeError):
        if host:
            probe.connect((host, _ANY))  # sends nothing
            return str(probe.getsockname()[0])
    return None


def _alias(name: str, shell: str) -> str | None:
    """Return the host that a name in the configuration of ssh stands for."""
    command = shell_command(shell)
    if Path(command[0]).name != "ssh":
        return None
    try:
        said = subprocess.run(
            [*command, "-G", name],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((line.split()[1] for line in said.splitlines() if line.startswith("hostname ")), None)


def _asked(probe: socket.socket, name: str, request: int) -> str:
    return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), request, struct.pack("256s", name.encode()[:15]))[20:24])
