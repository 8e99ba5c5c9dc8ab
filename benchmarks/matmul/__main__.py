"""Products of matrices on four nodes with speeds 4 : 2 : 1 : 1.

python -m benchmarks.matmul                    everything, about ten minutes; stores benchmarks/results/matmul.json
python -m benchmarks.matmul --only compared    a part; stores only where --out says
python -m benchmarks.matmul --only lost --update   a part anew, in the stored file
python -m benchmarks.matmul --quick            small and few: numbers that mean nothing

Needs Linux, and root or user namespaces with control groups that may be set (see docs/lab.md). pdgemm takes part where
apt can download Debian's packages (into a temporary directory), Dask where `make .venv-matmul/.ready` has been done.
All numbers are of an emulated cluster: nodes are control groups that share this machine's cores, and repeat their
products (slow.py).
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import asked
from benchmarks.machine import measured_in_labs
from benchmarks.matmul import dask_product, lost, scalapack, slow
from benchmarks.matmul.report import markdown
from benchmarks.page import shown
from minga.lab.cluster import Cluster, laboratory

ROOT = Path(__file__).parents[2]
LAB = Path(__file__).with_name("four.toml")
MEMORY = Path("/dev/shm")
SIZE = 2048
PEERS = ("minga, best layout", "minga, equal rows", "numpy on the fastest node", "SUMMA", "pdgemm")


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Files on no disk: all nodes are on this machine, whose disk is not what is measured."""
    with tempfile.TemporaryDirectory(prefix="matmul-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def ordered(
    cluster: Cluster, folder: Path, ways: Sequence[str], sizes: Sequence[int], rounds: int, more: Mapping[str, str]
) -> dict[str, Any]:
    """Have the ranks of a lab, one a node, make products."""
    order = {"ways": list(ways), "sizes": list(sizes), "rounds": rounds, "folder": str(folder)}
    words = [sys.executable, "-m", "benchmarks.matmul.program", json.dumps(order)]
    done = cluster.run(words, environment={"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **more})
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"the ranks ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compared(quick: bool) -> dict[str, Any]:
    """Rows by speed beside equal rows, one node alone, and others' programs, in one run."""
    n, rounds = (512, 1) if quick else (SIZE, 2)
    with laboratory(LAB) as cluster, folder_in_memory() as folder:
        libraries, preload = scalapack.unpack(folder / "debian"), slow.shim(folder)
        libraries = None if libraries is None or preload is None else {**libraries, **preload, "MINGA_SLOWNESS": "1"}
        ways = ["minga", *(name for name in PEERS if name != "pdgemm" or libraries is not None)]
        found = ordered(cluster, folder, ways, [n], rounds, libraries or {})[str(n)]
        if dask_product.installed():
            dask = dask_product.measure(cluster, folder, n, n // 10, rounds)
            if dask is not None:
                seconds = dask.pop("seconds")
                spread = {"median": statistics.median(seconds), "least": min(seconds), "most": max(seconds)}
                found["Dask"] = {"seconds": spread, **dask}
        return {"n": n, "shares": cluster.shares, "ways": found}


def sizes(quick: bool) -> dict[str, Any]:
    """Predictions and the choice of ranks, below and above the size from which on it pays."""
    grid = [256] if quick else [128, 256, 512, 1024]
    ways = ["minga", "minga, from one", "minga, best layout from one", "numpy on the fastest node"]
    with laboratory(LAB) as cluster, folder_in_memory() as folder:
        return ordered(cluster, folder, ways, grid, 1 if quick else 2, {})


def lose(quick: bool) -> dict[str, Any]:
    """A rank is killed in the middle of a product."""
    with laboratory(LAB) as cluster, folder_in_memory() as folder:
        return lost.measure(cluster, folder, 2048 if quick else 4096)


ITEMS: dict[str, Callable[[bool], dict[str, Any]]] = {"compared": compared, "sizes": sizes, "lost": lose}


def headline(results: Mapping[str, Any]) -> dict[str, Any]:
    """What is promised of products on unequal nodes."""
    if "compared" not in results:
        return {}
    found = results["compared"]["ways"]
    ours = found["minga"]
    return {
        "efficiency": ours["efficiency"],
        "prediction_error": ours["prediction_error"],
        "times_as_fast_as": {
            name: entry["seconds"]["median"] / ours["seconds"]["median"]
            for name, entry in found.items()
            if name != "minga"
        },
    }


def main() -> int:
    options = asked(
        "benchmarks.matmul", "Measure products on unequal nodes", ITEMS, "matmul.json", table=True, update=True
    )
    shown(options, "matmul", partial(measured_in_labs, ITEMS), markdown, headline=headline)
    return 0


if __name__ == "__main__":
    sys.exit(main())
