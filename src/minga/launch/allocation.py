"""Allocations of batch systems: the nodes of a job, and how ranks are started on all of them."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from minga.engine.pin import available_cores
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
    assumed
        Whether the numbers of ranks are those of the processors, since the job has asked for no number of tasks.
    """

    system: str
    slots: Mapping[str, int]
    file: str | None = None
    assumed: bool = False

    @property
    def ranks(self) -> int:
        """Number of ranks on all nodes."""
        return sum(self.slots.values())

    @property
    def first(self) -> int:
        """Number of ranks on the first node."""
        return next(iter(self.slots.values()))

    def limited(self, most: int) -> Allocation:
        """Return the allocation with at most so many ranks, but one a node, unless the job has asked for tasks."""
        if not self.assumed or self.ranks <= most:
            return self
        return replace(self, slots={host: max(1, count * most // self.ranks) for host, count in self.slots.items()})


def srun(vendor: str) -> str:
    """Return the command with which Slurm starts ranks of an MPI library; by default they do not find each other."""
    return f"srun --mpi={'pmix' if vendor == 'Open MPI' else 'pmi2'}"


def allocation(environment: Mapping[str, str] = os.environ, threads: int = 1) -> Allocation | None:
    """Return the allocation of this process; None outside of the batch systems that are known.

    Where a job of Slurm has asked for nodes only, it gets a rank for each ``threads`` cores of them.
    """
    if "SLURM_JOB_ID" in environment and (given := _given_by_slurm(environment, threads)):
        return given
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
    if given.assumed:
        counts = ",".join(map(str, given.slots.values()))
        start = ["env", f"SLURM_TASKS_PER_NODE={counts}", *start]
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


def _given_by_slurm(environment: Mapping[str, str], threads: int) -> Allocation | None:
    """Return what Slurm has given to this job: ranks for its tasks, else for processors, one each if all is unknown."""
    try:
        names = names_in(environment.get("SLURM_JOB_NODELIST", ""))
    except LayoutError:
        return None
    tasks = _counts(environment.get("SLURM_TASKS_PER_NODE", ""), len(names))
    asked = any(name.startswith(("SLURM_NTASKS", "SLURM_CPUS_PER_TASK")) for name in environment)
    processors = _counts(environment.get("SLURM_JOB_CPUS_PER_NODE", ""), len(names))
    if processors is None or asked:
        return Allocation("Slurm", dict(zip(names, tasks or [1] * len(names), strict=True)))
    each = threads * max((len(core) for core in available_cores()), default=1)  # a core may be two processors
    return Allocation("Slurm", {name: max(1, n // each) for name, n in zip(names, processors)}, assumed=True)


def _counts(text: str, nodes: int) -> list[int] | None:
    """Return the numbers of a list such as ``2(x2),1``; None if these are not as many as there are nodes."""
    counts: list[int] = []
    for part in text.split(","):
        if match := _COUNTS.fullmatch(part):
            counts += [int(match[1])] * int(match[2] or 1)
    return counts if len(counts) == nodes else None


def _listed(path: str | None) -> dict[str, int]:
    """Return the lines of each host in a file that has a line for each slot."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split() if path else []
    except (OSError, UnicodeDecodeError):
        lines = []
    return dict(Counter(lines))
