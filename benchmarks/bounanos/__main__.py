"""The pointwise scheme of Bounanos, Fleury, Nicolas and Vickers on a cluster in a box, beside the emulator.

python -m benchmarks.bounanos                      everything; stores benchmarks/results/bounanos.json
python -m benchmarks.bounanos --only distributed   a part; stores only where --out says
python -m benchmarks.bounanos --quick              small and few: numbers that mean nothing

Needs Linux, and root or user namespaces with control groups that may be set (see docs/lab.md). Nodes are control groups
that share this machine's cores; each step of Newton's method is done many times over, so that an iteration takes long
against the periods of their quotas. What rows cost is measured on one node, and what messages cost between two; with
both the emulator says what the others will take.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.bounanos import WINDOWS
from benchmarks.command import asked
from benchmarks.machine import SOURCES, in_a_line, measured_in_labs
from benchmarks.page import shown
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.studies.bounanos.balancers import Balance
from minga.studies.bounanos.costs import RowCosts, growth_law
from minga.studies.bounanos.cuts import equal, even, fullest
from minga.studies.bounanos.emulator import emulate
from minga.studies.bounanos.systems import Link, System
from minga.studies.bounanos.weights import mean_cost, paper_area
from minga.studies.bounanos.workload import paper_device, profile

ROOT: Final = Path(__file__).parent.parent.parent
PAGE: Final = ROOT / "docs" / "bounanos.md"
NODES: Final = 9
GROWTH: Final = 3.0
LAB: Final = Lab("even-nine", tuple(LabNode(f"node-{k}", 0.2) for k in range(NODES)), rate=1e9)
"""Eight nodes that compute and one for a parent, alike, at a switch of 1 Gb/s."""


def order(cluster: Cluster, content: Mapping[str, Any], ranks: int) -> Any:
    """Have so many nodes carry out an order; what rank 0 printed."""
    words = [sys.executable, "-m", "benchmarks.bounanos.program", json.dumps(content)]
    done = cluster.run(words, ranks=ranks, environment={"PYTHONPATH": SOURCES})
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"the ranks ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def common(quick: bool) -> dict[str, Any]:
    """What all orders say."""
    return {
        "task": "distributed",
        "coarsen": 20 if quick else 5,
        "iterations": 20 if quick else 40,
        "labour": 20 if quick else 6000,
        "growth": GROWTH,
        "rounds": 1 if quick else 2,
    }


class Measured:
    """What rows and messages cost in the lab, and what follows for a run."""

    def __init__(self, cluster: Cluster, quick: bool) -> None:
        self.device = paper_device(common(quick)["coarsen"])
        self.rows = self.device.grid.shape[0]
        whole = {**common(quick), "ends": [0, self.rows]}
        self.serial = order(cluster, whole, 1)
        light = order(cluster, {**whole, "labour": 1, "growth": 0.0}, 1)
        steps = [np.asarray(run["steps"], float) for run in (self.serial, light)]
        step = (self.serial["seconds"] - light["seconds"]) / float((steps[0] - steps[1]).sum())
        rest = max(0.0, light["seconds"] - step * float(steps[1].sum()))
        self.costs = self._costs(whole, step, rest / (self.rows * whole["iterations"]))
        times = order(cluster, {"task": "messages", "rounds": 5 if quick else 20}, 2)["seconds"]
        rate = (6240 - 624) / max(times["6240"] - times["624"], 1e-9)
        self.link = Link(latency=times["8"], rate=rate, overhead=0.0)
        self.times = times

    def _costs(self, whole: Mapping[str, Any], step: float, rest: float) -> RowCosts:
        """Newton's steps as they are, watched here, times the labour and the law; all else the same in every row."""
        windows = 2 * WINDOWS
        absorber = next(layer for layer in self.device.layers if layer.name == "Absorp")
        seen = profile(self.device, -60.0, "lit", Pointwise(), whole["iterations"] // windows, windows).steps
        progress = (np.arange(windows) + 0.5) / windows
        seconds = np.zeros((windows, 5, self.rows))
        seconds[:, 1] = step * whole["labour"] * seen
        seconds[:, 1, absorber.first : absorber.last + 1] *= growth_law(progress, GROWTH)[:, None]
        seconds[:, 2:] = rest / 3.0
        return RowCosts(seconds, whole["iterations"])

    def cuts(self, segments: int, *, moving: bool) -> dict[str, list[int]]:
        """Equal rows, the paper's weights, and mean costs; only the first where rows move later."""
        if moving:
            return {"equal": equal(self.rows, segments).tolist()}
        absorber = next(layer for layer in self.device.layers if layer.name == "Absorp")
        heavy = (absorber.first, absorber.last + 1)
        return {
            "equal": equal(self.rows, segments).tolist(),
            "area": fullest(paper_area(self.costs, heavy), segments).tolist(),
            "mean cost": even(mean_cost(self.costs), segments).tolist(),
        }


def compare(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Runs of some organisations on 2, 4 and 8 nodes, and what was emulated for them."""
    with laboratory(LAB) as cluster:
        measured = Measured(cluster, quick)
        found = []
        for nodes in (2, 4) if quick else (2, 4, 8):
            for name in names:
                for cut, ends in measured.cuts(nodes, moving=name == "adaptive").items():
                    found.append(row(cluster, measured, quick, nodes, name, cut, ends))
                    print(json.dumps(found[-1]), file=sys.stderr, flush=True)
        shares = cluster.shares
    errors = [abs(one["emulated"] / one["seconds"] - 1.0) for one in found]
    return {
        "rows": measured.rows,
        "shares": shares,
        "serial_seconds": measured.serial["seconds"],
        "serial_emulated": measured.costs.serial,
        "message_seconds": measured.times,
        "runs": found,
        "largest_error": max(errors),
        "median_error": float(np.median(errors)),
    }


def row(
    cluster: Cluster, measured: Measured, quick: bool, nodes: int, name: str, cut: str, ends: list[int]
) -> dict[str, Any]:
    """One run, really and emulated."""
    central = name == "centralised"
    content = {**common(quick), "task": name, "ends": ends}
    real = order(cluster, content, nodes + central)
    seconds = real["seconds"]
    system = System(
        name,
        "centralised" if central else "distributed",
        reduction="blocking",
        balance=Balance(0.0, recut=True, move=real["pause"]) if name == "adaptive" else None,
        link=measured.link,
    )
    emulated = emulate(measured.costs, ends, nodes, system).seconds
    serial = measured.serial["seconds"]
    return {
        "nodes": nodes, "organisation": name, "cut": cut, "seconds": seconds, "emulated": emulated,
        "speed_up": serial / seconds, "efficiency": serial / seconds / nodes,
    }  # fmt: skip


ITEMS: Final[dict[str, Callable[[bool], dict[str, Any]]]] = {
    "distributed": lambda quick: compare(("distributed",), quick),
    "centralised": lambda quick: compare(("centralised",), quick),
    "adaptive": lambda quick: compare(("adaptive",), quick),
}


def run(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these items; what is stored."""
    warm = {**common(quick), "ends": [0, 40, paper_device(common(quick)["coarsen"]).grid.shape[0]], "iterations": 5}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.bounanos.program", json.dumps({**warm, "labour": 1})],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip  # so that nodes find the kernels in the cache
    return measured_in_labs(ITEMS, names, quick)


def markdown(content: Mapping[str, Any]) -> str:
    """Runs as a table."""
    lines = [f"{in_a_line(content)}; nodes and network emulated."]
    for name, found in content["results"].items():
        size = f"{found['rows']} rows, {found['serial_seconds']:.3g} s on one node"
        off = f"{100 * found['median_error']:.0f} %, {100 * found['largest_error']:.0f} % at most"
        lines += [
            "",
            f"{name.capitalize()}: {size}; the emulator is off by {off}.",
            "",
            "| nodes | cut | seconds | emulated | efficiency |",
            "|---|---|---|---|---|",
        ]
        for one in found["runs"]:
            times = f"{one['seconds']:.3g} | {one['emulated']:.3g} | {one['efficiency']:.2f}"
            lines.append(f"| {one['nodes']} | {one['cut']} | {times} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    about = "Time the pointwise scheme on a cluster in a box"
    options = asked("benchmarks.bounanos", about, ITEMS, "bounanos.json", table=True, update=True)
    shown(options, "bounanos", run, markdown, page=PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
