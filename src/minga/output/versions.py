"""Check that all ranks of a run are alike: the same minga, Python and MPI library everywhere, and clocks that agree.

Ranks send each other Python objects and must record the same commands in the same order, so a host that was updated
alone would cause a deadlock or an incomprehensible message. It is found before anything else is sent.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minga.engine.comm import Comm
from minga.errors import LaunchError, listed

__all__ = ["RankVersions", "check_versions", "versions_here"]

CLOCK_SECONDS = 5.0
"""Clock difference above which a note is given: the times of files and logs then cannot be compared."""


@dataclass(frozen=True, slots=True)
class RankVersions:
    """Versions of a rank, and its clock: seconds since 1970."""

    host: str
    versions: Mapping[str, str]
    clock: float


def versions_here() -> dict[str, str]:
    """Return the versions that must be the same on all ranks, by name."""
    found = {"minga": importlib.metadata.version("minga"), "Python": ".".join(platform.python_version_tuple()[:2])}
    mpi = sys.modules.get("mpi4py.MPI")  # a run without ranks needs none
    if mpi is not None:
        found["MPI"] = _library(mpi.Get_library_version())
    return found


def check_versions(comm: Comm, mine: RankVersions | None = None) -> tuple[str, ...]:
    """Compare all ranks; collective. Return notes about harmless differences, equal on all ranks.

    Raises
    ------
    LaunchError
        On every rank if versions differ; the message names the hosts and their versions.
    """
    if comm.size == 1:
        return ()
    comm.barrier()  # clocks are read within the time of a few messages
    here = mine or RankVersions(platform.node(), versions_here(), time.time())
    # Plain data: another version of minga could not read an object of ours.
    gathered = comm.gather((here.host, dict(here.versions), here.clock))
    entries = None if gathered is None else [RankVersions(*entry) for entry in gathered]
    found: tuple[str | None, tuple[str, ...]] = comm.bcast(
        None if entries is None else (_difference(entries), _clocks(entries))
    )
    difference, notes = found
    if difference is not None:
        raise LaunchError(difference, remedy="install the same versions on all hosts, such as from one lock file")
    return notes


def _difference(ranks: Sequence[RankVersions]) -> str | None:
    """Describe the differences from rank 0, and their hosts; None if there are none."""
    first = ranks[0]
    for name in first.versions:
        hosts: dict[str, list[str]] = {}
        for rank in ranks:
            hosts.setdefault(rank.versions.get(name, "none"), []).append(rank.host)
        if len(hosts) > 1:
            said = "; ".join(f"{version} on {listed(list(dict.fromkeys(places)))}" for version, places in hosts.items())
            return f"all ranks must have the same {name}: found {said}"
    return None


def _clocks(ranks: Sequence[RankVersions]) -> tuple[str, ...]:
    """Return a note for each host whose clock differs from rank 0's."""
    late: dict[str, float] = {}
    for rank in ranks:
        late.setdefault(rank.host, rank.clock - ranks[0].clock)
    return tuple(
        f"minga: the clock of {host} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} that of "
        f"{ranks[0].host}; the run is not affected, but times of files and logs cannot be compared"
        for host, ahead in late.items()
        if abs(ahead) > CLOCK_SECONDS
    )


def _library(text: str) -> str:
    """Return maker and version of an MPI library, from the paragraph by which it describes itself."""
    lower = text.lower()
    names = (("intel", "Intel MPI"), ("open mpi", "Open MPI"), ("mpich", "MPICH"))
    vendor = next((name for word, name in names if word in lower), text.split()[0] if text.split() else "unknown")
    number = re.search(r"\d+\.\d+(?:\.\d+)?", text)
    return f"{vendor} {number.group(0)}" if number else vendor
