"""Switches between machines in the network section of a machine's JSON, and the links of their levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import listed
from minga.network.measuring.levels import Levels
from minga.network.measuring.matrix import SWITCH, PairMatrix, node_costs
from minga.plan.links import Link, Segment
from minga.plan.slurm import switch_levels

__all__ = ["as_at_one_switch", "level_links", "switch_remarks", "switches_entry", "switches_section"]

_LEAST: Final = 1e-7
"""Seconds that a message takes at least."""


def switches_section(matrix: PairMatrix, levels: Levels | None) -> dict[str, Any]:
    """Return ``switches`` as JSON-serialisable data: the levels, and what a message takes on each; empty without."""
    if levels is None:
        return {}
    names = switch_levels(len(levels.of))
    latency, bandwidth = _by_level(matrix, levels)
    uplinks = {name: rate for level, name in enumerate(names) if (rate := _uplink(matrix, levels, level)) is not None}
    return {
        "basis": levels.basis,
        "levels": list(names),
        "groups": levels.of.tolist(),
        "latency": latency,
        "bandwidth": bandwidth,
        "uplinks": uplinks,
    }


def switches_entry(section: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``switches`` of a machine file with these nodes, in the order of the section; empty without."""
    found = section.get("switches")
    if not found:
        return {}
    names = [name for node in nodes for name in (node.get("hosts") or [node["name"]])]
    groups = Levels(found["basis"], np.array(found["groups"])).groups(names)
    uplinks = {"uplinks": found["uplinks"]} if found["uplinks"] else {}
    return {"switches": {"levels": found["levels"], "groups": groups, **uplinks}}


def level_links(section: Mapping[str, Any], link: Link) -> dict[str, Link]:
    """Return the links between groups of each level and between nodes, from that of the pair that was measured well."""
    found = section.get("switches")
    pair = next((entry["members"] for entry in section["links"] if int(entry["level"]) == 0), None)
    if not found or pair is None:
        return {}
    positions = {int(member["number"]): at for at, member in enumerate(section["members"])}
    common = Levels(found["basis"], np.array(found["groups"])).common
    here = int(common[positions[pair[0]], positions[pair[1]]])
    latency, bandwidth = found["latency"], found["bandwidth"]
    return {
        f"inter-{name}": _changed(link, latency[level] - latency[here], bandwidth[here] / bandwidth[level])
        for level, name in enumerate([*found["levels"], "node"])
    }


def as_at_one_switch(matrix: PairMatrix, levels: Levels | None) -> PairMatrix:
    """Return the pairs as they would be without what lies between switches, to find slow machines."""
    if levels is None:
        return matrix
    latency, bandwidth = _by_level(matrix, levels)
    common = levels.common
    pairs = []
    for pair in matrix.pairs:
        level = int(common[pair.sender, pair.receiver])
        near = max(pair.latency - (latency[level] - latency[-1]), _LEAST)
        wire = pair.size / pair.bandwidth * min(1.0, bandwidth[level] / bandwidth[-1])
        pairs.append(replace(pair, latency=near, seconds=near + wire))
    flat = replace(matrix, pairs=tuple(pairs))
    return replace(flat, costs=node_costs(flat.values("latency")))


def switch_remarks(matrix: PairMatrix, levels: Levels | None) -> list[str]:
    """Return a sentence about each level of switches that was found."""
    if levels is None:
        return []
    latency, bandwidth = _by_level(matrix, levels)
    said = []
    for level, name in enumerate(switch_levels(len(levels.of))):
        groups = _members(levels.of[level])
        lists = "; ".join(listed([matrix.names[machine] for machine in group.tolist()], 4) for group in groups)
        said.append(
            f"level {name}: {len(groups)} groups of machines ({lists}), between which a message takes "
            f"{_speed(latency[level], bandwidth[level])}, and {_speed(latency[level + 1], bandwidth[level + 1])} one "
            "level further in"
        )
    return said


def _by_level(matrix: PairMatrix, levels: Levels) -> tuple[list[float], list[float]]:
    """Return the usual latency and bandwidth of pairs by the number of levels that they have in common."""
    common = levels.common
    found = []
    for what in ("latency", "bandwidth"):
        values = matrix.values(what)
        known = np.isfinite(values)
        usual = [values[known & (common == level)] for level in range(len(levels.of) + 1)]
        found.append([float(np.median(each)) if len(each) else float(np.median(values[known])) for each in usual])
    return found[0], found[1]


def _uplink(matrix: PairMatrix, levels: Levels, level: int) -> float | None:
    """Return the bytes a second that all machines of a group share towards others; None if they never slow down."""
    common = levels.common
    inside = [
        together / alone
        for one in matrix.rounds
        for pair, together, alone in zip(one.pairs, one.together, one.alone, strict=True)
        if common[pair] > level
    ]
    free = float(np.median(inside)) if inside else 1.0
    found = list(_crossings(matrix, levels, level))
    if not found or np.median([together / alone for together, alone in found]) > SWITCH * free:
        return None
    return float(np.median([together for together, _ in found]))


def _crossings(matrix: PairMatrix, levels: Levels, level: int) -> Iterator[tuple[float, float]]:
    """Yield the bytes a second of several pairs that leave a group, together and alone."""
    common, of = levels.common, levels.of[level]
    for one in matrix.rounds:
        for group in np.unique(of).tolist():
            leaving = [
                at for at, pair in enumerate(one.pairs) if common[pair] == level and (of[list(pair)] == group).any()
            ]
            if len(leaving) > 1:
                yield sum(one.together[at] for at in leaving), sum(one.alone[at] for at in leaving)


def _speed(latency: float, bandwidth: float) -> str:
    return f"{1e6 * latency:.3g} us and {bandwidth / 1e6:.3g} MB/s"


def _members(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [np.flatnonzero(groups == number) for number in dict.fromkeys(groups.tolist())]


def _changed(link: Link, extra: float, factor: float) -> Link:
    """Return a link with other latency, and another factor on the seconds of a byte."""
    return Link(
        tuple(Segment(s.least, max(s.alpha + extra, min(s.alpha, _LEAST)), s.beta * factor) for s in link.segments),
        link.overlap,
    )
