"""Where the seconds of a sweep go, from the nodes' speeds alone to the whole; with the network made free."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from benchmarks.milano.ranks import compile_kernels, order
from minga.lab.cluster import laboratory
from minga.lab.config import ETHERNET, Lab
from minga.space.box import Box
from minga.space.cuts import slabs
from minga.studies.milano.paper import RATIO

FREE: Final = 20e9
"""bit/s of a network that is no limit."""
JUMBO: Final = 9000
ACROSS: Final = (64, 128)
"""Cells across of the meshes."""


def losses(lab: Lab, quick: bool) -> list[dict[str, Any]]:
    """Account for a sweep on the longest mesh of the tables, and where frames and sweeps are larger."""
    small, large = (12, 16) if quick else ACROSS
    first = _one(lab, small, quick)
    return [
        _account(lab, first, ETHERNET, quick),
        _account(lab, first, JUMBO, quick),
        _account(lab, _one(lab, large, quick), JUMBO, quick),
    ]


def _asked(lab: Lab, mesh: Sequence[int], ranks: int, quick: bool) -> dict[str, Any]:
    speeds = [node.share for node in lab.nodes[:ranks]]
    few = quick or ranks == 1
    return {"mesh": mesh, "speeds": speeds, "sweeps": 2 if few else 4, "rounds": 1 if quick else 2 if few else 3}


def _one(lab: Lab, across: int, quick: bool) -> dict[str, Any]:
    """A sweep on the first node."""
    mesh = [28 if quick else 224, across, across]
    cut = slabs(Box((0, 0, 0), tuple(mesh)), len(lab.nodes), 0, [node.share for node in lab.nodes], granule=1)
    for planes in {*(cut.hi[:, 0] - cut.lo[:, 0]).tolist(), mesh[0]}:
        compile_kernels("account", {"mesh": [planes, *mesh[1:]], "speeds": [1.0], "sweeps": 1, "rounds": 1})
    with laboratory(lab) as cluster:
        found = order(cluster, "account", _asked(lab, mesh, 1, quick), 1)
    return {"mesh": mesh, **_summed(found["whole"])}


def _account(lab: Lab, one: Mapping[str, Any], frame: int, quick: bool) -> dict[str, Any]:
    mesh, shares = one["mesh"], [node.share for node in lab.nodes]
    a_plane = one["seconds"] / mesh[0]
    rate = 8.0 * 8 * 3 * mesh[1] * mesh[2] / (a_plane * RATIO)
    found = {"mesh": mesh, "frame": frame, "rate": rate, "one": dict(one), "networks": {}}
    for name, bits in (("as in the paper", rate), ("free", FREE)):
        with laboratory(replace(lab, rate=bits, frame=frame)) as cluster:
            measured = order(cluster, "account", _asked(lab, mesh, len(shares), quick), len(shares))
            parts = cluster.shares
        ways = {way: _summed(measured[way]) for way in ("whole", "together", "alone")}
        kernel = max(system / share for system, share in zip(ways["whole"]["by_rank"]["system"], parts, strict=True))
        found["networks"][name] = {**ways, "messages": measured["messages"], "kernel": kernel}
        found["planes"] = measured["planes"]
    found["parts"] = _parts(found, shares)
    return found


def _summed(ranks: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Samples by rank, as one: the seconds of the slowest rank, the seconds of processors of all, each rank's share."""
    rounds = list(zip(*ranks, strict=True))
    seconds = [max(rank["seconds"] for rank in each) for each in rounds]
    middle = rounds[sorted(range(len(rounds)), key=seconds.__getitem__)[len(rounds) // 2]]
    by_rank = {
        name: [statistics.median(sample[name] for sample in rank) for rank in ranks] for name in ("user", "system")
    }
    return {
        "seconds": statistics.median(seconds),
        "samples": seconds,
        "user": sum(by_rank["user"]),
        "system": sum(by_rank["system"]),
        "by_rank": {**by_rank, "spent": [rank["spent"] for rank in middle]},
    }


def _parts(found: Mapping[str, Any], shares: Sequence[float]) -> dict[str, float]:
    """Seconds of a sweep: of one node, of 14 by their speeds alone, and what is added on the way to the whole."""
    one, networks = found["one"]["seconds"], found["networks"]
    speeds = one * shares[0] / sum(shares)
    planes = one / found["mesh"][0] * shares[0] * max(n / s for n, s in zip(found["planes"], shares, strict=True))
    together = statistics.mean(each["together"]["seconds"] for each in networks.values())
    free, whole = (networks[name]["whole"]["seconds"] for name in ("free", "as in the paper"))
    return {
        "one": one,
        "speeds": speeds,
        "planes": planes - speeds,
        "shared": together - planes,
        "messages": free - together,
        "rate": whole - free,
        "whole": whole,
        "speed_up": one / whole,
    }
