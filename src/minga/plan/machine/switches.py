"""Switches above the nodes of a machine, as machine files describe them, and networks without switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from minga.errors import CaseError, LayoutError, listed, suggest
from minga.plan.links import HOP
from minga.plan.machine.quantities import Rate, Time
from minga.plan.network import Network
from minga.plan.slurm import names_in, padded, read_switches, switch_levels
from minga.plan.topology import NODE
from minga.space.boxes import Ints

__all__ = ["NetworkSettings", "SwitchSettings", "Switches", "network_of", "switches_of"]

_STRICT: Final = ConfigDict(extra="forbid", frozen=True)
_INSIDE: Final = (NODE, "chip", "NUMA", "cache", "L3", "L2", "core")
"""Names that levels of switches cannot have."""
_DEEPEST: Final = 8
_REMEDY: Final = (
    'write "switches": {"levels": ["rack", "switch"], "groups": [[2, 2], [["n5", "n[6-8]"]]]}, where lists are groups, '
    "numbers are nodes in the order of the file, and lists of text are nodes by name"
)
_SHOWN: Final = 4


@dataclass(frozen=True, eq=False)
class Switches:
    """Groups of nodes above the nodes.

    Parameters
    ----------
    levels
        Names of the levels, the outermost first.
    of
        ``of[n, l]`` is the number of node ``n``'s group on level ``l``, within the group around it; int64, shape
        (nodes, levels).
    uplinks
        For each level, the seconds of a byte on the uplink of a group; 0 if its bandwidth is not known.
    """

    levels: tuple[str, ...]
    of: Ints
    uplinks: tuple[float, ...]

    def part(self, nodes: Sequence[int]) -> Switches:
        """Return the switches of some nodes, in this order."""
        return Switches(self.levels, self.of[np.asarray(nodes, np.int64)], self.uplinks)


class SwitchSettings(BaseModel):
    """The switches of a machine as nested lists with names of their levels."""

    model_config = _STRICT

    levels: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            max_length=_DEEPEST,
            description='levels above the node, the outermost first: ["rack", "switch"]',
        ),
    ]
    groups: Annotated[
        tuple[Any, ...],
        Field(
            min_length=1,
            description="nested lists, one level each; innermost, the number of nodes, or their names: [[4, 4], [8]]",
        ),
    ]
    uplinks: Annotated[
        dict[str, Rate],
        Field(description='bandwidth of the uplink that all nodes of a group share: {"rack": "100 Gb/s"}'),
    ] = {}


class NetworkSettings(BaseModel):
    """A network of nodes without switches: one of torus, mesh and distances."""

    model_config = _STRICT

    torus: Annotated[
        tuple[int, ...] | None, Field(description="nodes along 1 to 3 axes that close to rings: [4, 4]")
    ] = None
    mesh: Annotated[tuple[int, ...] | None, Field(description="nodes along 1 to 3 axes with ends: [4, 4]")] = None
    distances: Annotated[
        tuple[tuple[int, ...], ...] | None, Field(description="hops between all pairs of nodes: [[0, 1], [1, 0]]")
    ] = None
    hop: Annotated[Time, Field(description='latency of each hop after the first: "hop": "100 ns"')] = HOP


def switches_of(given: SwitchSettings | str, names: Sequence[str], where: str | None, folder: Path) -> Switches:
    """Return the switches of the nodes with these names; raise CaseError with the key of an invalid entry."""
    if isinstance(given, str):
        return _of_slurm(folder / given, names, where)
    for number, level in enumerate(given.levels):
        if level in _INSIDE or level in given.levels[:number] or not level.isidentifier():
            raise CaseError(
                f"{level!r} cannot be the name of a level of switches",
                key=f"switches.levels[{number}]",
                where=where,
                remedy='give each level its own name, such as "rack" or "switch"',
            )
    for level in given.uplinks:
        if level not in given.levels:
            raise CaseError(
                f"there is no level {level!r}",
                key=f"switches.uplinks.{level}",
                where=where,
                suggestion=suggest(level, given.levels),
                remedy=f"the levels are {', '.join(given.levels)}",
            )
    of = np.full((len(names), len(given.levels)), -1, np.int64)
    numbers = {name: number for number, name in enumerate(names)}
    counted = 0
    for path, key, entry in _below(given.groups, (), len(given.levels), "switches.groups", where):
        if isinstance(entry, int):
            nodes = list(range(counted, counted + entry))
            counted += entry
        else:
            nodes = [_node(name, numbers, key, where) for name in entry]
        for node in nodes:
            if node >= len(names) or of[node, 0] >= 0:
                raise CaseError(
                    f"the switches have more nodes than the machine, which has {len(names)}"
                    if node >= len(names)
                    else f"node {names[node]!r} is below two switches",
                    key=key,
                    where=where,
                    remedy="list each node once, either all by name or all by number",
                )
            of[node] = path
    missing = [name for name, row in zip(names, of[:, 0].tolist(), strict=True) if row < 0]
    if missing:
        raise CaseError(
            f"no switch leads to {listed(missing, _SHOWN)}", key="switches.groups", where=where, remedy=_REMEDY
        )
    return Switches(given.levels, of, tuple(_beta(given.uplinks.get(level)) for level in given.levels))


def network_of(given: NetworkSettings, nodes: int, where: str | None) -> Network:
    """Return the network of so many nodes; raise CaseError with the key of an invalid entry."""
    said = [name for name in ("torus", "mesh", "distances") if getattr(given, name) is not None]
    if len(said) != 1:
        raise CaseError(
            f"a network is one of torus, mesh and distances; found {', '.join(said) or 'none of them'}",
            key="network",
            where=where,
            remedy='write {"torus": [4, 4]}',
        )
    key = f"network.{said[0]}"
    try:
        if given.distances is not None:
            network = Network.of_distances(given.distances)
        else:
            network = Network.torus(given.torus or given.mesh or (), closed=given.torus is not None)
    except LayoutError as error:
        raise CaseError(error.message, key=key, where=where, remedy=error.remedy) from None
    if len(network) != nodes:
        raise CaseError(
            f"the network has {len(network)} nodes, and the machine {nodes}",
            key=key,
            where=where,
            remedy="describe each node once, in the order of the network",
        )
    return network


def _below(
    groups: Any, path: tuple[int, ...], depth: int, key: str, where: str | None
) -> Iterator[tuple[tuple[int, ...], str, int | list[str]]]:
    """Yield the path of each innermost group, its key, and its number of nodes or their names."""
    if len(path) < depth:
        if not isinstance(groups, list | tuple) or not groups:
            raise _invalid(groups, key, where, f"expected a list of groups, {depth - len(path)} deep")
        for number, inner in enumerate(groups):
            yield from _below(inner, (*path, number), depth, f"{key}[{number}]", where)
        return
    if isinstance(groups, int) and not isinstance(groups, bool) and 0 < groups <= 1 << 20:
        yield path, key, groups
    elif isinstance(groups, list | tuple) and groups and all(isinstance(name, str) for name in groups):
        try:
            yield path, key, [name for text in groups for name in names_in(text)]
        except LayoutError as error:
            raise CaseError(error.message, key=key, where=where, remedy=error.remedy) from None
    else:
        raise _invalid(groups, key, where, "expected a number of nodes, or a list of their names")


def _invalid(found: object, key: str, where: str | None, expected: str) -> CaseError:
    return CaseError(f"{expected}, found {str(found)[:60]}", key=key, where=where, remedy=_REMEDY)


def _node(name: str, numbers: Mapping[str, int], key: str, where: str | None) -> int:
    if name not in numbers:
        raise CaseError(
            f"the machine has no node {name!r}",
            key=key,
            where=where,
            suggestion=suggest(name, numbers),
            remedy=f"its nodes are {listed(list(numbers), _SHOWN)}",
        )
    return numbers[name]


def _of_slurm(path: Path, names: Sequence[str], where: str | None) -> Switches:
    try:
        known = read_switches(path)
    except LayoutError as error:
        raise CaseError(error.message, key="switches", where=error.where, remedy=error.remedy) from None
    found = [known.get(name, known.get(name.partition(".")[0])) for name in names]
    missing = [name for name, chain in zip(names, found, strict=True) if chain is None]
    if missing:
        raise CaseError(
            f"{path.name} names no switch of {listed(missing, _SHOWN)}",
            key="switches",
            where=where,
            suggestion=suggest(missing[0], known),
            remedy='name the nodes of the machine as Slurm does, with "hosts"',
        )
    chains = padded([chain for chain in found if chain is not None])
    numbers = [{name: number for number, name in enumerate(dict.fromkeys(column))} for column in zip(*chains)]
    of = np.array([[known[name] for known, name in zip(numbers, chain)] for chain in chains], np.int64)
    # Levels at which all nodes have the same switch, such as a single spine, tell nothing.
    kept = [level for level in range(of.shape[1]) if of[:, level].any()]
    levels = switch_levels(of.shape[1])
    return Switches(tuple(levels[level] for level in kept), of[:, kept], (0.0,) * len(kept))


def _beta(rate: float | None) -> float:
    return 0.0 if rate is None else 1 / rate
