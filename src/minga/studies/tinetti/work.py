"""Effects of messages on computing: overlap, machines with little memory, the matrix product, and balancing."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.launch.processes import descendants, kill
from minga.studies.changing import obeying
from minga.studies.experiments import Bench
from minga.studies.figures import panel
from minga.studies.tinetti.labs import MIB, alike, hub, order, payload_rate, switch
from minga.studies.tinetti.memory import ENCODINGS

__all__ = ["balance", "memory", "overlap", "product"]

Result = dict[str, Any]

# Overlap: Table 5 of Milano, Mocskos and Marshall ---------------------------------------------------------------------
CLAIM_OVERLAP: Final = (
    "(Milano, Mocskos and Marshall, 3.3) MPI_Isend of 84 kB took 7.3 ms, of 168 kB 0.011 ms; nothing moved while the "
    "program computed, as nobody filled TCP's small buffer again, until it called MPI_Test now and then."
)
_BUFFER: Final = 16 * 1024
_LARGE: Final = 672_000
_SLOW: Final = 10e6
"""Rate in bit/s; at ten times this rate, two cores that compute and emulate the wire hide half of a message at most."""


def overlap(bench: Bench) -> Result:
    """Run E11: the duration of MPI_Isend, and the hidden part of a transfer, with and without MPI_Test."""
    sizes = [21_504, 688_128] if bench.quick else [21_504, 86_016, 344_064, 688_128]
    libraries, missing = bench.libraries()
    found: dict[str, dict[str, Any]] = {}
    content = {"task": "overlap", "sizes": sizes, "rounds": 5, "budget": 3.0 * len(sizes)}
    for name, buffer in (("16 kB", _BUFFER), ("as they are", None)):
        with laboratory(switch(_SLOW, alike(2, 0.9), socket_buffer=buffer), quota=False) as cluster:
            for library in libraries:
                bench.say(f"  {library.vendor}, buffers {name} ...")
                found[f"{library.vendor}, buffers {name}"] = order(cluster, content, mpi=library.name)
    plain = {key: [point["overlap"] for point in one["points"]] for key, one in found.items()}
    polled = {
        key: [max(p["overlap"] for p in point["polled"]) for point in one["points"]] for key, one in found.items()
    }
    isend = {key: [one["calls"][str(size)]["Isend"] for size in sizes] for key, one in found.items()}
    shape = {}
    for library in libraries:
        if library.name == "impi":
            continue  # its own thread moves messages of some sizes: shown, not judged
        key = f"{library.vendor}, buffers 16 kB"
        large = [k for k, size in enumerate(sizes) if size >= _LARGE]
        shape[f"{key}: less than 0.05 of {_LARGE} bytes and more is hidden"] = max(plain[key][k] for k in large) < 0.05
        shape[f"{key}: more than 0.8 of it with MPI_Test"] = min(polled[key][k] for k in large) > 0.8
    both = {**plain, **{f"{key}, MPI_Test": values for key, values in polled.items()}}
    return {
        "claim": CLAIM_OVERLAP,
        "panels": [
            panel(sizes, isend, "bytes", "ms in MPI_Isend", logarithmic="xy"),
            panel(sizes, both, "bytes", "part of the transfer that is hidden", logarithmic="x"),
        ],
        **({"left out": missing} if missing else {}),
        "shape": shape,
    }


# Machines with little memory ------------------------------------------------------------------------------------------
CLAIM_MEMORY: Final = (
    "Machines with 32 MB collapse at 1e7 bytes with XDR through the daemons, as buffers do not fit and pages are "
    "swapped; with translation at the receiver less is needed, and they suffer less (Figs. C.7, C.9)."
)
_TIMES: Final = 16
"""Factor of sizes: today's programs need more memory, so messages and memory (lab "cetad") are 16 times as large."""
_MESSAGE: Final = _TIMES * 10_000_000
_MEMORY: Final = 288 * 1024 * 1024
"""Memory in bytes that holds a program and the message once, not twice."""
_RATE: Final = 1e9
_PORT: Final = 47_000


def memory(bench: Bench) -> Result:
    """Run E12: messages of 1.6e8 bytes to a node whose memory holds them only once."""
    rounds = 1 if bench.quick else 3
    nodes = (LabNode("root", 0.7), LabNode("roomy", 0.5), LabNode("tilcara", 0.5, _MEMORY))
    rates: dict[str, list[float | None]] = {"roomy": [], "tilcara": []}
    lost: dict[str, str] = {}
    with laboratory(switch(_RATE, nodes)) as cluster:
        for node, name in ((1, "roomy"), (2, "tilcara")):
            for number, encoding in enumerate(ENCODINGS):
                killed = cluster.killed_for_memory()
                seconds = _send(cluster, node, _PORT + number, encoding, rounds)
                if seconds:
                    rates[name].append(_MESSAGE / min(seconds) / MIB)
                else:
                    rates[name].append(None)
                    more = cluster.killed_for_memory().get(name, 0) > killed.get(name, 0)
                    lost[f"{name}, {encoding}"] = "killed for lack of memory" if more else "ended"
    roomy, tight = rates["roomy"], rates["tilcara"]
    inplace, *buffered = tight
    return {
        "claim": CLAIM_MEMORY,
        "panels": [
            panel(range(len(ENCODINGS)), {name: [value or 0.0 for value in row] for name, row in rates.items()}, "",
                  "MB/s (2^20 bytes)", labels=ENCODINGS, lines={"wire": payload_rate(_RATE, "tcp") / MIB}),
        ],
        "programs that were lost": lost or "none",
        "shape": {
            "with enough memory all encodings arrive": None not in roomy,
            "in place: memory for one message does, at 0.8 of the rate": bool(
                inplace and roomy[0] and inplace > 0.8 * roomy[0]
            ),
            "buffered encodings collapse there: less than half the rate, or the program is lost": all(
                value is None or (other is not None and value < 0.5 * other)
                for value, other in zip(buffered, roomy[1:], strict=True)
            ),
        },
    }  # fmt: skip


def _send(cluster: Cluster, node: int, port: int, encoding: str, rounds: int) -> list[float]:
    """Return the times of messages from the first node, s; empty if the receiver was lost, or did not end in time."""
    arguments = [cluster.addresses[node], str(port), encoding, str(_MESSAGE), str(rounds)]
    start = [sys.executable, "-m", "minga.studies.tinetti.memory"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        cluster.command(node, [*start, "receiver", *arguments]), stdin=quiet, stderr=quiet
    ) as receiver:
        try:
            done = cluster.execute(0, [*start, "sender", *arguments], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return []
        finally:
            kill([receiver.pid, *descendants(receiver.pid)])
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else []


# The matrix product ---------------------------------------------------------------------------------------------------
CLAIM_MATMUL: Final = (
    "(What the study's broadcast was made for.) Rows in proportion to speeds, panels by broadcast: the time follows "
    "from speeds and bandwidth, and from 4 beta S on it pays to share the work."
)
_REPEATED: Final = (8, 16, 32, 32)
"""Number of times that each machine repeats its products, so that speeds are 4 : 2 : 1 : 1.

A smaller fraction of a core would slow down its network as well.
"""
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_LAYOUTS: Final = ("rows", "equal", "alone")
_PART: Final = 0.8
"""Largest accepted ratio of the time with rows by speed to that with equal rows.

With speeds 4 : 2 : 1 : 1 the ratio would be a half if messages took no time, and if the machines of a lab, which share
cores and caches, were not faster while others wait.
"""
_CLEAR: Final = 1.25
"""Predicted time of one machine alone over the shared time, from which the statement that sharing pays is judged."""


def product(bench: Bench) -> Result:
    """Run E13: products by size on three networks: rows by speed, equal rows, and one machine alone."""
    networks: dict[str, tuple[Lab, tuple[int, ...]]] = {"1000 Mb/s": (switch(1e9, alike(4, 0.4)), (256, 1024))}
    if not bench.quick:
        networks = {
            "hub, 10 Mb/s": (hub(10e6, alike(4, 0.4)), (256, 512)),
            "100 Mb/s": (switch(100e6, alike(4, 0.4)), (256, 512, 1024, 2048)),
            "1000 Mb/s": (switch(1e9, alike(4, 0.4)), (128, 256, 512, 1024, 2048)),
        }
    runs: dict[str, list[Mapping[str, Any]]] = {}
    breaks: dict[str, float] = {}
    panels = []
    for name, (lab, sizes) in networks.items():
        bench.say(f"  {name} ...")
        content = {"task": "matmul", "sizes": sizes, "layouts": _LAYOUTS, "repeated": _REPEATED, "rounds": 3}
        with laboratory(lab) as cluster:
            found = order(cluster, content, mpi=bench.mpi, environment=_ONE_THREAD)
        runs[name], breaks[name] = found["runs"], found["break_even"]
        curves = {
            f"{layout}{what}": [_run(found["runs"], size, layout)[key] for size in sizes]
            for layout in _LAYOUTS
            for what, key in (("", "seconds"), (", predicted", "predicted"))
        }
        panels.append(panel(sizes, curves, f"n, {name}", "s", logarithmic="xy"))
    return {
        "claim": CLAIM_MATMUL,
        "panels": panels,
        "break-even n": breaks,
        "shape": _shape_of_products(runs, breaks),
    }


def _run(runs: Sequence[Mapping[str, Any]], size: int, layout: str) -> Mapping[str, Any]:
    return next(run for run in runs if run["size"] == size and run["layout"] == layout)


def _shape_of_products(runs: Mapping[str, Sequence[Mapping[str, Any]]], breaks: Mapping[str, float]) -> dict[str, bool]:
    shape: dict[str, bool] = {}
    for name, found in runs.items():
        largest = max(run["size"] for run in found)
        rows, equal, alone = (_run(found, largest, layout) for layout in _LAYOUTS)
        near = abs(rows["seconds"] / rows["predicted"] - 1.0)
        shape[f"{name}, n = {largest}: within 0.15 of what was predicted"] = near <= 0.15
        if rows["predicted"] >= alone["predicted"]:  # one machine computes it, and equal rows show the cost of sharing
            shape[f"{name}, n = {largest}: sharing does not pay, as was predicted"] = (
                equal["seconds"] > alone["seconds"]
            )
            continue
        if alone["predicted"] >= _CLEAR * rows["predicted"]:
            shape[f"{name}, n = {largest}: sharing pays, as was predicted"] = rows["seconds"] < alone["seconds"]
        shape[f"{name}, n = {largest}: rows by speed take at most {_PART} of what equal rows take"] = (
            rows["seconds"] <= _PART * equal["seconds"]
        )
    return shape


# Balance --------------------------------------------------------------------------------------------------------------
CLAIM_BALANCE: Final = (
    "(Not in the study, whose shares are fixed before the run.) A machine that other people begin to use loses work to "
    "the others once, and the run ends nearly as soon as if it had been known."
)


def balance(bench: Bench) -> Result:
    """Run E14: the fastest of four nodes loses half its share after a third of a run."""
    nodes = (LabNode("fast", 0.6), LabNode("half-1", 0.3), LabNode("half-2", 0.3), LabNode("slow", 0.15))
    with laboratory(switch(_RATE, nodes)) as cluster, tempfile.TemporaryDirectory() as name:
        share = cluster.shares[0]
        with obeying(cluster, Path(name), {"halved": share / 2, "restored": share}):
            content = {
                "task": "balance", "flags": name, "shape": [1536, 1024] if bench.quick else [12288, 8192],
                "seconds": 15.0 if bench.quick else 60.0,
            }  # fmt: skip
            found = order(cluster, content, mpi=bench.mpi)
    seconds: Mapping[str, float] = found["seconds"]
    over = seconds["balanced"] / seconds["best in hindsight"]
    names = list(seconds)
    cells: Mapping[str, list[int]] = found["cells"]
    return {
        "claim": CLAIM_BALANCE,
        "panels": [
            panel(range(len(names)), {"whole run": list(seconds.values())}, "", "s", labels=names),
            panel(range(len(nodes)), dict(cells), "", "cells", labels=[node.name for node in nodes]),
        ],
        "over the best in hindsight": over,
        "moves of work": len(found["moves"]),
        "shape": {
            "the run takes at most 1.10 of the best in hindsight": over <= 1.10,
            "and less than without balancing": seconds["balanced"] < seconds["not balanced"],
            "work is moved, at most five times": 1 <= len(found["moves"]) <= 5,
            "the bits are those of a run that is not balanced": found["same_bits"],
        },
    }
