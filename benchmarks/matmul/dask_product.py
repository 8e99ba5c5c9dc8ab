"""Dask's own product, by a scheduler and a worker on each node of a lab, in an environment of its own.

Blocks are dealt out as workers become free, so that fast ones get more; each block travels to whoever needs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from minga.lab.cluster import Cluster

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-matmul" / "bin" / "python"
PORT = 8786
_PATIENCE = 300.0


def installed() -> bool:
    """Whether `make .venv-matmul/.ready` has been done, and Dask is in it."""
    return PYTHON.exists() and any((PYTHON.parents[1] / "lib").glob("python*/site-packages/distributed"))


def measure(cluster: Cluster, folder: Path, n: int, chunk: int, rounds: int) -> dict[str, Any] | None:
    """Seconds of some products of n x n, in blocks of ``chunk``; None where something went wrong, which is told."""
    environment = {"OPENBLAS_NUM_THREADS": "1", "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    address = f"tcp://{cluster.addresses[0]}:{PORT}"
    with ExitStack() as stack:
        started = []
        scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", cluster.addresses[0], "--port", str(PORT)]
        for node, words in [
            (0, [*scheduler, "--no-dashboard"]),
            *((node, ["-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                      "--host", cluster.addresses[node], "--name", name, "--preload", str(HERE / "slow.py")])
              for node, name in enumerate(cluster.names)),
        ]:  # fmt: skip
            command = cluster.command(node, [str(PYTHON), *words], environment)
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
            )
            started.append(process)
            stack.callback(_end, process)
        order = {"address": address, "n": n, "chunk": chunk, "rounds": rounds, "folder": str(folder),
                 "workers": len(cluster.names)}  # fmt: skip
        client = cluster.command(
            0, [str(PYTHON), str(HERE / "scripts" / "dask_client.py"), json.dumps(order)], environment
        )
        try:
            done = subprocess.run(client, capture_output=True, text=True, timeout=_PATIENCE, check=False, cwd=folder)
        except subprocess.TimeoutExpired:
            print("Dask did not end in time", file=sys.stderr)
            return None
    if done.returncode:
        print(f"Dask ended with status {done.returncode}:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
