"""Tables 5 to 9 and Fig. 3 on 14 nodes in a box: blocking against overlapped messages.

The nodes have the speeds of the paper's by clock rate. They relax the ions and the potential of a cell in three
dimensions, a fixed number of sweeps, in slabs along y as thick as nodes are fast. "Blocking" is what the paper began
with: lexicographic sweeps, messages one pair after another (`chain.py`). "Overlapped" is what it came to: the planes
for the neighbours first, and messages in transit while the others are computed. The network's rate is such that a plane
takes as long to send as to compute on the first node, as it did there.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from minga.errors import RunError
from minga.lab.cluster import laboratory
from minga.lab.config import Lab, read_lab
from minga.studies.experiments import Bench
from minga.studies.figures import panel
from minga.studies.milano.paper import (
    CALLS,
    EFFICIENCIES,
    LIBRARIES,
    PROCESSES,
    RATIO,
    SPEED_UPS,
    TIMES,
    derived,
    shape,
)
from minga.studies.tinetti.labs import check_quotas, order
from minga.studies.tinetti.mpi_ranks import CALLS as CALL_NAMES

__all__ = ["asked_of", "calls_beside", "efficiencies", "libraries", "messages", "nodes", "speed_ups", "times", "wasted"]

Result = dict[str, Any]

PROGRAM: Final = "minga.studies.milano.ranks"
WAYS: Final = ("blocking", "overlapped")
_KINDS: Final = ("athlon-950", "athlon-1200", "pentium-733")
"""Kinds of nodes in the order of use: the middle kind first, so that T1 is that of a node of the middle kind."""
_LARGE: Final = 1_000_000


def nodes() -> Lab:
    """Return 14 of the 16 nodes of the lab "speedy-gonzalez", in the order in which processes use them."""
    lab = read_lab("speedy-gonzalez")
    chosen = [node for kind in _KINDS for node in lab.nodes if node.name.startswith(kind)]
    return replace(lab, name="speedy-14", nodes=tuple(chosen))


def asked_of(lab: Lab, ranks: int, quick: bool) -> Result:
    """Return the order to the first ``ranks`` nodes."""
    across = 12 if quick else 64
    lengths = (28,) if quick else (56, 112, 224)
    return {
        "task": "sweeps",
        "meshes": [[length, across, across] for length in lengths],
        "speeds": [node.share for node in lab.nodes[:ranks]],
        "sweeps": 3,
        "rounds": 2 if quick else 3,
        "flow": False,
    }


def _processes(bench: Bench) -> tuple[int, ...]:
    return (1, 2, 4) if bench.quick else PROCESSES


def _calibrated(bench: Bench) -> tuple[Lab, Result]:
    """Return the lab with a network that suits its nodes, and what its rate follows from."""

    def measure() -> tuple[Lab, Result]:
        check_quotas()
        lab, mpi = nodes(), bench.mpi
        _compile(asked_of(lab, 1, True))
        with laboratory(lab) as cluster:
            one, two = (
                order(cluster, asked_of(lab, n, bench.quick), ranks=n, mpi=mpi, program=PROGRAM)[0] for n in (1, 2)
            )
        computing = one["overlapped"]["seconds"] / one["mesh"][0]
        plane = 8.0 * 3 * one["mesh"][1] * one["mesh"][2]
        rate = 8.0 * plane / (computing * RATIO)
        return replace(lab, rate=rate), {
            "seconds_a_plane": computing,
            "bytes_a_plane": plane,
            "interface_bytes_of_two": two["overlapped"]["interface_bytes"],
            "rate": rate,
        }

    return bench.once("calibrated", measure)


def _compile(content: Mapping[str, Any]) -> None:
    """Run one rank outside of the lab, so that slow nodes find its kernels in the cache."""
    done = subprocess.run([sys.executable, "-m", PROGRAM, json.dumps(content)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RunError("\n".join([f"{PROGRAM} ended with status {done.returncode}:", done.stderr.strip()[-800:]]))


def _measured(bench: Bench) -> Result:
    """Return the seconds per sweep by mesh, way and number of processes, from which four items follow."""

    def measure() -> Result:
        lab, network = _calibrated(bench)
        found: dict[str, dict[str, list[float]]] = {}
        processes = _processes(bench)
        with laboratory(lab) as cluster:
            for ranks in processes:
                content = asked_of(lab, ranks, bench.quick)
                for row in order(cluster, content, ranks=ranks, mpi=bench.mpi, program=PROGRAM):
                    mesh = "x".join(map(str, row["mesh"]))
                    for way in WAYS:
                        found.setdefault(mesh, {}).setdefault(way, []).append(row[way]["seconds"])
                    last = {way: found[mesh][way][-1] for way in WAYS}
                    bench.say(
                        f"  {mesh}, {ranks} nodes: {last['blocking']:.3g} s per sweep with blocking messages, "
                        f"{last['overlapped']:.3g} s overlapped"
                    )
            shares = cluster.shares
        return {"network": network, "shares": shares, "processes": processes, "seconds_a_sweep": found}

    return bench.once("times", measure)


def _panels(found: Mapping[str, Any], ours: Mapping[str, Any], paper: Mapping[str, Any], label: str) -> list[Result]:
    """Return one panel per mesh with our curves and the paper's."""
    panels = []
    for mesh, name in zip(found["seconds_a_sweep"], TIMES, strict=False):
        curves = dict(ours[mesh])
        for way in WAYS:
            printed = dict(zip(PROCESSES, paper[name][way], strict=True))
            curves[f"{way}, paper"] = [printed[count] for count in found["processes"]]
        panels.append(panel(found["processes"], curves, f"processes, {mesh}", label))
    return panels


def times(bench: Bench) -> Result:
    """Run Table 7: seconds per sweep; the paper's minutes are relative to its one process."""
    found = _measured(bench)
    seconds = found["seconds_a_sweep"]
    relative = {mesh: {way: [t / row[0] for t in row] for way, row in ways.items()} for mesh, ways in seconds.items()}
    paper = {name: {way: [t / row[0] for t in row] for way, row in ways.items()} for name, ways in TIMES.items()}
    shapes = [shape(found["processes"], ways) for ways in seconds.values()]
    first, last = shapes[0], shapes[-1]
    return {
        "claim": "With blocking messages times rise again: beyond 6 processes on 100 planes, beyond 10 on 200. "
        "Overlapped they fall with every process.",
        "panels": _panels(found, relative, paper, "time relative to one process"),
        "measured": found,
        "shape": {}
        if bench.quick
        else {
            "with blocking messages the shortest mesh is fastest with fewer than 14 processes": first["blocking_peaks"],
            "overlapped, the longest mesh becomes faster with every process": last["overlapped_rises"],
            "overlap gains more than 0.2 on the shortest mesh with 14 processes": first["gain_with_most"] > 0.2,
        },
    }


def _derived(bench: Bench, name: str) -> tuple[Result, dict[str, dict[str, list[float]]]]:
    """Return the measured times, and one of their metrics by mesh and way."""
    found = _measured(bench)
    metrics = {mesh: derived(found["processes"], ways) for mesh, ways in found["seconds_a_sweep"].items()}
    return found, {mesh: {way: ways[way][name] for way in WAYS} for mesh, ways in metrics.items()}


def speed_ups(bench: Bench) -> Result:
    """Run Table 8 with its Figs. 8 and 9."""
    found, ours = _derived(bench, "speed_up")
    return {
        "claim": "14 processes are 7.41, 10.48 and 11.88 times as fast as one overlapped, 3.02, 5.05, 7.56 blocking.",
        "panels": _panels(found, ours, SPEED_UPS, "speed-up"),
        "measured": {"speed_up": ours},
        "shape": {} if bench.quick else _rising(ours),
    }


def efficiencies(bench: Bench) -> Result:
    """Run Table 9 with its Figs. 10 and 11."""
    found, ours = _derived(bench, "efficiency")
    return {
        "claim": "Overlap raises the efficiency of 14 processes from 0.22 to 0.53 and from 0.54 to 0.85.",
        "panels": _panels(found, ours, EFFICIENCIES, "efficiency"),
        "measured": {"efficiency": ours},
        "shape": {} if bench.quick else _rising(ours),
    }


def _rising(ours: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, bool]:
    """Return statements about the metric of the most processes: it grows with the mesh, and by overlap."""
    most = [{way: row[-1] for way, row in ways.items()} for ways in ours.values()]
    return {
        "with 14 processes it grows with the mesh, in both ways": all(
            small[way] < large[way] for small, large in itertools.pairwise(most) for way in WAYS
        ),
        "with 14 processes it is larger overlapped than blocking, on every mesh": all(
            one["overlapped"] > one["blocking"] for one in most
        ),
    }


def wasted(bench: Bench) -> Result:
    """Run Fig. 3: the fraction of the time with blocking messages that is not computing, 1 - E."""
    found, ours = _derived(bench, "wasted")
    percent = {mesh: {"blocking": [100.0 * value for value in ways["blocking"]]} for mesh, ways in ours.items()}
    curves: dict[str, Sequence[float]] = {mesh: ways["blocking"] for mesh, ways in percent.items()}
    for name in TIMES:
        printed = dict(zip(PROCESSES, EFFICIENCIES[name]["blocking"], strict=True))
        curves[f"{name}, paper"] = [100.0 * (1.0 - printed[count]) for count in found["processes"]]
    last = [ways["blocking"][-1] for ways in percent.values()]
    return {
        "claim": "More than 78 % of the time of 14 processes on 100 planes is lost with blocking messages; the part "
        "grows with the processes and falls with the planes.",
        "panels": [panel(found["processes"], curves, "processes", "wasted time, %")],
        "measured": {"wasted": percent},
        "shape": {}
        if bench.quick
        else {
            "more than 78 % is wasted on the shortest mesh with 14 processes": last[0] > 78.0,
            "less is wasted on longer meshes": all(b < a for a, b in itertools.pairwise(last)),
        },
    }


def messages(bench: Bench) -> Result:
    """Run Table 5: durations of calls between two nodes over TCP, by size."""
    check_quotas()
    sizes = [21_504 << k for k in range(3 if bench.quick else 7)]
    content = {"task": "calls", "sizes": sizes, "rounds": 3 if bench.quick else 20}
    with laboratory(nodes()) as cluster:
        found = order(cluster, content, ranks=2, mpi=bench.mpi, program=PROGRAM)
    return calls_beside(found)


def calls_beside(found: Mapping[str, Mapping[str, float]]) -> Result:
    """Return the result of Table 5 from milliseconds by size and call."""
    rows = []
    for (size, ours), (kilobytes, printed) in zip(found.items(), CALLS.items(), strict=False):
        row: Result = {"bytes": int(size), "paper's kB": kilobytes}
        for name, value in zip(CALL_NAMES, printed, strict=True):
            row |= {name: ours[name], f"({name})": value}
        rows.append(row)
    large = [row for row in rows if row["bytes"] > _LARGE]
    return {
        "claim": "Isend takes longer than Send below 100 kB, and 0.01 to 0.09 ms above.",
        "table": rows,
        "milliseconds": dict(found),
        "shape": {
            "unlike there, Isend never takes longer than Send": all(row["Isend"] < row["Send"] for row in rows),
            **({"Isend of a megabyte takes less than a fiftieth of Send": large[0]["Isend"] < 0.02 * large[0]["Send"]}
               if large else {}),
        },
    }  # fmt: skip


def libraries(bench: Bench) -> Result:
    """Run Table 6: five processes with each MPI library that is installed."""
    lab, _ = _calibrated(bench)
    installed, missing = bench.libraries()
    content = asked_of(lab, 5, bench.quick)
    content["meshes"] = content["meshes"][-1:]
    rows: list[Result] = []
    with laboratory(lab) as cluster:
        for library in installed:
            row = order(cluster, content, ranks=5, mpi=library.name, program=PROGRAM)[0]
            blocking, overlapped = (row[way]["seconds"] for way in WAYS)
            gain = 1.0 - overlapped / blocking
            rows.append({"library": library.vendor, "blocking": blocking, "overlapped": overlapped, "gain": gain})
    return {
        "claim": "; ".join(
            f"{name} {blocking} and {overlapped} min, {100 * (1 - overlapped / blocking):.1f} % less"
            for name, (blocking, overlapped) in LIBRARIES.items()
        ),
        "table": rows,
        **({"left out": missing} if missing else {}),
        "shape": {} if bench.quick else {f"{row['library']}: overlap gains": row["gain"] > 0 for row in rows},
    }
