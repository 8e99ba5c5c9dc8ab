"""The processes of a lab, by node."""

from __future__ import annotations

import contextlib
from pathlib import Path

from minga.lab.cgroups import members
from minga.lab.state import State

__all__ = ["inside"]


def inside(state: State) -> dict[int, set[int]]:
    """Return the ids of the processes in each node, that is, in its network namespace or its control groups.

    Key -1 holds the processes in the switch, and those that were started inside the lab and have left it, which the
    mark in their environment identifies.
    """
    found: dict[int, set[int]] = {-1: set()}
    nodes: dict[tuple[int, int], int] = {}
    for node in range(-1, len(state.lab.nodes)):
        if node >= 0:
            found[node] = members(state.groups[node]) if node < len(state.groups) else set()
        with contextlib.suppress(OSError):
            there = state.namespace_file(state.namespace(None if node < 0 else node)).stat()
            nodes[there.st_dev, there.st_ino] = node
    mark = f"MINGA_LAB_TOKEN={state.token}".encode()
    for pid in _all_processes():
        with contextlib.suppress(OSError):
            place = Path(f"/proc/{pid}/ns/net").stat()
            where = nodes.get((place.st_dev, place.st_ino))
            if where is not None or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[-1 if where is None else where].add(pid)
    counted: set[int] = set().union(*(pids for node, pids in found.items() if node >= 0))
    found[-1] -= counted
    return found


def _all_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
