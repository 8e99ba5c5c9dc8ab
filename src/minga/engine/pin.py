"""Which cores a rank may use, and keeping it on its share of them.

A rank is pinned before it allocates: memory then lies near the core that touches it, and the operating system does not
move the rank away from its caches. Cores are physical ones; their hardware threads count once, since two ranks on one
core share its arithmetic units and gain nothing here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.engine.quotas import quota

__all__ = ["Pinning", "available_cores", "local_place", "pin", "share"]

_TOPOLOGY = Path("/sys/devices/system/cpu")

_LOCAL = (
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH, Intel MPI
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),  # Open MPI
    ("MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"),
)


@dataclass(frozen=True, slots=True)
class Pinning:
    """What :func:`pin` did: the logical processors this rank may now use, and why."""

    cpus: tuple[int, ...]
    pinned: bool
    reason: str
    workers: tuple[int, ...] | None = None
    """Where pinned: one logical processor for each thread, on cores of their own."""


def available_cores(topology: Path = _TOPOLOGY, root: Path = Path("/")) -> tuple[tuple[int, ...], ...]:
    """The physical cores this process may use, each as the logical processors of it that are allowed, ascending.

    Honours the affinity mask (``taskset``, batch systems, launchers that bind) and the tightest quota of the control
    groups of this process below ``root`` (containers, services, labs).
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores: dict[str, list[int]] = {}
    for cpu in allowed:
        try:
            siblings = (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
        except OSError:
            siblings = str(cpu)
        cores.setdefault(siblings, []).append(cpu)
    found = tuple(tuple(core) for core in cores.values())
    return found[: min(len(found), _quota_cores(root))]


def local_place(comm_rank: int = 0, comm_size: int = 1) -> tuple[int, int]:
    """This rank's number among the ranks of its node, and how many they are, as the launcher told.

    Where it told nothing, all ranks are taken to be on this node.
    """
    for rank, size in _LOCAL:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return comm_rank, comm_size


def share(cores: Sequence[tuple[int, ...]], rank: int, ranks: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """The ``threads`` cores of local rank ``rank`` out of ``ranks``: spread evenly, ranks in the order of the cores."""
    first = rank * len(cores) // ranks
    return tuple(cores[first : first + threads])


def pin(rank: int, ranks: int, threads: int) -> Pinning:
    """Keep this process on ``threads`` physical cores of its own.

    ``rank`` and ``ranks`` count within the node. Nothing is done where that would not help: one rank that needs less
    than the machine may move freely (other programs may be busy on any core we chose), more threads than cores are
    left to the operating system, and a launcher that has bound the rank already has decided. ``MINGA_PIN=off``
    switches pinning off.
    """
    cores = available_cores()
    everything = tuple(cpu for core in cores for cpu in core)
    if not hasattr(os, "sched_setaffinity"):
        return Pinning(everything, False, "this system has no processor affinity")
    if os.environ.get("MINGA_PIN", "").lower() in ("off", "0", "no", "false"):
        return Pinning(everything, False, "MINGA_PIN is off")
    if ranks == 1 and threads < len(cores):
        return Pinning(everything, False, "one rank that leaves cores free")
    if ranks * threads > len(cores):
        return Pinning(everything, False, f"{ranks} x {threads} threads on {len(cores)} cores")
    own = share(cores, rank, ranks, threads)
    mine = tuple(cpu for core in own for cpu in core)
    try:
        os.sched_setaffinity(0, mine)
    except OSError as error:
        return Pinning(everything, False, f"the system refused: {error.strerror}")
    return Pinning(mine, True, "cores of its own", tuple(core[0] for core in own))


def _quota_cores(root: Path) -> int:
    """Whole cores that the quota of this process amounts to; a very large number without one."""
    limit = quota(root)
    return 1 << 30 if limit is None else max(1, math.ceil(round(limit[0] / limit[1], 6)))
