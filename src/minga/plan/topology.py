"""Machines as trees of nodes, chips and cores, and the distance of two ranks in them.

A tree is given (``"16x2x2"``: 16 nodes of 2 chips of 2 cores; or nested lists), or read from Linux, which describes in
``/sys/devices/system`` what processors share (Documentation/ABI/stable/sysfs-devices-system-cpu of the kernel).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.engine.traffic import Traffic
from minga.errors import LayoutError
from minga.space.boxes import Ints

if TYPE_CHECKING:
    from minga.engine.comm import Comm

__all__ = ["Tree", "read_tree", "seats_of", "traffic_by_level", "usable"]

MOST_CORES: Final = 1 << 20
_DEEPEST: Final = 8

_NAMES: Final = (("core",), ("node", "core"), ("node", "chip", "core"), ("node", "chip", "cache", "core"))
_FORMS: Final = (
    'write the numbers of nodes, chips in each and cores in each, "16x2x2", or nested lists whose numbers are cores, '
    '"[[2, 2], [4]]" for two nodes, one of them with a single chip; or name a file that lstopo --of xml wrote'
)
_SYSTEM: Final = Path("/sys/devices/system")
Processors = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """Places in a hierarchy, one per row: all cores of a machine, or the ranks of a run.

    Parameters
    ----------
    levels
        Names of the levels, the outermost first.
    paths
        ``paths[p, l]`` is the number of place ``p``'s group on level ``levels[l]``, counted from 0 within the enclosing
        group; int64, shape (places, levels). Two ranks on one core have equal rows.
    """

    levels: tuple[str, ...]
    paths: Ints

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Return the cores of a machine from a description, or from a file of ``lstopo --of xml``.

        Parameters
        ----------
        text
            Such as ``"4x2x2"``, ``"[[2, 2], [4]]"`` or the name of an XML file.

        Returns
        -------
        Tree
            The cores.

        Raises
        ------
        LayoutError
            If the description is invalid.
        """
        if text.strip().endswith(".xml"):
            from minga.plan.machine.hwloc import read_hwloc

            return read_hwloc(Path(text.strip()))
        if re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){0,3}", text.strip()):
            counts = [int(number) for number in text.strip().split("x")]
            if math.prod(counts) > MOST_CORES:
                raise LayoutError(f"topology {text!r} has {math.prod(counts)} cores, more than {MOST_CORES}")
            rows = np.indices(counts).reshape(len(counts), -1).T
            return cls(_NAMES[len(counts) - 1], np.ascontiguousarray(rows, np.int64))
        if text.lstrip().startswith("["):
            try:
                groups = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise LayoutError(f"topology {text[:60]!r} is not a valid JSON list", remedy=_FORMS) from error
            return cls.nested(groups)
        raise LayoutError(f"{text[:60]!r} is not a topology", remedy=_FORMS)

    @classmethod
    def nested(cls, groups: Sequence[object], levels: Sequence[str] = ()) -> Tree:
        """Return the cores of nested lists: ``[4, 4, 5]`` is three nodes, ``[[2, 2], [4]]`` also has chips.

        Parameters
        ----------
        groups
            Nested lists of numbers of cores.
        levels
            Names of the levels; by default the usual ones.

        Returns
        -------
        Tree
            The cores.
        """
        paths = list(itertools.islice(_paths(groups), MOST_CORES + 1))
        depths = {len(path) for path in paths}
        if len(paths) > MOST_CORES or not paths:
            raise LayoutError(f"a topology has 1 to {MOST_CORES} cores", remedy=_FORMS)
        if len(depths) > 1 or (not levels and max(depths) > len(_NAMES)):
            raise LayoutError(
                f"the cores of the topology {json.dumps(groups)[:60]} lie {' or '.join(map(str, sorted(depths)))} "
                "levels deep",
                remedy=f"use one depth of at most {len(_NAMES)} levels: [[4]] is a node with one chip of 4 cores",
            )
        return cls(tuple(levels) or _NAMES[max(depths) - 1], np.array(paths, np.int64))

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations between two places, by the number of levels that they have in common.

        For nodes, chips and cores, these are inter-node, inter-chip, intra-chip, same core.
        """
        *groups, last = self.levels
        inside = f"intra-{groups[-1]}" if groups else f"inter-{last}"
        return (*(f"inter-{name}" for name in groups), inside, f"same {last}")

    def common(self, a: Ints | int, b: Ints | int) -> Ints:
        """Return the number of levels that places ``a`` and ``b`` have in common: 0 on different nodes.

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
        chosen = np.arange(ranks) if ranks <= cores else np.arange(ranks) * cores // ranks
        return Tree(self.levels, self.paths[chosen])

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


def read_tree(cpus: Iterable[int] | None = None, system: Path = _SYSTEM) -> Tree:
    """Return the physical cores of some logical processors, by default of those that this process may use."""
    allowed = sorted(usable() if cpus is None else cpus)
    cores = dict.fromkeys(_groups((cpu,), system)["core"] or (cpu,) for cpu in allowed)
    return tree_of_places([(0, _groups(core, system)) for core in cores])


def seats_of(comm: Comm) -> Tree:
    """Return the actual places of the ranks of ``comm``, as far as each is bound to processors.

    Collective; the result is equal on all ranks. Levels that distinguish no two ranks are left out. Ranks that may
    migrate within a node are distinguished by number.
    """
    found = comm.gather((comm.node, _groups(tuple(sorted(usable())), _SYSTEM)))
    seats: Tree = comm.bcast(None if found is None else tree_of_places(found))
    return seats


def tree_of_places(places: Sequence[tuple[int, Mapping[str, Processors | None]]]) -> Tree:
    """Return the tree of places, each given by a node's number and its groups of processors."""
    names = [name for name in places[0][1] if all(groups[name] is not None for _, groups in places)]
    # Wide groups enclose narrow ones; whether, say, NUMA nodes or caches are wider depends on the processor.
    names.sort(key=lambda name: -max(len(groups[name] or ()) for _, groups in places))
    rows: list[tuple[Hashable, ...]] = [(node, *(groups[name] for name in names)) for node, groups in places]
    kept = [0] + [n for n, name in enumerate(names, 1) if name == "core" or _divides(rows, n)]
    levels = ["node", *(names[n - 1] for n in kept[1:])]
    rows = [tuple(row[n] for n in kept) for row in rows]
    if levels[-1] != "core":
        levels.append("rank")
        rows = [(*row, rank) for rank, row in enumerate(rows)]
    return Tree(tuple(levels), _numbered(rows))


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


def _paths(groups: object, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the paths of the cores of nested lists; a number is a group of so many cores."""
    if isinstance(groups, int) and not isinstance(groups, bool) and groups > 0:
        yield from ((*path, core) for core in range(groups))
    elif isinstance(groups, list | tuple) and groups:
        if len(path) == _DEEPEST:
            raise LayoutError(f"the cores of a topology lie at most {_DEEPEST} levels deep", remedy=_FORMS)
        for number, inner in enumerate(groups):
            yield from _paths(inner, (*path, number))
    else:
        raise LayoutError(f"a topology consists of lists and numbers of cores, found {groups!r}", remedy=_FORMS)
