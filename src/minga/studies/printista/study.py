"""The experiments of Printista and Saez, *Effective Use of Multicore Clusters in Parallel Cellular Automata*.

Table 1 and Fig. 5 are about messages, and are counted: Table 1 by the transport while the automaton runs on virtual
ranks, Fig. 5 on the layouts that minga's mappings give on the cluster of the paper, 16 nodes of 2 chips of 2 cores.
Tables 2 and 3 and Figs. 3, 4 and 6 are about times, and are measured on the cores of this machine. The paper's times
are from nodes at a Gigabit switch, so that only their order can be compared.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.engine.pin import available_cores
from minga.errors import RunError
from minga.launch.jobs import finished_job
from minga.launch.launcher import find_launcher
from minga.plan.placement import cost_of, edges_of, place
from minga.plan.topology import Tree
from minga.space.cuts import cartesian
from minga.studies.printista.laplace import Relaxation

__all__ = ["Sizes", "failed", "measure", "sizes", "tables"]

Say = Callable[[str], None]
Mesh = tuple[int, int]

PAPER_VOLUMES: Final[Mapping[Mesh, tuple[int, int, int]]] = {
    (4, 1): (4, 2, 1),
    (2, 2): (4, 4, 2),
    (16, 1): (16, 2, 1),
    (4, 4): (16, 4, 4),
}
"""Table 1, by mesh: a process has N^2 / the first number of cells, and sends to as many neighbours as the second number
and receives from them N / the third number of cells each."""

PAPER_MESSAGES: Final[Mapping[str, tuple[int, int, int]]] = {"sequential": (10, 2, 4), "tiles": (8, 4, 4)}
"""Fig. 5, left and right: messages that a node sends to other nodes, between its chips and within its chips. Where the
text says "four inter-chip" the figure shows messages within a chip."""

PAPER_TIMES: Final[Mapping[int, Mapping[Mesh, tuple[float, float, float]]]] = {
    256: {
        (4, 1): (2.06, 57.33, 1.90), (2, 2): (1.78, 68.07, 2.20),
        (16, 1): (1.16, 31.20, 3.40), (4, 4): (0.91, 39.94, 4.31),
    },
    512: {
        (4, 1): (5.36, 81.62, 2.93), (2, 2): (5.22, 83.95, 3.02),
        (16, 1): (2.44, 51.60, 6.45), (4, 4): (2.31, 52.32, 6.83),
    },
    1024: {
        (4, 1): (17.45, 91.68, 3.68), (2, 2): (17.10, 92.81, 3.74),
        (16, 1): (5.89, 73.91, 10.88), (4, 4): (7.08, 61.49, 9.04),
    },
}  # fmt: skip
"""Tables 2 and 3, one process on a node, by cells along an axis and mesh: total time, % in computation, speedup."""

PAPER_AFFINITY: Final[Mapping[int, int]] = {4: 13, 16: 25, 64: 30}
"""Average reduction of the time by affinity, in % (section 4.1), by processes on nodes of four cores."""

CLUSTER: Final = "16x2x2"
BYTES: Final = 8
_COUNTED: Final = 4
_PATIENCE: Final = 600.0
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extent of the study.

    Attributes
    ----------
    lattices
        Cells along an axis.
    counted
        Cells along an axis where bytes are counted.
    steps
        Steps of a round.
    rounds
        Rounds, of whose times the median counts.
    """

    lattices: tuple[int, ...]
    counted: int
    steps: int
    rounds: int


def sizes(*, quick: bool) -> Sizes:
    """Return sizes for a study of a minute, or of some seconds, whose times are meaningless."""
    return Sizes((64,), 64, 20, 3) if quick else Sizes((256, 512, 1024), 256, 200, 9)


def measure(how: Sizes, say: Say) -> dict[str, Any]:
    """Count all messages and measure all times, and return them as data."""
    began = time.perf_counter()
    result: dict[str, Any] = {
        "sizes": asdict(how),
        "cores": len(available_cores()),
        "table 1": [volume(mesh, how.counted) for mesh in PAPER_VOLUMES],
        "figure 5": [messages(mapping) for mapping in ("sequential", "round-robin", "tiles", "auto")],
    }
    say("messages are counted; now times are measured")
    result["times"] = times(how, say)
    return result | {"seconds": round(time.perf_counter() - began, 1)}


def volume(mesh: Mesh, size: int) -> dict[str, Any]:
    """Run the automaton on a torus on virtual ranks, and return what a process has, sends and receives in a step.

    On a torus all processes are alike, as they are in Table 1. The numbers are those of the first process; ``same`` is
    True if the others have the same.
    """
    ranks = math.prod(mesh)
    problem = Relaxation(size, periodic=True)
    layout = cartesian(problem.grid.box, mesh, granule=1)

    def rank(comm: Comm) -> dict[int, int]:
        with Engine({problem.grid: layout}, comm=comm) as engine:
            engine.set(problem.u, np.zeros(problem.grid.shape))
            engine.run(problem.step, _COUNTED)  # afterwards there is one exchange in a step
            before = engine.traffic
            engine.run(problem.step, _COUNTED)
            return {to: (now.bytes - before[to].bytes) // _COUNTED for to, now in engine.traffic.items()}

    found = run_virtual(ranks, rank)
    out = [sum(sent.values()) for sent in found]
    into = [sum(sent.get(me, 0) for sent in found) for me in range(ranks)]
    cells = layout.cells().tolist()
    return {
        "mesh": mesh,
        "size": size,
        "cells": cells[0],
        "bytes": out[0] + into[0],
        "same": len(set(cells)) == len({a + b for a, b in zip(out, into, strict=True)}) == 1,
    }


def messages(mapping: str) -> dict[str, Any]:
    """Return the messages that each node of the cluster of the paper sends in a step of 8 x 8 blocks on a torus."""
    seats, around = Tree.parse(CLUSTER), (True, True)
    layout = place(cartesian(Relaxation(64).grid.box, (8, 8), granule=1), seats, mapping, around)
    edges = edges_of(layout, around)
    away = seats.apart(seats.common(edges.sender, edges.receiver))
    out = np.bincount(seats.nodes[edges.sender[away]], edges.copies[away]).astype(int)
    nodes = len(set(seats.nodes.tolist()))
    cost = cost_of(layout, seats, around)
    return {
        "mapping": mapping,
        "a node": [count / nodes for count in cost.copies[:3]],
        "least and most to other nodes": [int(out.min()), int(out.max())],
    }


def meshes(ranks: int) -> list[Mesh]:
    """Return the mesh of one dimension, and that of two dimensions with the most equal sides if it is another one."""
    side = max(n for n in range(1, math.isqrt(ranks) + 1) if ranks % n == 0)
    return [(ranks, 1)] if side == 1 else [(ranks, 1), (ranks // side, side)]


def times(how: Sizes, say: Say) -> list[dict[str, Any]]:
    """Return the times of a step on 1, 2, 4, ... cores of this machine.

    Rows have a ``strategy``: ``system`` leaves the choice of cores to the operating system, ``affinity`` pins ranks to
    cores in sequential order (the paper's *Aff*), and ``affinity, mapping`` also maps blocks to ranks by their cost
    (*Aff-Mpp*).
    """
    rows = []
    ranks, cores = 1, min(len(available_cores()), _MOST)
    while ranks <= cores:
        order = {"ranks": ranks, "sizes": how.lattices, "meshes": meshes(ranks), "steps": how.steps}
        for pinned, mappings in ((False, ["sequential"]), (True, ["sequential", "auto"])):
            if ranks == 1 and pinned:
                continue
            say(f"{ranks} process{'es' if ranks > 1 else ''}, {'pinned to cores' if pinned else 'not pinned'} ...")
            found = carry_out({**order, "mappings": mappings, "rounds": how.rounds}, pinned=pinned)
            if pinned and not found["pinned"]:
                say("the ranks could not be pinned here")
                continue
            for row in found["rows"]:
                strategy = "system" if not pinned else "affinity" if row["mapping"] == "sequential" else _MAPPED
                rows.append({"ranks": ranks, "strategy": strategy, **row})
        ranks *= 2
    return rows


_MAPPED: Final = "affinity, mapping"


def carry_out(order: Mapping[str, Any], *, pinned: bool) -> dict[str, Any]:
    """Have ranks on this machine carry out an order, and return what rank 0 prints; raise RunError if they fail."""
    words = [sys.executable, "-m", "minga.studies.printista.ranks", json.dumps(order)]
    environment = {**os.environ, "MINGA_PIN": "on" if pinned else "off"}
    if order["ranks"] > 1:
        launcher = find_launcher()
        words = [*launcher.command(order["ranks"]), *words]
        environment = {**launcher.environment(), "MINGA_PIN": environment["MINGA_PIN"]}
    try:
        done = finished_job(words, environment, _PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{order['ranks']} ranks did not end within {_PATIENCE:g} s and were ended") from error
    if done.returncode != 0 or not done.stdout.strip():
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise RunError(f"{order['ranks']} ranks ended with status {done.returncode}:\n{said}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def failed(result: Mapping[str, Any]) -> list[str]:
    """Return the statements that do not hold, all of which are about counts and bits, and depend on no clock."""
    statements = {
        f"Table 1, {_text(row['mesh'])}: cells and bytes of a process": row["same"]
        and (row["cells"], row["bytes"]) == _paper_volume(row["mesh"], row["size"])
        for row in result["table 1"]
    }
    for row in result["figure 5"]:
        if row["mapping"] in PAPER_MESSAGES:
            here = tuple(row["a node"]) == PAPER_MESSAGES[row["mapping"]]
            statements[f"Fig. 5, {row['mapping']}: messages of a node"] = here
    for size in result["sizes"]["lattices"]:
        sums = {row["crc"] for row in result["times"] if row["size"] == size}
        statements[f"{size} x {size}: the same bits on any number of cores and with any mapping"] = len(sums) == 1
    return [text for text, holds in statements.items() if not holds]


def _paper_volume(mesh: Sequence[int], size: int) -> tuple[int, int]:
    """Return the cells of a process and the bytes that it sends and receives, by Table 1."""
    parts, neighbours, face = PAPER_VOLUMES[mesh[0], mesh[1]]
    return size * size // parts, neighbours * 2 * (size // face) * BYTES


def _text(mesh: Sequence[int]) -> str:
    return f"mesh {mesh[0]}" if mesh[1] == 1 else f"mesh {mesh[0]}x{mesh[1]}"


def tables(result: Mapping[str, Any]) -> str:
    """Return the results as text, next to those of the paper."""
    size = result["sizes"]["counted"]
    lines = [f"Table 1. A process of {size} x {size} cells of {BYTES} bytes, counted; in brackets the paper's"]
    for row in result["table 1"]:
        cells, count = _paper_volume(row["mesh"], row["size"])
        sent = f"{row['bytes']:>7} bytes sent and received in a step ({count})"
        lines.append(f"  {_text(row['mesh']):10}{row['cells']:>7} cells ({cells}){sent:>50}")
    lines += ["", f"Fig. 5. Messages of a node, 8 x 8 blocks on {CLUSTER} nodes, chips and cores, counted; the paper's"]
    lines.append(f"  {'mapping':14}{'to other nodes':>16}{'between chips':>15}{'within a chip':>15}")
    for row in result["figure 5"]:
        printed = PAPER_MESSAGES.get(row["mapping"], (None, None, None))
        shown = [f"{n:g}" + ("" if p is None else f" ({p})") for n, p in zip(row["a node"], printed, strict=True)]
        lines.append(f"  {row['mapping']:14}{shown[0]:>16}{shown[1]:>15}{shown[2]:>15}")
    lines += ["", *_times(result)]
    return "\n".join(lines)


def _times(result: Mapping[str, Any]) -> list[str]:
    """Return lines with the times of this machine, and those of the paper for the same meshes."""
    lines = [
        f"Tables 2, 3, Figs. 3, 4, 6. One step, measured on this machine of {result['cores']} cores; in brackets",
        "the paper's for the same mesh, with one process on each node at a Gigabit switch",
        f"  {'cells':>11}  {'mesh':11}{'strategy':20}{'us':>9}{'computation':>20}{'speedup':>16}",
    ]
    alone = {row["size"]: row["seconds"] for row in result["times"] if row["ranks"] == 1}
    for row in sorted(result["times"], key=lambda row: (row["size"], row["ranks"], row["mesh"][1])):
        printed = PAPER_TIMES.get(row["size"], {}).get((row["mesh"][0], row["mesh"][1]))
        share, speedup = 100.0 * row["compute"] / row["seconds"], alone[row["size"]] / row["seconds"]
        beside = ("", "") if printed is None else (f" ({printed[1]:g} %)", f" ({printed[2]:g})")
        square = f"{row['size']} x {row['size']}"
        lines.append(
            f"  {square:>11}  {_text(row['mesh']):11}{row['strategy']:20}{1e6 * row['seconds']:9.1f}"
            f"{f'{share:.1f} %{beside[0]}':>20}{f'{speedup:.2f}{beside[1]}':>16}"
        )
    reductions = ", ".join(f"{percent} % on {ranks}" for ranks, percent in PAPER_AFFINITY.items())
    lines.append(f"  by affinity the paper's times are shorter by {reductions} cores, on average")
    return lines
