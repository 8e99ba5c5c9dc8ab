"""Allocations of batch systems: the nodes of a job, and how a run uses all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Allocation", "allocation", "srun", "unused"]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes that a batch system has given to this job, and a command line that starts ranks on all of them."""

    system: str
    nodes: int
    named: str
    start: str


def srun(vendor: str) -> str:
    """Return the command with which Slurm starts ranks of an MPI library; by default they do not find each other."""
    return f"srun --mpi={'pmix' if vendor == 'Open MPI' else 'pmi2'}"


def allocation(vendor: str, environment: Mapping[str, str] = os.environ) -> Allocation | None:
    """Return the allocation of this process; None outside of the batch systems that are known."""
    nodes = environment.get("SLURM_JOB_NUM_NODES") or environment.get("SLURM_NNODES") or ""
    if "SLURM_JOB_ID" in environment and nodes.isdigit():
        return Allocation("Slurm", int(nodes), environment.get("SLURM_JOB_NODELIST", ""), srun(vendor))
    hostfile = "--hostfile" if vendor == "Open MPI" else "-f"
    for system, variable, start in (
        ("PBS", "PBS_NODEFILE", "mpiexec"),
        ("OAR", "OAR_NODEFILE", f"mpiexec {hostfile} $OAR_NODEFILE"),
    ):
        if found := _listed(environment.get(variable)):
            return Allocation(system, len(found), ", ".join(found), start)
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    if words:
        hosts = words[::2]
        between = "--host" if vendor == "Open MPI" else "-hosts"
        each = ",".join(":".join(pair) for pair in zip(hosts, words[1::2]))
        return Allocation("LSF", len(hosts), ", ".join(hosts), f"mpiexec {between} {each}")
    return None


def unused(vendor: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a note on nodes of the job that a run on this node leaves idle, and how to use them; else None."""
    given = allocation(vendor, environment)
    if given is None or given.nodes < 2:
        return None
    return (
        f"{given.system} has given this job {given.nodes} nodes ({given.named}), and this run uses one of them; to use "
        f"all, start it with `{given.start} minga run ...`"
    )


def _listed(path: str | None) -> list[str]:
    """Return the distinct hosts of a file that has a line for each slot."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split() if path else []
    except (OSError, UnicodeDecodeError):
        lines = []
    return list(dict.fromkeys(lines))
