"""Selection of the cores that a rank may use, and pinning of the rank to its share of them.

A rank is pinned before it allocates: its memory then lies near the core that accesses it, and the operating system does
not move the rank away from its caches. Cores are physical; the hardware threads of a core count once, because two
ranks on one core share its arithmetic units and gain nothing here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.engine.quotas import quota
from minga.engine.switches import is_off

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
    """Result of :func:`pin`: the logical processors this rank may now use, and the reason."""

    cpus: tuple[int, ...]
    pinned: bool
    reason: str
    workers: tuple[int, ...] | None = None
    """If pinned, one logical processor per thread, each on a different core."""


def available_cores(topology: Path = _TOPOLOGY, root: Path = Path("/")) -> tuple[tuple[int, ...], ...]:
    """Return the physical cores this process may use, each as its allowed logical processors in ascending order.

    Honours the affinity mask (``taskset``, batch systems, launchers that bind ranks) and the tightest quota of the
    control groups of this process below ``root`` (containers, services, labs).
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
    """Return this rank's number among the ranks of its node and their count, as reported by the launcher.

    If the launcher reports nothing, all ranks are assumed to be on this node.
    """
    for rank, size in _LOCAL:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return comm_rank, comm_size


def share(cores: Sequence[tuple[int, ...]], rank: int, ranks: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """Return the ``threads`` cores of local rank ``rank`` of ``ranks``; ranks are spread evenly in core order."""
    first = rank * len(cores) // ranks
    return tuple(cores[first : first + threads])


def pin(rank: int, ranks: int, threads: int) -> Pinning:
    """Restrict this process to ``threads`` physical cores of its own.

    ``rank`` and ``ranks`` count within the node. Nothing is done where it would not help: a single rank that needs only
    part of the machine may move freely (other programs may occupy any core chosen here), more threads than cores are
    left to the operating system, and a launcher that has bound the rank has already decided. ``MINGA_PIN=off`` disables
    pinning.
    """
    cores = available_cores()
    everything = tuple(cpu for core in cores for cpu in core)
    if not hasattr(os, "sched_setaffinity"):
        return Pinning(everything, False, "this system has no processor affinity")
    if is_off("MINGA_PIN"):
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
    """Return the number of whole cores that the quota of this process allows; a very large number without a quota."""
    limit = quota(root)
    return 1 << 30 if limit is None else max(1, math.ceil(round(limit[0] / limit[1], 6)))
