"""Allocations of batch systems: the nodes of a job, and how ranks are started on all of them."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.errors import LayoutError, listed
from minga.plan.slurm import names_in

__all__ = ["Allocation", "allocation", "srun", "start_on", "unused"]

_COUNTS: Final = re.compile(r"(\d+)(?:\(x(\d+)\))?")
"""Slurm's list of numbers for each node, such as 2(x2),1."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes that a batch system has given to this job.

    Parameters
    ----------
    system
        Name of the batch system.
    slots
        Number of ranks of each node, by its name.
    file
        File with a line for each rank, of systems that launchers of MPI do not know.
    """

    system: str
    slots: Mapping[str, int]
    file: str | None = None

    @property
    def ranks(self) -> int:
        """Number of ranks on all nodes."""
        return sum(self.slots.values())

    @property
    def first(self) -> int:
        """Number of ranks on the first node."""
        return next(iter(self.slots.values()))


def srun(vendor: str) -> str:
    """Return the command with which Slurm starts ranks of an MPI library; by default they do not find each other."""
    return f"srun --mpi={'pmix' if vendor == 'Open MPI' else 'pmi2'}"


def allocation(environment: Mapping[str, str] = os.environ) -> Allocation | None:
    """Return the allocation of this process; None outside of the batch systems that are known."""
    if "SLURM_JOB_ID" in environment and (nodes := _nodes_of_slurm(environment)):
        return Allocation("Slurm", nodes)
    for system, variable in (("PBS", "PBS_NODEFILE"), ("OAR", "OAR_NODEFILE")):
        path = environment.get(variable)
        if found := _listed(path):
            return Allocation(system, found, path if system == "OAR" else None)
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    if words and all(count.isdigit() for count in words[1::2]):
        return Allocation("LSF", {host: int(count) for host, count in zip(words[::2], words[1::2])})
    return None


def start_on(given: Allocation, launcher: Path, vendor: str, ranks: int) -> list[str]:
    """Return the beginning of a command line that starts ranks on the nodes of an allocation, the first ones first.

    Launchers find the nodes of Slurm and PBS by themselves, unless they are told how to start processes.
    """
    start = [str(launcher)]
    if given.system == "LSF" and vendor != "Intel MPI":
        listed = ",".join(f"{host}:{count}" for host, count in given.slots.items())
        start += ["--host" if vendor == "Open MPI" else "-hosts", listed]
    if given.file is not None:
        option = {"Open MPI": "--hostfile", "Intel MPI": "-machinefile"}.get(vendor, "-f")
        start += [*_reached_by_oar(vendor), option, given.file]
    binding = ["--bind-to", "none"] if vendor == "Open MPI" else []
    return [*start, "-n", str(ranks), *binding]


def unused(given: Allocation) -> str:
    """Return a note on nodes of the job that a run on this node leaves idle, and how to use them."""
    return (
        f"{given.system} has given this job {len(given.slots)} nodes ({listed(list(given.slots))}), and this run uses "
        f"one of them, as its number of ranks asks for; leave -n and run.ranks out to use all"
    )


def _reached_by_oar(vendor: str) -> list[str]:
    program = shutil.which("oarsh")
    if program is None:
        return []
    if vendor == "Open MPI":
        return ["--prtemca", "plm_ssh_agent", program]
    word = "bootstrap" if vendor == "Intel MPI" else "launcher"
    return [f"-{word}", "ssh", f"-{word}-exec", program]


def _nodes_of_slurm(environment: Mapping[str, str]) -> dict[str, int]:
    """Return the ranks of each node; one each if the numbers are missing."""
    try:
        names = names_in(environment.get("SLURM_JOB_NODELIST", ""))
    except LayoutError:
        return {}
    counts: list[int] = []
    for part in environment.get("SLURM_TASKS_PER_NODE", "").split(","):
        if match := _COUNTS.fullmatch(part):
            counts += [int(match[1])] * int(match[2] or 1)
    return dict(zip(names, counts if len(counts) == len(names) else [1] * len(names), strict=True))


def _listed(path: str | None) -> dict[str, int]:
    """Return the lines of each host in a file that has a line for each slot."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split() if path else []
    except (OSError, UnicodeDecodeError):
        lines = []
    return dict(Counter(lines))
