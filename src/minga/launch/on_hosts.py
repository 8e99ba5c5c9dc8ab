"""Command lines that start ranks on hosts with the launchers of MPICH, Open MPI and Intel MPI."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.launch.hosts import Host
from minga.launch.launcher import Launcher
from minga.launch.reach import address_options, agent, own_address

__all__ = ["Part", "command_on_hosts"]

_FORWARDED: Final = ("MINGA_", "MPI4PY_", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONPATH")
"""Beginnings of the names of variables that ranks need; only Open MPI has to be told."""


@dataclass(frozen=True, slots=True)
class Part:
    """Ranks on one host: ``host.ranks`` processes that run ``program`` in ``directory``.

    The default directory exists everywhere; that of this process may not exist on the host.
    """

    host: Host
    program: Sequence[str]
    directory: str = "/"


def command_on_hosts(
    launcher: Launcher,
    parts: Sequence[Part],
    shell: str,
    folder: Path,
    environment: Mapping[str, str] = os.environ,
) -> list[str]:
    """Return the command line that starts ranks on hosts, numbered in the order of the parts.

    Parameters
    ----------
    launcher
        The launcher.
    parts
        The ranks of each host.
    shell
        Command line of ssh, or of another program that is called in the same way.
    folder
        Directory for files that the launcher reads; it must exist until the ranks have ended.
    environment
        Environment of the launcher.
    """
    hosts = [part.host for part in parts]
    reach = str(agent(folder, shell, hosts))
    start = [str(launcher.path), *address_options(launcher.vendor, own_address(hosts, shell))]
    options: list[list[str]] = [["-n", str(host.ranks)] for host in hosts]
    if launcher.vendor == "Open MPI":
        start += ["--prtemca", "plm_ssh_agent", reach, "--bind-to", "none"]
        passed = [word for name in sorted(environment) if name.startswith(_FORWARDED) for word in ("-x", name)]
        options = [[*words, "--host", _slots(host), *passed] for words, host in zip(options, hosts, strict=True)]
    elif launcher.vendor == "Intel MPI":
        machines = folder / "machines"
        machines.write_text("".join(f"{_slots(host)}\n" for host in hosts))
        start += ["-bootstrap", "ssh", "-bootstrap-exec", reach, "-machinefile", str(machines)]
    else:  # one list of hosts for all parts, which fill it in order
        start += ["-launcher", "ssh", "-launcher-exec", reach, "-hosts", ",".join(map(_slots, hosts))]
    directory = "--wdir" if launcher.vendor == "Open MPI" else "-wdir"
    for number, (part, words) in enumerate(zip(parts, options, strict=True)):
        start += [*([":"] if number else []), *words, directory, part.directory, *part.program]
    return start


def _slots(host: Host) -> str:
    return f"{host.name}:{host.ranks}"
