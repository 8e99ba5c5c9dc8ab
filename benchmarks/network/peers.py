"""The same messages timed by minga and by others, in turns on the same two nodes of a lab."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minga.errors import LaunchError
from minga.lab.cluster import Cluster
from minga.lab.config import Lab, LabNode
from minga.launch.hosts import Host
from minga.launch.implementations import find_implementation
from minga.network.measuring.exchanges import Ends, sample_message_sizes
from minga.network.measuring.host_team import agents
from minga.network.measuring.team import Team

RATE = 100e6
TWO = Lab("peers", (LabNode("one", 1.0, None, RATE), LabNode("two", 1.0, None, RATE)), rate=RATE)
SIZES = (1024, 65536, 262144, 1048576)
LARGE = (16384, *SIZES[1:])
"""Messages that are shorter than a shaper's burst sometimes travel for nothing."""
ROW, ROWS = 3, 25
"""The Intel benchmarks print means only: those of so many exchanges in a row, so often; ours are put together alike."""

OURS = """
import json, sys
from mpi4py import MPI
from minga.network.measuring.exchanges import Ends, sample_message_sizes
from minga.network.measuring.team import one_job
order = json.loads(sys.argv[1])
with one_job(MPI.COMM_WORLD) as team:
    if team is not None:
        for sample in sample_message_sizes(team, Ends(0, 1), "mpi", order["sizes"], order["seconds"], 0, least=50):
            print("found", json.dumps([sample.size, sample.seconds]))
"""

Times = dict[int, list[float]]
"""Seconds one way, by bytes."""


def missing(name: str) -> str:
    """Why a peer cannot be compared with here; nothing where it can."""
    if name == "netpipe":
        return "" if shutil.which("NPtcp") else "NetPIPE is not here: apt-get install netpipe-tcp"
    try:
        if name == "pvm":
            from minga.studies.tinetti.pvm import check_pvm

            check_pvm()
            return ""
        find_implementation("impi")  # whose wheel has the benchmarks
        find_implementation(name)
    except LaunchError as error:
        return str(error)
    return ""


@contextmanager
def two_agents(cluster: Cluster) -> Iterator[Team]:
    """Agents on the nodes of a lab."""
    hosts = [Host(name, address=address) for name, address in zip(cluster.names, cluster.addresses)]
    with agents(hosts, lambda host, command: cluster.command(host.name, command)) as team:
        yield team


def ours_tcp(cluster: Cluster, team: Team, sizes: Sequence[int], seconds: float) -> Times:
    """Ours over TCP."""
    found = sample_message_sizes(team, Ends(0, 1, cluster.addresses[1]), "tcp", sizes, seconds, 0)
    return {sample.size: list(sample.seconds) for sample in found}


def netpipe(cluster: Cluster, folder: Path, sizes: Sequence[int]) -> Times:
    """NetPIPE over TCP: one time for each size, the best mean of its trials."""
    # Both ends are told the sizes; without perturbation they are l, 3/2 l, 2 l, 3 l, ...
    options = ["-p", "0", "-l", str(min(sizes)), "-u", str(max(sizes))]
    server = subprocess.Popen(cluster.command(1, ["NPtcp", *options]), stdout=subprocess.DEVNULL, cwd=folder)
    try:
        time.sleep(0.5)  # it has no way to say that it listens
        command = cluster.command(0, ["NPtcp", "-h", cluster.addresses[1], *options, "-o", str(folder / "np.out")])
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=120)
    finally:
        server.kill()
        server.wait()
    rows = [line.split() for line in (folder / "np.out").read_text().splitlines()]
    return {int(size): [float(seconds)] for size, _, seconds in rows}


def ours_mpi(cluster: Cluster, mpi: str, sizes: Sequence[int], seconds: float) -> Times:
    """Ours over an MPI: means of exchanges in a row."""
    order = json.dumps({"sizes": list(sizes), "seconds": seconds})
    job = cluster.run([sys.executable, "-c", OURS, order], 2, mpi, None, 60 + 3 * seconds)
    rows = [json.loads(line[6:]) for line in (job.stdout or "").splitlines() if line.startswith("found ")]
    if job.returncode or not rows:
        raise LaunchError(f"ranks of {mpi} failed: {job.stdout}{job.stderr}")
    return {size: means(times) for size, times in rows}


def means(times: Sequence[float]) -> list[float]:
    """Of ``ROW`` exchanges in a row."""
    count = min(ROW, len(times))
    return [sum(times[at : at + count]) / count for at in range(0, len(times) - count + 1, count)]


def intel(cluster: Cluster, mpi: str, folder: Path, sizes: Sequence[int], rows: int = ROWS) -> Times:
    """The Intel benchmarks' PingPong on an MPI with MPICH's binary interface: means of exchanges in a row."""
    program = find_implementation("impi").launcher.parent / "IMB-MPI1"
    lengths = folder / "lengths"
    lengths.write_text("".join(f"{size}\n" for size in sizes))
    found = {"LD_LIBRARY_PATH": str(find_implementation(mpi).library.parent)}
    command = [str(program), *["PingPong"] * rows, "-msglen", str(lengths), "-iter", str(ROW), "-iter_policy", "off"]
    job = cluster.run(command, 2, mpi, found, 120)
    lines = re.findall(r"^ +(\d+) +\d+ +([\d.]+) +[\d.]+$", job.stdout or "", re.MULTILINE)
    if job.returncode or len(lines) != rows * len(sizes):
        raise LaunchError(f"IMB-MPI1 on {mpi} failed: {job.stdout}{job.stderr}")
    times: Times = {size: [] for size in sizes}
    for size, micro in lines:
        times[int(size)].append(float(micro) * 1e-6)
    return times


def round_robin(
    ours: Callable[[], Times], theirs: Callable[[], Times], sizes: Sequence[int], turns: int
) -> Iterator[dict[int, dict[str, float]]]:
    """After each turn, of all turns so far and by bytes: medians of both, their ratio, and the ratio of the least."""
    mine: Times = {size: [] for size in sizes}
    other: Times = {size: [] for size in sizes}
    for _ in range(turns):
        for all_times, found in ((mine, ours()), (other, theirs())):
            for size in sizes:
                all_times[size] += found.get(size, [])
        yield {size: _compared(mine[size], other[size]) for size in sizes if mine[size] and other[size]}


def _compared(mine: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    ours, theirs = statistics.median(mine), statistics.median(other)
    return {"ours": ours, "theirs": theirs, "ratio": ours / theirs, "ratio_of_least": min(mine) / min(other)}


def worst(found: Mapping[Any, Mapping[str, float]], ratio: str = "ratio") -> float:
    """How far the worst ratio is from one: of medians, or ``ratio_of_least``."""
    return max(abs(one[ratio] - 1) for one in found.values())
