"""Copies of a file or directory to many hosts, for other parts of minga."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from minga.launch.hosts import Host, shell_launcher
from minga.network.broadcast.cli.bcast import bcast
from minga.network.broadcast.cli.request import BroadcastRequest

__all__ = ["copy_to_hosts"]


def copy_to_hosts(file: Path, places: Sequence[tuple[Host, str]], shell: str) -> None:
    """Send a file or directory to several hosts in one broadcast; what is there already is replaced.

    Parameters
    ----------
    file
        The file or directory, on this machine.
    places
        The hosts, and the path that it gets on each.
    shell
        Command line of ssh, or of another program that is called in the same way.

    Raises
    ------
    MingaError
        If some host does not have it in the end.
    """
    request = BroadcastRequest(file, to="", places={host.name: to for host, to in places}, shell=shell, force=True)
    reach = shell_launcher(shell)
    bcast(request, [(Host(socket.gethostname()), None), *((host, reach) for host, _ in places)])
