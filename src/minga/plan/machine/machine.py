"""Machines: nodes with their cores, memory, speeds and links, measured or written by hand, as JSON files.

A file is read by :func:`read_machine`; its schema is in :mod:`minga.plan.machine.machine_file`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import CaseError, LayoutError, suggest
from minga.plan.links import HOP, Link, Links, Segment
from minga.plan.machine.switches import Switches
from minga.plan.network import Network
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import MOST_CORES, NODE, Tree
from minga.space.boxes import Ints

__all__ = [
    "ANY_KERNEL",
    "FORMAT",
    "MOST_RANKS_A_CORE",
    "SHIPPED",
    "VERSION",
    "KernelSpeed",
    "Machine",
    "NodeKind",
    "read_machine",
]

FORMAT: Final = "minga machine"
VERSION: Final = 1
ANY_KERNEL: Final = "*"
"""Name of the speed for every kernel that has none of its own."""
SHIPPED: Final = Path(__file__).parents[2] / "examples" / "machines"

LEVELS: Final = ("chip", "NUMA", "cache", "L3", "L2", "core")
"""Levels into which a node may be divided, the outermost first."""
SHARED_MEMORY: Final = Link((Segment(0, 1e-6, 1 / 5e9),))
"""Default link between two ranks of a node: 1 us and 5 GB/s, as common MPI libraries reach."""
MEMORY_SHARE: Final = 0.8
"""Share of a node's memory that a run may fill; the rest is for the system and for messages."""
_UNLIMITED: Final = 1 << 62

MOST_RANKS_A_CORE: Final = 16
"""Maximum number of ranks per core: more make no useful progress, and MPI libraries fail when so many start at once."""


@dataclass(frozen=True, slots=True)
class KernelSpeed:
    """The speed of one core for a kernel while all cores of its node are busy with it.

    ``name`` is the kernel's name for people; ``cells`` and ``seconds`` are all samples that ``speed`` is made from.
    """

    speed: Speed
    name: str = ""
    cells: tuple[float, ...] = ()
    seconds: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class NodeKind:
    """Nodes of one kind.

    Attributes
    ----------
    name, count
        Name and number of the nodes.
    cores
        Cores of one node: a Tree of one node.
    speeds
        Speeds of one core, by device ("cpu") and kernel (name or digest; "*" for all others).
    memory
        Bytes of a node; None if not limited.
    cpu
        Model of the processor.
    hosts
        Host names of the nodes, if known.
    bandwidth
        Bytes per second that a node's memory delivers to all its cores together.
    core_bandwidth
        Bytes per second that it delivers to a single core.
    link
        Link of these nodes to the network, if it differs from the links between others.
    """

    name: str
    count: int
    cores: Tree
    speeds: Mapping[str, Mapping[str, KernelSpeed]] = field(default_factory=dict)
    memory: int | None = None
    cpu: str = ""
    hosts: tuple[str, ...] = ()
    bandwidth: float | None = None
    core_bandwidth: float | None = None
    link: Link | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes: the hosts, or the kind's name, with a number if there are several."""
        if self.hosts:
            return self.hosts
        return (self.name,) if self.count == 1 else tuple(f"{self.name}-{number + 1}" for number in range(self.count))

    def speed(
        self, kernels: Sequence[str], ranks: int, threads: int, cell_bytes: float | None, device: str
    ) -> Speed | None:
        """Return the speed of one of so many ranks on a node, with so many threads each; None if unknown.

        The first of ``kernels`` that was measured counts, then "*", then the limit set by the memory bandwidth if a
        step moves ``cell_bytes`` per cell.
        """
        threads = min(threads, len(self.cores))
        sharing = max(1.0, ranks * threads / len(self.cores))  # ranks that take turns on a core
        known = self.speeds.get(device, {})
        by_name = {entry.name: entry for entry in known.values() if entry.name} | dict(known)
        for kernel in (*kernels, ANY_KERNEL, *(() if kernels else known)):
            if kernel in by_name:
                one = by_name[kernel].speed
                return Speed(one.cells * threads, one.seconds * sharing)
        if cell_bytes and self.bandwidth:
            alone = threads * (self.core_bandwidth or self.bandwidth / len(self.cores))
            return Speed.constant(min(alone, self.bandwidth / ranks) / cell_bytes)
        return None


@dataclass(frozen=True, eq=False)
class Machine:
    """Nodes and the links between them.

    Parameters
    ----------
    nodes
        Kinds of nodes.
    links
        Links by relation ("inter-rack", "inter-node", "inter-chip", "intra-chip", "intra-node", ...); see
        Tree.relations.
    name
        Name of the machine.
    shared
        True if all nodes use one medium (a hub), one after another.
    measured
        Time, place and tools of the measurement, and all samples: plain data that is kept unchanged.
    data
        The content of the file, for writing it again.
    source
        Path of the file.
    switches
        Groups of nodes above the nodes, such as racks; None if there are none.
    network
        Distances between nodes, in the order of ``names``, on a network without switches; otherwise None.
    hop
        Latency in seconds of each hop after the first one on that network.
    """

    nodes: tuple[NodeKind, ...]
    links: Mapping[str, Link]
    name: str = ""
    shared: bool = False
    measured: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    switches: Switches | None = None
    network: Network | None = None
    hop: float = HOP

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all nodes, by number."""
        return tuple(name for kind in self.nodes for name in kind.names)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels of :meth:`tree`: those of switches, and those into which some node is divided."""
        used = {name for kind in self.nodes for name in kind.cores.levels[1:]}
        above = () if self.switches is None else self.switches.levels
        return (*above, NODE, *(name for name in LEVELS if name in used))

    def tree(self) -> Tree:
        """Return the tree of all cores, one row each, node after node.

        Returns
        -------
        Tree
            All cores.
        """
        paths = np.concatenate([self._paths(number) for number in range(len(self.nodes))])
        return Tree(self.levels, paths, self.network)

    def _paths(self, number: int) -> Ints:
        """Return the rows of the cores of all nodes of a kind; a level that a node lacks has a single group."""
        kind, first = self.nodes[number], sum(kind.count for kind in self.nodes[:number])
        above = self.levels.index(NODE)
        one = np.zeros((len(kind.cores), len(self.levels)), np.int64)
        for column, level in enumerate(self.levels):
            if column > above and level in kind.cores.levels:
                one[:, column] = kind.cores.paths[:, kind.cores.levels.index(level)]
        rows = np.tile(one, (kind.count, 1))
        node = first + np.repeat(np.arange(kind.count), len(one))
        rows[:, above] = node
        if self.switches is not None:
            rows[:, :above] = self.switches.of[node]
        return rows

    def ranks(self, threads: int = 1) -> int:
        """Return the number of ranks with so many threads that have cores of their own, at least one per node.

        Parameters
        ----------
        threads
            Threads of a rank.

        Returns
        -------
        int
            The number of ranks.
        """
        return sum(kind.count * max(1, len(kind.cores) // threads) for kind in self.nodes)

    def rank_group(
        self,
        ranks: int | None = None,
        kernel: str | Sequence[str] | None = None,
        threads: int = 1,
        *,
        cell_bytes: float | None = None,
        device: str = "cpu",
    ) -> RankGroup:
        """Return the ranks of a run on this machine, started in order and filling one node after another.

        Parameters
        ----------
        ranks
            Number of ranks; by default, as many as have ``threads`` cores of their own. More ranks share the cores
            evenly.
        kernel
            Names or digests of the kernel; the first that a node knows counts. With None, "*", or else any kernel.
        threads
            Cores of a rank; they are assumed to be equally busy.
        cell_bytes
            Bytes that a step moves per cell (`Work.moved`): nodes that do not know the kernel, but their memory
            bandwidth, are assumed to be limited by it.
        device
            The device whose speeds are used.

        Returns
        -------
        RankGroup
            The ranks.

        Raises
        ------
        CaseError
            If the speed of a node is unknown, or there are more than MOST_RANKS_A_CORE ranks per core.
        """
        if threads < 1 or (ranks is not None and ranks < 1):
            raise LayoutError(f"{ranks} ranks with {threads} threads each", remedy="give 1 or more of each")
        self._check_ranks(ranks or 1)
        kernels = (kernel,) if isinstance(kernel, str) else tuple(kernel or ())
        slots = np.concatenate([np.tile(self._first_cores(kind, threads), kind.count) for kind in self.nodes])
        sizes = [(kind.count, len(kind.cores)) for kind in self.nodes]
        first_core = np.cumsum([0, *(cores for count, cores in sizes for _ in range(count))])
        a_node = np.concatenate([np.full(kind.count, max(1, len(kind.cores) // threads)) for kind in self.nodes])
        node_of_slot = np.repeat(np.arange(len(a_node)), a_node)
        number = len(slots) if ranks is None else ranks
        chosen = np.arange(number) if number <= len(slots) else np.arange(number) * len(slots) // number
        node = node_of_slot[chosen]
        crowd = np.bincount(node, minlength=len(a_node))
        kind_of = np.repeat(np.arange(len(self.nodes)), [kind.count for kind in self.nodes])
        speeds, memory = [], np.full(number, _UNLIMITED, np.int64)
        for at, kind in enumerate(self.nodes):
            mine = kind_of == at
            speed = kind.speed(kernels, max(1, int(crowd[mine].max())), threads, cell_bytes, device)
            if speed is None:
                raise self._no_speed(kind, at, kernels, device)
            speeds.append(speed)
            if kind.memory is not None:
                on = mine[node]
                memory[on] = (MEMORY_SHARE * kind.memory / crowd[node[on]]).astype(np.int64)
        seats = self.tree().part(first_core[node] + slots[chosen])
        return RankGroup(tuple(speeds), kind_of[node], memory, seats, self.link_levels(), self.names)

    def _check_ranks(self, ranks: int) -> None:
        """Raise CaseError for more ranks than can be planned in a reasonable time."""
        cores = sum(kind.count * len(kind.cores) for kind in self.nodes)
        most = min(MOST_RANKS_A_CORE * cores, MOST_CORES)
        if ranks > most:
            raise CaseError(
                f"{ranks} ranks are too many for the {cores} core{'s' if cores > 1 else ''} of machine "
                f"{self.name or self.source!r}: plans are made for at most {most}",
                key="run.ranks",
                remedy=f"try one per core, -n {cores}, or describe a larger machine",
            )

    def _first_cores(self, kind: NodeKind, threads: int) -> Ints:
        """Return the number of the first core of each rank on a node."""
        return np.arange(max(1, len(kind.cores) // threads)) * threads

    def link_levels(self) -> Links:
        """Return the links by the number of levels in common.

        Returns
        -------
        Links
            The links.
        """
        relations = self.tree_relations
        inside: Link = self.links.get("intra-node", SHARED_MEMORY)
        chosen = self._between_nodes()
        for common in range(len(chosen), len(relations)):
            names = (relations[common], f"intra-{self.levels[common - 1]}")
            inside = next((self.links[name] for name in names if name in self.links), inside)
            chosen.append(inside)
        own: dict[int, Link] = {}
        first = 0
        for kind in self.nodes:
            if kind.link is not None:
                own |= dict.fromkeys(range(first, first + kind.count), kind.link)
            first += kind.count
        uplinks = () if self.switches is None else self.switches.uplinks
        return Links(tuple(chosen), own, self.shared, uplinks, self.hop)

    def _between_nodes(self) -> list[Link]:
        """Return the links between the groups of each level down to the node, the outermost first.

        A level without a link has that of the next level inside it, or else that of the next one outside.
        """
        levels = self.levels[: self.levels.index(NODE) + 1]
        given = [self.links.get(f"inter-{level}") for level in levels]
        known = [link for link in given if link is not None]
        link = known[-1] if known else self._fastest_own()
        found = []
        for one in reversed(given):
            link = one or link
            found.append(link)
        return found[::-1]

    @property
    def tree_relations(self) -> tuple[str, ...]:
        """Names of the relations between two cores, by number of levels in common; see Tree.relations."""
        return Tree(self.levels, np.zeros((1, len(self.levels)), np.int64)).relations

    def _fastest_own(self) -> Link:
        """Return the fastest of the nodes' own links, for machines without a link between nodes.

        The nodes' own links then decide; a single node needs none.
        """
        own = [kind.link for kind in self.nodes if kind.link is not None]
        return min(own, key=lambda link: float(link.time(1e6))) if own else SHARED_MEMORY

    def _no_speed(self, kind: NodeKind, at: int, kernels: Sequence[str], device: str) -> CaseError:
        known = kind.speeds.get(device, {})
        what = f"kernel {kernels[-1]!r}" if kernels else "any kernel"
        names = sorted(name for name in {entry.name or key for key, entry in known.items()} if name)
        return CaseError(
            f"the machine {self.name or self.source!r} does not say how fast node {kind.name!r} runs {what}"
            + (f"; it knows {', '.join(names)}" if names else ""),
            key=f"nodes[{at}].speeds.{device}",
            suggestion=suggest(kernels[-1], names) if kernels else None,
            remedy="measure it there (minga measure --case CASE), or give this node a speed for all kernels "
            '("speed": "1 Gcells/s", of one core) or a memory bandwidth ("bandwidth": "20 GB/s")',
        )

    def named(self, name: str) -> Machine:
        """Return the same machine under another name.

        Parameters
        ----------
        name
            The new name.

        Returns
        -------
        Machine
            The machine.
        """
        return replace(self, name=name, data={**self.data, "name": name})

    def write(self, path: Path) -> None:
        """Write the file completely or not at all; raise CaseError if it cannot be written.

        Parameters
        ----------
        path
            The file.
        """
        text = json.dumps(self.data, indent=1, allow_nan=False) + "\n"
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            try:
                unfinished.write_text(text)
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise CaseError(
                f"{path} cannot be written: {error.strerror}", remedy="choose another file with -o"
            ) from None

    def check(self) -> None:
        """Raise CaseError for machines that cannot be planned for.

        These have too many cores, duplicate names, or nodes without links.
        """
        cores = sum(kind.count * len(kind.cores) for kind in self.nodes)
        if cores > MOST_CORES:
            raise CaseError(
                f"the machine has {cores} cores, more than {MOST_CORES}", key="nodes", where=self.source or None
            )
        self._check_names()
        several = sum(kind.count for kind in self.nodes) > 1
        between = any(f"inter-{level}" in self.links for level in self.levels[: self.levels.index(NODE) + 1])
        if several and not between and any(kind.link is None for kind in self.nodes):
            raise CaseError(
                "there is no link between the nodes",
                key="links.inter-node",
                where=self.source or None,
                remedy='add "links": {"inter-node": {"latency": "50 us", "bandwidth": "1 Gb/s"}}, or a "link" to every '
                "entry of nodes",
            )

    def _check_names(self) -> None:
        """Raise CaseError for duplicate names: nodes are identified by name, and ranks find theirs by host."""
        names: set[str] = set()
        for number, kind in enumerate(self.nodes):
            for name in kind.names:
                if name in names:
                    raise CaseError(
                        f"two nodes have the name {name!r}",
                        key=f"nodes[{number}].{'hosts' if kind.hosts else 'name'}",
                        where=self.source or None,
                        remedy="rename or remove one of them",
                    )
                names.add(name)


def read_machine(path: Path | str) -> Machine:
    """Read the machine in a file, or the one of this name that ships with minga; raise CaseError if it is invalid.

    Parameters
    ----------
    path
        A file, or the name of a machine that ships with minga.

    Returns
    -------
    Machine
        The machine.
    """
    from minga.plan.machine.machine_file import read

    return read(Path(path))
