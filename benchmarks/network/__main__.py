"""Messages between two nodes of a lab, timed by minga and in turns by NetPIPE, the Intel MPI Benchmarks and PVM.

python -m benchmarks.network                   everything, some minutes; stores benchmarks/results/network.json
python -m benchmarks.network --only netpipe    a part; stores only where --out says
python -m benchmarks.network --only pvm --update   a part anew, in the stored file
python -m benchmarks.network --quick           few repetitions: numbers that mean nothing

Needs Linux, root or user namespaces (docs/lab.md), and the peers: netpipe-tcp and pvm of Debian, and Intel MPI beside
minga's environment (make mpi-environments). What is not installed is left out, and said. All numbers are of an emulated
network of 100 Mb/s.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import asked
from benchmarks.machine import measured_in_labs
from benchmarks.network import peers
from benchmarks.network.report import markdown
from benchmarks.page import shown
from minga.lab.cluster import laboratory
from minga.launch.implementations import installed
from minga.network.measuring.encodings import ENCODINGS
from minga.network.measuring.exchanges import Ends, sample_message_sizes

NUMBERS = (1000, 60_000, 1_000_000)
"""Bytes of messages in several encodings."""


def netpipe(quick: bool) -> dict[str, Any]:
    """Our TCP beside NetPIPE's."""
    if why := peers.missing("netpipe"):
        return {"left_out": why}
    seconds = 1.0 if quick else 8.0
    with (
        laboratory(peers.TWO, quota=False) as cluster,
        tempfile.TemporaryDirectory() as folder,
        peers.two_agents(cluster) as team,
    ):
        return compared(
            lambda: peers.ours_tcp(cluster, team, peers.SIZES, seconds),
            lambda: peers.netpipe(cluster, Path(folder), peers.SIZES),
            peers.SIZES,
            quick,
        )


def intel(quick: bool) -> dict[str, Any]:
    """Our MPI beside the Intel benchmarks, on the libraries that both can use."""
    return {mpi: intel_on(mpi, quick) for mpi in ("mpich", "impi")}


def intel_on(mpi: str, quick: bool) -> dict[str, Any]:
    """On one library."""
    if why := peers.missing(mpi):
        return {"left_out": why}
    with laboratory(peers.TWO, quota=False) as cluster, tempfile.TemporaryDirectory() as folder:
        return compared(
            lambda: peers.ours_mpi(cluster, mpi, peers.LARGE, 1.0 if quick else 8.0),
            lambda: peers.intel(cluster, mpi, Path(folder), peers.LARGE, 3 if quick else peers.ROWS),
            peers.LARGE,
            quick,
        )


def compared(
    ours: Callable[[], peers.Times], theirs: Callable[[], peers.Times], sizes: Sequence[int], quick: bool
) -> dict[str, Any]:
    """After all turns: by bytes, and how far the worst ratio of medians is from one."""
    *_, found = peers.round_robin(ours, theirs, sizes, 1 if quick else 5)
    return {"sizes": found, "worst": peers.worst(found)}


def libraries(quick: bool) -> dict[str, Any]:
    """Each MPI that is installed: median seconds one way."""
    sizes = (8, 1000, 60_000) if quick else (8, 1000, 60_000, 1_000_000)
    with laboratory(peers.TWO, quota=False) as cluster:
        return {
            mpi.vendor: medians(peers.ours_mpi(cluster, mpi.name, sizes, 1.0 if quick else 10.0)) for mpi in installed()
        }


def pvm(quick: bool) -> dict[str, Any]:
    """PVM by route and encoding, beside our TCP with the numbers as they lie in memory."""
    if why := peers.missing("pvm"):
        return {"left_out": why}
    from minga.studies.tinetti.pvm import virtual_machine

    sizes = NUMBERS[:2] if quick else NUMBERS
    with laboratory(peers.TWO, quota=False) as cluster:
        with peers.two_agents(cluster) as team:
            found = {"minga, TCP": medians(peers.ours_tcp(cluster, team, sizes, 1.0 if quick else 10.0))}
        with virtual_machine(cluster) as machine:
            for route in ("daemon", "direct"):
                for encoding in ("xdr", "raw", "inplace"):
                    times = machine.pingpong(sizes, route=route, encoding=encoding)
                    found[f"PVM, {route}, {encoding}"] = medians(times)
    return found


def encodings(quick: bool) -> dict[str, Any]:
    """Our encodings over TCP, from and to a machine of the other byte order, and what they cost each node."""
    with laboratory(peers.TWO, quota=False) as cluster, peers.two_agents(cluster) as team:
        ends = Ends(0, 1, cluster.addresses[1])
        seconds = 1.0 if quick else 10.0
        ways = {
            encoding: medians(
                {
                    s.size: list(s.seconds)
                    for s in sample_message_sizes(team, ends, "tcp", NUMBERS, seconds, 0, encoding=encoding)
                }
            )
            for encoding in ENCODINGS
        }
        host = team.run({0: {"do": "encodings", "sizes": list(NUMBERS), "budget": 0.2 if quick else 5.0}})[0]
    return {"over_tcp": ways, "on_a_node": host}


def medians(times: peers.Times) -> dict[int, float]:
    """By bytes."""
    return {size: statistics.median(found) for size, found in times.items()}


ITEMS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "netpipe": netpipe,
    "intel": intel,
    "libraries": libraries,
    "pvm": pvm,
    "encodings": encodings,
}


def headline(results: Mapping[str, Any]) -> dict[str, float]:
    """How far the ratios of medians are from one, at worst, for each peer that was there."""
    pairs = {"netpipe": results.get("netpipe", {}), **{f"intel_{k}": v for k, v in results.get("intel", {}).items()}}
    return {f"{name}_difference": found["worst"] for name, found in pairs.items() if "worst" in found}


def main() -> int:
    options = asked(
        "benchmarks.network", "Messages beside NetPIPE, IMB and PVM", ITEMS, "network.json", table=True, update=True
    )
    shown(options, "network", partial(measured_in_labs, ITEMS, rate=peers.RATE), markdown, headline=headline)
    return 0


if __name__ == "__main__":
    sys.exit(main())
