"""Hosts that are reached without MPI: the file that lists them, and running a command on one of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.errors import CaseError, suggest
from minga.paths import is_plain_name

__all__ = ["Host", "Launcher", "read_hosts", "shell_command", "shell_launcher", "ssh"]

_KEYS: Final = ("slots", "address", "python")


@dataclass(frozen=True, slots=True)
class Host:
    """A machine to run something on.

    Parameters
    ----------
    name
        Name by which this machine reaches it.
    slots
        Number of ranks it takes.
    address
        Address by which other hosts reach it; None for its name.
    python
        Path of the Python on that host that has minga; None for the path of this Python.
    line
        Line of the hosts file, counted from 1; 0 if it is in none.
    """

    name: str
    slots: int = 1
    address: str | None = None
    python: str | None = None
    line: int = 0


Launcher = Callable[[Host, Sequence[str]], Sequence[str]]
"""Function that returns the local command which runs a command on a host and connects its standard streams."""


def read_hosts(path: str | Path, least: int = 2) -> list[Host]:
    """Read a hosts file: one host per line, with comments after ``#``.

    A name may be followed by options: ``slots=4 address=10.0.0.2 python=/opt/minga/bin/python``.

    Raises
    ------
    CaseError
        If the file cannot be read or understood, lists a host twice, or lists fewer than ``least`` hosts.
    """
    file = Path(path)
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
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
    if Path(command[0]).name == "ssh":  # the first of several values counts, so the user's own options do
        command += ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"]
    return command


def shell_launcher(shell: str) -> Launcher:
    """Return a launcher that uses ``ssh``, ``ssh -F FILE``, or another program that is called in the same way."""
    words = shell_command(shell)
    return lambda host, command: [*words, host.name, shlex.join(command)]


def ssh(host: Host, command: Sequence[str]) -> Sequence[str]:
    """Return the command that runs a command on a host by ssh, without ever asking for a password."""
    return shell_launcher("ssh")(host, command)


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
    if words[0].startswith("-") or "=" in words[0] or not is_plain_name(words[0]):
        raise CaseError(f"{words[0]!r} is no name of a host", where=(file, line), remedy="begin the line with the name")
    return Host(words[0], int(slots), given.get("address"), given.get("python"), line)
