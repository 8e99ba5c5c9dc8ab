"""The ranks of a run that is there, as a machine file describes the hosts that they were started on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from minga.errors import CaseError, suggest
from minga.plan.crew import Crew
from minga.plan.machine.machine import Machine, NodeKind
from minga.plan.speed import Speed
from minga.plan.topology import Tree

__all__ = ["crew_on"]

_MOST = 6
"""Names that a message has at most."""


def crew_on(
    machine: Machine,
    hosts: Sequence[str],
    kernel: str | Sequence[str] | None = None,
    threads: int = 1,
    *,
    cell_bytes: float | None = None,
) -> Crew:
    """The ranks that run on ``hosts``, one entry a rank; nodes of the machine on which none runs are left out.

    Hosts are matched by name, with or without domain. Where the file names no hosts and no node is called like one, the
    hosts are its nodes in the order in which ranks name them; ranks on a single host are taken to fill all its nodes.
    CaseError where it describes other hosts, or fewer. Other arguments are those of :meth:`Machine.crew`.
    """
    kinds = {name: kind for kind in machine.nodes for name in kind.names}
    short = {name.partition(".")[0]: kind for name, kind in kinds.items()}
    used = list(dict.fromkeys(hosts))
    found = {host: kinds.get(host) or short.get(host.partition(".")[0]) for host in used}
    missing = [host for host, kind in found.items() if kind is None]
    if len(missing) == len(used) and not any(kind.hosts for kind in machine.nodes):
        if len(used) == 1:
            return machine.crew(len(hosts), kernel, threads, cell_bytes=cell_bytes)
        nodes_in_order = itertools.chain.from_iterable(itertools.repeat(kind, kind.count) for kind in machine.nodes)
        found = dict(zip(used, nodes_in_order, strict=False))
        missing = used if len(found) < len(used) else []
    if missing:
        raise _other_hosts(machine, missing)
    nodes = [_alone(kind, host) for host, kind in found.items() if kind is not None]
    whole = replace(machine, nodes=tuple(nodes))
    speeds: list[Speed] = []
    speed_of, memory = np.empty(len(hosts), np.int64), np.empty(len(hosts), np.int64)
    paths = np.zeros((len(hosts), len(whole.levels)), np.int64)
    places = np.array([used.index(host) for host in hosts])
    for number, node in enumerate(nodes):
        mine = np.flatnonzero(places == number)
        crew = replace(machine, nodes=(node,)).crew(len(mine), kernel, threads, cell_bytes=cell_bytes)
        speed_of[mine] = len(speeds)
        speeds += crew.speeds
        memory[mine] = crew.memory
        for column, level in enumerate(crew.seats.levels):
            paths[mine, whole.levels.index(level)] = crew.seats.paths[:, column]
        paths[mine, 0] = number
    return Crew(tuple(speeds), speed_of, memory, Tree(whole.levels, paths), whole.link_levels(), whole.names)


def _alone(kind: NodeKind, host: str) -> NodeKind:
    return replace(kind, name=host, count=1, hosts=(host,))


def _other_hosts(machine: Machine, missing: Sequence[str]) -> CaseError:
    names = list(machine.names)
    return CaseError(
        f"the machine file describes {_some(names)}, but ranks run on {_some(missing)}",
        key="run.machine",
        where=machine.source or None,
        suggestion=suggest(missing[0], names),
        remedy="measure these hosts (minga measure), add them to the file, or leave run.machine out: the ranks are "
        "then timed when the run begins",
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
