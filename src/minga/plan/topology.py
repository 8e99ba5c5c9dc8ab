"""Machines as trees of switches, nodes, chips and cores, and the distance of two ranks in them.

A tree is given in words (:mod:`minga.plan.topology_forms`), or read from Linux, which describes in
``/sys/devices/system`` what processors share (Documentation/ABI/stable/sysfs-devices-system-cpu of the kernel), and
from Slurm, which says which switches lead to a node (:mod:`minga.plan.slurm`).
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.traffic import Traffic
from minga.plan.network import Network
from minga.plan.slurm import Switches, padded, switch_levels, switches_here
from minga.space.boxes import Ints

if TYPE_CHECKING:
    from minga.engine.comm import Comm

__all__ = ["Tree", "numbered_nodes", "read_tree", "seats_of", "traffic_by_level", "usable"]

MOST_CORES: Final = 1 << 20
NODE: Final = "node"

_SYSTEM: Final = Path("/sys/devices/system")
Processors = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """Places in a hierarchy, one per row: all cores of a machine, or the ranks of a run.

    One level is the node, whose places share memory. Levels before it are those of the network: racks, switches.

    Parameters
    ----------
    levels
        Names of the levels, the outermost first. The one named "node" is the node, or the outermost one if none is.
    paths
        ``paths[p, l]`` is the number of place ``p``'s group on level ``levels[l]``, counted from 0 within the enclosing
        group, but for nodes through the whole machine; int64, shape (places, levels). Two ranks on one core have equal
        rows.
    network
        The distances between nodes, by their numbers, if they do not follow from the levels.
    """

    levels: tuple[str, ...]
    paths: Ints
    network: Network | None = None

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Return the cores of a machine from a description, or from a file.

        Parameters
        ----------
        text
            Numbers of nodes, chips and cores, ``"4x2x2"``; levels by name, ``"rack=2 node=16 core=8"``; a network of
            nodes, ``"torus 4x2 core=8"``, ``"mesh 4x2"`` or ``"ring 8"``; nested lists, ``"[[2, 2], [4]]"``, also with
            names, ``"rack node core: [[4, 4], [2]]"``; or the name of a file of ``lstopo --of xml`` (.xml) or of the
            switches of Slurm (.conf), whose nodes have one core each here.

        Returns
        -------
        Tree
            The cores.

        Raises
        ------
        LayoutError
            If the description is invalid.
        """
        from minga.plan.topology_forms import parsed_tree

        return parsed_tree(text)

    @classmethod
    def nested(cls, groups: Sequence[object], levels: Sequence[str] = ()) -> Tree:
        """Return the cores of nested lists: ``[4, 4, 5]`` is three nodes, ``[[2, 2], [4]]`` also has chips.

        Parameters
        ----------
        groups
            Nested lists of numbers of cores.
        levels
            Names of the levels, of which one is "node"; by default the usual ones.

        Returns
        -------
        Tree
            The cores.
        """
        from minga.plan.topology_forms import nested_tree

        return nested_tree(groups, levels)

    @property
    def above(self) -> int:
        """Number of levels that enclose nodes, such as racks and switches."""
        return self.levels.index(NODE) if NODE in self.levels else 0

    @property
    def nodes(self) -> Ints:
        """Number of the node of each place, shape (places,)."""
        return self.paths[:, self.above]

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations between two places, by the number of levels that they have in common.

        For nodes, chips and cores, these are inter-node, inter-chip, intra-chip, same core. With racks, inter-rack
        comes first, and inter-node is between nodes of one rack.
        """
        *groups, last = self.levels
        inside = f"intra-{groups[-1]}" if groups else f"inter-{last}"
        return (*(f"inter-{name}" for name in groups), inside, f"same {last}")

    def common(self, a: Ints | int, b: Ints | int) -> Ints:
        """Return the number of levels that places ``a`` and ``b`` have in common; see :meth:`apart`.

        Parameters
        ----------
        a, b
            Numbers of places.

        Returns
        -------
        ndarray
            Numbers of levels.
        """
        levels = np.zeros(np.broadcast(a, b).shape, np.int64)
        same = np.ones(levels.shape, bool)
        for column in self.paths.T:
            same &= column[a] == column[b]
            levels += same
        return levels

    def apart(self, common: Ints) -> NDArray[np.bool_]:
        """Return True for pairs on different nodes.

        Parameters
        ----------
        common
            The number of levels that each pair has in common (:meth:`common`).

        Returns
        -------
        ndarray
            Booleans, of the shape of ``common``.
        """
        return np.less_equal(common, self.above)

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the distances between the nodes of places ``a`` and ``b`` in the network.

        Parameters
        ----------
        a, b
            Numbers of places.

        Returns
        -------
        ndarray
            Hops: 0 within a node; 1 between any two nodes of a machine without a network of its own.
        """
        nodes = self.nodes
        if self.network is None:
            return np.not_equal(nodes[a], nodes[b]).astype(np.int64)
        return self.network.hops(nodes[a], nodes[b])

    def groups(self, level: int) -> Ints:
        """Return the number of the group of each place on a level, counted through the whole machine.

        Parameters
        ----------
        level
            The number of the level, 0 for the outermost.

        Returns
        -------
        ndarray
            Numbers of groups, from 0, shape (places,).
        """
        number = np.zeros(len(self), np.int64)
        for column in self.paths.T[: level + 1]:
            number = np.unique(number * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].reshape(-1)
        return number

    @property
    def order(self) -> Ints:
        """Numbers of the places in the order of a walk through the tree, with neighbours together."""
        return np.lexsort(self.paths.T[::-1])

    def seats(self, ranks: int) -> Tree:
        """Return the places of so many ranks, started in order and filling one node after another, one row per rank.

        If there are more ranks than cores, they share the cores evenly.

        Parameters
        ----------
        ranks
            The number of ranks.

        Returns
        -------
        Tree
            A row for each rank.
        """
        cores = len(self.paths)
        return self.part(np.arange(ranks) if ranks <= cores else np.arange(ranks) * cores // ranks)

    def part(self, places: Ints) -> Tree:
        """Return some of the places, in this order.

        Parameters
        ----------
        places
            Numbers of places.

        Returns
        -------
        Tree
            A row for each of them; nodes keep their numbers.
        """
        return Tree(self.levels, self.paths[places], self.network)

    def halves(self) -> Tree:
        """Return the same places without the network; instead, halves of its nodes, their halves, ... are levels.

        Returns
        -------
        Tree
            A row for each place.
        """
        return self._beneath("half", None if self.network is None else self.network.halves())

    def axes(self) -> Tree:
        """Return the same places without the network; instead, each axis of a torus or mesh is a level.

        Returns
        -------
        Tree
            A row for each place.
        """
        return self._beneath("axis", None if self.network is None else self.network.places)

    def _beneath(self, name: str, columns: Ints | None) -> Tree:
        """Return the tree with levels above the node, whose numbers for each node are columns."""
        if columns is None or not columns.shape[1]:
            return Tree(self.levels, self.paths)
        names = tuple(f"{name}{number}" for number in range(columns.shape[1]))
        return Tree((*names, *self.levels), np.column_stack((columns[self.nodes], self.paths)))

    def __len__(self) -> int:
        return len(self.paths)


def traffic_by_level(sent: Sequence[Mapping[int, Traffic]], seats: Tree) -> dict[str, Traffic]:
    """Return the total traffic (``sent[rank][receiver]``) by relation between sender and receiver.

    Parameters
    ----------
    sent
        For each rank the traffic to each receiver.
    seats
        The place of each rank in the machine.

    Returns
    -------
    dict
        Traffic by relation, such as "inter-node".
    """
    total = dict.fromkeys(seats.relations, Traffic())
    for rank, receivers in enumerate(sent):
        for receiver, traffic in receivers.items():
            total[seats.relations[int(seats.common(rank, receiver))]] += traffic
    return total


def numbered_nodes(levels: Sequence[str], paths: Ints) -> Ints:
    """Return the paths with nodes numbered through the whole machine, not within each rack or switch."""
    above = list(levels).index(NODE) if NODE in levels else 0
    if above == 0 or not len(paths):
        return paths
    found = paths.copy()
    found[:, above] = Tree(tuple(levels), paths).groups(above)
    return found


def read_tree(cpus: Iterable[int] | None = None, system: Path = _SYSTEM) -> Tree:
    """Return the physical cores of some logical processors, by default of those that this process may use."""
    allowed = sorted(usable() if cpus is None else cpus)
    cores = dict.fromkeys(_groups((cpu,), system)["core"] or (cpu,) for cpu in allowed)
    return tree_of_places([(0, _groups(core, system)) for core in cores])


def seats_of(comm: Comm, switches: Mapping[str, Switches] | None = None) -> Tree:
    """Return the actual places of the ranks of ``comm``, as far as each is bound to processors.

    Collective; the result is equal on all ranks. Levels that distinguish no two ranks are left out. Ranks that may
    migrate within a node are distinguished by number. ``switches`` are those that lead to each host; by default, those
    that Slurm reports, if it knows them for all ranks.
    """
    host = platform.node()
    mine = switches_here() if switches is None else switches.get(host, switches.get(host.partition(".")[0]))
    found = comm.gather((comm.node, _groups(tuple(sorted(usable())), _SYSTEM), mine))
    seats: Tree | None = None
    if found is not None:
        chains = [chain for *_, chain in found if chain is not None]
        known = chains if len(chains) == len(found) else [()] * len(found)
        seats = tree_of_places([(node, groups) for node, groups, _ in found], known)
    agreed: Tree = comm.bcast(seats)
    return agreed


def tree_of_places(
    places: Sequence[tuple[int, Mapping[str, Processors | None]]], switches: Sequence[Switches] = ()
) -> Tree:
    """Return the tree of places, each given by a node's number, its groups of processors, and switches if known."""
    names = [name for name in places[0][1] if all(groups[name] is not None for _, groups in places)]
    # Wide groups enclose narrow ones; whether, say, NUMA nodes or caches are wider depends on the processor.
    names.sort(key=lambda name: -max(len(groups[name] or ()) for _, groups in places))
    chains = padded(switches or [()] * len(places))
    levels = [*switch_levels(len(chains[0])), NODE, *names]
    rows: list[tuple[Hashable, ...]] = [
        (*chain, node, *(groups[name] for name in names)) for chain, (node, groups) in zip(chains, places, strict=True)
    ]
    kept = [n for n, name in enumerate(levels) if name in (NODE, "core") or _divides(rows, n)]
    levels = [levels[n] for n in kept]
    rows = [tuple(row[n] for n in kept) for row in rows]
    if levels[-1] != "core":
        levels.append("rank")
        rows = [(*row, rank) for rank, row in enumerate(rows)]
    return Tree(tuple(levels), numbered_nodes(levels, _numbered(rows)))


def _divides(rows: Sequence[tuple[Hashable, ...]], column: int) -> bool:
    """Return True if a level distinguishes places that agree on outer levels, and leaves some to inner levels."""
    before, here, all_levels = (len({row[:end] for row in rows}) for end in (column, column + 1, None))
    return before < here < all_levels


def _numbered(rows: Sequence[tuple[Hashable, ...]]) -> Ints:
    """Assign numbers to groups, from 0 within the enclosing group, in ascending order of their names."""
    paths = np.empty((len(rows), len(rows[0])), np.int64)
    for depth in range(len(rows[0])):
        members: dict[tuple[Hashable, ...], set[Hashable]] = {}
        for row in rows:
            members.setdefault(row[:depth], set()).add(row[depth])
        numbers = {
            (*prefix, name): number
            for prefix, names in members.items()
            for number, name in enumerate(sorted(names))  # type: ignore[type-var]
        }
        paths[:, depth] = [numbers[row[: depth + 1]] for row in rows]
    return paths


def _groups(cpus: Processors, system: Path) -> dict[str, Processors | None]:
    """Return, by kind, the processors of the group that contains all of ``cpus``; None if there is no single one."""
    topology = {
        "chip": ("package_cpus_list", "core_siblings_list"),  # the second name is that of older kernels
        "core": ("core_cpus_list", "thread_siblings_list"),
    }
    files: dict[str, list[list[Path]]] = {
        "chip": [[system / f"cpu/cpu{cpu}/topology/{name}" for name in topology["chip"]] for cpu in cpus],
        "NUMA": [[folder / "cpulist" for folder in (system / f"cpu/cpu{cpu}").glob("node[0-9]*")] for cpu in cpus],
        "L3": [_caches(cpu, 3, system) for cpu in cpus],
        "L2": [_caches(cpu, 2, system) for cpu in cpus],
        "core": [[system / f"cpu/cpu{cpu}/topology/{name}" for name in topology["core"]] for cpu in cpus],
    }
    return {kind: _common_group([_first_list(candidates) for candidates in each]) for kind, each in files.items()}


def _caches(cpu: int, level: int, system: Path) -> list[Path]:
    """Return the files that list which processors share a processor's data cache of a given level."""
    folders = sorted((system / f"cpu/cpu{cpu}/cache").glob("index[0-9]*"))
    return [
        folder / "shared_cpu_list"
        for folder in folders
        if _text(folder / "level") == str(level) and _text(folder / "type") in ("Unified", "Data")
    ]


def _common_group(groups: Sequence[Processors]) -> Processors | None:
    return groups[0] if groups and groups[0] and all(group == groups[0] for group in groups) else None


def _first_list(files: Iterable[Path]) -> Processors:
    """Return the processors listed in the first readable file, such as ``0-3,8-11``; empty if there is no such file."""
    for file in files:
        text = _text(file)
        if re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
            ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
            return tuple(cpu for low, *high in ends for cpu in range(low, (high or [low])[0] + 1))
    return ()


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def usable() -> Collection[int]:
    """Return the logical processors that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
