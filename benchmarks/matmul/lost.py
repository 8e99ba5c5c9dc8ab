"""A node is lost in the middle of a product: `minga matmul --hosts` goes on without it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from minga.lab.cluster import Cluster
from minga.lab.launch import mpi_environment
from minga.launch.implementations import find_implementation

_PATIENCE = 300.0
_SHELL = """\
#!/bin/sh
# Called like ssh: [options] ADDRESS COMMAND...
while :; do case $1 in -[plioF]) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1
shift
[ -e {folder}/off ] && [ "$host" = {lost} ] && exit 255
case $host in
{nodes}
esac
exit 255
"""


def measure(cluster: Cluster, folder: Path, n: int) -> dict[str, Any]:
    """Seconds of a product without and with the loss of the second fastest node after a third of it."""
    shell, hosts = folder / "shell", folder / "hosts"
    cases = [
        f'{address}) exec {shlex.join(cluster.command(node, ["/bin/sh", "-c"]))} "$*" ;;'
        for node, address in enumerate(cluster.addresses)
    ]
    shell.write_text(_SHELL.format(nodes="\n".join(cases), folder=shlex.quote(str(folder)), lost=cluster.addresses[1]))
    shell.chmod(0o755)
    hosts.write_text("".join(f"{name} address={address}\n" for name, address in zip(cluster.names, cluster.addresses)))
    for seed, name in enumerate("ab"):
        np.save(folder / f"{name}.npy", np.random.default_rng(seed).standard_normal((n, n)))
    whole = _product(cluster, folder, kill=False)
    cut = _product(cluster, folder, kill=True)
    expected = np.load(folder / "a.npy") @ np.load(folder / "b.npy")
    error = float(np.abs(np.load(folder / "c.npy") - expected).max())
    return {"n": n, "undisturbed": whole, "one_lost": cut, "largest_error": error}


def _product(cluster: Cluster, folder: Path, *, kill: bool) -> dict[str, Any]:
    words = [sys.executable, "-m", "minga.cli.main", "matmul", "a.npy", "b.npy", "-o", "c.npy", "--hosts", "hosts",
             "--shell", str(folder / "shell"), "--layout", "rows", "--width", "128", "--json", "--force"]  # fmt: skip
    environment = {
        **os.environ, **mpi_environment(find_implementation("mpich", None)), "OPENBLAS_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    job = subprocess.Popen(
        cluster.command(0, words),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    began = time.perf_counter()
    killed = _kill_in_the_middle(cluster, folder, job) if kill else None
    out, err = job.communicate(timeout=_PATIENCE)
    if job.returncode:
        sys.exit(f"minga matmul ended with status {job.returncode}:\n{out}{err}")
    account = json.loads(out.strip().splitlines()[-1])
    return {
        "seconds_with_start": time.perf_counter() - began,
        "seconds": account["seconds"],
        "ranks_at_the_end": len(account["ranks"]),
        "there_before": account["there_before"],
        "killed_after": killed,
    }


def _kill_in_the_middle(cluster: Cluster, folder: Path, job: subprocess.Popen[str]) -> float:
    """Kill what runs on the second node when a third of the result is listed; seconds until then."""
    began, partial = time.perf_counter(), folder / "c.npy.partial"
    while job.poll() is None and time.perf_counter() - began < _PATIENCE:
        lines = [line.split() for file in partial.glob("done-*.txt") for line in file.read_text().splitlines()]
        cells = sum((int(w[1]) - int(w[0])) * (int(w[3]) - int(w[2])) for w in lines if len(w) == 5)
        if cells and cells > np.load(partial / "c.npy", mmap_mode="r").size / 3:
            (folder / "off").touch()  # from now on nobody reaches it
            for process in cluster.processes().get(1, ()):
                os.kill(process, signal.SIGKILL)
            break
        time.sleep(0.02)
    return time.perf_counter() - began
