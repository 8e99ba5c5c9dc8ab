"""Broadcasts as in Figs. C.16 to C.19 of the study: to one receiver and to several, on a hub and on switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from minga.errors import LaunchError
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import LabNode
from minga.launch.implementations import NAMES
from minga.studies.experiments import Bench
from minga.studies.figures import panel
from minga.studies.tinetti.labs import MIB, alike, hub, one_way, order, payload_rate, switch, team_of
from minga.studies.tinetti.pvm import check_pvm, virtual_machine

__all__ = ["networks", "one_receiver", "receivers", "switched"]

Result = dict[str, Any]
Times = dict[str, dict[int, dict[int, float]]]
"""Shortest times, s, by route, number of receivers and size."""

SIZES: Final = (8, 100, 1000, 60_000, 1_000_000)
UDP: Final = "minga.broadcast"
_MULTICAST, _CHAIN = "multicast", "chain"


def _rounds(sizes: Sequence[int], *, quick: bool) -> dict[str, int]:
    """Return the rounds for each size; fewer for large messages, which take longest and vary least."""
    return {str(size): max(2, (12 if size <= 1000 else 4 if size < 1_000_000 else 2) // (1 + quick)) for size in sizes}


def _least(found: Mapping[str, Any], way: str, teams: Sequence[Sequence[int]]) -> dict[int, dict[int, float]]:
    """Return the shortest times of one route by number of receivers and size."""
    rows = zip(teams, found["seconds"][way], strict=True)
    return {len(team) - 1: {int(size): min(times) for size, times in row.items()} for team, row in rows}


def _broadcast(
    cluster: Cluster,
    ways: Sequence[str],
    teams: Sequence[Sequence[int]],
    sizes: Sequence[int],
    *,
    quick: bool,
    rate: float,
    mpi: str,
    environment: Mapping[str, str] | None = None,
) -> tuple[dict[str, dict[int, dict[int, float]]], int]:
    """Return the shortest times by route, receivers and size, and the number of messages with a wrong byte."""
    content = {
        "task": "broadcasts", "ways": list(ways), "teams": [list(team) for team in teams], "sizes": list(sizes),
        "rounds": _rounds(sizes, quick=quick), "rate": rate,
    }  # fmt: skip
    ranks = 1 + max(rank for team in teams for rank in team)
    found = order(cluster, content, ranks=ranks, mpi=mpi, environment=environment)
    return {way: _least(found, way, teams) for way in ways}, found["wrong"]


def _slope(times: Mapping[int, Mapping[int, float]], size: int, rate: float) -> float:
    """Return the time added by each receiver (least squares), as a fraction of the time of the message on the wire."""
    counts = sorted(times)
    added = np.polyfit(counts, [times[count][size] for count in counts], 1)[0]
    return float(added) * payload_rate(rate, "tcp") / size


def _over_receivers(times: Times, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return panels of the time over the number of receivers for each size, and of MB/s for the largest size."""
    panels = []
    counts = sorted({m for row in times.values() for m in row})
    for size in sizes:
        milliseconds = {way: [_ms(row, m, size) for m in counts] for way, row in times.items()}
        panels.append(panel(counts, milliseconds, f"receivers, {size} bytes", "ms", logarithmic="y"))
    speeds = {
        way: [sizes[-1] / row[m][sizes[-1]] / MIB if m in row else None for m in counts] for way, row in times.items()
    }
    return [*panels, panel(counts, speeds, f"receivers, {sizes[-1]} bytes", "MB/s (2^20 bytes)")]


def _ms(row: Mapping[int, Mapping[int, float]], receivers: int, size: int) -> float | None:
    found = row.get(receivers, {}).get(size)
    return None if found is None else 1e3 * found


# One receiver: Figs. C.16 and C.17 ------------------------------------------------------------------------------------
CLAIM_ONE: Final = (
    "The broadcast over UDP to one receiver: latency like PVM's, 1e6 bytes in about a second, bandwidth near the "
    "wire's and independent of the machine (Figs. C.16, C.17)."
)


def one_receiver(bench: Bench) -> Result:
    """Run E7, Figs. C.16 and C.17: broadcasts to a fast and to a slow machine."""
    rate = 10e6
    sizes = (8, 1000, 60_000, 1_000_000)
    nodes = (LabNode("root", 0.4), LabNode("fast", 0.6), LabNode("slow", 0.1))
    seconds: dict[str, list[float | None]] = {}
    wrong = 0
    with laboratory(hub(rate, nodes)) as cluster:
        for number, name in ((1, "fast"), (2, "slow")):
            times, bad = _broadcast(
                cluster, [_MULTICAST], [[0, number]], sizes, quick=bench.quick, rate=rate, mpi=bench.mpi
            )
            seconds[f"{UDP}, {name}"] = [times[_MULTICAST][1][size] for size in sizes]
            wrong += bad
        with team_of(cluster) as team:
            seconds["TCP, fast"] = one_way(team, cluster, 1, "tcp", sizes, 30.0)
    fast, slow = (np.array(seconds[f"{UDP}, {name}"], float) for name in ("fast", "slow"))
    part = sizes[-1] / fast[-1] / payload_rate(rate, "udp")
    return {
        "claim": CLAIM_ONE,
        "panels": [
            panel(sizes, {n: [None if t is None else 1e3 * t for t in v] for n, v in seconds.items()}, "bytes", "ms",
                  logarithmic="xy", lines={"about 1 s": 1000.0}),
            panel(sizes, {n: [None if not t else s / t / MIB for s, t in zip(sizes, v)] for n, v in seconds.items()},
                  "bytes", "MB/s (2^20 bytes)", logarithmic="x", lines={"wire, 1.19 MB/s": rate / 8 / MIB}),
        ],
        "part of UDP's payload rate": float(part),
        "shape": {
            "0.95 of UDP's payload rate with 1e6 bytes": bool(part >= 0.95),
            "1e6 bytes take about a second": bool(0.75 < fast[-1] < 1.1),
            "a machine of a sixth of the speed takes as long, within a tenth": bool(abs(slow[-1] / fast[-1] - 1) < 0.1),
            "every byte is right": wrong == 0,
        },
    }  # fmt: skip


# Many receivers: Figs. C.18 and C.19 ----------------------------------------------------------------------------------
CLAIM_MANY: Final = (
    "pvm_mcast and pvm_bcast take a time proportional to the number of receivers for 6e4 and 1e6 bytes, the broadcast "
    "over UDP takes the same for all, and up to 1000 bytes all depend on latencies alone (Figs. C.18, C.19)."
)


def receivers(bench: Bench) -> Result:
    """Run E8, Figs. C.18 and C.19: MPI, PVM and minga.network.broadcast to 1, 3, 7 and 13 receivers on one hub."""
    rate = 10e6
    counts = (1, 3) if bench.quick else (1, 3, 7, 13)
    sizes = (1000, 60_000, 1_000_000) if bench.quick else SIZES
    libraries, missing = bench.libraries()
    teams = [list(range(count + 1)) for count in counts]
    times: Times = {}
    wrong = 0
    nodes = (LabNode("root", 0.3), *alike(counts[-1], 0.9 / counts[-1]))
    with laboratory(hub(rate, nodes)) as cluster:
        for number, library in enumerate(libraries):
            bench.say(f"  {library.vendor} ...")
            # minga.network.broadcast uses MPI only for barriers: it is measured once.
            ways = [_MULTICAST, "mpi"] if number == 0 else ["mpi"]
            found, bad = _broadcast(cluster, ways, teams, sizes, quick=bench.quick, rate=rate, mpi=library.name)
            times |= {library.vendor if way == "mpi" else UDP: row for way, row in found.items()}
            wrong += bad
        try:
            check_pvm()
            bench.say("  PVM ...")
            with virtual_machine(cluster) as pvm:
                doubles = [size // 8 * 8 for size in sizes]
                rounds = dict(zip(doubles, _rounds(sizes, quick=bench.quick).values(), strict=True))
                mcast = pvm.broadcast(doubles, counts, route="direct", rounds=rounds)
            times["PVM"] = {
                m: dict(zip(sizes, (min(t) for t in row.values()), strict=True)) for m, row in mcast.items()
            }
        except LaunchError as error:
            missing["PVM"] = error.message
    if not times:
        return {"claim": CLAIM_MANY, "left out": missing, "shape": {}}
    return {
        "claim": CLAIM_MANY,
        "panels": _over_receivers(times, sizes),
        "added by a receiver, in parts of the wire's time, 1e6 bytes": {
            way: _slope(row, sizes[-1], rate) for way, row in times.items()
        },
        "and 6e4 bytes": {way: _slope(row, 60_000, rate) for way, row in times.items()},
        f"ms of {sizes[0]} bytes to {', '.join(map(str, counts))} receivers": {
            way: [round(1e3 * row[m][sizes[0]], 2) for m in counts] for way, row in times.items()
        },
        **({"left out": missing} if missing else {}),
        "shape": _shape_of_many(times, sizes[-1], rate) | {"every byte is right": wrong == 0},
    }


def _shape_of_many(times: Times, size: int, rate: float) -> dict[str, bool]:
    shape: dict[str, bool] = {}
    ours = times.get(UDP)
    if ours is not None:
        most = max(row[size] for row in ours.values())
        counts = ", ".join(str(m) for m in sorted(ours) if m > 1)
        shape[f"{UDP}: {size} bytes to {counts} receivers take as long as to one, within a tenth"] = (
            most <= 1.1 * ours[1][size]
        )
        shape[f"{UDP}: a receiver adds at most 0.05 of the wire's time"] = _slope(ours, size, rate) <= 0.05
        shape[f"{UDP}: 0.9 of the wire's payload rate"] = size / most >= 0.9 * payload_rate(rate, "udp")
    for way, row in times.items():
        if way == UDP:
            continue
        for length in (60_000, size):
            slope = _slope(row, length, rate)
            if way == "PVM":
                shape[f"PVM: each receiver adds the wire's time, within a tenth, at {length} bytes"] = (
                    0.9 <= slope <= 1.1
                )
            else:  # scatter and allgather, the choice for large messages, move more than one message per receiver
                shape[f"{way}: each receiver adds at least 0.9 of the wire's time at {length} bytes"] = slope >= 0.9
    return shape


# Faster networks ------------------------------------------------------------------------------------------------------
CLAIM_FASTER: Final = (
    "In the laboratory with 100 Mb/s the pictures are the same; the weight of the latency grows, as it does not shrink "
    "with the bandwidth (C.12)."
)


def networks(bench: Bench) -> Result:
    """Run E9: the same on switches of 10 and 100 Mb/s."""
    sizes = (1000, 60_000, 1_000_000)
    counts = (1, 3)
    teams = [list(range(count + 1)) for count in counts]
    weight: dict[str, float] = {}
    grows: dict[str, dict[str, float]] = {}
    wrong = 0
    panels = []
    libraries, missing = bench.libraries()
    if not libraries:
        return {"claim": CLAIM_FASTER, "left out": missing, "shape": {}}
    for rate in (10e6, 100e6):
        name = f"{rate / 1e6:g} Mb/s"
        with laboratory(switch(rate, alike(4, 0.35), latency=0.2e-3)) as cluster:
            with team_of(cluster) as team:
                empty, small = one_way(team, cluster, 1, "tcp", [8, 1000], 3.0)
            assert empty is not None
            assert small is not None
            weight[name] = empty / small
            found, bad = _broadcast(
                cluster, [_MULTICAST, "mpi"], teams, sizes, quick=bench.quick, rate=rate, mpi=libraries[0].name
            )
        wrong += bad
        times = {libraries[0].vendor if way == "mpi" else UDP: row for way, row in found.items()}
        grows[name] = {way: row[3][sizes[-1]] / row[1][sizes[-1]] for way, row in times.items()}
        labelled = {
            f"{way}, {m} receivers": [1e3 * row[m][s] for s in sizes] for way, row in times.items() for m in counts
        }
        panels.append(panel(sizes, labelled, f"bytes, {name}", "ms", logarithmic="xy"))
    slow, fast = weight
    mpi = libraries[0].vendor
    return {
        "claim": CLAIM_FASTER,
        "panels": panels,
        "part of latency in the time of 1000 bytes": weight,
        "time to three receivers over that to one, 1e6 bytes": grows,
        "shape": {
            "latency weighs more on the faster network": weight[fast] > 1.5 * weight[slow],
            f"{mpi} takes longer to three receivers than to one, on both": all(r[mpi] > 1.4 for r in grows.values()),
            f"{UDP} hardly, on both": all(r[UDP] < 1.25 for r in grows.values()),
            "every byte is right": wrong == 0,
        },
    }


# A fair comparison on a switch ----------------------------------------------------------------------------------------
CLAIM_SWITCH: Final = (
    "(The study had one medium.) On a switch a tuned chain of machines that pass pieces on is about as fast as a "
    "broadcast: every line carries the message once. The defaults of MPI are not."
)
TUNED: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "openmpi": (
        "pipeline of 16 kB",
        {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
            "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize": "16384",
            "OMPI_MCA_coll": "tuned,libnbc,basic,self,inter",
        },
    ),
    "mpich": ("scatter, ring allgather", {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "scatter_ring_allgather"}),
}
"""Settings that make broadcasts of large messages fast on a switch."""


def switched(bench: Bench) -> Result:
    """Run E10: multicast, minga's chain, and MPI with default and best settings, to three receivers on switches."""
    sizes = (60_000, 1_000_000)
    teams = [[0, 1, 2, 3]]
    libraries, missing = bench.libraries()
    if not libraries:
        return {"claim": CLAIM_SWITCH, "left out": missing, "shape": {}}
    rates = (100e6,) if bench.quick else (10e6, 100e6, 1e9)
    seconds: dict[str, dict[str, float]] = {}
    wrong = 0
    for rate in rates:
        row: dict[str, float] = {}
        with laboratory(switch(rate, alike(4, 0.4))) as cluster:
            for number, library in enumerate(libraries):
                bench.say(f"  {rate / 1e6:g} Mb/s, {library.vendor} ...")
                ways = [_MULTICAST, _CHAIN, "mpi"] if number == 0 else ["mpi"]
                setting, tuned = TUNED.get(library.name, ("", {}))
                found, bad = _broadcast(cluster, ways, teams, sizes, quick=bench.quick, rate=rate, mpi=library.name)
                row |= {_named(way, library.vendor): found[way][3][sizes[-1]] for way in ways}
                wrong += bad
                if tuned:
                    found, bad = _broadcast(
                        cluster,
                        ["mpi"],
                        teams,
                        sizes,
                        quick=bench.quick,
                        rate=rate,
                        mpi=library.name,
                        environment=tuned,
                    )
                    row[f"{library.vendor}, {setting}"] = found["mpi"][3][sizes[-1]]
                    wrong += bad
        seconds[f"{rate / 1e6:g} Mb/s"] = row
    shape = {"every byte is right": wrong == 0}
    for name, row in seconds.items():
        if name == "1000 Mb/s":
            continue  # the limit is this machine, which emulates all four
        chains = [spent for way, spent in row.items() if way == _named(_CHAIN, "") or "," in way]
        defaults = [row[vendor] for vendor in NAMES.values() if vendor in row]
        shape[f"{name}: the best tuned chain is as fast as multicast, within a third"] = (
            0.7 < min(chains) / row[_named(_MULTICAST, "")] < 1.34
        )
        shape[f"{name}: multicast takes less than 0.7 of the slowest default"] = row[
            _named(_MULTICAST, "")
        ] < 0.7 * max(defaults)
    ways = list(dict.fromkeys(way for row in seconds.values() for way in row))
    panels = [
        panel(range(len(ways)), {name: [1e3 * row[way] if way in row else None for way in ways]}, "", "ms, 1e6 bytes",
              labels=ways) for name, row in seconds.items()
    ]  # fmt: skip
    return {
        "claim": CLAIM_SWITCH,
        "panels": panels,
        "seconds of 1e6 bytes": {
            name: {way: round(spent, 5) for way, spent in row.items()} for name, row in seconds.items()
        },
        **({"left out": missing} if missing else {}),
        "shape": shape,
    }


def _named(way: str, vendor: str) -> str:
    return {"mpi": vendor, _MULTICAST: "minga: multicast", _CHAIN: "minga: chain"}[way]
