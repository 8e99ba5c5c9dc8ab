"""Hosts that are reached without MPI, and running a command on one of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.errors import CaseError

__all__ = ["Host", "Launcher", "login_options", "shell_command", "shell_launcher", "ssh"]


@dataclass(frozen=True, slots=True)
class Host:
    """A machine to run something on, as a line of a hosts file describes it (:mod:`minga.launch.hosts_file`).

    Parameters
    ----------
    name
        Name by which this machine reaches it.
    slots
        Number of ranks it takes; None if it is not given.
    address
        Address by which other hosts reach it; None for its name.
    python
        Path of the Python on that host that has minga; None for the path of this Python.
    line
        Line of the hosts file, counted from 1; 0 if it is in none.
    user, port
        User name and port for ssh; None for those of its configuration.
    directory
        Directory on that host for copies of cases; None for one that is made and removed.
    weight
        Speed relative to other hosts; None if ranks are to be timed, 0 for ranks that own no cells.
    cores
        Number of cores that ranks may use; None for all.
    """

    name: str
    slots: int | None = None
    address: str | None = None
    python: str | None = None
    line: int = 0
    user: str | None = None
    port: int | None = None
    directory: str | None = None
    weight: float | None = None
    cores: int | None = None

    @property
    def ranks(self) -> int:
        """Number of ranks it takes, 1 if that is not given."""
        return self.slots or 1


Launcher = Callable[[Host, Sequence[str]], Sequence[str]]
"""Function that returns the local command which runs a command on a host and connects its standard streams."""


def shell_command(shell: str) -> list[str]:
    """Split the command line of a program that is called as SHELL HOST COMMAND.

    Options are added to ssh, so that it never asks for anything. Raises CaseError if quotes are not closed, or nothing
    is left.
    """
    try:
        command = shlex.split(shell)
    except ValueError as error:
        raise CaseError(
            f"--shell {shell!r} cannot be read: {error}", key="--shell", remedy="close the quotes"
        ) from None
    if not command:
        raise CaseError("--shell is empty", key="--shell", remedy="name a program that runs a command on a host: ssh")
    if _is_ssh(command):  # the first of several values counts, so the user's own options do
        command += ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"]
    return command


def login_options(host: Host, command: Sequence[str]) -> list[str]:
    """Return the options of ssh for the user and the port of a host.

    Raises CaseError if the host has one of them, and ``command`` is not ssh.
    """
    options = [*(["-l", host.user] if host.user else []), *(["-p", str(host.port)] if host.port else [])]
    if options and not _is_ssh(command):
        raise CaseError(
            f"user= and port= of host {host.name} are options of ssh, but --shell names {command[0]}",
            key="--shell",
            remedy="leave them out of the hosts file, or use ssh",
        )
    return options


def shell_launcher(shell: str) -> Launcher:
    """Return a launcher that uses ``ssh``, ``ssh -F FILE``, or another program that is called in the same way."""
    words = shell_command(shell)
    return lambda host, command: [*words, *login_options(host, words), host.name, shlex.join(command)]


def ssh(host: Host, command: Sequence[str]) -> Sequence[str]:
    """Return the command that runs a command on a host by ssh, without ever asking for a password."""
    return shell_launcher("ssh")(host, command)


def _is_ssh(command: Sequence[str]) -> bool:
    return Path(command[0]).name == "ssh"
