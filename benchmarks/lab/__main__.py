"""Runs on clusters in a box: unequal machines, a machine that slows down, a thin network.

python -m benchmarks.lab                   everything, about ten minutes; stores benchmarks/results/lab-hetero.json
python -m benchmarks.lab --only hetero     a part; stores only where --out says
python -m benchmarks.lab --only hetero --update   a part anew, in the stored file
python -m benchmarks.lab --quick           small and few: numbers that mean nothing

Needs Linux, and root or user namespaces with control groups that may be set (see docs/lab.md). All numbers are of an
emulated cluster: nodes are control groups that share this machine's cores, links are shaped pairs of interfaces.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.command import asked
from benchmarks.machine import SOURCES, measured_in_labs
from minga.lab.cluster import Cluster, laboratory
from minga.studies.changing import obeying

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent

SHAPES = {"laplace_points": (9216, 4096), "conduction": (1536, 128, 128)}


def order(cluster: Cluster, content: Mapping[str, Any]) -> dict[str, Any]:
    """Have the ranks of a lab, one a node, carry out an experiment."""
    words = [sys.executable, "-m", "benchmarks.lab.program", json.dumps(content)]
    before = cluster.counters()
    done = cluster.run(words, environment={"PYTHONPATH": SOURCES})
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"the ranks ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    after = cluster.counters()
    sent = {node: after[node].sent_bytes - before[node].sent_bytes for node in after}
    return {**found, "lab": cluster.lab.name, "shares": cluster.shares, "interface_bytes_of_all": sent}


def hetero(quick: bool) -> dict[str, Any]:
    """Four nodes 4 : 2 : 2 : 1: the automatic plan, equal slabs, and the sum of the speeds."""
    with laboratory("four") as cluster:
        return {name: order(cluster, common("hetero", name, quick)) for name in ("laplace_points", "conduction")}


def milano(quick: bool) -> dict[str, Any]:
    """Powers 20, 5 and 5, as in section 2.1 of the electrodeposition paper."""
    with laboratory("milano-2-1") as cluster:
        return order(cluster, common("hetero", "conduction", quick))


def lost(quick: bool) -> dict[str, Any]:
    """The fastest of four nodes loses half its share."""
    with laboratory("four") as cluster, tempfile.TemporaryDirectory() as name:
        share = cluster.shares[0]
        with obeying(cluster, Path(name), {"halved": share / 2, "restored": share}):
            content = common("lost", "heat_3d", quick, (3072, 128, 128)) | {
                "run_seconds": 3 if quick else 45,
                "flags": name,
            }
            return order(cluster, content)


def overlap(quick: bool) -> dict[str, Any]:
    """Blocking, overlapped with and without polls, and deep halos, with socket buffers as they were then."""
    with laboratory(HERE / "small-buffers.toml") as cluster:
        return order(cluster, common("overlap", "heat_3d", quick, (3072, 100, 105)) | {"depth": 4})


def depth(quick: bool) -> dict[str, Any]:
    """How deep a halo pays where messages take a while to arrive."""
    with laboratory(HERE / "far-apart.toml") as cluster:
        return order(cluster, common("depth", "laplace", quick, (240, 1024)))


def common(experiment: str, model: str, quick: bool, shape: tuple[int, ...] | None = None) -> dict[str, Any]:
    """What all orders say."""
    return {
        "experiment": experiment,
        "model": model,
        "shape": [max(24, length // 3) for length in shape or SHAPES[model]] if quick else shape or SHAPES[model],
        "seconds": 0.2 if quick else 2.0,
        "rounds": 2 if quick else 5,
        "steps": 0 if model == "laplace_points" else 40,  # whose sweeps depend on the blocks
    }


ITEMS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "hetero": hetero,
    "lost": lost,
    "overlap": overlap,
    "milano": milano,
    "depth": depth,
}


def headline(results: Mapping[str, Any]) -> dict[str, float]:
    """The worst of the cases on unequal nodes, and the best that equal slabs do."""
    cases = results.get("hetero", {}).values()
    return {} if not cases else {
        "efficiency": min(case["efficiency"] for case in cases),
        "efficiency_equal_slabs": max(case["efficiency_equal_slabs"] for case in cases),
        "prediction_error": max(case["prediction_error"] for case in cases),
    }  # fmt: skip


def main() -> int:
    options = asked("benchmarks.lab", "Measure clusters in a box", ITEMS, "lab-hetero.json", update=True)
    content = options.whole(measured_in_labs(ITEMS, options.only, options.quick))
    content |= headline(content["results"])
    options.store(content)
    print(json.dumps(content, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
