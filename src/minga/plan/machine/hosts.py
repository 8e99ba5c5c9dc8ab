"""The ranks of a started run, as a machine file describes their hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from minga.errors import CaseError, listed, suggest
from minga.plan.machine.machine import Machine, NodeKind
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import NODE, Tree

__all__ = ["group_on"]


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
    kinds = dict(zip(machine.names, enumerate(_kind_of_each(machine)), strict=True))
    short = {name.partition(".")[0]: node for name, node in kinds.items()}
    used = list(dict.fromkeys(hosts))
    found = {host: kinds.get(host) or short.get(host.partition(".")[0]) for host in used}
    missing = [host for host, node in found.items() if node is None]
    if len(missing) == len(used) and not any(kind.hosts for kind in machine.nodes):
        if len(used) == 1:
            return machine.rank_group(len(hosts), kernel, threads, cell_bytes=cell_bytes)
        found = dict(zip(used, enumerate(_kind_of_each(machine)), strict=False))
        missing = used if len(found) < len(used) else []
    if missing:
        raise _other_hosts(machine, missing)
    numbers = [node[0] for node in found.values() if node is not None]
    nodes = [_alone(node[1], host) for host, node in found.items() if node is not None]
    whole = replace(
        machine,
        nodes=tuple(nodes),
        switches=None if machine.switches is None else machine.switches.part(numbers),
        network=None if machine.network is None else machine.network.part(np.array(numbers)),
    )
    above = whole.levels.index(NODE)
    speeds: list[Speed] = []
    speed_of, memory = np.empty(len(hosts), np.int64), np.empty(len(hosts), np.int64)
    paths = np.zeros((len(hosts), len(whole.levels)), np.int64)
    places = np.array([used.index(host) for host in hosts])
    for number, node in enumerate(nodes):
        mine = np.flatnonzero(places == number)
        alone = replace(machine, nodes=(node,), switches=None, network=None)
        group = alone.rank_group(len(mine), kernel, threads, cell_bytes=cell_bytes)
        speed_of[mine] = len(speeds)
        speeds += group.speeds
        memory[mine] = group.memory
        for column, level in enumerate(group.seats.levels):
            paths[mine, whole.levels.index(level)] = group.seats.paths[:, column]
        paths[mine, above] = number
        if whole.switches is not None:
            paths[mine, :above] = whole.switches.of[number]
    seats = Tree(whole.levels, paths, whole.network)
    return RankGroup(tuple(speeds), speed_of, memory, seats, whole.link_levels(), whole.names)


def _kind_of_each(machine: Machine) -> list[NodeKind]:
    """Return the kind of each node, in the order of the machine's names."""
    return [kind for kind in machine.nodes for _ in range(kind.count)]


def _alone(kind: NodeKind, host: str) -> NodeKind:
    return replace(kind, name=host, count=1, hosts=(host,))


def _other_hosts(machine: Machine, missing: Sequence[str]) -> CaseError:
    names = list(machine.names)
    return CaseError(
        f"the machine file describes {listed(names)}, but ranks run on {listed(missing)}",
        key="run.machine",
        where=machine.source or None,
        suggestion=suggest(missing[0], names),
        remedy="measure these hosts (minga measure), add them to the file, or leave run.machine out, so that the ranks "
        "are timed when the run begins",
    )
