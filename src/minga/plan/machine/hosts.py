"""The ranks of a started run, as a machine file describes their hosts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from minga.errors import CaseError, suggest
from minga.plan.machine.machine import Machine, NodeKind
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import Tree

__all__ = ["group_on"]

_MOST = 6
"""Maximum number of names in a message."""


def group_on(
    machine: Machine,
    hosts: Sequence[str],
    kernel: str | Sequence[str] | None = None,
    threads: int = 1,
    *,
    cell_bytes: float | None = None,
) -> RankGroup:
    """Return the ranks that run on given hosts; nodes of the machine without a rank are left out.

    Hosts are matched by name, with or without domain. If the file names no hosts and no node has the name of a host,
    the hosts are taken for its nodes, in the order of ranks; ranks on a single host are assumed to fill all its nodes.

    Parameters
    ----------
    machine
        The machine.
    hosts
        Host name of each rank.
    kernel, threads, cell_bytes
        As for :meth:`Machine.rank_group`.

    Raises
    ------
    CaseError
        If the file describes other hosts, or fewer.
    """
    kinds = {name: kind for kind in machine.nodes for name in kind.names}
    short = {name.partition(".")[0]: kind for name, kind in kinds.items()}
    used = list(dict.fromkeys(hosts))
    found = {host: kinds.get(host) or short.get(host.partition(".")[0]) for host in used}
    missing = [host for host, kind in found.items() if kind is None]
    if len(missing) == len(used) and not any(kind.hosts for kind in machine.nodes):
        if len(used) == 1:
            return machine.rank_group(len(hosts), kernel, threads, cell_bytes=cell_bytes)
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
        group = replace(machine, nodes=(node,)).rank_group(len(mine), kernel, threads, cell_bytes=cell_bytes)
        speed_of[mine] = len(speeds)
        speeds += group.speeds
        memory[mine] = group.memory
        for column, level in enumerate(group.seats.levels):
            paths[mine, whole.levels.index(level)] = group.seats.paths[:, column]
        paths[mine, 0] = number
    return RankGroup(tuple(speeds), speed_of, memory, Tree(whole.levels, paths), whole.link_levels(), whole.names)


def _alone(kind: NodeKind, host: str) -> NodeKind:
    return replace(kind, name=host, count=1, hosts=(host,))


def _other_hosts(machine: Machine, missing: Sequence[str]) -> CaseError:
    names = list(machine.names)
    return CaseError(
        f"the machine file describes {_some(names)}, but ranks run on {_some(missing)}",
        key="run.machine",
        where=machine.source or None,
        suggestion=suggest(missing[0], names),
        remedy="measure these hosts (minga measure), add them to the file, or leave run.machine out, so that the ranks "
        "are timed when the run begins",
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
